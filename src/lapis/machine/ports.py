"""Ports that belong to one run, although its processes bind them later: claimed as long as an agent or keeper lives."""

from __future__ import annotations

import random
import socket
import sys

from lapis.errors import UserErrorException

_RANGE = range(20000, 30000)  # below those that the kernel gives to whoever asks for none in particular


def reserve(count: int, before: list[int] | None = None) -> list[int]:
    """`count` free ports that no other agent of this machine gets; those of `before` again where they are free."""
    found: list[int] = []
    for port in [*(before or ()), *random.sample(_RANGE, len(_RANGE))]:
        if len(found) == count:
            break
        if port not in found and _free(port) and _claim(port):
            found.append(port)
    if len(found) < count:
        raise UserErrorException(f"{count} ports between {_RANGE[0]} and {_RANGE[-1]} are needed, and not free.")
    return found


def _free(port: int) -> bool:
    with socket.socket() as trial:
        try:
            trial.bind(("", port))
        except OSError:
            return False
    return True


def _claim(port: int) -> bool:
    """A name that the kernel gives once, to the whole machine, and takes back when its last holder has ended."""
    if sys.platform != "linux":
        return True
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0lapis-port-{port}")
    except OSError:
        claim.close()
        return False
    claim.detach()  # left open: the keepers that this process forks hold it too, and outlive it
    return True

"""Server programs that run on a port of this machine for as long as a test needs them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

from lapis.testing import until
from tests.needs import lacking


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.5).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def running(
    command: list[str], ready: Callable[[], bool], end: signal.Signals = signal.SIGKILL, **how: Any
) -> Iterator[None]:
    """The program, from the moment it is ready. One that does not leave when it is told to is killed."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how)
    try:
        until(lambda: process.poll() is not None or ready(), lambda: command, seconds=60)
        if process.poll() is not None:
            lacking(f"{os.path.basename(command[0])} did not start: it ended with {process.returncode}")
        yield
    finally:
        process.send_signal(end)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

"""One builds an environment, all others who want it wait until that one is done.

Twenty processes may ask at once, and nineteen of them do nothing but wait: so this imports next to nothing.
"""

from __future__ import annotations

import os
import threading
import time

from lapis.environments import in_use

TYPE_CHECKING = False  # that of typing takes longer to import than all the rest
if TYPE_CHECKING:
    from lapis.machine.commands import Canceled, Tell

MARKER = "lapis-environment.json"  # written last: a folder without it is a heap of files, not an environment
IN_IMAGE = "in-image"  # beside it: the interpreter is not to be found on this machine
_LOOK_EVERY = 0.25  # seconds between two questions whether it is still wanted; the end of a build is heard at once
_SAY_AGAIN_EVERY = 30.0


def ready(folder: str) -> bool:
    """Whether it is whole, and the interpreter below it is still on the machine, or in an image."""
    if not os.path.exists(os.path.join(folder, MARKER)):
        return False
    return os.path.exists(os.path.join(folder, "bin", "python")) or os.path.exists(os.path.join(folder, IN_IMAGE))


def turn(root: str, name: str, tell: Tell, canceled: Canceled) -> int | None:
    """The right to build it, until the returned file is closed; None once it is there. Raises Stopped."""
    folder = os.path.join(root, name)
    began = say_at = time.monotonic()
    while not ready(folder):
        file = in_use.take(root, name)
        if file is not None:
            if not ready(folder):
                return file
            os.close(file)
            return None
        free = _when_free(root, name)
        while not free.wait(_LOOK_EVERY if time.monotonic() < say_at else 0):
            if canceled():
                from lapis.machine.commands import Stopped

                raise Stopped(f"Canceled while another process built environment {name}.")
            if time.monotonic() >= say_at:
                who = ", ".join(f"process {pid}" for pid in in_use.holders(root, name)) or "another process"
                tell(f"Environment {name} is being built by {who}; waited {time.monotonic() - began:.0f} s so far")
                say_at = time.monotonic() + _SAY_AGAIN_EVERY
    return None


def _when_free(root: str, name: str) -> threading.Event:
    """Set by the kernel once nobody builds or removes it. Whoever stops waiting leaves a thread there."""
    free = threading.Event()

    def wait() -> None:
        try:
            os.close(in_use.hold(root, name))
        finally:
            free.set()

    threading.Thread(target=wait, name="lapis-turn", daemon=True).start()
    return free

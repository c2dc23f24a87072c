"""Who builds and who uses an environment: the kernel's lock on a file beside it, which no crash leaves behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager


def path_of(root: str, name: str) -> str:
    return os.path.join(root, f"{name}.lock")


def hold(root: str, name: str) -> int:
    """Say that the environment is in use, until the returned file is closed in this process and in all that it forked.

    Waits for one who builds or removes it. Look whether it is ready after this, not before.
    """
    return _locked(root, name, fcntl.LOCK_SH)


def take(root: str, name: str) -> int | None:
    """The right to build or remove the environment, until the returned file is closed; None if others have it."""
    try:
        return _locked(root, name, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None


def share(file: int) -> None:
    """From building it to using it."""
    fcntl.flock(file, fcntl.LOCK_SH)


def become_alone(file: int) -> bool:
    """From using it to the right to remove it, if nobody else uses it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


@contextmanager
def alone(root: str, name: str) -> Iterator[None]:
    """Wait until nobody else has the lock of that name, and have it."""
    file = _locked(root, name, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(file)


@contextmanager
def held(root: str, name: str) -> Iterator[int]:
    file = hold(root, name)
    try:
        yield file
    finally:
        os.close(file)


def holders(root: str, name: str) -> list[int]:
    """The processes that took the lock, as far as the kernel tells. They may have handed it on and left."""
    try:
        inode = os.stat(path_of(root, name)).st_ino
        with open("/proc/locks") as file:
            fields = [line.split() for line in file]
    except OSError:
        return []
    taken = [each for each in fields if "FLOCK" in each and "->" not in each]
    return sorted({int(each[4]) for each in taken if each[5].rsplit(":", 1)[-1] == str(inode)})


def _locked(root: str, name: str, how: int) -> int:
    os.makedirs(root, exist_ok=True)
    path = path_of(root, name)
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, how)
            if os.fstat(file).st_ino == os.stat(path).st_ino:
                return file
        except FileNotFoundError:
            pass  # removed together with its environment while we waited: there is another file of that name now
        except BaseException:
            os.close(file)
            raise
        os.close(file)

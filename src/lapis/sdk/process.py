"""What names a process for ever: its pid together with when it started."""

from __future__ import annotations

import os


def started(pid: int) -> str | None:
    """When process `pid` started, in the kernel's own words; None if it is gone or a zombie.

    A pid together with this names one process for ever: pids are used again, the pair is not.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None if os.path.isdir("/proc/self") else _started_elsewhere(pid)
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def _started_elsewhere(pid: int) -> str | None:
    """Systems without /proc: all that the standard library can tell is whether the pid is in use."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "alive"

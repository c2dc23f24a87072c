"""Processes of this machine: who is alive, and how to end a whole tree. The only place that kills."""

from __future__ import annotations

import os
import signal
import time


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


def seen_from() -> str:
    """Names the numbering of processes that this one lives in: the boot of the machine, and the container on it."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def alive(pid: int, when: str | None) -> bool:
    return when is not None and started(pid) == when


def signal_process(pid: int, when: str | None, number: int) -> None:
    """Send a signal to exactly that process; one already gone is not an error."""
    if alive(pid, when):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def end_tree(mark: str, pids: list[int], grace: float = 5.0) -> None:
    """End the processes `pids`, whatever they started, and whatever carries `mark` in its environment.

    Without grace nobody is asked first: an agent that was would have the time to report that its run was cancelled.
    """
    deadline = time.monotonic() + grace
    number = signal.SIGTERM if grace > 0.0 else signal.SIGKILL
    while True:
        targets = family(mark, pids)
        if not targets:
            return
        for pid in targets:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                pass
        if number == signal.SIGKILL and time.monotonic() > deadline + 5.0:
            return  # in the kernel's hands: nothing more can be done to it
        while time.monotonic() < deadline and family(mark, pids):
            time.sleep(0.02)
        if time.monotonic() >= deadline:
            number = signal.SIGKILL
            time.sleep(0.01)


def family(mark: str, pids: list[int]) -> set[int]:
    """The living ones of `pids`, their descendants, their sessions, and every process marked in its environment."""
    if not os.path.isdir("/proc/self"):
        return _family_elsewhere(pids)
    parents: dict[int, int] = {}
    found = set(pids)
    me = os.getpid()
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == me:
            continue
        pid = int(entry)
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rsplit(b")", 1)[1].split()
            if fields[0] in (b"Z", b"X"):
                continue
            parents[pid] = int(fields[1])
            if int(fields[3]) in pids or int(fields[2]) in pids:  # session or process group
                found.add(pid)
            elif mark:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if mark.encode() in file.read().split(b"\0"):
                        found.add(pid)
        except (FileNotFoundError, ProcessLookupError, PermissionError, IndexError):
            continue
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found and pid not in found}
        grown = bool(more)
        found |= more
    return {pid for pid in found if pid in parents}


def _family_elsewhere(pids: list[int]) -> set[int]:
    import psutil  # systems without /proc

    found: set[int] = set()
    for pid in pids:
        try:
            process = psutil.Process(pid)
            found |= {pid, *(child.pid for child in process.children(recursive=True))}
        except psutil.NoSuchProcess:
            continue
    return found - {os.getpid()}

"""Processes of this machine: who is alive, and how to end a whole tree. The only place that kills."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import Callable, Iterable


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
    _end(lambda: family(mark, pids), grace)


def end_below(pid: int, when: str | None, grace: float = 5.0) -> None:
    """End all that exactly this process started, directly or not: its whole tree, if it adopts orphans."""
    _end(lambda: below(pid) if alive(pid, when) else set(), grace)


def _end(find: Callable[[], set[int]], grace: float) -> None:
    deadline = time.monotonic() + grace
    number = signal.SIGTERM if grace > 0.0 else signal.SIGKILL
    while True:
        targets = find()
        if not targets:
            return
        for pid in targets:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                pass
        if number == signal.SIGKILL and time.monotonic() > deadline + 5.0:
            return  # in the kernel's hands: nothing more can be done to it
        while targets and time.monotonic() < deadline:
            wait_for_one(targets, deadline - time.monotonic())
            targets = find()
        if time.monotonic() >= deadline:
            number = signal.SIGKILL
            wait_for_one(targets, 0.01)


def wait_for_one(pids: Iterable[int], seconds: float) -> None:
    """Until one of them has ended, or for so long. Where the system cannot tell: for a moment."""
    doors: list[int] = []
    try:
        for pid in pids:
            doors.append(os.pidfd_open(pid))
        select.select(doors, [], [], max(0.0, seconds))
    except (OSError, AttributeError, ValueError):  # it has ended, or there are too many, or no such thing: look again
        time.sleep(min(0.02, max(0.0, seconds)))
    finally:
        for door in doors:
            os.close(door)


def below(pid: int) -> set[int]:
    """The living processes below `pid`, without `pid`. Nobody else is looked at, however many the machine has."""
    found: set[int] = set()
    fresh = [pid]
    while fresh:
        each = fresh.pop()
        try:
            children = [int(child) for task in os.listdir(f"/proc/{each}/task") for child in _children(each, task)]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile: what it left is somebody else's child
        except _NotTold:
            return {child for child in family("", [pid]) if child != pid}
        fresh += [child for child in children if child not in found]
        found.update(children)
    return {child for child in found if started(child) is not None}


class _NotTold(Exception):
    """This kernel does not tell who a process' children are."""


def _children(pid: int, task: str) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
            return file.read().split()
    except (FileNotFoundError, ProcessLookupError):
        if os.path.isdir(f"/proc/{pid}/task/{task}"):
            raise _NotTold from None
        return []


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

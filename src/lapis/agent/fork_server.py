"""Bears agents: has everything imported that an agent needs, and forks one for each folder it is told.

A fresh interpreter would spend most of a short run's time on imports. An agent forked here is a process of its own: it
outlives the fork server, which ends when the engine that started it does.
"""

from __future__ import annotations

# What an agent or its keeper would import later is imported once, before the forks.
import ctypes  # noqa: F401
import encodings.idna  # noqa: F401
import gc
import os
import select
import signal
import socket  # noqa: F401
import sys

from lapis.agent import reach
from lapis.agent.__main__ import live
from lapis.later import load_waiting


def main() -> None:
    """Read folders from stdin, one a line; answer each on stdout with the pid of its agent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load_waiting()
    reach.level()  # tried out once, for all of them
    gc.collect()
    gc.freeze()  # so that a collection in a child leaves the pages shared
    told = b""
    while True:
        _reap()
        if not select.select([0], [], [], 1.0)[0]:
            continue
        fresh = os.read(0, 65536)
        if not fresh:
            return
        told += fresh
        *folders, told = told.split(b"\n")
        for folder in folders:
            os.write(1, b"%d\n" % _fork(os.fsdecode(folder)))


def _fork(folder: str) -> int:
    """An agent that is asked to stop before it listens would just die: the question waits until then."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    pid = os.fork()
    if pid == 0:
        try:
            _settle(folder)
            live(folder)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    return pid


def _settle(folder: str) -> None:
    """Become a process of our own: a session, a log, a name, nothing that belongs to the fork server."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.chdir(folder)
    try:
        log = os.open("agent.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        log = os.open(os.devnull, os.O_WRONLY)  # a disk without room: the run matters, not what is said of it
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(log)
    os.close(nothing)
    try:
        with open("/proc/self/comm", "w") as file:
            file.write("lapis-agent")
    except OSError:
        pass  # only Linux lets a process say its name


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    main()

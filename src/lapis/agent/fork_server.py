"""Bears agents: has everything imported that an agent needs, and forks one for each folder it is told.

A fresh interpreter would spend most of a short run's time on imports. An agent forked here is a process of its own: it
outlives the fork server, which ends when the engine that started it does.

The next agent is forked ahead, with the keeper that it will need. Until it gets its folder it is of no run, and it gets
one only: no run finds anything of another in it.
"""

from __future__ import annotations

# What an agent or its keeper would import later is imported once, before the forks.
import ctypes  # noqa: F401
import gc
import os
import select
import signal
import socket  # noqa: F401
import sys
from typing import NoReturn

from lapis.agent import reach
from lapis.agent.__main__ import live
from lapis.agent.launch import Keeper
from lapis.later import load_waiting
from lapis.machine import apart

_AHEAD_AFTER = 0.05  # seconds of quiet: a script that is starting has the machine to itself


def main() -> None:
    """Read folders from stdin, one a line; answer each on stdout with the pid of its agent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load_waiting()
    own_user = reach.level().kind == apart.OWN_USER  # tried out once, for all of them
    gc.collect()
    gc.freeze()  # so that a collection in a child leaves the pages shared
    ended = _told_of_ends()
    ahead: _Agent | None = None
    told = b""
    while True:
        ready = select.select([0, ended], [], [], None if ahead else _AHEAD_AFTER)[0]
        if ended in ready:
            os.read(ended, 65536)
            _reap()
        if not ready:
            ahead = _Agent(own_user)
        if 0 not in ready:
            continue
        fresh = os.read(0, 65536)
        if not fresh:
            return
        told += fresh
        *folders, told = told.split(b"\n")
        for folder in folders:
            agent, ahead = ahead or _Agent(own_user), None
            os.write(1, b"%d\n" % agent.give(folder))


class _Agent:
    """A process that waits for the folder of its run. It ends with the fork server if it has none by then."""

    def __init__(self, own_user: bool) -> None:
        hear, self._tell = os.pipe()
        # Asked to stop before it listens, it would just die: the question waits until then.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._tell)
            _be_agent(hear, own_user)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        os.close(hear)

    def give(self, folder: bytes) -> int:
        """Its pid."""
        try:
            os.write(self._tell, folder)
        except BrokenPipeError:
            pass  # it was killed: whoever asked for it finds it gone, and asks again
        os.close(self._tell)
        return self._pid


def _be_agent(hear: int, own_user: bool) -> NoReturn:
    try:
        _leave_fork_server()
        keeper = Keeper(own_user)
        with os.fdopen(hear, "rb") as pipe:
            folder = os.fsdecode(pipe.read())
        if folder:
            _settle(folder)
            live(folder, keeper)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def _leave_fork_server() -> None:
    """Become a process of our own: a session, nothing that belongs to the fork server."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for target in (0, 1):
        os.dup2(nothing, target)
    os.close(nothing)


def _settle(folder: str) -> None:
    """With a working folder, a log and a name."""
    os.chdir(folder)
    try:
        log = os.open("agent.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        log = os.open(os.devnull, os.O_WRONLY)  # a disk without room: the run matters, not what is said of it
    for target in (1, 2):
        os.dup2(log, target)
    os.close(log)
    try:
        with open("/proc/self/comm", "w") as file:
            file.write("lapis-agent")
    except OSError:
        pass  # only Linux lets a process say its name


def _told_of_ends() -> int:
    """A pipe to read from: something comes when an agent has ended."""
    ends, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return ends


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    main()

"""Starts the script under a keeper: a process of ours that only waits for it and writes down how it ended.

The keeper, not the agent, is the script's parent, so the exit status survives the agent's death. The script writes
straight to a file, so it does not need the agent to live either.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from lapis.machine import json_files, networks, processes, whole_files

_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of Linux' prctl
_TOLD = ("process.json", "exit.json")  # what the keeper writes
_LONGEST = 1024  # bytes of each of them, for which room is kept


def start(
    argv: Sequence[str],
    environment: Mapping[str, str],
    cwd: str,
    log: str,
    folder: str,
    network: str = "",
    enter: Callable[[], None] = lambda: None,
) -> None:
    """Start the script and return once `process.json` (or, if it could not start, `exit.json`) is there.

    The room for both is taken before: a disk that fills up later changes nothing about how the script ended. `enter` is
    the last that the script's process does before it becomes the script.

    An agent that was killed at this point leaves a keeper that is about to write one of them: its script is the one.
    """
    if any(os.path.exists(os.path.join(folder, name)) for name in _TOLD):
        return
    mark = os.path.join(folder, "launching")
    if os.path.exists(mark) and _comes_soon(folder):
        return
    with open(mark, "w"):
        pass
    for name in _TOLD:
        whole_files.reserve(os.path.join(folder, name), _LONGEST)
    ready, tell = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        try:
            os.close(ready)
            _keep(argv, environment, cwd, log, folder, network, enter, tell)
        finally:
            os._exit(70)
    os.close(tell)
    os.read(ready, 1)
    os.close(ready)


def _comes_soon(folder: str) -> bool:
    """Whether a keeper of an earlier agent tells within a moment that it started the script, or could not."""
    deadline = time.monotonic() + 3.0
    while time.monotonic() < deadline:
        if any(os.path.exists(os.path.join(folder, name)) for name in _TOLD):
            return True
        time.sleep(0.02)
    return False


def _say(tell: int) -> None:
    try:
        os.write(tell, b"x")
    except BrokenPipeError:
        pass  # the agent was killed meanwhile: the next one reads the files


def read(folder: str, name: str) -> dict[str, Any] | None:
    return json_files.read(os.path.join(folder, name))


def wait_for_end(keepers: Sequence[Mapping[str, Any]], seconds: float) -> None:
    """Sleep for `seconds`, or shorter if one of the keepers ends meanwhile."""
    doors = []
    try:
        for keeper in keepers:
            try:
                doors.append(os.pidfd_open(int(keeper["pid"])))
            except (OSError, AttributeError):  # it has ended, or the system has no such thing: look again soon
                seconds = min(seconds, 0.02)
        select.select(doors, [], [], seconds)
    finally:
        for door in doors:
            os.close(door)
    for keeper in keepers:
        try:
            os.waitpid(int(keeper["pid"]), os.WNOHANG)  # our own child: not to leave a zombie
        except ChildProcessError:
            pass


def _keep(
    argv: Sequence[str], environment: Mapping[str, str], cwd: str, log: str, folder: str, network: str,
    enter: Callable[[], None], tell: int,
) -> NoReturn:  # fmt: skip
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # whoever ends the script's tree must not end its witness
    adopts = _adopt_orphans()
    out_of_memory_before = _oom_kills()
    fault_read, fault_write = os.pipe()  # closed by a successful exec
    script = os.fork()
    if script == 0:
        _become_script(argv, environment, cwd, log, network, enter, fault_write)
    os.close(fault_write)
    with os.fdopen(fault_read, "rb") as faults:
        fault = faults.read().decode("utf-8", "replace")
    if fault:
        os.waitpid(script, 0)
        _write(folder, "exit.json", {"could_not_start": fault})
        _say(tell)
        os._exit(0)
    _write(
        folder,
        "process.json",
        {
            "keeper": {"pid": os.getpid(), "started": processes.started(os.getpid())},
            "script": {"pid": script, "started": processes.started(script)},
            "at": time.time(),
            "monotonic": time.monotonic(),  # for how long it runs, whatever becomes of the time of day
        },
    )
    _say(tell)
    os.close(tell)
    ended = 0
    while ended != script:  # others are orphans of its tree, which are ours to reap
        ended, status, usage = os.wait3(0)
    _write(
        folder,
        "exit.json",
        {
            "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            "out_of_memory": os.WIFSIGNALED(status)
            and os.WTERMSIG(status) == signal.SIGKILL
            and _oom_kills() > out_of_memory_before,
            "at": time.time(),
            "monotonic": time.monotonic(),
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "peak_memory_kb": usage.ru_maxrss,
        },
    )
    if not (adopts and _childless()):
        processes.end_tree(f"LAPIS_MEMBER={environment['LAPIS_MEMBER']}", [os.getpid()], grace=0.0)
    os._exit(0)


def _become_script(
    argv: Sequence[str], environment: Mapping[str, str], cwd: str, log: str, network: str, enter: Callable[[], None],
    fault: int,
) -> NoReturn:  # fmt: skip
    try:
        os.setpgid(0, 0)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        if network:
            networks.enter(network)
        enter()
        os.chdir(cwd)
        os.execvpe(argv[0], list(argv), dict(environment))
    except BaseException as error:
        what = f"{argv[0]}: {error.strerror}" if isinstance(error, OSError) and error.strerror else repr(error)
        os.write(fault, what.encode())
    os._exit(127)


def _adopt_orphans() -> bool:
    """What the script's tree leaves behind becomes our child, however it detached itself, so that it can be ended."""
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False  # not Linux: its process group and its environment still give it away


def _childless() -> bool:
    """Whether nothing is left of the script's tree; whoever adopts orphans would have it as a child."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _oom_kills() -> int:
    """How many processes the kernel has killed for want of memory since it booted."""
    try:
        with open("/proc/vmstat") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)
    except OSError:
        return 0


def _write(folder: str, name: str, value: Mapping[str, Any]) -> None:
    """Whole or not at all, whatever happens: in the room that was reserved, else again and again until there is some.

    Nothing is said of a failure: what the agent and its keeper say goes to the same disk, and saying it would fail too.
    """
    path = os.path.join(folder, name)
    while True:
        try:
            whole_files.write_reserved(path, json.dumps(value).encode())
            return
        except FileNotFoundError:
            return  # the folder is gone: the run was ended for good, and nobody asks any more
        except OSError:
            time.sleep(1.0)

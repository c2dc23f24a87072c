"""Starts the script under a keeper: a process of ours that only waits for it and writes down how it ended.

The keeper, not the agent, is the script's parent, so the exit status survives the agent's death. The script writes
straight to a file, so it does not need the agent to live either.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NoReturn

from lapis.machine import apart, json_files, networks, processes, whole_files
from lapis.machine.namespaces import UsersAhead

_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of Linux' prctl
_TOLD = ("process.json", "exit.json")  # what the keeper writes
_LONGEST = 1024  # bytes of each of them, for which room is kept
_started: dict[str, dict[str, Any]] = {}  # by folder


@dataclass(frozen=True)
class Order:
    """What a keeper is to start, and where it is to write how that ended."""

    argv: list[str]
    variables: dict[str, str]
    cwd: str
    log: str
    folder: str
    network: str = ""  # the one that it lives in; empty: the machine's
    apart: str = apart.SHARED  # how far from what is the server's (machine/apart.py)
    reach: dict[str, Any] = field(default_factory=dict)  # and what it gets to see of that


class Keeper:
    """A process that waits for its one order, and below it the one that becomes the script. Both are of no run until
    then, so they can be forked ahead; and each is of one run only. Without an order they end with whoever forked them.
    """

    def __init__(self, users_ahead: bool = False) -> None:
        """With `users_ahead` it is certain that the script gets a user of its own."""
        hear, self._order = os.pipe()
        self._ready, tell = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.close(self._order)
                os.close(self._ready)
                _keep(hear, tell, users_ahead)
            finally:
                os._exit(70)
        os.close(hear)
        os.close(tell)

    def start(self, order: Order) -> int:
        """Returns once `process.json` or `exit.json` is there. A pipe: something comes when `exit.json` is."""
        with os.fdopen(self._order, "wb") as file:
            file.write(json.dumps(asdict(order)).encode())
        os.read(self._ready, 1)
        return self._ready

    def dismiss(self) -> None:
        os.close(self._order)
        os.close(self._ready)
        os.waitpid(self._pid, 0)


def start(order: Order, keeper: Keeper | None = None) -> int | None:
    """Start the script and return once `process.json` (or, if it could not start, `exit.json`) is there.

    A pipe to read from: something comes when it has ended. None if it was started before.

    The room for both is taken before: a disk that fills up later changes nothing about how the script ended. A `keeper`
    that was forked ahead knows nothing of files that were opened since.

    An agent that was killed at this point leaves a keeper that is about to write one of them: its script is the one.
    """
    folder = order.folder
    if not _begun(folder):
        with open(os.path.join(folder, "launching"), "w"):
            pass
        for name in _TOLD:
            whole_files.reserve(os.path.join(folder, name), _LONGEST)
        return (keeper or Keeper()).start(order)
    if keeper is not None:
        keeper.dismiss()
    return None


def _begun(folder: str) -> bool:
    if any(os.path.exists(os.path.join(folder, name)) for name in _TOLD):
        return True
    return os.path.exists(os.path.join(folder, "launching")) and _comes_soon(folder)


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


def started(folder: str) -> dict[str, Any] | None:
    """What `process.json` says, once it is there: it says the same for ever."""
    if folder not in _started:
        found = read(folder, "process.json")
        if found is None:
            return None
        _started[folder] = found
    return _started[folder]


def _keep(hear: int, tell: int, users_ahead: bool) -> NoReturn:
    os.setsid()
    os.chdir("/")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # whoever ends the script's tree must not end its witness
    adopts = _adopt_orphans()
    fault_read, fault_write = os.pipe()  # closed by a successful exec
    hear_order, pass_on = os.pipe()
    script = os.fork()
    if script == 0:
        for other in (hear, tell, fault_read, pass_on):
            os.close(other)
        _become_script(hear_order, fault_write, users_ahead)
    os.close(fault_write)
    os.close(hear_order)
    said = _all_of(hear)
    with os.fdopen(pass_on, "wb") as file:
        file.write(said)
    if not said:
        os.waitpid(script, 0)
        os._exit(0)
    order = Order(**json.loads(said))
    out_of_memory_before = _oom_kills()
    fault = _all_of(fault_read).decode("utf-8", "replace")
    if fault:
        os.waitpid(script, 0)
        _write(order.folder, "exit.json", {"could_not_start": fault})
        _say(tell)
        os._exit(0)
    _write(
        order.folder,
        "process.json",
        {
            "keeper": {"pid": os.getpid(), "started": processes.started(os.getpid()), "adopts": adopts},
            "script": {"pid": script, "started": processes.started(script)},
            "at": time.time(),
            "monotonic": time.monotonic(),  # for how long it runs, whatever becomes of the time of day
        },
    )
    _say(tell)
    mounts = _mounts_of(script)  # noqa: F841 (it is ours to hold)
    ended = 0
    while ended != script:  # others are orphans of its tree, which are ours to reap
        ended, status, usage = os.wait3(0)
    alone = adopts and _childless()
    _write(
        order.folder,
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
            "alone": alone,  # nothing of its tree is left
        },
    )
    _say(tell)
    if adopts and not alone:
        processes.end_below(os.getpid(), processes.started(os.getpid()), grace=0.0)
    elif not adopts:
        processes.end_tree(f"LAPIS_MEMBER={order.variables['LAPIS_MEMBER']}", [os.getpid()], grace=0.0)
    os._exit(0)


def _become_script(hear: int, fault: int, users_ahead: bool) -> NoReturn:
    argv = [""]
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        users = UsersAhead() if users_ahead else None
        said = _all_of(hear)
        if not said:
            os._exit(0)
        order = Order(**json.loads(said))
        argv = order.argv
        output = os.open(order.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if order.network:
            networks.enter(order.network)
        if users is not None and order.apart != apart.OWN_USER:
            users.dismiss()
        if order.apart != apart.SHARED:
            apart.enter(apart.Reach.from_json(order.reach), order.apart, users)
        os.chdir(order.cwd)
        os.execvpe(argv[0], argv, order.variables)
    except BaseException as error:
        what = f"{argv[0]}: {error.strerror}" if isinstance(error, OSError) and error.strerror else repr(error)
        os.write(fault, what.encode())
    os._exit(127)


def _mounts_of(script: int) -> int | None:
    """Held until we end: to take them down takes the kernel some milliseconds, for which the end would wait."""
    try:
        return os.open(f"/proc/{script}/ns/mnt", os.O_RDONLY)
    except OSError:
        return None


def _all_of(pipe: int) -> bytes:
    with os.fdopen(pipe, "rb") as file:
        return file.read()


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

"""Notices when the processes of a node neither print nor log nor compute, and saves where each of them stands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from lapis.agent import launch
from lapis.agent.crew import Crew, Member
from lapis.domain import settings
from lapis.domain.job import Job
from lapis.errors import UserErrorException
from lapis.machine import processes

_LOOK_EVERY = 10.0  # seconds at most
_IDLE = 0.01  # of a core: less than this is not work
_FOLDER = os.path.join("logs", "azureml")
LACKING = "Where its processes stand could not be seen: that needs py-spy, which is not beside the server any more"


def seconds(job: Job) -> float:
    """After how long: the setting of this machine, or of the run. A service waits for requests as long as it likes."""
    if job.service is not None:
        return 0.0
    try:
        return settings.load({**os.environ, **job.environment_variables}).hang_seconds
    except UserErrorException:  # it is not worth a run
        return settings.load({}).hang_seconds


class SilenceWatch:
    """When each member of a crew last did something that can be seen from outside."""

    def __init__(self, crew: Crew, journal: str, after: float, now: float | None = None) -> None:
        self.after = after  # seconds; 0: whatever it does is fine
        self._crew = crew
        self._journal = journal
        self._every = min(_LOOK_EVERY, after / 10) if after else _LOOK_EVERY
        now = time.monotonic() if now is None else now
        self._looked = now
        self._written: dict[str, int] = {}
        self._cpu: dict[str, float] = {}
        self._active = {each.name: now for each in crew.members}

    def look(self, now: float | None = None) -> bool:
        """Whether it was time to look."""
        now = time.monotonic() if now is None else now
        if now < self.next_look():
            return False
        used = cpu_seconds(self._crew)
        logged = self._grown("journal", [self._journal])  # nobody knows whose line it is: it counts for all
        for each in self._crew.members:
            spent = used.get(each.name, 0.0)
            works = spent - self._cpu.get(each.name, 0.0) > _IDLE * (now - self._looked)
            if self._grown(each.name, [each.log, *each.logs.values()]) or works or logged:
                self._active[each.name] = now
            self._cpu[each.name] = spent
        self._looked = now
        return True

    def next_look(self) -> float:
        """When it will be time."""
        return self._looked + self._every

    def quiet(self, member: Member) -> float:
        """For how many seconds it has done nothing."""
        return self._looked - self._active[member.name]

    def hangs(self) -> bool:
        """Whether nobody of those that have not ended has done anything for so long that something must be wrong."""
        alive = [each for each in self._crew.members if each.ended() is None]
        return bool(self.after and alive) and all(self.quiet(each) >= self.after for each in alive)

    def _grown(self, name: str, paths: Sequence[str]) -> bool:
        size = sum(os.path.getsize(path) for path in paths if os.path.exists(path))
        grown = size != self._written.get(name, 0)
        self._written[name] = size
        return grown


def save_stacks(crew: Crew, code: str) -> list[str]:
    """Where each process stands, in a file for each rank; their names in the run. Empty without py-spy."""
    tool = _py_spy()
    if tool is None:
        return []
    saved: dict[str, list[str]] = {}
    for member in crew.members:
        for pid in sorted(_session(member)):
            name = _variables(pid).get("AZUREML_PROCESS_NAME", "main")
            if member.name and not name.startswith("rank_"):
                continue  # mpirun and what it is made of
            stacks = _stacks(tool, pid)
            if stacks:
                saved.setdefault(name, []).append(stacks)
    os.makedirs(os.path.join(code, _FOLDER), exist_ok=True)
    for name, stacks_of in saved.items():
        with open(os.path.join(code, _FOLDER, f"stacks_{name}.txt"), "a") as file:
            file.write(f"{time.strftime('%F %T')}\n" + "\n".join(stacks_of) + "\n")
    return [f"logs/azureml/stacks_{name}.txt" for name in sorted(saved)]


def cpu_seconds(crew: Crew) -> dict[str, float]:
    """What each member and all that it started have used, by its name."""
    ticks = os.sysconf("SC_CLK_TCK")
    return {each.name: sum(_session(each).values()) / ticks for each in crew.members}


def _session(member: Member) -> dict[int, int]:
    """The processes below a member's keeper, by pid, with the ticks that they and their ended children used."""
    started = launch.started(member.folder)
    if started is None or not os.path.isdir("/proc/self"):
        return {}
    keeper = int(started["keeper"]["pid"])
    lives = processes.alive(keeper, started["keeper"]["started"])
    found: dict[int, int] = {}
    for pid in processes.below(keeper) if lives else processes.family("", [keeper]):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rsplit(b")", 1)[1].split()
        except (OSError, IndexError):
            continue
        found[pid] = sum(int(field) for field in fields[11:15])
    return found


def _py_spy() -> str | None:
    """Beside the server's interpreter, else anywhere."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    return shutil.which("py-spy", path=path)


def _variables(pid: int) -> Mapping[str, str]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = file.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return {}
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def _stacks(tool: str, pid: int) -> str:
    """What py-spy says; nothing of a process that is not Python."""
    try:
        done = subprocess.run([tool, "dump", "--pid", str(pid)], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""

"""A storm: runs of every kind at once, and kill -9 of whatever keeps them going, until so many have died.

`python -m tests.chaos.storm --kills 1000 --seed 1` prints what was killed and lost, as docs/reliability.md has it.
It works in a home of its own and ends with it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from azureml.core import Experiment, Model, Run, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.model import InferenceConfig
from azureml.core.runconfig import PyTorchConfiguration
from azureml.core.webservice import AciWebservice
from azureml.train.hyperdrive import HyperDriveConfig, PrimaryMetricGoal, RandomParameterSampling, uniform
from lapis.errors import Unavailable
from lapis.machine import mounts
from lapis.testing import Home, running_server, until
from lapis.testing.server import processes_of

POINTS = 100
VICTIMS = ("server", "agent", "keeper", "fork server", "script", "node", "front", "worker", "everything")
# Each line of its notes means that log() and print() had returned.
SCRIPT = f"""
import os, sys, time
from azureml.core import Run
rank = os.environ.get("RANK", "0")
notes = os.open(f"{{sys.argv[1]}}.{{rank}}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
run = Run.get_context()
for number in range({POINTS}):
    run.log("number-" + rank, number)
    print("line", number)
    os.write(notes, b"%d\\n" % number)
    time.sleep(0.02)
"""
TRIAL = """
import os, sys, time
from azureml.core import Run
run = Run.get_context()
for number in range(10):
    run.log("number", number)
    time.sleep(0.03)
notes = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(notes, (run.id + "\\n").encode())
"""
TRIALS = 4


@dataclass
class Tally:
    """What the storm did, and what it did it to."""

    kills: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    points: int = 0
    lines: int = 0
    answers: int = 0
    faults: list[str] = field(default_factory=list)

    def told(self) -> dict[str, Any]:
        return {"kills": sum(self.kills.values()), "of": dict(sorted(self.kills.items())), "runs": dict(self.runs),
                "points": self.points, "lines": self.lines, "answers of services": self.answers,
                "lost or doubled or wrong": len(self.faults)}  # fmt: skip


class Storm:
    """Rounds: one run of each kind, deaths at random moments while they are under way, then the accounts."""

    def __init__(self, home: Home, folder: Path, seed: int) -> None:
        self.home, self.folder, self.chance = home, folder, random.Random(seed)
        self.workspace = Workspace.from_config()
        self.experiment = Experiment(self.workspace, "storm")
        self.tally = Tally()
        self.script_killed: set[str] = set()  # runs of which a process of the user's own was killed
        self.keeper_killed: set[str] = set()
        ComputeTarget.create(self.workspace, "nodes", AmlCompute.provisioning_configuration(max_nodes=2))
        for name, code in (("train.py", SCRIPT), ("trial.py", TRIAL), ("score.py", _SCORE)):
            (folder / "code").mkdir(exist_ok=True)
            (folder / "code" / name).write_text(code)

    def rage(self, kills: int) -> Tally:
        service = self._service()
        round_number = 0
        while sum(self.tally.kills.values()) < kills:
            round_number += 1
            self._round(round_number, kills)
            self._ask(service)
            print(
                f"round {round_number}: {sum(self.tally.kills.values())} killed, {len(self.tally.faults)} faults",
                flush=True,
            )
        service.delete()
        self._nothing_is_left()
        return self.tally

    def _round(self, number: int, kills: int) -> None:
        singles = [self._submit(f"{number}-{each}") for each in range(2)]
        several = self._submit(f"{number}-several", PyTorchConfiguration("Gloo", process_count=4, node_count=2))
        search, trials = self._search(number)
        over = threading.Event()
        killer = threading.Thread(target=self._kill_until, args=(over, kills))
        killer.start()
        try:
            for run, _ in (*singles, several):
                _patiently(run.wait_for_completion, raise_on_error=False)
        finally:
            over.set()
            killer.join()
        _patiently(search.wait_for_completion, raise_on_error=False)
        for run, notes in singles:
            self._account("one node", run, notes, ["0"])
        self._account("two nodes", *several, ["0", "1", "2", "3"])
        self._account_search(search, trials)

    # -- what is under way

    def _submit(self, name: str, distribution: PyTorchConfiguration | None = None) -> tuple[Run, Path]:
        notes = self.folder / f"notes-{name}"
        config = ScriptRunConfig(
            str(self.folder / "code"), "train.py", arguments=[str(notes)],
            compute_target="nodes" if distribution else None, distributed_job_config=distribution,
        )  # fmt: skip
        return self.experiment.submit(config), notes

    def _search(self, number: int) -> tuple[Any, Path]:
        notes = self.folder / f"trials-{number}"
        trial = ScriptRunConfig(str(self.folder / "code"), "trial.py", arguments=[str(notes)])
        config = HyperDriveConfig(
            RandomParameterSampling({"x": uniform(0, 1)}),
            "number",
            PrimaryMetricGoal.MAXIMIZE,
            TRIALS,
            2,
            run_config=trial,
        )
        return self.experiment.submit(config), notes

    def _service(self) -> Any:
        (self.folder / "model.txt").write_text("3")
        model = Model.register(self.workspace, str(self.folder / "model.txt"), "times")
        inference = InferenceConfig("score.py", source_directory=str(self.folder / "code"))
        service = Model.deploy(self.workspace, "times", [model], inference, AciWebservice.deploy_configuration())
        service.wait_for_deployment()
        return service

    def _ask(self, service: Any) -> None:
        """After the deaths of a round it answers again, and rightly."""

        def answered() -> bool:
            try:
                return service.run(json.dumps({"data": [7]})) == [21]  # type: ignore[no-any-return]
            except Exception:  # it is on its way back
                return False

        try:
            until(answered, seconds=120)
            self.tally.answers += 1
        except AssertionError as silent:
            self.tally.faults.append(f"the service does not come back: {silent}")

    # -- the deaths

    def _kill_until(self, over: threading.Event, most: int) -> None:
        while not over.wait(self.chance.uniform(0.02, 0.5)) and sum(self.tally.kills.values()) < most:
            victim = self.chance.choices(VICTIMS, weights=(6, 6, 2, 2, 1, 1, 1, 1, 1))[0]
            if self._kill(victim):
                self.tally.kills[victim] += 1

    def _kill(self, victim: str) -> bool:
        jobs = list(self._jobs())
        chosen = self.chance.choice(jobs) if jobs else None
        if victim == "server":
            return self._kill_server()
        if victim == "everything":
            killed = [self._kill_one(pid) for job in jobs for pid in _processes_of_job(job, ("agent", "keeper"))]
            self.keeper_killed |= {_run_of(job) for job in jobs}
            return self._kill_server() or any(killed)
        if victim in ("fork server", "front", "worker"):
            marks = {"fork server": b"fork_server", "front": b"lapis.serving", "worker": b"lapis.scoring"}
            # agents and keepers are forked from the fork server, and look like it until they have noted who they are
            others = {pid for job in self._noted() for pid in _processes_of_job(job, ("agent", "keeper"))}
            found = [
                pid
                for pid in processes_of(str(self.home.path))
                if marks[victim] in _command_line(pid) and pid not in others and _age(pid) > 1.0
            ]
            return bool(found) and self._kill_one(self.chance.choice(found))
        if chosen is None:
            return False
        parts = {
            "node": ("agent", "keeper", "script"),
            "agent": ("agent",),
            "keeper": ("keeper",),
            "script": ("script",),
        }
        if "script" in parts[victim]:
            self.script_killed.add(_run_of(chosen))
        if "keeper" in parts[victim]:
            self.keeper_killed.add(_run_of(chosen))
        return any([self._kill_one(pid) for pid in _processes_of_job(chosen, parts[victim])])

    def _kill_server(self) -> bool:
        """One that has answered: a server that is killed while it starts is started anew by the same call."""
        pid = self.home.server_pid
        return pid is not None and self._kill_one(pid)

    def _kill_one(self, pid: int) -> bool:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def _jobs(self) -> Iterator[Path]:
        """The folders of agents that are at work."""
        for pattern in ("*/agent.json", "*/nodes/*/agent.json"):
            yield from (note.parent for note in (self.home.path / "work").glob(pattern))

    def _noted(self) -> Iterator[Path]:
        """Every folder with notes of processes: of agents, and of each rank."""
        for folder, _, names in os.walk(self.home.path / "work"):  # those that go meanwhile are passed over
            if {"agent.json", "process.json"} & set(names):
                yield Path(folder)

    # -- the accounts

    def _account(self, kind: str, run: Run, notes: Path, ranks: list[str]) -> None:
        status = run.get_status()
        self.tally.runs[f"{kind}: {status}"] += 1
        spared = run.id not in self.script_killed | self.keeper_killed
        if status not in ("Completed", "Failed") or (spared and status != "Completed"):
            self._fault(run, f"{status}, and nothing of its own was killed: {run.get_details().get('error')}")
        metrics = run.get_metrics()
        for rank in ranks:
            handed = _lines(Path(f"{notes}.{rank}"))
            told = metrics.get(f"number-{rank}", [])
            told = told if isinstance(told, list) else [told]
            log = run._text_of("user_logs/std_log.txt" if len(ranks) == 1 else f"user_logs/std_log_{rank}.txt")
            lines = [line for line in log.splitlines() if line.startswith("line ")]
            self.tally.points += len(told)
            self.tally.lines += len(lines)
            if told != list(range(len(told))) or not len(handed) <= len(told) <= len(handed) + 1:
                self._fault(run, f"rank {rank} handed over {len(handed)} points, {len(told)} are there: {told[:3]}...")
            if lines != [f"line {n}" for n in range(len(lines))] or not len(handed) <= len(lines) <= len(handed) + 1:
                self._fault(run, f"rank {rank} printed {len(handed)} lines, {len(lines)} are there")
            if status == "Completed" and len(told) != POINTS:
                self._fault(run, f"Completed with {len(told)} of {POINTS} points")

    def _account_search(self, search: Any, notes: Path) -> None:
        self.tally.runs[f"search: {search.get_status()}"] += 1
        children = list(search.get_children())
        if len({child.id for child in children}) != len(children) or len(children) > TRIALS:
            self._fault(search, f"it has {len(children)} trials")
        finished = _lines(notes)
        if len(finished) != len(set(finished)):
            self._fault(search, "a trial ran to its end twice")
        for child in children:
            numbers = child.get_metrics().get("number", [])
            numbers = numbers if isinstance(numbers, list) else [numbers]
            self.tally.points += len(numbers)
            if numbers != list(range(len(numbers))) or (child.id in finished and len(numbers) != 10):
                self._fault(child, f"a trial's points: {numbers}")

    def _fault(self, run: Run, what: str) -> None:
        self.tally.faults.append(f"{run.id}: {what}")
        print(self.tally.faults[-1], flush=True)

    def _nothing_is_left(self) -> None:
        """No process, no mount and no folder of a run stays when all have ended."""
        home = str(self.home.path)
        until(lambda: not list((self.home.path / "work").glob("*")), self._left, seconds=120)
        until(lambda: not self._stragglers(), self._left, seconds=120)
        assert mounts.points_below(home) == []

    def _stragglers(self) -> list[int]:
        """Of the home's processes, those that are neither the server nor what it forks agents from."""
        own = {self.home.server_pid, os.getpid()}
        found = [pid for pid in processes_of(str(self.home.path)) if pid not in own]
        return [pid for pid in found if b"fork_server" not in _command_line(pid)]

    def _left(self) -> str:
        processes = {pid: _command_line(pid).decode("utf-8", "replace") for pid in processes_of(str(self.home.path))}
        return f"{sorted((self.home.path / 'work').glob('*'))}\n{processes}"


_SCORE = """
import json, os

def init():
    global weight
    weight = int(open(os.path.join(os.environ['AZUREML_MODEL_DIR'], 'model.txt')).read())

def run(data):
    return [weight * x for x in json.loads(data)['data']]
"""


def _processes_of_job(job: Path, parts: tuple[str, ...]) -> list[int]:
    """Process ids from the notes that agents keep for those who take over."""
    found = []
    for name in ("agent.json", "process.json"):
        try:
            noted = json.loads((job / name).read_text())
        except (OSError, ValueError):
            continue  # it has not begun, or has just ended
        notes = {"agent": noted} if name == "agent.json" else noted
        found += [
            int(notes[part]["pid"]) for part in parts if isinstance(notes.get(part), dict) and "pid" in notes[part]
        ]
    return found


def _run_of(job: Path) -> str:
    parts = job.parts
    return parts[parts.index("work") + 1]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _patiently(call: Callable[..., Any], **given: Any) -> Any:
    """As a user would: where servers die faster than they start, a call may give up, and is made again."""
    while True:
        try:
            return call(**given)
        except Unavailable:
            pass


def _age(pid: int) -> float:
    try:
        return time.time() - psutil.Process(pid).create_time()
    except psutil.Error:
        return 0.0


def _lines(notes: Path) -> list[str]:
    return notes.read_text().split() if notes.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lapis-storm-") as folder, running_server() as home:
        os.chdir(folder)
        tally = Storm(home, Path(folder), given.seed).rage(given.kills)
    print(json.dumps({"seed": given.seed, "seconds": round(time.monotonic() - began), **tally.told()}, indent=2))
    for fault in tally.faults:
        print(fault)
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())

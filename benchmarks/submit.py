"""A warm submit: how long until the script's first line, and until the run has finished.

The first line counts twice: when the script runs it (the line is the time), and when `wait_for_completion` shows it.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import peers
from home import Home
from measure import Asked, Figure, Options, Reading, alone

from azureml.core import Experiment, ScriptRunConfig

ROUNDS = 20
SCRIPT = 'import time\nprint("first line", time.time(), flush=True)\n'


@dataclass
class Times:
    """Seconds since the submit, a sample for each round."""

    ran: list[float] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)
    finished: list[float] = field(default_factory=list)


def measure(options: Options) -> list[Figure]:
    lapis, plain = Times(), Times()
    with Home() as home:
        experiment, folder = home.experiment(), home.source(SCRIPT)
        _submit(experiment, folder, Times())
        for _ in range(ROUNDS):
            _plain([sys.executable, "train.py"], folder, plain)
            _submit(experiment, folder, lapis)
    bare = "bare: python script.py"
    ran = [Reading("Lapis", lapis.ran), Reading(bare, plain.ran, bare=True)]
    shown = [Reading("Lapis", lapis.shown), Reading(bare, plain.shown, bare=True)]
    finished = [Reading("Lapis", lapis.finished), Reading(bare, plain.finished, bare=True)]
    if options.peers:
        for name, times in _peers(options.peers).items():
            shown.append(Reading(name, times.shown))
            finished.append(Reading(name, times.finished))
    return [
        Figure("submit until the script runs its first line", "s", ran, Asked(times_bare=2)),
        Figure("submit until that line is shown", "s", shown),
        Figure("submit until finished", "s", finished, Asked(times_bare=3)),
    ]


def _submit(experiment: Experiment, folder: str, times: Times) -> None:
    began, screen = time.time(), _Screen()
    run = experiment.submit(ScriptRunConfig(folder, "train.py"))
    with contextlib.redirect_stdout(screen):
        run.wait_for_completion(show_output=True)
    times.finished.append(time.time() - began)
    times.ran.append(_time_in(screen.getvalue()) - began)
    times.shown.append(screen.seen - began)


class _Screen(io.StringIO):
    """Notes when the script's line came."""

    seen = 0.0

    def write(self, text: str) -> int:
        if not self.seen and "first line" in text:
            self.seen = time.time()
        return super().write(text)


def _plain(command: list[str], folder: str, times: Times, env: dict[str, str] | None = None) -> None:
    began, seen, lines = time.time(), 0.0, []
    with subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if not seen and "first line" in line:
                seen = time.time()
    assert process.returncode == 0, "".join(lines)
    times.finished.append(time.time() - began)
    times.ran.append(_time_in("".join(lines)) - began)
    times.shown.append(seen - began)


def _time_in(text: str) -> float:
    return float(text.partition("first line ")[2].split()[0])


def _peers(python: str) -> dict[str, Times]:
    with Home() as home:  # for its folders alone: no server is started
        script = Path(home.source(SCRIPT), "train.py")
        found = peers.ask(python, "submitit_rounds", script, 5)
        project = script.parent
        (project / "MLproject").write_text("name: x\nentry_points:\n  main:\n    command: python train.py\n")
        mlflow, env = Times(), peers.environment(str(project))
        peers.empty_store(str(project))
        for _ in range(2):
            _plain(["mlflow", "run", ".", "--env-manager", "local"], str(project), mlflow, env)
    return {"submitit": Times(shown=found["first"], finished=found["finished"]), "mlflow run": mlflow}


if __name__ == "__main__":
    alone(measure)

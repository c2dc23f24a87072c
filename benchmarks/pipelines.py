"""Pipelines: what a step costs over its process, in a chain and in a fan, and one of which nothing has to run."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from home import Home
from measure import Asked, Clock, Figure, Options, Reading, alone, family_cpu

from azureml.core import Experiment, ScriptRunConfig
from azureml.pipeline.core import Pipeline, StepSequence
from azureml.pipeline.steps import PythonScriptStep

CHAIN, FAN, ROUNDS = 50, 50, 3


def measure(options: Options) -> list[Figure]:
    chain, bare, reused, fan, plain, made = [], [], [], [], [], []
    with Home() as home:
        experiment, folder = home.experiment(), home.source("pass\n")
        _submitted(experiment, [_step(folder, "first")])
        for number in range(ROUNDS):
            chain.append(_submitted(experiment, StepSequence(_steps(folder, CHAIN, str(number)))))
            reused.append(_submitted(experiment, StepSequence(_steps(folder, CHAIN, str(number)))))
            bare.append(_one_by_one(folder))
            fan.append(_submitted(experiment, _steps(folder, FAN, None)))
            plain.append(_plain_runs(experiment, folder))
            made.append(_make())
    return [
        Figure(
            f"a chain of {CHAIN} trivial steps, time of a step", "s",
            [_reading("Lapis", chain, CHAIN), _reading("bare: python train.py", bare, CHAIN),
             *([_reading("make", made, CHAIN)] if all(clock.wall for clock in made) else [])],
            Asked(more_than_bare=0.1),
        ),
        Figure(
            f"a fan of {FAN} trivial steps, time of a step", "s",
            [_reading("Lapis", fan, FAN), _reading("bare: runs of their own", plain, FAN)], Asked(times_bare=1.3),
        ),
        Figure(f"a pipeline of {CHAIN} steps, all reused", "s", [_reading("Lapis", reused, 1)], Asked(most=0.5)),
    ]  # fmt: skip


def _reading(system: str, clocks: list[Clock], each: int) -> Reading:
    bare = system.startswith("bare")
    return Reading(system, [clock.wall / each for clock in clocks], [clock.cpu / each for clock in clocks], bare=bare)


def _step(folder: str, name: str, version: str | None = None) -> PythonScriptStep:
    reuse = version is not None
    return PythonScriptStep("train.py", name, source_directory=folder, allow_reuse=reuse, version=version)


def _steps(folder: str, count: int, version: str | None) -> list[PythonScriptStep]:
    return [_step(folder, f"step{number}", version) for number in range(count)]


def _submitted(experiment: Experiment, steps: object) -> Clock:
    with contextlib.redirect_stdout(io.StringIO()), Clock(family_cpu) as clock:
        run = experiment.submit(Pipeline(experiment.workspace, steps))
        assert run.wait_for_completion(show_output=False) == "Finished"
    return clock


def _one_by_one(folder: str) -> Clock:
    with Clock() as clock:
        for _ in range(CHAIN):
            subprocess.run([sys.executable, f"{folder}/train.py"], check=True)
    return clock


def _plain_runs(experiment: Experiment, folder: str) -> Clock:
    with Clock(family_cpu) as clock:
        runs = [experiment.submit(ScriptRunConfig(folder, "train.py")) for _ in range(FAN)]
        for run in runs:
            run.wait_for_completion()
    return clock


def _make() -> Clock:
    """The same chain by `make -j2`; nothing where there is no make."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text("pass\n")
        rules = "".join(
            f"s{number}: {f's{number - 1}' if number else ''}\n\t@{sys.executable} train.py && touch s{number}\n"
            for number in range(CHAIN)
        )
        Path(folder, "Makefile").write_text(f"all: s{CHAIN - 1}\n" + rules)
        with Clock() as clock:
            try:
                subprocess.run(["make", "-j2"], cwd=folder, check=True, stdout=subprocess.DEVNULL, env=os.environ)
            except OSError:
                return Clock()
    return clock


if __name__ == "__main__":
    alone(measure)

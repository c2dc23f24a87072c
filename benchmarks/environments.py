"""Environments: a new one of packages that the cache has, what its first import costs, twenty who want the same; and a
run in one that is there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from home import Home
from measure import Asked, Clock, Figure, Options, Reading, alone, family_cpu

from azureml.core import Environment, ScriptRunConfig
from azureml.core.conda_dependencies import CondaDependencies
from lapis.environments import bytecode, uv
from lapis.environments.build import build
from lapis.environments.interpreter_of_lock import interpreter_for
from lapis.environments.resolve import resolve
from lapis.environments.values import Lock, Recipe
from lapis.machine.commands import silent
from lapis.machine.uv import environment_for

WANTED = ("numpy", "scikit-learn")
ROUNDS = 7
PIP_ROUNDS = 2  # it takes ten times as long, and differs little
AT_ONCE = 20
PYTHON = interpreter_for(".".join(map(str, sys.version_info[:3])))
IMPORT = "import numpy, sklearn"

os.environ.pop("UV_CACHE_DIR", None)


def measure(options: Options) -> list[Figure]:
    place = Path(tempfile.mkdtemp(prefix="environments-"))
    root = str(place / "home" / "environments")
    return [*_new(place, root), _at_once(place, root), _warm()]


def _new(place: Path, root: str) -> list[Figure]:
    """Each round another lock of the same packages. All tools use one cache, which has everything."""
    tools: dict[str, Callable[[int], str]] = {
        "Lapis": lambda number: _lapis(root, number),
        "bare: uv venv, uv pip install": lambda number: _bare_uv(place, root, number),
        "python -m venv, pip install": lambda number: _pip(place, number),
    }
    made: dict[str, list[Clock]] = {name: [] for name in tools}
    imported: dict[str, list[Clock]] = {name: [] for name in tools}
    for make in tools.values():
        bytecode.compile_now(make(-1), root)  # fills the caches, that of bytecode too
    for number in range(ROUNDS):
        for name in list(tools)[:: 1 if number % 2 == 0 else -1]:
            if name.startswith("python") and number >= PIP_ROUNDS:
                continue
            with Clock(family_cpu) as clock:
                folder = tools[name](number)
            made[name].append(clock)
            with Clock(family_cpu) as clock:
                subprocess.run([os.path.join(folder, "bin", "python"), "-c", IMPORT], check=True)
            imported[name].append(clock)
            if name == "Lapis":
                bytecode.compile_now(folder, root)  # nothing goes on in the background while others are measured
    what = f"new environment of {' and '.join(WANTED)}, packages in the cache"
    return [
        Figure(what, "s", _readings(made), Asked(times_bare=1.3)),
        Figure(f"first {IMPORT} there", "s", _readings(imported)),
    ]


def _lapis(root: str, number: int) -> str:
    return build(_lock(root, number), PYTHON, root, silent)


def _lock(root: str, number: int) -> Lock:
    return resolve(Recipe(PYTHON.version, WANTED, variables={"ROUND": str(number)}), PYTHON, silent, root=root)


def _bare_uv(place: Path, root: str, number: int) -> str:
    folder = str(place / f"uv-{number}")
    environment = {**os.environ, **environment_for(os.environ, uv.cache_folder(root))}
    for arguments in (["venv", "--python", PYTHON.path, folder], ["pip", "install", "--python", folder, *WANTED]):
        subprocess.run([uv.find(), *arguments, "--quiet"], env=environment, cwd=place, check=True)
    return folder


def _pip(place: Path, number: int) -> str:
    folder = str(place / f"pip-{number}")
    subprocess.run([PYTHON.path, "-m", "venv", folder], check=True)
    pip = [os.path.join(folder, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--cache-dir", str(place / "pip-cache"), *WANTED], check=True)
    return folder


def _at_once(place: Path, root: str) -> Figure:
    """Processes that ask for one new environment, beside one process that does."""
    alone_ones, together = [], []
    for number in range(ROUNDS):
        alone_ones.append(_asked(place, _lock(root, 1000 + number), root, 1))
        together.append(_asked(place, _lock(root, 2000 + number), root, AT_ONCE))
    readings = [Reading("Lapis", together), Reading("bare: one process", alone_ones, bare=True)]
    what = f"{AT_ONCE} processes ask for one new environment at once: until the last has it"
    return Figure(what, "s", readings, Asked(times_bare=1.5))


def _warm() -> Figure:
    """Submit until the script's first line, in an environment that is built, and in the server's interpreter."""
    taken: dict[str, list[float]] = {"venv": [], "host": []}
    with Home() as home:
        experiment, folder = (
            home.experiment(),
            home.source('import time\nprint("first line", time.time(), flush=True)\n'),
        )
        environment = Environment("warm")
        environment.python.conda_dependencies = CondaDependencies.create(pip_packages=["numpy"])
        for number in range(2 * ROUNDS + 1):
            for mode, seconds in taken.items():
                os.environ["LAPIS_ENVIRONMENTS"] = mode
                began = time.time()
                run = experiment.submit(ScriptRunConfig(folder, "train.py", environment=environment))
                run.wait_for_completion()
                lines = run._text_of("user_logs/std_log.txt").splitlines()
                first = next(float(line.split()[-1]) for line in lines if line.startswith("first line"))
                if number:  # the first one builds it
                    seconds.append(first - began)
        del os.environ["LAPIS_ENVIRONMENTS"]
    readings = [Reading("Lapis", taken["venv"]), Reading("bare: LAPIS_ENVIRONMENTS=host", taken["host"], bare=True)]
    return Figure("submit in an environment that is there, to the first line", "s", readings, Asked(more_than_bare=0.3))


def _asked(place: Path, lock: Lock, root: str, how_many: int) -> float:
    file = place / f"{lock.hash}.json"
    file.write_text(json.dumps(lock.to_json()))
    command = [sys.executable, "-m", "lapis.environments", str(file), root]
    began = time.perf_counter()
    asking = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(how_many)]
    told = [each.communicate()[0] for each in asking]
    seconds = time.perf_counter() - began
    builds = sum("Building environment" in text for text in told)
    assert builds == 1 and not any(each.returncode for each in asking), f"{builds} builds: {told}"
    bytecode.compile_now(os.path.join(root, lock.hash), root)
    return seconds


def _readings(clocks: dict[str, list[Clock]]) -> list[Reading]:
    return [
        Reading(name, [c.wall for c in each], [c.cpu for c in each], bare=name.startswith("bare"))
        for name, each in clocks.items()
    ]


if __name__ == "__main__":
    alone(measure)

"""A snapshot of 2,000 files, 20 MB in all: the first one, and again with one file changed."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import peers
from home import Home
from measure import Asked, Clock, Figure, Options, Reading, alone, family_cpu

from lapis.client.snapshot_sending import send_snapshot

FILES = 2000
SIZE = 10_000
ROUNDS = 5
SYSTEMS = ("Lapis", "bare: cp -r", "git add")


def measure(options: Options) -> list[Figure]:
    first: dict[str, list[Clock]] = {name: [] for name in SYSTEMS}
    again: dict[str, list[Clock]] = {name: [] for name in SYSTEMS}
    for number in range(ROUNDS):
        with Home() as home:  # a fresh server, which has none of the files
            source = _make_folder(home.work / "source", seed=number)
            systems = _systems(home, source)
            time.sleep(2.5)  # a file as young as this is hashed again to be sure; a user's are older
            turns = list(systems.items())[:: 1 if number % 2 == 0 else -1]  # who comes first changes with the round
            for name, take in turns:
                first[name].append(_timed(take))
            _change(source)
            for name, take in turns:
                again[name].append(_timed(take))
            if options.peers and number == 0:
                found = peers.ask(options.peers, "log_artifacts", source)
    whole = f"snapshot of {FILES:,} files, {FILES * SIZE // 10**6} MB"
    firsts, agains = _readings(first, "bare: cp -r"), _readings(again, "git add")
    if options.peers:
        firsts.append(Reading("MLflow: log_artifacts", found["wall"], found["cpu"]))
    return [
        Figure(f"{whole}, first", "s", firsts, Asked(times_bare=3)),
        Figure(f"{whole}, again with one file changed", "s", agains, Asked(times_bare=2)),
    ]


def _systems(home: Home, source: Path) -> dict[str, Callable[[], object]]:
    workspace, copies = home.experiment().workspace, itertools.count()
    systems: dict[str, Callable[[], object]] = {
        "Lapis": lambda: send_snapshot(workspace, str(source)),
        "bare: cp -r": lambda: _run("cp", "-r", str(source), f"copy-{next(copies)}"),
    }
    if shutil.which("git"):
        place = f"--git-dir={home.work / 'store.git'}"
        _run("git", place, "init", "--quiet")
        systems["git add"] = lambda: _run("git", "-C", str(source), place, "--work-tree=.", "add", "--all", ".")
    return systems


def _readings(clocks: dict[str, list[Clock]], bare: str) -> list[Reading]:
    return [
        Reading(name, [c.wall for c in each], [c.cpu for c in each], bare=name == bare)
        for name, each in clocks.items()
        if each
    ]


def _timed(take: Callable[[], object]) -> Clock:
    with Clock(family_cpu) as clock:
        take()
    return clock


def _make_folder(place: Path, seed: int) -> Path:
    """Text that no other round has."""
    chance = random.Random(seed)
    words = [f"name_{chance.randrange(10**6)}" for _ in range(3000)]
    for number in range(FILES):
        file = place / f"package{number % 40}" / f"module{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(" = ".join(chance.choices(words, k=SIZE // 10))[:SIZE].ljust(SIZE))
    return place


def _change(source: Path) -> None:
    with open(source / "package7" / "module7.py", "r+b") as file:
        file.write(os.urandom(32).hex().encode())


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    alone(measure)

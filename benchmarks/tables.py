"""Tables: a CSV file of 1 GB to pandas, and a large one filtered in little memory; `--filter-gb 5` filters 5 GB."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Asked, Figure, Options, Reading, alone

# `--scale 0.1`: a tenth of the file that becomes a data frame
SCALE = float(sys.argv.pop(sys.argv.index("--scale") + 1)) if "--scale" in sys.argv else 1.0
FILTER_GB = float(sys.argv.pop(sys.argv.index("--filter-gb") + 1)) if "--filter-gb" in sys.argv else 1.0
for _option in ("--scale", "--filter-gb"):
    if _option in sys.argv:
        sys.argv.remove(_option)
ROUNDS = 3
MEMORY = 500.0  # megabytes, PyArrow and pandas themselves among them

# Each in a process of its own: what one has allocated is not there for the next. A first small read loads the packages.
LAPIS = """
from azureml.core import Dataset
def whole(path): return Dataset.Tabular.from_delimited_files(path).to_pandas_dataframe()
def few(path):
    table = Dataset.Tabular.from_delimited_files(path)
    return table[(table["town"] == "Oslo") & (table["amount"] < 0.001)].keep_columns(["id", "at"]).to_pandas_dataframe()
"""
ARROW = """
import pyarrow.csv, pyarrow.dataset, pyarrow.compute as pc
def whole(path): return pyarrow.csv.read_csv(path).to_pandas()
def few(path):
    wanted = (pc.field("town") == "Oslo") & (pc.field("amount") < 0.001)
    return pyarrow.dataset.dataset(path, format="csv").to_table(columns=["id", "at"], filter=wanted).to_pandas()
"""
CLOCK = """
import json, resource, sys, time
import pandas
what, small, path = sys.argv[1:]
globals()[what](small)
wall, cpu = time.perf_counter(), time.process_time()
frame = globals()[what](path)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps([wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, len(frame)]))
"""
SYSTEMS = {"Lapis": LAPIS, "bare: PyArrow": ARROW}


def measure(options: Options) -> list[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="tables-"))
    one = _file(folder / "one.csv", 1e9 * SCALE)
    large = one if FILTER_GB == SCALE else _file(folder / "large.csv", 1e9 * FILTER_GB)
    small = _file(folder / "small.csv", 1e6)
    whole = _in_turns("whole", small, one)
    few = _in_turns("few", small, large)
    for path in folder.iterdir():
        path.unlink()
    name = f"filter {FILTER_GB:g} GB of CSV"
    return [
        Figure(f"{SCALE:g} GB of CSV to pandas", "s", _readings(whole, 0), Asked(times_bare=1.2)),
        Figure(name, "s", _readings(few, 0)),
        Figure(f"{name}, most memory", "MB", _readings(few, 2), Asked(most=MEMORY)),
    ]


def _in_turns(what: str, small: Path, path: Path) -> dict[str, list[list[float]]]:
    """Seconds, CPU seconds, megabytes and rows of each round."""
    samples: dict[str, list[list[float]]] = {name: [] for name in SYSTEMS}
    for number in range(ROUNDS):
        for name in list(SYSTEMS)[:: 1 if number % 2 == 0 else -1]:
            command = [sys.executable, "-c", SYSTEMS[name] + CLOCK, what, str(small), str(path)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=_environment())
            samples[name].append(json.loads(done.stdout))
    rows = {each[3] for found in samples.values() for each in found}
    assert len(rows) == 1, f"The systems found different rows: {rows}"
    return samples


def _readings(samples: dict[str, list[list[float]]], which: int) -> list[Reading]:
    return [
        Reading(name, [each[which] for each in found], [each[1] for each in found] if which == 0 else (),
                bare=name.startswith("bare"))
        for name, found in samples.items()
    ]  # fmt: skip


def _environment() -> dict[str, str]:
    """A home of its own: nothing is written there."""
    return {**os.environ, "LAPIS_HOME": tempfile.mkdtemp(prefix="home-")}


def _file(path: Path, size: float) -> Path:
    """Rows with a whole number, a number, a word, a truth, a time and some text; the same block again and again."""
    some = random.Random(1)

    def row(number: int) -> str:
        day = f"2024-{some.randint(1, 12):02}-{some.randint(1, 28):02} {some.randint(0, 23):02}:00:00"
        town = some.choice(["Oslo", "Rome", "Naples", "Bergen", "Ghent"])
        return f"{number},{some.random():.6f},{town},{some.random() < 0.5},{day},some words {some.random()}\n"

    block = "".join(row(number) for number in range(10_000))
    with open(path, "w") as file:
        file.write("id,amount,town,card,at,text\n")
        while file.tell() < size:
            file.write(block)
    return path


if __name__ == "__main__":
    alone(measure)

"""Files of a run: one of 512 MB by upload_file and download_file, in this process and in a submitted script."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from home import Home
from measure import Asked, Clock, Figure, Options, Reading, alone, family_cpu

from lapis.sdk.config.script_run_config import ScriptRunConfig
from lapis.sdk.runs.run import Run

# `--megabytes 5000`: another size
SIZE = int(sys.argv.pop(sys.argv.index("--megabytes") + 1)) << 20 if "--megabytes" in sys.argv else 512 << 20
if "--megabytes" in sys.argv:
    sys.argv.remove("--megabytes")
ROUNDS = 5
SYSTEMS = ("Lapis", "bare: cp", "cp and fsync", "sha256sum")
SCRIPT = """
import os, subprocess, time
from azureml.core import Run
run = Run.get_context()
with open("source.bin", "wb") as file:
    for _ in range({size} >> 20):
        file.write(os.urandom(1 << 20))
os.sync()
def timed(call, *given):
    begin = time.perf_counter()
    call(*given)
    return time.perf_counter() - begin
for number in range({rounds}):
    with open("source.bin", "r+b") as file:
        file.write(os.urandom(16))
    bare = timed(subprocess.check_call, ["cp", "source.bin", "copy.bin"])
    os.remove("copy.bin")
    up = timed(run.upload_file, f"file-{{number}}", "source.bin")
    down = timed(run.download_file, f"file-{{number}}", "back.bin")
    os.remove("back.bin")
    print("took", up, down, bare, flush=True)
"""


def measure(options: Options) -> list[Figure]:
    with Home() as home:
        source = _one_file(home.work / "source.bin")
        run = home.experiment().start_logging(snapshot_directory=None)
        up: dict[str, list[Clock]] = {name: [] for name in SYSTEMS}
        down: dict[str, list[Clock]] = {name: [] for name in SYSTEMS[:2]}
        for number in range(ROUNDS):
            for name in SYSTEMS[:: 1 if number % 2 == 0 else -1]:
                up[name].append(_stored(name, run, source, home.work / f"copy-{number}", number))
            for name in list(down)[:: 1 if number % 2 == 0 else -1]:
                down[name].append(_brought_back(name, run, source, home.work / f"back-{number}", number))
        run.complete()
        what = f"a file of {SIZE >> 20} MB"
        return [
            _figure(f"run.upload_file of {what}", up),
            _figure(f"run.download_file of {what}", down),
            *_in_script(home, what),
        ]


def _stored(name: str, run: Run, source: Path, copy: Path, number: int) -> Clock:
    with Clock(family_cpu) as clock:
        if name == "Lapis":
            run.upload_file(f"file-{number}", str(source))
        elif name == "sha256sum":
            subprocess.run(["sha256sum", source], check=True, stdout=subprocess.DEVNULL)
        else:
            _copy(source, copy)
            if name == "cp and fsync":
                subprocess.run(["sync", copy], check=True)
    copy.unlink(missing_ok=True)
    _change(source, number)
    return clock


def _brought_back(name: str, run: Run, source: Path, copy: Path, number: int) -> Clock:
    with Clock(family_cpu) as clock:
        if name == "Lapis":
            run.download_file(f"file-{number}", str(copy))
        else:
            _copy(source, copy)
    copy.unlink()
    return clock


def _in_script(home: Home, what: str) -> list[Figure]:
    """The same calls as a job makes them, with files of its own working folder."""
    folder = home.source(SCRIPT.format(rounds=ROUNDS, size=SIZE))
    run = home.experiment().submit(ScriptRunConfig(folder, "train.py"))
    run.wait_for_completion()
    lines = [line.split()[1:] for line in run._text_of("user_logs/std_log.txt").splitlines() if line[:4] == "took"]
    up, down, bare = ([float(line[place]) for line in lines] for place in range(3))
    return [
        Figure(f"run.{call} of {what}, in a script", "s",
               [Reading("Lapis", seconds), Reading("bare: cp", bare, bare=True)], Asked(times_bare=1.5))
        for call, seconds in (("upload_file", up), ("download_file", down))
    ]  # fmt: skip


def _one_file(place: Path) -> Path:
    with open(place, "wb") as file:
        for _ in range(SIZE >> 20):
            file.write(os.urandom(1 << 20))
    os.sync()
    return place


def _change(source: Path, number: int) -> None:
    """So that no content comes twice."""
    with open(source, "r+b", buffering=0) as file:
        file.seek(number << 12)
        file.write(os.urandom(16))


def _copy(source: Path, target: Path) -> None:
    subprocess.run([shutil.which("cp") or "cp", source, target], check=True)


def _figure(what: str, clocks: dict[str, list[Clock]]) -> Figure:
    readings = [
        Reading(name, [c.wall for c in each], [c.cpu for c in each], bare=name.startswith("bare"))
        for name, each in clocks.items()
    ]
    return Figure(what, "s", readings, Asked(times_bare=1.5))


if __name__ == "__main__":
    alone(measure)

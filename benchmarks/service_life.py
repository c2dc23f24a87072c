"""A service that nobody asks, and one whose load has gone: what it takes, and how soon it takes less."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import http_load
import model_servers
import peers
import psutil
from measure import Asked, Figure, Options, Reading, alone

SECONDS = 20.0  # at rest
ROUNDS = 3
MOST = 4  # replicas
AT_REST = Asked(most=0.05)
LOOKS = 10  # with which fewer replicas have to be content, one each second


def measure(options: Options) -> list[Figure]:
    azure = peers.serving_interpreter() if options.peers else None
    python = azure or sys.executable
    folder = model_servers.made_app(python)
    found = {"Lapis, score.py: front and replica": _at_rest(model_servers.score_script(python, folder))}
    if azure is not None:
        found["azureml-inference-server-http, score.py"] = _at_rest(model_servers.azure(python, folder))
    back = [_back_after_load(python, folder) for _ in range(ROUNDS)]
    return [
        Figure("a service at rest", "% of a core", [Reading(name, [each[0]]) for name, each in found.items()], AT_REST),
        Figure("its memory", "MB", [Reading(name, [each[1]]) for name, each in found.items()]),
        Figure(
            f"an autoscaled service, from {MOST} replicas to 1 after its load",
            "s",
            [Reading(f"Lapis, autoscale_refresh_seconds=1: {LOOKS} looks", back)],
            Asked(most=LOOKS + 3.0),
        ),
    ]


def _at_rest(service: model_servers.Server) -> tuple[float, float]:
    """Hundredths of a core, and megabytes that no other process shares or its part of those."""
    with service as (port, process):
        http_load.load(port, 8, 1.0)
        time.sleep(3.0)  # until what follows on requests is over
        family = [process, *process.children(recursive=True)]
        before = sum(map(_nanoseconds, family))
        time.sleep(SECONDS)
        used = sum(map(_nanoseconds, family)) - before
        return used / 1e9 / SECONDS * 100, sum(each.memory_full_info().pss for each in family) / 1e6


def _nanoseconds(process: psutil.Process) -> int:
    """On a core, of all its threads: finer than the hundredths of a second that its times are counted in."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{process.pid}/task").glob("*/schedstat"))


def _back_after_load(python: str, folder: Path) -> float:
    with model_servers.score_script(python, folder, min=1, max=MOST, refresh_seconds=1) as (port, process):
        asking = subprocess.Popen([sys.executable, http_load.__file__, str(port), "32", "6"], stdout=subprocess.DEVNULL)
        most = 0
        while asking.poll() is None:
            most = max(most, len(process.children()))
            time.sleep(0.05)
        assert asking.returncode == 0 and most == MOST, f"{most} replicas, clients ended with {asking.returncode}"
        began = time.perf_counter()
        while len(process.children()) > 1:
            assert time.perf_counter() - began < 60, "they stay"
            time.sleep(0.05)
        return time.perf_counter() - began


if __name__ == "__main__":
    alone(measure)

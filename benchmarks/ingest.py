"""How many metric points a second are stored: of a journal shipped over HTTP, and of a job that logs all it can."""

from __future__ import annotations

import json
import sqlite3
import time
from functools import partial
from pathlib import Path
from typing import Any

import peers
from home import Home
from measure import Asked, Clock, Figure, Options, Reading, alone, cpu_of, family_cpu

from azureml.core import Experiment, ScriptRunConfig
from lapis.client import local_server
from lapis.client.shipping import Shipper
from lapis.domain.metrics import SCALAR, Point, to_line

POINTS = 400_000
ROUNDS = 5
PEER_POINTS = 5000
IN_A_JOB, ROUNDS_OF_A_JOB = 200_000, 3
SCRIPT = f"""
import json, time
from azureml.core import Run

run = Run.get_context()
run.log("warm", 0.0)
run.flush()
samples = {{"logged": [], "stored": []}}
for _ in range({ROUNDS_OF_A_JOB}):
    began = time.perf_counter()
    for step in range({IN_A_JOB}):
        run.log("loss", step * 0.1)
    samples["logged"].append({IN_A_JOB} / (time.perf_counter() - began))
    run.flush()
    samples["stored"].append({IN_A_JOB} / (time.perf_counter() - began))
with open("outputs/samples.json", "w") as file:
    json.dump(samples, file)
"""


def measure(options: Options) -> list[Figure]:
    lapis, server, bare = [], [], []
    with Home() as home:
        experiment = home.experiment()
        about = local_server.running(home.settings)
        assert about is not None
        of_server = partial(cpu_of, int(about["pid"]))
        for number in range(ROUNDS):
            journal = home.work / f"journal-{number}.jsonl"
            with open(journal, "wb") as file:
                file.writelines(to_line(Point(SCALAR, time.time(), "loss", n * 0.1, n)) for n in range(POINTS))
            with experiment.start_logging() as run:
                with Clock(family_cpu) as all_of_it, Clock(of_server) as its_part:
                    _ship(run, journal)
                lapis.append(all_of_it)
                server.append(its_part)
                stored = len(run.get_metrics("loss")["loss"])
                assert stored == POINTS, f"{stored} of {POINTS} points were stored"
            bare.append(_sqlite(home.work / f"bare-{number}.db"))
        job = _in_a_job(home, experiment)
    readings = [
        _rate("Lapis", lapis, note="CPU of client and server a point"),
        _rate("bare: SQLite, WAL, 1,000 rows a transaction", bare, bare=True),
    ]
    if options.peers:
        found = peers.ask(options.peers, "log_batch", PEER_POINTS, 3)
        note = "1,000 points a call, no server between"
        readings.append(Reading("MLflow SQLite: log_batch", [1 / s for s in found["wall"]], found["cpu"], note=note))
    return [
        Figure("points taken up by the server", "points/s", readings, Asked(least=400_000)),
        Figure(
            "CPU of the server for a point",
            "s",
            [
                Reading("Lapis", [clock.cpu / POINTS for clock in server]),
                Reading("bare: SQLite", [clock.cpu / POINTS for clock in bare], bare=True),
            ],
            Asked(most=2.5e-6),
        ),
        Figure(
            "points that a job logs as fast as it can, stored",
            "points/s",
            [
                Reading("Lapis", job["stored"], note="until flush() returns"),
                Reading("bare: logged", job["logged"], bare=True, note="by the same script"),
            ],
            Asked(times_bare=1.2),
        ),
    ]


def _ship(run: Any, journal: Path) -> None:
    workspace = run.experiment.workspace
    shipper = Shipper(workspace._client, workspace._workspace_id, run.id)
    shipper.follow_journal("bench", str(journal))
    while shipper.behind():
        shipper.report()


def _in_a_job(home: Home, experiment: Experiment) -> Any:
    run = experiment.submit(ScriptRunConfig(home.source(SCRIPT), "train.py"))
    run.wait_for_completion()
    stored = len(run.get_metrics("loss")["loss"])
    assert stored == IN_A_JOB * ROUNDS_OF_A_JOB, f"{stored} points were stored"
    run.download_file("outputs/samples.json", "samples.json")
    return json.loads((home.work / "samples.json").read_text())


def _rate(system: str, clocks: list[Clock], bare: bool = False, note: str = "") -> Reading:
    return Reading(system, [POINTS / c.wall for c in clocks], [c.cpu / POINTS for c in clocks], bare, note)


def _sqlite(path: Path) -> Clock:
    database = sqlite3.connect(path, isolation_level=None)
    database.executescript(
        """PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
        CREATE TABLE metric(run INTEGER, key TEXT, step INTEGER, value REAL, at REAL);
        CREATE INDEX metric_run ON metric(run, key);"""
    )
    with Clock() as clock:
        for start in range(0, POINTS, 1000):
            rows = [(1, "loss", n, n * 0.1, time.time()) for n in range(start, start + 1000)]
            database.execute("BEGIN")
            database.executemany("INSERT INTO metric VALUES (?, ?, ?, ?, ?)", rows)
            database.execute("COMMIT")
    database.close()
    return clock


if __name__ == "__main__":
    alone(measure)

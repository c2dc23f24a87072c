"""1,000 runs with 5 metrics each, one after the other: start_logging, five logs, complete."""

from __future__ import annotations

import sqlite3
import time
import uuid

import peers
from home import Home
from measure import Asked, Clock, Figure, Options, Reading, alone, family_cpu

from azureml.core import Experiment

RUNS = 1000
ROUNDS = 3
PEER_RUNS = 50


def measure(options: Options) -> list[Figure]:
    lapis, bare = [], []
    with Home() as home:
        experiment = home.experiment()
        _make(experiment, 10)
        for number in range(ROUNDS):
            with Clock(family_cpu) as clock:
                _make(experiment, RUNS)
            lapis.append(clock)
            bare.append(_sqlite(str(home.work / f"bare-{number}.db")))
    readings = [
        Reading("Lapis", [c.wall for c in lapis], [c.cpu for c in lapis], note="CPU of client and server"),
        Reading("bare: SQLite, WAL", [c.wall for c in bare], [c.cpu for c in bare], bare=True),
    ]
    if options.peers:
        for kind, name in (("file", "MLflow files"), ("sqlite", "MLflow SQLite")):
            found = peers.ask(options.peers, "create_runs", kind, PEER_RUNS, ROUNDS)
            scaled = {key: [each * RUNS for each in values] for key, values in found.items()}
            readings.append(Reading(name, scaled["wall"], scaled["cpu"], note=f"{PEER_RUNS} runs, scaled"))
    return [Figure(f"{RUNS:,} runs with 5 metrics each", "s", readings, Asked(most=3.0))]


def _make(experiment: Experiment, count: int) -> None:
    for number in range(count):
        run = experiment.start_logging()
        for key in range(5):
            run.log(f"m{key}", number * 0.1)
        run.complete()


def _sqlite(path: str) -> Clock:
    database = sqlite3.connect(path, isolation_level=None)
    database.executescript(
        """PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
        CREATE TABLE run(id TEXT PRIMARY KEY, name TEXT, status TEXT, start REAL, end REAL) WITHOUT ROWID;
        CREATE TABLE metric(run TEXT, key TEXT, step INTEGER, value REAL, at REAL);
        CREATE INDEX metric_run ON metric(run, key);
        CREATE TABLE latest(run TEXT, key TEXT, value REAL, PRIMARY KEY(run, key)) WITHOUT ROWID;"""
    )
    with Clock() as clock:
        for number in range(RUNS):
            run = uuid.uuid4().hex
            database.execute("INSERT INTO run VALUES (?, ?, ?, ?, ?)", (run, "x", "running", time.time(), None))
            database.execute("BEGIN")
            for key in range(5):
                at = time.time()
                database.execute("INSERT INTO metric VALUES (?, ?, ?, ?, ?)", (run, f"m{key}", 0, number * 0.1, at))
                database.execute("INSERT INTO latest VALUES (?, ?, ?)", (run, f"m{key}", number * 0.1))
            database.execute("COMMIT")
            database.execute("UPDATE run SET status = 'done', end = ? WHERE id = ?", (time.time(), run))
    database.close()
    return clock


if __name__ == "__main__":
    alone(measure)

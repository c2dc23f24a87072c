"""How many metric points a second the server takes up: a journal shipped over HTTP until all of it is acknowledged."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import peers
from home import Home
from measure import Asked, Clock, Figure, Options, Reading, alone, family_cpu

from lapis.client.shipping import Shipper
from lapis.domain.metrics import SCALAR, Point, to_line

POINTS = 100_000
ROUNDS = 5
PEER_POINTS = 5000


def measure(options: Options) -> list[Figure]:
    lapis, bare = [], []
    with Home() as home:
        experiment = home.experiment()
        for number in range(ROUNDS):
            journal = home.work / f"journal-{number}.jsonl"
            journal.write_bytes(b"".join(to_line(Point(SCALAR, time.time(), "loss", n * 0.1)) for n in range(POINTS)))
            with experiment.start_logging() as run:
                workspace = experiment.workspace
                shipper = Shipper(workspace._client, workspace._workspace_id, run.id)
                shipper.follow_journal("bench", str(journal))
                with Clock(family_cpu) as clock:
                    while shipper.behind():
                        shipper.report()
                lapis.append(clock)
                stored = len(run.get_metrics("loss")["loss"])
                assert stored == POINTS, f"{stored} of {POINTS} points were stored"
            bare.append(_sqlite(home.work / f"bare-{number}.db"))
    readings = [
        _rate("Lapis", lapis, POINTS, note="CPU of client and server a point"),
        _rate("bare: SQLite, WAL, 1,000 rows a transaction", bare, POINTS, bare=True),
    ]
    if options.peers:
        found = peers.ask(options.peers, "log_batch", PEER_POINTS, 3)
        note = "1,000 points a call, no server between"
        readings.append(Reading("MLflow SQLite: log_batch", [1 / s for s in found["wall"]], found["cpu"], note=note))
    return [Figure("points taken up by the server", "points/s", readings, Asked(least=50_000))]


def _rate(system: str, clocks: list[Clock], points: int, bare: bool = False, note: str = "") -> Reading:
    return Reading(system, [points / c.wall for c in clocks], [c.cpu / points for c in clocks], bare, note)


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

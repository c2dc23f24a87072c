"""Reading metrics back: all of a run of a million points, what that takes of the server, one chart of a long series."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

from home import Home
from measure import Asked, Clock, Figure, Options, Reading, alone

from lapis.client import local_server
from lapis.client.shipping import Shipper
from lapis.domain.metrics import SCALAR, Point, to_line

SERIES, POINTS = 10, 111_000  # 1.1 million
ROUNDS = 5
CHARTS = 20


def measure(options: Options) -> list[Figure]:
    read, bare, charts, grown = [], [], [], []
    with Home() as home:
        experiment = home.experiment()
        workspace = experiment.workspace
        database = _sqlite(home.work / "bare.db")
        server = int(local_server.running(home.settings)["pid"])  # type: ignore[index]
        with experiment.start_logging() as run:
            _fill(run, home.work / "journal.jsonl")
            chart = f"{workspace._base}/runs/{run.id}/curve"
            for _ in range(ROUNDS):
                before = _peak(server, anew=True)
                with Clock() as clock:
                    found = run.get_metrics()
                read.append(clock)
                grown.append(_peak(server) - before)
                with Clock() as clock:
                    same = _read(database)
                bare.append(clock)
                assert found == same, "what comes back is not what was logged"
            for _ in range(CHARTS):
                with Clock() as clock:
                    points = workspace._client.call("GET", chart, query={"name": "m3", "most": 2000})["points"]
                charts.append(clock)
                assert 1000 < len(points) <= 2000
        database.close()
    every = SERIES * POINTS
    return [
        Figure(
            f"get_metrics() of {every / 1e6:.1f} million points",
            "s",
            [
                Reading("Lapis", [c.wall for c in read], [c.cpu for c in read], note="CPU of the client"),
                Reading("bare: SQLite, a row a point", [c.wall for c in bare], [c.cpu for c in bare], bare=True),
            ],
            Asked(times_bare=2),
        ),
        Figure("server memory that it takes, at the peak", "MB", [Reading("Lapis", grown)], Asked(most=8)),
        Figure(
            f"one chart of {POINTS:,} points",
            "s",
            [Reading("Lapis", [c.wall for c in charts], note="over HTTP, thinned to 2,000")],
            Asked(most=0.02),
        ),
    ]


def _value(series: int, number: int) -> float:
    return (number * 31 + series) % 1009 / 7.0


def _fill(run: Any, journal: Path) -> None:
    now = time.time()
    with open(journal, "wb") as file:
        for start in range(0, POINTS, 1000):
            for number in range(start, start + 1000):
                for series in range(SERIES):
                    file.write(to_line(Point(SCALAR, now, f"m{series}", _value(series, number), number)))
    workspace = run.experiment.workspace
    shipper = Shipper(workspace._client, workspace._workspace_id, run.id)
    shipper.follow_journal("bench", str(journal))
    while shipper.behind():
        shipper.report()


def _sqlite(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    database.executescript(
        """PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
        CREATE TABLE metric(run INTEGER, key TEXT, step INTEGER, value REAL, at REAL);
        CREATE INDEX metric_run ON metric(run, key);"""
    )
    now = time.time()
    database.execute("BEGIN")
    for series in range(SERIES):
        rows = [(1, f"m{series}", number, _value(series, number), now) for number in range(POINTS)]
        database.executemany("INSERT INTO metric VALUES (?, ?, ?, ?, ?)", rows)
    database.execute("COMMIT")
    return database


def _read(database: sqlite3.Connection) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for key, value in database.execute("SELECT key, value FROM metric WHERE run = 1 ORDER BY key, rowid"):
        found.setdefault(key, []).append(value)
    return found


def _peak(pid: int, anew: bool = False) -> float:
    """The most memory that a process ever had, or has had since it was last asked `anew`, in MB."""
    if anew:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


if __name__ == "__main__":
    alone(measure)

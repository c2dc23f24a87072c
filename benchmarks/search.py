"""The best 100 of 100,000 runs by a metric, asked of the store."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

import peers
from measure import Asked, Clock, Figure, Options, Reading, alone
from sqlalchemy import Table, insert, select

from lapis.domain.job import Job
from lapis.domain.run import SCRIPT_RUN, RunRecord, RunState, Step
from lapis.domain.run_filter import RunFilter
from lapis.sdk.config.runconfig import RunConfiguration, to_run_definition
from lapis.server.control.stores import Stores, open_stores
from lapis.server.control.workspaces import new_experiment
from lapis.server.store.tables import metric_series, runs

STORED = 100_000
METRICS = 3
ROUNDS = 20
PEER_STORED = 10_000
_BEST = 100


def measure(options: Options) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="search-") as folder:
        stores = open_stores(folder)
        body = _fill(stores)
        bare = _fill_bare(str(Path(folder, "bare.db")), body)
        best_by = ("m0", "maximize")
        one = RunFilter(workspace_id="w", experiment="e", best_by=best_by)
        everywhere = RunFilter(workspace_id="w", best_by=best_by)
        ours = _timed("Lapis", lambda: [run.id for run in stores.runs.find(one, _BEST)[0]])
        wide = _timed("Lapis", lambda: [run.id for run in stores.runs.find(everywhere, _BEST)[0]])
        limit = _timed("bare: an indexed SQLite query", lambda: _ask_bare(bare), bare=True)
        bare.close()
        stores.database.close()
    readings = [ours, limit]
    if options.peers and options.slow:
        found = peers.ask(options.peers, "search", PEER_STORED)
        readings.append(Reading("MLflow SQLite", found["wall"], found["cpu"], note=f"of {PEER_STORED:,}"))
    what = f"best {_BEST} of {STORED:,} runs by a metric, in the store"
    return [
        Figure(f"{what}, of an experiment", "s", readings, Asked(most=0.02)),
        Figure(f"{what}, of a workspace", "s", [wide, limit], Asked(most=0.02)),
    ]


def _fill(stores: Stores) -> str:
    """One run kept as every run is; the others are copies of its row. Each has some metrics. The run's body."""
    now = time.time()
    steps = [Step(now, state.value, "So it went") for state in (RunState.QUEUED, RunState.RUNNING, RunState.COMPLETED)]
    example = RunRecord(
        id="run-0",
        workspace_id="w",
        experiment="e",
        created_at=now,
        type=SCRIPT_RUN,
        target="local",
        state=RunState.COMPLETED,
        history=tuple(steps),
        tags={"model": "resnet", "quick": None},
        properties={"ContentSnapshotId": "0" * 64},
        definition=to_run_definition(RunConfiguration()),
        job=Job(script="train.py", arguments=("--rate", "0.1")),
    )
    stores.runs.add(example, new_experiment("e", now))
    with stores.database.write() as connection:
        first = dict(connection.execute(select(runs)).one()._mapping)
        _insert(connection, runs, [dict(first, pk=n + 1, id=f"run-{n}", root_id=f"run-{n}") for n in range(1, STORED)])
        series = {"experiment_pk": first["experiment_pk"], "kind": "scalar", "points": 1}
        for key in range(METRICS):
            values = ((n, float(_value(n, key))) for n in range(STORED))
            _insert(
                connection,
                metric_series,
                [dict(series, run_pk=n + 1, name=f"m{key}", last=v, least=v, greatest=v) for n, v in values],
            )
    return str(first["body"])


def _insert(connection: Any, into: Table, rows: list[dict[str, Any]]) -> None:
    for start in range(0, len(rows), 10_000):
        connection.execute(insert(into), rows[start : start + 10_000])


def _value(number: int, key: int) -> int:
    """Every run a value of its own, in no order."""
    return (number * 7919 + key) % STORED


def _fill_bare(path: str, body: str) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    database.executescript(
        """CREATE TABLE run(pk INTEGER PRIMARY KEY, id TEXT, body TEXT);
        CREATE TABLE latest(run INTEGER, key TEXT, value REAL, PRIMARY KEY(run, key)) WITHOUT ROWID;
        CREATE INDEX latest_value ON latest(key, value);"""
    )
    database.executemany("INSERT INTO run VALUES (?, ?, ?)", ((n, f"run-{n}", body) for n in range(STORED)))
    latest = ((n, f"m{key}", _value(n, key)) for n in range(STORED) for key in range(METRICS))
    database.executemany("INSERT INTO latest VALUES (?, ?, ?)", latest)
    database.commit()
    return database


def _ask_bare(database: sqlite3.Connection) -> list[str]:
    found = database.execute(
        "SELECT run.id, run.body FROM latest JOIN run ON run.pk = latest.run "
        "WHERE latest.key = 'm0' ORDER BY latest.value DESC LIMIT ?",
        (_BEST,),
    )
    return [row[0] for row in found.fetchall()]


def _timed(system: str, find: Any, bare: bool = False) -> Reading:
    expected = sorted(range(STORED), key=lambda n: -_value(n, 0))[:_BEST]
    assert find() == [f"run-{n}" for n in expected], f"{system} found others"
    wall, cpu = [], []
    for _ in range(ROUNDS):
        with Clock() as clock:
            find()
        wall.append(clock.wall)
        cpu.append(clock.cpu)
    return Reading(system, wall, cpu, bare)


if __name__ == "__main__":
    alone(measure)

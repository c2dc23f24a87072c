"""Runs in the peers' interpreter: does the work of one figure there and prints its samples as JSON."""

from __future__ import annotations

import concurrent.futures
import json
import logging
import os
import sqlite3
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

from measure import Clock

Samples = dict[str, list[float]]
STORE = "mlflow.db"


def make_store(path: str) -> Samples:
    """An empty SQLite store, with its tables made: that alone takes MLflow seconds."""
    _client(f"sqlite:///{path}").search_experiments()
    return {}


def log_metric(calls: str, rounds: str) -> Samples:
    client = _client(f"sqlite:///{STORE}")
    run_id = client.create_run(client.create_experiment("x")).info.run_id

    def one_round() -> None:
        for step in range(int(calls)):
            client.log_metric(run_id, "loss", step * 0.1, step=step)

    return _per(one_round, int(calls), int(rounds))


def log_batch(points: str, rounds: str) -> Samples:
    from mlflow.entities import Metric  # type: ignore[import-not-found]

    client = _client(f"sqlite:///{STORE}")
    experiment = client.create_experiment("x")

    def one_round() -> None:
        run_id = client.create_run(experiment).info.run_id
        for start in range(0, int(points), 1000):  # its limit for one call
            steps = range(start, start + 1000)
            client.log_batch(run_id, metrics=[Metric("loss", step * 0.1, 0, step) for step in steps])

    return _per(one_round, int(points), int(rounds))


def create_runs(kind: str, runs: str, rounds: str) -> Samples:
    client = _client(f"sqlite:///{STORE}" if kind == "sqlite" else f"file://{os.getcwd()}/mlruns")
    make, experiment = _maker(client), client.create_experiment("x")

    def one_round() -> None:
        for number in range(int(runs)):
            make(experiment, number)

    return _per(one_round, int(runs), int(rounds))


def log_artifacts(folder: str) -> Samples:
    client = _client(f"sqlite:///{STORE}")
    run_id = client.create_run(client.create_experiment("x")).info.run_id
    return _per(lambda: client.log_artifacts(run_id, folder), 1, 1)


def search(stored: str) -> Samples:
    """The best 100 of many runs. One is made through the API; the others are copies of its rows."""
    client = _client(f"sqlite:///{STORE}")
    experiment = client.create_experiment("stored")
    _copy_run(_maker(client)(experiment, 0), int(stored))

    def find() -> None:
        assert len(client.search_runs([experiment], order_by=["metrics.m0 DESC"], max_results=100)) == 100

    return _per(find, 1, 2)


def submitit_rounds(script: str, rounds: str) -> Samples:
    submit = _submitit(script)
    submit().result()
    first, finished = [], []
    for _ in range(int(rounds)):
        began, seen = time.perf_counter(), 0.0
        job = submit()
        while not job.done():
            if not seen and "first line" in (job.stdout() or ""):
                seen = time.perf_counter() - began
            time.sleep(0.01)
        job.result()
        finished.append(time.perf_counter() - began)
        first.append(seen or finished[-1])
    return {"first": first, "finished": finished}


def submitit_many(script: str, jobs: str) -> Samples:
    submit = _submitit(script)
    submit().result()
    with Clock() as clock, concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: submit().result(), range(int(jobs))))
    return {"wall": [clock.wall / int(jobs)], "cpu": [clock.cpu / int(jobs)]}


def _per(one_round: Callable[[], None], count: int, rounds: int) -> Samples:
    """Seconds for each of `count` things that a round does."""
    wall, cpu = [], []
    for _ in range(rounds):
        with Clock() as clock:
            one_round()
        wall.append(clock.wall / count)
        cpu.append(clock.cpu / count)
    return {"wall": wall, "cpu": cpu}


def _client(uri: str) -> Any:
    from mlflow import MlflowClient  # type: ignore[import-not-found]

    logging.disable(logging.INFO)
    return MlflowClient(tracking_uri=uri)


def _maker(client: Any) -> Callable[[str, int], str]:
    from mlflow.entities import Metric

    def make(experiment: str, number: int) -> str:
        run_id = str(client.create_run(experiment).info.run_id)
        client.log_batch(run_id, metrics=[Metric(f"m{key}", number * 0.1, 0, 0) for key in range(5)])
        client.set_terminated(run_id)
        return run_id

    return make


def _copy_run(run_id: str, stored: int) -> None:
    with sqlite3.connect(STORE) as database:
        for name in ("runs", "tags", "metrics", "latest_metrics"):
            cursor = database.execute(f"SELECT * FROM {name} WHERE run_uuid = ?", (run_id,))
            columns = [column[0] for column in cursor.description]
            for values in cursor.fetchall():
                copies = []
                for number in range(1, stored):
                    row = dict(zip(columns, values, strict=True))
                    row["run_uuid"] = uuid.UUID(int=(0xABCDEF << 104) + number).hex
                    if "metrics" in name:
                        row["value"] = number * 7919 % stored
                    copies.append(list(row.values()))
                database.executemany(f"INSERT INTO {name} VALUES ({','.join('?' * len(columns))})", copies)


def _submitit(script: str) -> Callable[[], Any]:
    import submitit  # type: ignore[import-not-found]

    executor = submitit.LocalExecutor(folder="logs")
    call = submitit.helpers.CommandFunction([sys.executable, script], verbose=False)
    return lambda: executor.submit(call)


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))

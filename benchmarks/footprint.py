"""How much room a trivial run takes in the database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing

from home import Home
from measure import Asked, Figure, Options, Reading, alone

from azureml.core import Experiment, ScriptRunConfig

LOGGED, SUBMITTED = 200, 20
SCRIPT = "from azureml.core import Run\nRun.get_context().log('accuracy', 0.5)\n"


def measure(options: Options) -> list[Figure]:
    with Home() as home:
        experiment = home.experiment()
        source = home.source(SCRIPT)
        _log(experiment, 20)  # pages that a table begins with are no matter of one run
        _submit(experiment, source, 4)
        logged = _grown(lambda: _log(experiment, LOGGED)) / LOGGED
        submitted = _grown(lambda: _submit(experiment, source, SUBMITTED)) / SUBMITTED
    return [
        Figure("database growth of a run that logs a value", "KB", [Reading("Lapis", [logged])], Asked(most=3)),
        Figure("database growth of a submitted script that does", "KB", [Reading("Lapis", [submitted])], Asked(most=3)),
    ]


def _log(experiment: Experiment, count: int) -> None:
    for _ in range(count):
        with experiment.start_logging() as run:
            run.log("accuracy", 0.5)


def _submit(experiment: Experiment, source: str, count: int) -> None:
    for run in [experiment.submit(ScriptRunConfig(source, "train.py")) for _ in range(count)]:
        run.wait_for_completion()


def _grown(work: Callable[[], None]) -> float:
    before = _used()
    work()
    return (_used() - before) / 1024


def _used() -> int:
    """Bytes of the database that hold something, with what still stands in the log."""
    with closing(sqlite3.connect(os.path.join(os.environ["LAPIS_HOME"], "lapis.db"))) as connection:
        (used,) = connection.execute("SELECT sum(pgsize - unused) FROM dbstat").fetchone()
        return int(used)


if __name__ == "__main__":
    alone(measure)

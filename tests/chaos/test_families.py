"""Kill -9 while a family of runs ends: all of it has ended, or none of it."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from azureml.core import Experiment, Run, Workspace
from lapis.testing import Home, until

CHILDREN = 150


def states(home: Home, parent_id: str) -> Counter[str]:
    """Of the children, as the file has them: the server need not be asked, nor be there."""
    with closing(sqlite3.connect(f"file:{home.path}/lapis.db?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT state FROM runs WHERE parent_id = ?", (parent_id,))
        return Counter(state for (state,) in rows)


@pytest.mark.parametrize(
    "how", ["cancel", pytest.param("complete", marks=pytest.mark.full), pytest.param("fail", marks=pytest.mark.full)]
)
def test_a_server_killed_while_it_ends_a_family_leaves_no_child_running(
    home: Home, how: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    experiment = Experiment(Workspace.from_config(), "family")
    parent = experiment.start_logging()
    parent.create_children(count=CHILDREN)
    grandchild = next(parent.get_children()).child_run()
    ending = threading.Thread(target=quietly(getattr(Run.get(experiment.workspace, parent.id), how)))
    ending.start()
    until(lambda: states(home, parent.id)["Running"] < CHILDREN)
    home.kill_server()
    ending.join()
    home.start()
    ended = "Completed" if how == "complete" else "Canceled"
    until(lambda: states(home, parent.id) == {ended: CHILDREN}, lambda: str(states(home, parent.id)))
    assert Run.get(experiment.workspace, grandchild.id).get_status() == ended
    parent.complete()  # it is over, and its owner need not tell anything when this process ends
    Run.get(experiment.workspace, parent.id).delete()
    assert not states(home, parent.id)


def quietly(work: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        try:
            work()
        except Exception:
            pass  # its server was killed, which is what this is about

    return run

"""What takes several steps is one transaction, or is gone on with: seen from the moments at which a server may die."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lapis.domain import run as rules
from lapis.domain import settings
from lapis.domain.job import Job
from lapis.domain.run import RunRecord, RunState
from lapis.domain.service_settings import PROFILED
from lapis.domain.tree import Tree
from lapis.engines.base import Handle, JobSpec, JobState
from lapis.errors import Conflict
from lapis.server.app import make_system
from lapis.server.control.runs import NewRun
from lapis.server.system import System
from tests.domain.service_samples import FULL_SERVICE

NO_FILES = Tree([])


class Recorded:
    """An engine whose agents live until they are asked to stop."""

    def __init__(self) -> None:
        self.launched: list[JobSpec] = []
        self.stopped: list[bool] = []
        self.during_launch: Callable[[], Any] = lambda: None

    def launch(self, job: JobSpec) -> Handle:
        self.launched.append(job)
        self.during_launch()
        return {"job": job.id, "agents": [len(self.launched)]}

    def poll(self, handles: Sequence[Handle]) -> list[JobState]:
        return [JobState.LOST if self.stopped else JobState.ALIVE for _ in handles]

    def stop(self, handle: Handle, *, hard: bool = False) -> None:
        self.stopped.append(hard)

    def forget(self, job_id: str) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    made = make_system(replace(settings.load(), home=str(tmp_path)), "http://127.0.0.1:1", time.time, lambda: None)
    yield made
    made.stores.database.close()


@pytest.fixture
def engine(system: System, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    recorded = Recorded()
    monkeypatch.setattr(system.reconciler._fleet, "engine", lambda *_: recorded)
    return recorded


def added(system: System, run_id: str = "r", **facts: Any) -> RunRecord:
    """A run in the store; queued with a job unless the facts say otherwise."""
    workspace = system.control.workspaces.ensure_default()["id"]
    assert not system.control.files.add_snapshot(workspace, NO_FILES, [])
    given = {
        "job": Job(command=("true",)),
        "state": RunState.QUEUED,
        "target": "local",
        "snapshot_id": NO_FILES.id,
    }
    record = RunRecord(run_id, workspace, "e", 1.0, **{**given, **facts})
    return system.stores.runs.add(record, system.control.workspaces.add_experiment(workspace, "e"))


def now(system: System, run: RunRecord) -> RunRecord:
    return system.stores.runs.get(run.workspace_id, run.id)


def test_a_cancel_that_meets_the_launch_is_told_to_the_agent_and_ends_nothing(system: System, engine: Recorded) -> None:
    run = added(system)
    engine.during_launch = lambda: system.control.runs.cancel(run.workspace_id, run.id)
    system.reconciler.one_pass()
    assert engine.stopped == [False] and not now(system, run).ended  # asked, and its agent will say how it ended
    engine.during_launch = lambda: None
    system.reconciler.one_pass()  # the agent died of it: the next one knows that it is to start nothing
    assert [job.work.launch.cancel for job in engine.launched] == [False, True]  # type: ignore[union-attr]


def test_a_run_that_was_cancelled_before_its_launch_was_noted_is_not_launched(system: System, engine: Recorded) -> None:
    run = added(system)
    assert system.control.runs.cancel(run.workspace_id, run.id).state is RunState.CANCELED
    system.reconciler.one_pass()
    assert not engine.launched


def test_a_launch_that_was_noted_by_a_server_that_died_is_done_by_the_next(system: System, engine: Recorded) -> None:
    run = added(system, handle={})
    system.reconciler.one_pass()
    assert [job.id for job in engine.launched] == ["r"]
    assert now(system, run).handle == {"job": "r", "agents": [1]} and now(system, run).launches == 1


def test_a_run_whose_node_is_taken_away_while_it_is_cancelled_does_not_begin_again(
    system: System, engine: Recorded
) -> None:
    run = added(system, handle={"job": "r", "agents": [1]}, state=RunState.RUNNING, cancel_requested=True)
    system.reconciler._preempted(run)
    assert now(system, run).state is RunState.CANCELED and engine.stopped == [True]


def test_a_family_that_an_earlier_server_ended_by_half_is_ended_by_the_next(system: System) -> None:
    parent = added(system, "parent", job=None, state=RunState.RUNNING)
    child = added(system, "child", job=None, state=RunState.RUNNING, parent_id="parent")
    grandchild = added(system, "grandchild", parent_id="child", handle={"job": "g"}, state=RunState.RUNNING)
    waiting = added(system, "waiting", parent_id="child")
    system.stores.runs.change(
        parent.workspace_id, parent.id, lambda stored: rules.end(stored, RunState.FAILED, reason="", at=2.0)
    )
    system.control.runs.endings.finish()
    assert [now(system, each).state for each in (child, waiting)] == [RunState.CANCELED] * 2
    assert now(system, grandchild).cancel_requested and not now(system, grandchild).ended


def test_a_parent_that_ended_a_moment_ago_gets_no_child(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = added(system, "parent", job=None, state=RunState.RUNNING)
    runs = system.control.runs
    checked = runs._parent

    def then_ends(workspace_id: str, new: NewRun) -> RunRecord | None:
        found = checked(workspace_id, new)
        monkeypatch.setattr(runs, "_parent", checked)
        runs.cancel(workspace_id, parent.id)
        return found

    monkeypatch.setattr(runs, "_parent", then_ends)
    with pytest.raises(Conflict, match="can have no further children"):
        runs.create(parent.workspace_id, [NewRun("e", "child", "n", parent_id="parent", started=True)])
    assert system.stores.runs.children(parent.workspace_id, parent.id) == []


def test_a_run_that_has_ended_leaves_nothing_in_live(system: System, tmp_path: Path) -> None:
    run = added(system)
    system.control.runs.grow_log(run, "logs/a.txt", b"before")
    system.control.runs.cancel(run.workspace_id, run.id)
    for name in ("logs/a.txt", "logs/b.txt"):
        system.control.runs.grow_log(run, name, b"after")
    assert system.stores.files.unsealed() == []
    assert [file.name for file in system.stores.files.find(run.workspace_id, run.id)] == ["logs/a.txt"]


def test_a_service_that_was_being_profiled_does_not_outlive_its_server(system: System) -> None:
    workspace = system.control.workspaces.ensure_default()["id"]
    system.stores.services.add(replace(FULL_SERVICE, workspace_id=workspace, kind=PROFILED, deleting=False))
    system.control.profiles.start()
    assert [service.deleting for service in system.stores.services.all()] == [True]


def test_what_is_told_within_a_transaction_is_heard_after_it_and_never_if_it_fails(system: System) -> None:
    heard: list[str] = []
    events, database = system.control.runs._events, system.stores.database
    events.on_run_told(heard.append)
    with database.write():
        events.tell("r")
        assert heard == []
    assert heard == ["r"]
    with pytest.raises(ZeroDivisionError), database.write():
        events.tell("s")
        raise ZeroDivisionError
    events.tell("t")
    assert heard == ["r", "t"]

"""Plans of pipelines, which lie as blobs beside the runs that name them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from lapis.domain.job import Job
from lapis.domain.pipeline import KeptPlan, PipelinePlan, StepPlan
from lapis.domain.run import RunRecord
from lapis.server.control import plans
from lapis.server.control.stores import open_stores
from lapis.server.control.workspaces import new_experiment
from lapis.upkeep.naming import names_in

SNAPSHOT, LOCK = "a" * 64, "b" * 64


def a_plan() -> PipelinePlan:
    job = Job(script="train.py", environment_variables={"LOCK": LOCK})
    return PipelinePlan(steps=(StepPlan("one", job, SNAPSHOT),), parameters={"n": "1"})


def test_a_plan_comes_back_whole_and_keeps_what_it_names(tmp_path: Path) -> None:
    stores = open_stores(str(tmp_path))
    kept = plans.keep(stores, a_plan())
    assert plans.read(stores, kept) == a_plan() and set(kept.names) == {SNAPSHOT, LOCK}
    run = RunRecord("p", "w", "trial", 0.0, pipeline=kept)
    stores.runs.add(run, new_experiment("trial", 0.0))
    assert stores.runs.get("w", "p").pipeline == kept
    assert [each.id for each in stores.runs.pipelines()] == ["p"]
    with sqlite3.connect(stores.database.path) as view:
        view.row_factory = sqlite3.Row
        named = names_in(view, stores.blobs.read_whole)
    view.close()
    assert {kept.plan, SNAPSHOT, LOCK} <= {digest.hex() for digest in named.blobs}
    stores.database.close()


def test_a_plan_that_is_lost_says_so(tmp_path: Path) -> None:
    stores = open_stores(str(tmp_path))
    assert "has lost its plan" in plans.read(stores, KeptPlan("c" * 64)).wrong[0]
    stores.database.close()

"""The best runs of an experiment by what they logged, as code asks for them."""

from __future__ import annotations

import pytest

from azureml.core import Experiment, Run, Workspace
from lapis.errors import UserErrorException
from lapis.testing import Home


@pytest.fixture
def experiment(on_shared_server: Home) -> Experiment:
    made = Experiment(Workspace.create("best-runs", exist_ok=True, show_output=False), "digits")
    if not list(made.get_runs()):
        for name, losses, accuracy in (("a", [3.0, 1.0, 2.0], 0.7), ("b", [2.5, 1.5], 0.9), ("c", [9.0], 0.1)):
            run = made.start_logging(display_name=name, tags={"size": "large" if name == "c" else "small"})
            for loss in losses:
                run.log("loss", loss)
            run.log("accuracy", accuracy)
            child = run.child_run("child")
            child.log("accuracy", 1.0)
            child.complete()
            run.fail("too slow") if name == "b" else run.complete()
    return made


def test_runs_come_by_their_best_value_of_a_metric(experiment: Experiment) -> None:
    def names(**asked: object) -> list[str | None]:
        return [run.name for run in experiment.get_runs(**asked)]  # type: ignore[arg-type]

    assert names() == ["c", "b", "a"], "the newest first, as ever"
    assert names(order_by="metric:accuracy") == ["b", "a", "c"]
    assert names(order_by="metric:loss:asc") == ["a", "b", "c"], "by the least that each came to"
    assert names(order_by="metric:accuracy", status="Completed") == ["a", "c"]
    assert names(order_by="metric:accuracy", tags={"size": "large"}) == ["c"]
    assert names(where="accuracy>=0.7") == ["b", "a"]
    assert names(where=["accuracy>=0.7", "loss<1.2"], order_by="created:asc") == ["a"]
    assert names(order_by="metric:accuracy", include_children=True)[:3] == ["child"] * 3
    assert [run.name for run in Run.list(experiment, status="Failed", order_by="metric:loss")] == ["b"]


def test_an_order_that_is_none_is_refused_at_once(experiment: Experiment) -> None:
    with pytest.raises(UserErrorException, match="5 is no order of runs"):
        experiment.get_runs(order_by=5)  # type: ignore[arg-type]
    with pytest.raises(UserErrorException, match="3 does not compare"):
        experiment.get_runs(where=["loss<1", 3])  # type: ignore[list-item]
    with pytest.raises(UserErrorException, match="is no order of runs"):
        experiment.get_runs(order_by="accuracy")
    with pytest.raises(UserErrorException, match="does not compare"):
        experiment.get_runs(where="accuracy")

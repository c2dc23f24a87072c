"""What runs and experiments are called and labelled, how they are found by it, and how they go away."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from azureml.core import Experiment, Run, ScriptRunConfig, Workspace
from azureml.exceptions import UserErrorException

Submit = Callable[..., Any]


@pytest.fixture
def run(experiment: Experiment) -> Any:
    with experiment.start_logging() as run:
        yield run


def ids(runs: Any) -> list[str]:
    return [run.id for run in runs]


# -- tags and properties


def test_tags_can_be_set_replaced_and_removed(run: Any) -> None:
    run.tag("quality", "fantastic")
    run.tag("favourite")
    run.tag("number", 3)
    assert run.get_tags() == run.tags == {"quality": "fantastic", "favourite": None, "number": "3"}
    run.set_tags({"quality": "poor", "new": "x"})
    assert run.get_tags() == {"quality": "poor", "favourite": None, "number": "3", "new": "x"}
    assert run.remove_tags("new") == {"quality": "poor", "favourite": None, "number": "3"}
    assert run.remove_tags(["number", "favourite", "not there"]) == {"quality": "poor"}


def test_tags_change_when_the_run_has_ended_too(run: Any) -> None:
    run.complete()
    run.tag("seen", "yes")
    assert Run.get(run.experiment.workspace, run.id).get_tags() == {"seen": "yes"}


def test_a_property_cannot_be_changed_once_set(run: Any) -> None:
    run.add_properties({"author": "ann", "team": "blue"})
    run.add_properties({"author": "ann"})  # the same again is no change
    with pytest.raises(UserErrorException, match="'author' .* already 'ann'"):
        run.add_properties({"new": "x", "author": "bob"})
    assert run.get_properties() == run.properties == {"author": "ann", "team": "blue"}


@pytest.mark.parametrize("labels", ["text", ["a"], None, {5: "x"}, {"": "x"}, {None: "x"}])
def test_labels_that_are_no_dictionary_of_texts_are_refused(run: Any, labels: Any) -> None:
    with pytest.raises(UserErrorException, match="tags"):
        run.set_tags(labels)
    with pytest.raises(UserErrorException, match="properties"):
        run.add_properties(labels)
    assert run.get_tags() == {} and run.get_properties() == {}


def test_tags_are_given_with_start_logging_and_submit(experiment: Experiment, submit: Submit) -> None:
    with experiment.start_logging(tags={"a": 1, "b": None}, display_name="shown") as run:
        assert run.get_tags() == {"a": "1", "b": None}
    submitted = submit("print(1)", tags={"c": "d"})
    assert submitted.get_tags() == {"c": "d"}
    submitted.wait_for_completion()


# -- found by them


def test_runs_are_found_by_tag_and_property(experiment: Experiment) -> None:
    made = {}
    for name, tags, properties in (
        ("plain", {}, {}),
        ("good", {"quality": "good"}, {"author": "ann"}),
        ("poor", {"quality": "poor", "seen": None}, {"author": "ann"}),
        ("odd", {"a=b": "c", "k": "x=y"}, {"author": "bob"}),
    ):
        with experiment.start_logging(tags=tags) as run:
            run.add_properties(properties)
        made[name] = run.id
    assert ids(experiment.get_runs()) == [made[name] for name in ("odd", "poor", "good", "plain")]
    assert ids(experiment.get_runs(tags="quality")) == [made["poor"], made["good"]]
    assert ids(experiment.get_runs(tags={"quality": "good"})) == [made["good"]]
    assert ids(experiment.get_runs(tags={"quality": "good", "seen": None})) == []
    assert ids(experiment.get_runs(tags={"quality": "poor", "seen": None})) == [made["poor"]]
    assert ids(experiment.get_runs(properties={"author": "ann"})) == [made["poor"], made["good"]]
    assert ids(experiment.get_runs(properties={"author": "ann"}, tags={"quality": "poor"})) == [made["poor"]]
    assert ids(experiment.get_runs(properties="author")) == [made["odd"], made["poor"], made["good"]]
    assert ids(experiment.get_runs(tags={"k": "x=y"})) == [made["odd"]]
    assert ids(experiment.get_runs(tags={"a=b": "c"})) == [made["odd"]]
    assert ids(experiment.get_runs(tags={"quality": "goo"})) == []
    with pytest.raises(UserErrorException, match="dictionary"):
        experiment.get_runs(tags=5)


def test_a_list_of_runs_is_narrowed_by_status_and_type(experiment: Experiment, submit: Submit) -> None:
    submitted = submit("print(1)")
    submitted.wait_for_completion()
    open_run = experiment.start_logging()
    with experiment.start_logging() as failed:
        failed.fail()
    assert ids(Run.list(experiment, status="Running")) == [open_run.id]
    assert ids(Run.list(experiment, status=["Running", "Failed"])) == [failed.id, open_run.id]
    assert ids(Run.list(experiment, type="azureml.scriptrun")) == [submitted.id]
    assert ids(experiment.get_runs(type="azureml.scriptrun")) == [submitted.id]
    open_run.complete()
    assert ids(Run.list(experiment, status="Running")) == []


def test_a_long_list_comes_page_by_page_and_whole(experiment: Experiment) -> None:
    with experiment.start_logging() as parent:
        made = [run.id for run in parent.create_children(count=250)]
    assert ids(parent.get_children()) == made[::-1]
    assert next(experiment.get_runs()).id == parent.id


# -- names and descriptions


def test_a_run_can_be_named_and_described(experiment: Experiment) -> None:
    with experiment.start_logging(display_name="first try") as run:
        assert run.display_name == "first try"
        run.display_name = "second try"
        run.description = "with *more* data"
    again = Run.get(experiment.workspace, run.id)
    assert (again.display_name, again.description) == ("second try", "with *more* data")
    with pytest.raises(UserErrorException, match="display_name must be text"):
        run.display_name = 5
    with pytest.raises(UserErrorException, match="description must be text"):
        run.description = ["x"]
    assert Run.get(experiment.workspace, run.id).display_name == "second try"


def test_runs_are_numbered_within_their_experiment(workspace: Workspace) -> None:
    first, second = Experiment(workspace, "one"), Experiment(workspace, "two")
    numbers = []
    for experiment in (first, first, second):
        with experiment.start_logging() as run:
            numbers.append(run.number)
    assert numbers == [1, 2, 1]


# -- gone


def test_an_archived_run_is_hidden_but_there(experiment: Experiment) -> None:
    with experiment.start_logging() as run:
        pass
    run.archive()
    assert ids(experiment.get_runs()) == []
    assert Run.get(experiment.workspace, run.id).get_status() == "Completed"
    run.unarchive()
    assert ids(experiment.get_runs()) == [run.id]


def test_a_deleted_run_is_gone_with_all_below_it(experiment: Experiment) -> None:
    with experiment.start_logging() as run:
        child = run.child_run()
        child.log("x", 1)
        with pytest.raises(UserErrorException, match=f"{run.id} has not ended"):
            run.delete()
    run.delete()
    assert ids(experiment.get_runs(include_children=True)) == []
    for each in (run, child):
        with pytest.raises(UserErrorException, match=f"'{each.id}'"):
            Run.get(experiment.workspace, each.id)
        with pytest.raises(UserErrorException, match=f"'{each.id}'"):
            each.get_metrics()


def test_logging_to_a_deleted_run_says_so_once_and_holds_nothing_up(
    experiment: Experiment, python: Callable[..., str]
) -> None:
    with experiment.start_logging(run_id="gone"):
        pass
    began = time.monotonic()
    said = python(
        "import sys\nfrom azureml.core import Run, Workspace\n"
        "run = Run.get(Workspace.get(sys.argv[1]), 'gone')\n"
        "run.delete()\n"
        "for number in range(100): run.log('x', number)\n",
        experiment.workspace.name,
    )
    assert time.monotonic() - began < 10
    assert said.count("No run with id 'gone'") == 1


def test_an_id_can_be_used_again_once_its_run_is_deleted(experiment: Experiment) -> None:
    with experiment.start_logging(run_id="mine") as run:
        run.log("x", 1)
    run.delete()
    with experiment.start_logging(run_id="mine") as run:
        run.log("y", 2)
    assert run.get_metrics() == {"y": 2}


def test_a_run_id_that_is_taken_is_refused(experiment: Experiment, script: Submit) -> None:
    with experiment.start_logging(run_id="taken") as run:
        run.log("x", 1)
    for again in (
        lambda: experiment.start_logging(run_id="taken"),
        lambda: experiment.submit(ScriptRunConfig(script(""), script="train.py"), run_id="taken"),
    ):
        with pytest.raises(UserErrorException, match="'taken' exists already"):
            again()
    assert [each.id for each in experiment.get_runs()] == ["taken"]
    assert run.get_metrics() == {"x": 1} and run.get_status() == "Completed"


# -- experiments


def test_experiments_are_labelled_listed_and_archived(workspace: Workspace) -> None:
    first, second = Experiment(workspace, "first"), Experiment(workspace, "second")
    first.set_tags({"team": "blue", "year": "1"})
    first.tag("old")
    second.tag("team", "red")
    assert first.remove_tags(["year"]) == {"team": "blue", "old": None}
    assert set(workspace.experiments) == {"first", "second"}
    assert [e.name for e in Experiment.list(workspace, tags={"team": "blue"})] == ["first"]
    assert [e.name for e in Experiment.list(workspace, tags="team")] == ["first", "second"]
    assert [e.name for e in Experiment.list(workspace, experiment_name="second")] == ["second"]
    first.archive()
    assert first.archived_time is not None
    assert [e.name for e in Experiment.list(workspace)] == ["second"]
    assert [e.name for e in Experiment.list(workspace, view_type="ArchivedOnly")] == ["first"]
    assert [e.name for e in Experiment.list(workspace, view_type="All")] == ["first", "second"]
    first.reactivate(new_name="renamed")
    assert {e.name: e.tags for e in Experiment.list(workspace)} == {
        "renamed": {"team": "blue", "old": None},
        "second": {"team": "red"},
    }


def test_a_run_finds_its_experiment_under_its_new_name(workspace: Workspace) -> None:
    experiment = Experiment(workspace, "before")
    with experiment.start_logging() as run:
        pass
    experiment.archive()
    experiment.reactivate(new_name="after")
    assert Run.get(workspace, run.id).experiment.name == "after"
    assert ids(Experiment(workspace, "after").get_runs()) == [run.id]
    assert set(workspace.experiments) == {"after"}


def test_only_an_empty_experiment_can_be_deleted(workspace: Workspace) -> None:
    empty, full = Experiment(workspace, "empty"), Experiment(workspace, "full")
    with full.start_logging():
        pass
    Experiment.delete(workspace, empty.id)
    with pytest.raises(UserErrorException, match="'full' holds runs"):
        Experiment.delete(workspace, full.id)
    assert set(workspace.experiments) == {"full"}
    with pytest.raises(UserErrorException, match="No experiment with id 'nothing'"):
        Experiment.delete(workspace, "nothing")

"""Parents and children: made, found, narrowed down, and never left behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, Run, ScriptRun, ScriptRunConfig, Workspace
from azureml.exceptions import UserErrorException
from lapis.testing import Home, until, until_written

Submit = Callable[..., Any]
WAIT = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)\n"


def ids(runs: Any) -> list[str]:
    return [run.id for run in runs]


def test_a_child_is_a_run_of_its_own(experiment: Experiment) -> None:
    with experiment.start_logging() as parent:
        with parent.child_run(name="fold 1") as child:
            child.log("loss", 0.5)
            assert child.get_status() == "Running"
        assert child.get_status() == "Completed"
        assert parent.get_status() == "Running"
    assert (child.name, child.display_name) == ("fold 1", "fold 1")
    assert child.parent == parent and parent.parent is None
    assert child.get_metrics() == {"loss": 0.5} and parent.get_metrics() == {}
    assert ids(parent.get_children()) == [child.id]
    assert ids(experiment.get_runs()) == [parent.id]
    assert ids(experiment.get_runs(include_children=True)) == [child.id, parent.id]


def test_children_can_be_given_ids(experiment: Experiment) -> None:
    with experiment.start_logging() as parent:
        assert parent.child_run(run_id="my-child_1").id == "my-child_1"
        with pytest.raises(UserErrorException, match="exists already"):
            parent.child_run(run_id="my-child_1")
        with pytest.raises(UserErrorException, match="'no spaces'"):
            parent.child_run(run_id="no spaces")
    assert ids(parent.get_children()) == ["my-child_1"]


def test_many_children_are_made_at_once(experiment: Experiment) -> None:
    with experiment.start_logging() as parent:
        made = parent.create_children(count=5)
        tagged = parent.create_children(tag_key="lr", tag_values=[0.1, 0.01])
        assert len(made) == 5 and [run.get_tags() for run in tagged] == [{"lr": "0.1"}, {"lr": "0.01"}]
        for number, child in enumerate(made):
            child.log("number", number)
            child.complete()
    assert [child.get_metrics() for child in made] == [{"number": number} for number in range(5)]
    assert len(list(parent.get_children())) == 7


@pytest.mark.parametrize(
    "wrong", [{}, {"count": 0}, {"count": -1}, {"count": "3"}, {"count": True}, {"tag_key": "a"}, {"tag_values": ["a"]},
              {"count": 3, "tag_key": "a", "tag_values": ["x"]}, {"tag_key": "a", "tag_values": []},
              {"tag_key": 5, "tag_values": ["x"]}, {"tag_key": "a", "tag_values": "xyz"}],
)  # fmt: skip
def test_children_that_make_no_sense_are_refused(experiment: Experiment, wrong: dict[str, Any]) -> None:
    with experiment.start_logging() as parent:
        with pytest.raises(UserErrorException, match="create_children|tag"):
            parent.create_children(**wrong)
        assert list(parent.get_children()) == []


def test_children_are_found_by_tag_property_type_and_status(experiment: Experiment, script: Submit) -> None:
    with experiment.start_logging() as parent:
        good, bad = parent.child_run(), parent.child_run()
        good.tag("kind", "good")
        good.add_properties({"fold": "1"})
        bad.tag("kind")
        bad.fail("no luck")
        submitted = parent.submit_child(ScriptRunConfig(script("print(1)"), script="train.py"), tags={"kind": "script"})
        submitted.wait_for_completion()
        below = bad.parent.child_run()
        assert ids(parent.get_children()) == [below.id, submitted.id, bad.id, good.id], "the newest first"
        assert ids(parent.get_children(tags="kind")) == [submitted.id, bad.id, good.id]
        assert ids(parent.get_children(tags={"kind": "good"})) == [good.id]
        assert ids(parent.get_children(tags={"kind": "script"}, type=ScriptRun)) == [submitted.id]
        assert ids(parent.get_children(properties={"fold": "1"})) == [good.id]
        assert ids(parent.get_children(properties="fold", tags={"kind": "bad"})) == []
        assert ids(parent.get_children(type="azureml.scriptrun")) == [submitted.id]
        assert ids(parent.get_children(status="Failed")) == [bad.id]
        assert ids(parent.get_children(status=["Failed", "Completed"])) == [submitted.id, bad.id]
        assert isinstance(next(parent.get_children(type=ScriptRun)), ScriptRun)


def test_grandchildren_are_found_recursively_with_the_same_filters(experiment: Experiment) -> None:
    with experiment.start_logging() as parent:
        child = parent.child_run()
        grandchild = child.child_run()
        grandchild.tag("level", "2")
        grandchild.add_properties({"p": "q"})
        hidden = child.child_run()
        hidden.complete()
        hidden.archive()
        assert ids(parent.get_children(recursive=True)) == [grandchild.id, child.id]
        assert ids(parent.get_children()) == [child.id]
        assert ids(parent.get_children(recursive=True, tags={"level": "2"})) == [grandchild.id]
        assert ids(parent.get_children(recursive=True, tags="level")) == [grandchild.id]
        assert ids(parent.get_children(recursive=True, properties={"p": "other"})) == []
        assert ids(parent.get_children(recursive=True, status="Running")) == [grandchild.id, child.id]
        assert ids(parent.get_children(recursive=True, type="azureml.scriptrun")) == []
        assert ids(child.get_children(recursive=True)) == [grandchild.id]


def test_children_complete_with_their_parent(experiment: Experiment) -> None:
    with experiment.start_logging() as parent:
        child = parent.child_run()
        grandchild = child.child_run()
        grandchild.log("kept", 1)
    assert [run.get_status() for run in (parent, child, grandchild)] == ["Completed"] * 3
    assert grandchild.get_metrics() == {"kept": 1}


def test_children_of_a_parent_that_ends_early_do_not_linger(
    experiment: Experiment, script: Submit, tmp_path: Path
) -> None:
    parent = experiment.start_logging()
    child = parent.child_run()
    done = parent.child_run()
    done.complete()
    submitted = child.submit_child(ScriptRunConfig(script(WAIT), script="train.py", arguments=[tmp_path / "never"]))
    until(lambda: submitted.get_status() == "Running")
    parent.fail("it broke")
    assert child.get_status() == "Canceled" and done.get_status() == "Completed"
    assert submitted.wait_for_completion()["status"] == "Canceled"
    assert parent.get_status() == "Failed"


def test_a_parent_may_complete_although_a_child_failed(experiment: Experiment) -> None:
    with experiment.start_logging() as parent, pytest.raises(ZeroDivisionError), parent.child_run() as child:
        1 / 0  # noqa: B018
    assert (parent.get_status(), child.get_status()) == ("Completed", "Failed")
    assert "ZeroDivisionError" in child.get_details()["error"]["error"]["message"]


def test_a_script_makes_children_and_logs_to_them(finish: Submit) -> None:
    run = finish(
        "from azureml.core import Run\n"
        "run = Run.get_context()\n"
        "for number, child in enumerate(run.create_children(tag_key='fold', tag_values=['a', 'b'])):\n"
        "    with child:\n"
        "        child.log('number', number)\n"
        "        open('p.png', 'w').close(); child.log_image('image', path='p.png')\n"
        "        child.upload_file('notes.txt', 'p.png')\n"
        "run.child_run('left open').log('x', 1)\n"
        "print([child.get_metrics(name='number') for child in run.get_children(tags='fold')])\n"
    )
    assert run.get_logs()["user_logs/std_log.txt"] == "[{'number': 1}, {'number': 0}]\n"
    left, second, first = run.get_children()
    assert {child.get_status() for child in (left, second, first)} == {"Completed"}
    assert left.get_metrics() == {"x": 1}
    assert [child.get_tags() for child in (first, second)] == [{"fold": "a"}, {"fold": "b"}]
    names = first.get_file_names()
    assert "notes.txt" in names and any(name.startswith("image_") for name in names)
    assert first.parent == run


def test_a_script_that_fails_cancels_the_children_it_left_open(finish: Submit) -> None:
    run = finish("from azureml.core import Run\nRun.get_context().child_run().log('x', 1)\nraise SystemExit(1)")
    child = next(run.get_children())
    assert (run.get_status(), child.get_status()) == ("Failed", "Canceled")
    assert child.get_metrics() == {"x": 1}


def test_a_script_cannot_change_a_run_that_is_not_below_it(experiment: Experiment, finish: Submit) -> None:
    with experiment.start_logging() as other:
        run = finish(
            "import sys\nfrom azureml.core import Run\n"
            "run = Run.get_context()\n"
            "other = Run.get(run.experiment.workspace, sys.argv[1])\n"
            "print(other.get_status())\n"
            "try: other.tag('touched')\n"
            "except Exception as error: print(type(error).__name__, error.message)\n",
            arguments=[other.id],
        )
        assert other.get_tags() == {}
    printed = run.get_logs()["user_logs/std_log.txt"]
    assert printed == f"Running\nForbidden The token of run {run.id} cannot change run {other.id}.\n"


def test_a_script_submits_a_child_and_waits_for_it_on_one_slot(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LAPIS_MAX_RUNS", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "train.py").write_text(
        "import sys\nfrom azureml.core import Run, ScriptRunConfig\n"
        "run = Run.get_context()\n"
        "if sys.argv[1:] == ['below']: run.log('depth', 1)\n"
        "else:\n"
        "    child = run.submit_child(ScriptRunConfig('.', script='train.py', arguments=['below']))\n"
        "    child.wait_for_completion()\n"
        "    run.log('depth of child', child.get_metrics()['depth'])\n"
    )
    experiment = Experiment(Workspace.from_config(), "nested")
    run = experiment.submit(ScriptRunConfig(tmp_path / "source", script="train.py"))
    run.wait_for_completion()
    assert run.get_metrics() == {"depth of child": 1}
    assert next(run.get_children()).parent == run


def test_a_run_that_has_ended_has_no_further_children(experiment: Experiment, script: Submit) -> None:
    with experiment.start_logging() as parent:
        pass
    with pytest.raises(UserErrorException, match=f"{parent.id} has ended"):
        parent.child_run()
    with pytest.raises(UserErrorException, match=f"{parent.id} has ended"):
        parent.submit_child(ScriptRunConfig(script(""), script="train.py"))
    assert list(parent.get_children()) == []


def test_children_that_one_process_made_are_logged_from_another(
    experiment: Experiment, python: Callable[..., str], tmp_path: Path
) -> None:
    with experiment.start_logging() as parent:
        child = parent.child_run()
        python(
            "import sys\nfrom azureml.core import Run, Workspace\n"
            "run = Run.get(Workspace.get(sys.argv[1]), sys.argv[2])\n"
            "run.log('from', 'elsewhere'); run.complete(); open('done', 'w').write('yes\\n')\n",
            experiment.workspace.name, child.id,
        )  # fmt: skip
        assert until_written(tmp_path / "done") == "yes"
        assert child.get_status() == "Completed"
        assert child.get_metrics() == {"from": "elsewhere"}
    assert Run.get(experiment.workspace, child.id).get_metrics() == {"from": "elsewhere"}

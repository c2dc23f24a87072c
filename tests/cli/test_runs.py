"""run list, show, metrics, cancel, delete, archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.workspace.workspace import Workspace
from lapis.testing import Home
from tests.cli.conftest import Finished, Lapis, Start


def ids(said: object) -> list[str]:
    return [run["id"] for run in said.json["runs"]]  # type: ignore[attr-defined]


@pytest.fixture
def waiting(lapis: Lapis, here: Workspace, script: Callable[..., str], tmp_path: Path) -> str:
    """The id of a run that goes on until it is stopped."""
    folder = script("import time\nprint('up', flush=True)\nwhile True: time.sleep(1)\n")
    return str(lapis("run", "submit", "--json", "--source", folder, "train.py").json["id"])


# -- list


def test_runs_are_listed_with_the_newest_first(lapis: Lapis, here: Workspace) -> None:
    made = [Experiment(here, name).start_logging(run_id=f"{name}_1") for name in ("a", "b")]
    made[0].tag("team", "x")
    made[0].complete()
    made[1].fail("lost")
    said = lapis("run", "list", "--json")
    assert ids(said) == ["b_1", "a_1"] and said.json["more"] is False
    first = said.json["runs"][0]
    assert (first["status"], first["experiment"], first["archived"]) == ("Failed", "b", False)
    assert {"number", "name", "tags", "created_at", "started_at", "ended_at", "seconds", "parent_id"} <= set(first)
    shown = lapis("run", "list").out.splitlines()
    assert shown[0].split() == ["RUN", "EXPERIMENT", "STATUS", "CREATED", "TIME", "TAGS"]
    assert shown[1].startswith("b_1  b           Failed") and shown[2].endswith("team=x")

    assert ids(lapis("run", "list", "--json", "--experiment", "a")) == ["a_1"]
    assert ids(lapis("run", "list", "--json", "--status", "failed", "--status", "Running")) == ["b_1"]
    assert ids(lapis("run", "list", "--json", "--tag", "team")) == ["a_1"]
    assert ids(lapis("run", "list", "--json", "--tag", "team=y")) == []
    limited = lapis("run", "list", "--json", "--limit", "1")
    assert ids(limited) == ["b_1"] and limited.json["more"] is True
    assert "There are more" in lapis("run", "list", "--limit", "1").err


def test_the_best_runs_by_a_metric_are_listed_with_their_values(lapis: Lapis, here: Workspace) -> None:
    for name, values in (("good", [0.5, 0.9, 0.7]), ("fair", [0.6]), ("none", [])):
        run = Experiment(here, "a").start_logging(run_id=name, tags={"kind": name})
        for value in values:
            run.log("acc", value)
        run.fail() if name == "fair" else run.complete()
    assert ids(lapis("run", "list", "--json", "--sort", "metric:acc")) == ["good", "fair"]
    assert ids(lapis("run", "list", "--json", "--sort", "metric:acc:asc", "--top", "1")) == ["good"], "its least is 0.5"
    assert ids(lapis("run", "list", "--json", "--sort", "metric:acc", "--status", "Failed")) == ["fair"]
    assert ids(lapis("run", "list", "--json", "--where", "acc>0.65", "-e", "a", "--tag", "kind=good")) == ["good"]
    assert ids(lapis("run", "list", "--json", "--sort", "created:asc")) == ["good", "fair", "none"]
    assert [run["value"] for run in lapis("run", "list", "--json", "--sort", "metric:acc").json["runs"]] == [0.9, 0.6]
    shown = lapis("run", "list", "--sort", "metric:acc", "--all").out.splitlines()
    assert shown[0].split()[:2] == ["RUN", "ACC"] and shown[1].split()[:2] == ["good", "0.9"]
    assert "is no order of runs" in lapis("run", "list", "--sort", "size").err
    assert "does not compare" in lapis("run", "list", "--where", "acc").err


def test_children_and_archived_runs_are_listed_only_on_request(lapis: Lapis, here: Workspace) -> None:
    parent = Experiment(here, "family").start_logging(run_id="parent")
    parent.child_run(run_id="child").complete()
    parent.complete()
    Experiment(here, "family").start_logging(run_id="newest").complete()
    assert lapis("run", "archive", "parent", "--json").json["runs"][0]["archived"] is True
    assert ids(lapis("run", "list", "--json")) == ["newest"]
    assert ids(lapis("run", "list", "--json", "--all")) == ["newest", "child", "parent"]
    assert "(archived)" in lapis("run", "list", "-a").out


def test_a_list_goes_on_over_many_pages(lapis: Lapis, here: Workspace) -> None:
    parent = Experiment(here, "many").start_logging()
    parent.create_children(count=120)
    parent.complete()
    assert len(ids(lapis("run", "list", "--json", "--all", "--limit", "200"))) == 121


def test_an_empty_list_says_so(lapis: Lapis, here: Workspace) -> None:
    said = lapis("run", "list")
    assert (said.status, said.out) == (0, "") and here.name in said.err


def test_an_unknown_status_is_told_with_the_known_ones(lapis: Lapis, here: Workspace) -> None:
    said = lapis("run", "list", "--status", "Finished")
    assert said.status == 2 and "'Finished' is no status of a run. Known: NotStarted," in said.err


def test_an_unknown_experiment_is_told_with_the_known_ones(lapis: Lapis, here: Workspace) -> None:
    Experiment(here, "mnist")
    said = lapis("run", "list", "--experiment", "mnits")
    assert said.status == 1 and "No experiment named 'mnits'" in said.err and "Known: mnist." in said.err


# -- show


def test_show_tells_all_about_a_run(lapis: Lapis, finished: Finished) -> None:
    about = lapis("run", "show", "--json", *finished.where, finished.id).json
    assert (about["id"], about["status"], about["experiment"]) == (finished.id, "Completed", "fashion")
    assert [stage["state"] for stage in about["stages"]][-1] == "Completed"
    assert all(stage["seconds"] >= 0 and stage["reason"] for stage in about["stages"])
    assert about["tags"] == {"team": "a", "colour": "blue"} and about["name"] == "First try"
    assert about["waiting"] is None and about["error"] is None
    assert about["properties"]["ContentSnapshotId"] == about["snapshot_id"]
    assert {"name": "outputs/model.bin", "size": 2_000_000} in about["files"]
    loss = next(metric for metric in about["metrics"] if metric["name"] == "loss")
    assert (loss["count"], loss["last"], loss["min"], loss["max"]) == (2, 0.25, 0.25, 0.5)
    assert about["portal_url"].endswith(f"/runs/{finished.id}")

    shown = lapis("run", "show", *finished.where, finished.id).out
    for words in ("First try", "Completed: Ended with exit code 0", "team=a", "outputs/model.bin", about["portal_url"]):
        assert words in shown


def test_show_tells_what_a_run_waits_for(
    lapis: Lapis, start: Start, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPIS_MAX_RUNS", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import time\nprint('up', flush=True)\nwhile True: time.sleep(1)\n")
    first = start("run", "submit", "-f", "train.py")
    assert first.stdout is not None and first.stdout.readline() == "up\n"
    second = start("run", "submit", "-f", "train.py")
    assert second.stderr is not None
    line = next(line for line in second.stderr if line.startswith("Queued: "))
    run = lapis("run", "list", "--json", "--status", "queued").json["runs"][0]["id"]
    waiting = lapis("run", "show", "--json", run).json["waiting"]
    assert waiting["reason"] in line and waiting["until"] in line and waiting["seconds"] >= 0
    shown = lapis("run", "show", run).out
    assert f"Status         Queued: {waiting['reason']}\nEnds the wait  {waiting['until']}\n" in shown


def test_show_tells_why_a_run_failed(lapis: Lapis, here: Workspace) -> None:
    run = Experiment(here, "trial").start_logging(run_id="lost")
    run.fail("the \x1b[2Jdisk\nis full", error_code="Disk")
    shown = lapis("run", "show", "lost").out
    assert "Error: the disk\nis full" in shown and "\x1b" not in shown
    assert lapis("run", "show", "--json", "lost").json["error"]["code"] == "Disk"


@pytest.mark.parametrize("command", ["show", "logs", "metrics", "files", "download", "cancel", "delete", "archive"])
def test_an_unknown_run_is_one_line(lapis: Lapis, here: Workspace, command: str) -> None:
    said = lapis("run", command, "nobody", "--json")
    assert said.status == 1 and said.json["error"]["code"] == "NotFound"
    assert said.err.startswith("Error: No run with id 'nobody'") and said.err.count("\n") == 1
    assert lapis("run", command, "a/b").status == 1


# -- metrics


def test_metrics_are_shown_in_short_and_in_full(lapis: Lapis, finished: Finished) -> None:
    found = lapis("run", "metrics", "--json", *finished.where, finished.id).json["metrics"]
    assert found == {"loss": [0.5, 0.25], "broken": "NaN", "curve": {"x": 1, "y": 2}}
    shown = lapis("run", "metrics", *finished.where, finished.id).out
    assert "0.25 (the last of 2)" in shown and "1 row of x, y" in shown
    assert lapis("run", "metrics", *finished.where, finished.id, "--name", "loss").out == "0.5\n0.25\n"
    assert lapis("run", "metrics", *finished.where, finished.id, "--name", "curve").out == "x  y\n1  2\n"


def test_an_unknown_metric_is_told_with_the_known_ones(lapis: Lapis, finished: Finished) -> None:
    said = lapis("run", "metrics", *finished.where, finished.id, "--name", "los")
    assert said.status == 1 and "no metric named 'los'. It has: broken, curve, loss." in said.err


def test_a_run_without_metrics_says_so(lapis: Lapis, here: Workspace) -> None:
    Experiment(here, "trial").start_logging(run_id="silent").complete()
    said = lapis("run", "metrics", "silent")
    assert (said.status, said.out) == (0, "") and "has logged no metrics" in said.err


# -- changed


def test_cancel_stops_a_run(lapis: Lapis, waiting: str) -> None:
    said = lapis("run", "cancel", "--json", waiting)
    assert said.status == 0 and said.json["runs"][0]["status"] in ("CancelRequested", "Canceled")
    lapis("run", "logs", "-f", waiting)
    assert lapis("run", "show", "--json", waiting).json["status"] == "Canceled"
    assert lapis("run", "cancel", waiting).out == f"Run {waiting} is Canceled.\n"


def test_delete_removes_ended_runs(lapis: Lapis, here: Workspace) -> None:
    for name in ("one", "two"):
        Experiment(here, "trial").start_logging(run_id=name).complete()
    assert lapis("run", "delete", "--json", "one", "two").json == {"deleted": ["one", "two"]}
    assert lapis("run", "show", "one").status == 1


def test_delete_removes_nothing_when_one_of_the_runs_has_not_ended(lapis: Lapis, here: Workspace) -> None:
    Experiment(here, "trial").start_logging(run_id="ended").complete()
    live = Experiment(here, "trial").start_logging(run_id="live")
    said = lapis("run", "delete", "ended", "live")
    assert said.status == 1 and "Run live has not ended" in said.err
    assert lapis("run", "show", "ended").status == 0
    live.complete()


def test_archive_hides_a_run_until_it_is_undone(lapis: Lapis, here: Workspace) -> None:
    Experiment(here, "trial").start_logging(run_id="old").complete()
    assert lapis("run", "archive", "old").out == "Run old is archived.\n"
    assert ids(lapis("run", "list", "--json")) == []
    assert lapis("run", "archive", "--undo", "old").out == "Run old is in lists again.\n"
    assert ids(lapis("run", "list", "--json")) == ["old"]


def test_a_run_is_found_by_a_part_of_its_id_or_as_the_latest(lapis: Lapis, finished: Finished) -> None:
    for part in ("latest", finished.id[:-3], finished.id[-8:]):
        assert lapis("run", "show", *finished.where, "--json", part).json["id"] == finished.id
    unknown = lapis("run", "show", *finished.where, "no-such")
    assert unknown.status == 1 and "No run with id 'no-such'" in unknown.err


def test_a_part_of_several_ids_is_not_enough(lapis: Lapis, here: Workspace) -> None:
    assert "there is no latest one" in lapis("run", "show", "latest").err
    for number in (1, 2):
        Experiment(here, "trial").start_logging(run_id=f"same-{number}").complete()
    said = lapis("run", "show", "same-")
    assert said.status == 1 and "2 runs have ids like 'same-': same-2, same-1. Say more of it." in said.err


def test_runs_are_compared_by_what_they_logged_and_what_differs(lapis: Lapis, here: Workspace) -> None:
    for number in (1, 2):
        run = Experiment(here, "trial").start_logging(run_id=f"run-{number}", display_name=f"try {number}")
        run.log("loss", 0.5 / number)
        run.complete()
    lines = lapis("run", "compare", "run-1", "run-2").out.splitlines()
    assert lines[0].split() == ["run-1", "run-2"]
    assert "Metric loss  0.5    0.25" in lines and not [line for line in lines if line.startswith("Experiment")]
    assert [each["metrics"] for each in lapis("run", "compare", "--json", "run-1", "run-2").json["runs"]] == [
        {"loss": 0.5},
        {"loss": 0.25},
    ]

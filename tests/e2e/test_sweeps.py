"""Hyperparameter searches, end to end on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, Run, ScriptRunConfig, Workspace
from azureml.data import OutputFileDatasetConfig
from azureml.exceptions import ActivityFailedException, UserErrorException
from azureml.train.estimator import Estimator
from azureml.train.hyperdrive import (
    BanditPolicy,
    BayesianParameterSampling,
    GridParameterSampling,
    HyperDriveConfig,
    HyperDriveRun,
    NoTerminationPolicy,
    PrimaryMetricGoal,
    RandomParameterSampling,
    choice,
    loguniform,
    normal,
    quniform,
    uniform,
)
from azureml.train.hyperdrive.exceptions import (
    HyperDriveConfigException,
    HyperDriveException,
    HyperDriveRehydrateException,
    HyperDriveScenarioNotSupportedException,
)
from lapis.errors import NotThereYet
from lapis.sdk.training.parameter_expressions import when
from lapis.sdk.training.stopping_policies import AshaPolicy
from lapis.sdk.training.sweep_submission import sweep_body
from lapis.testing import until, until_written

LOG = "azureml-logs/hyperdrive.txt"
TRAIN = """
import argparse
from azureml.core import Run
parser = argparse.ArgumentParser()
parser.add_argument("--data")
parser.add_argument("--lr", type=float)
parser.add_argument("--batch-size", type=int)
given = parser.parse_args()
run = Run.get_context()
for epoch in range(3):
    run.log("accuracy", given.lr * (epoch + 1) / 3)
run.log("batch", given.batch_size)
"""
Search = Callable[..., Any]


@pytest.fixture
def search(experiment: Experiment, script: Callable[..., str]) -> Search:
    """`search(code, sampling, ...)` submits a search over that script."""

    def go(code: str, sampling: Any, arguments: Any = None, **more: Any) -> Any:
        config = {
            "run_config": ScriptRunConfig(script(code), "train.py", arguments=arguments),
            "primary_metric_name": "accuracy",
            "primary_metric_goal": PrimaryMetricGoal.MAXIMIZE,
            "max_total_runs": 4,
            "max_concurrent_runs": 2,
        }
        return experiment.submit(HyperDriveConfig(hyperparameter_sampling=sampling, **{**config, **more}))

    return go


def log_of(run: Any) -> str:
    return str(run._text_of(LOG))


def test_a_random_search_from_submit_to_the_best_run(search: Search) -> None:
    space = {"--lr": uniform(0.1, 0.9), "batch-size": quniform(8, 64, 8)}
    run = search(TRAIN, RandomParameterSampling(space), arguments=["--data", "here"])
    assert isinstance(run, HyperDriveRun) and run.id.startswith("HD_") and run.type == "hyperdrive"
    assert run.get_status() == "Running"
    details = run.wait_for_completion()
    assert details["status"] == run.get_status() == "Completed"

    children = {child.id: child for child in run.get_children()}
    assert sorted(children) == [f"{run.id}_{number}" for number in range(4)]
    assert {child.get_status() for child in children.values()} == {"Completed"}
    assert {child.get_snapshot_id() for child in children.values()} == {run.get_snapshot_id()}
    hyperparameters = {key: json.loads(text) for key, text in run.get_hyperparameters().items()}
    metrics = run.get_metrics()
    assert set(hyperparameters) == set(metrics) == set(children)
    for child_id, given in hyperparameters.items():
        assert list(given) == ["--lr", "batch-size"]
        arguments = children[child_id].get_details()["runDefinition"]["arguments"]
        assert arguments == [
            "--data",
            "here",
            "--lr",
            str(given["--lr"]),
            "--batch-size",
            str(int(given["batch-size"])),
        ]
        assert metrics[child_id]["accuracy"][-1] == pytest.approx(given["--lr"])
        assert metrics[child_id]["batch"] == given["batch-size"]

    best_id = max(hyperparameters, key=lambda key: hyperparameters[key]["--lr"])
    best = run.get_best_run_by_primary_metric()
    assert best.id == best_id and best.parent == run
    ordered = run.get_children_sorted_by_primary_metric()
    assert [row["best_primary_metric"] for row in ordered] == sorted(
        (max(each["accuracy"]) for each in metrics.values()), reverse=True
    )
    assert ordered[0] == {
        "run_id": best_id,
        "hyperparameters": run.get_hyperparameters()[best_id],
        "best_primary_metric": max(metrics[best_id]["accuracy"]),
        "status": "Completed",
    }
    assert run.get_children_sorted_by_primary_metric(top=1, reverse=True) == ordered[-1:]

    properties = details["properties"]
    assert json.loads(properties["primary_metric_config"]) == {"name": "accuracy", "goal": "maximize"}
    assert properties["best_child_run_id"] == best_id
    assert float(properties["score"]) == ordered[0]["best_primary_metric"]
    expected = {"resume_from": "null", "runTemplate": "HyperDrive", "best_metric_status": "Succeeded"}
    assert expected.items() <= properties.items()
    assert LOG in details["logFiles"]
    assert log_of(run).count("Started HD_") == 4 and f"of {best_id}" in log_of(run)
    assert run.get_termination_policy() == NoTerminationPolicy()
    assert run.get_diagnostics()["failed"] == {}
    assert run.cancel() is False


def test_a_grid_search_runs_every_combination_and_shows_its_log(search: Search, capsys: Any) -> None:
    space = {"lr": choice(0.2, 0.4), "--batch-size": choice([16, 32])}
    run = search(TRAIN, GridParameterSampling(space), max_total_runs=10)
    run.wait_for_completion(show_output=True)
    printed = capsys.readouterr().out
    assert f"Streaming {LOG}" in printed and "GRID sampling over 4 combinations" in printed
    assert "All 4 runs have ended: 4 completed" in printed
    tried = {tuple(json.loads(text).values()) for text in run.get_hyperparameters().values()}
    assert tried == {(0.2, 16), (0.2, 32), (0.4, 16), (0.4, 32)}
    assert run.properties["space_size"] == "4"


def test_a_bayesian_search_and_one_that_minimizes(search: Search) -> None:
    space = {"--lr": uniform(0.1, 0.9), "--batch-size": choice(16, 32)}
    run = search(TRAIN, BayesianParameterSampling(space), primary_metric_goal="minimize", max_total_runs=5)
    assert run.wait_for_completion()["status"] == "Completed"
    rows = run.get_children_sorted_by_primary_metric()
    assert len(rows) == 5
    assert rows[0]["best_primary_metric"] == min(row["best_primary_metric"] for row in rows)
    assert run.get_best_run_by_primary_metric().id == rows[0]["run_id"]


def test_the_same_seed_tries_the_same_again(search: Search) -> None:
    space = {"--lr": loguniform(-3, -1), "--batch-size": choice(16, 32)}
    runs = [search(TRAIN, RandomParameterSampling(space, properties={"seed": seed})) for seed in (7, 7, 8)]
    for run in runs:
        run.wait_for_completion()
    first, again, other = (list(run.get_hyperparameters().values()) for run in runs)
    assert first == again != other
    assert "with seed 7" in log_of(runs[0])


def test_sampled_arguments_come_after_the_fixed_ones_of_an_estimator(experiment: Experiment, script: Any) -> None:
    estimator = Estimator(
        source_directory=script(TRAIN), entry_script="train.py", compute_target="local", user_managed=True,
        script_params={"--lr": 0.5, "--data": "here"},
    )  # fmt: skip
    config = HyperDriveConfig(
        GridParameterSampling({"--lr": choice(0.1, 0.3), "--batch-size": choice(8)}), "accuracy",
        PrimaryMetricGoal.MAXIMIZE, 2, estimator=estimator,
    )  # fmt: skip
    assert config.estimator is estimator and config.source_directory == estimator.source_directory
    run = experiment.submit(config)
    run.wait_for_completion()
    best = run.get_best_run_by_primary_metric()
    fixed, sampled = ["--lr", "0.5", "--data", "here"], ["--lr", "0.3", "--batch-size", "8"]
    assert best.get_details()["runDefinition"]["arguments"] == [*fixed, *sampled]  # the last of a name wins


def test_a_command_gets_the_parameters_too(experiment: Experiment, script: Any) -> None:
    code = "import sys\nfrom azureml.core import Run\nRun.get_context().log('accuracy', float(sys.argv[-1]))\n"
    for command in (["python", "train.py"], "python train.py"):
        config = HyperDriveConfig(
            GridParameterSampling({"lr": choice(1, 2)}), "accuracy", PrimaryMetricGoal.MAXIMIZE, 2,
            run_config=ScriptRunConfig(script(code), command=command),
        )  # fmt: skip
        run = experiment.submit(config)
        run.wait_for_completion()
        assert [row["best_primary_metric"] for row in run.get_children_sorted_by_primary_metric()] == [2, 1]


def test_a_parameter_whose_condition_does_not_hold_is_not_given(search: Search) -> None:
    code = "import sys\nfrom azureml.core import Run\nRun.get_context().log('accuracy', len(sys.argv))\n"
    space = {"--optimizer": choice("sgd", "adam"), "--momentum": when("--optimizer", "sgd", choice(0.9))}
    run = search(code, GridParameterSampling(space))
    run.wait_for_completion()
    assert [row["best_primary_metric"] for row in run.get_children_sorted_by_primary_metric()] == [5, 3]


def test_each_run_writes_its_outputs_to_a_place_of_its_own(search: Search, workspace: Workspace) -> None:
    code = "import sys\nopen(sys.argv[1] + '/lr.txt', 'w').write(sys.argv[3])\n"
    output = OutputFileDatasetConfig(name="kept")
    run = search(code, GridParameterSampling({"lr": choice(1, 2)}), arguments=[output])
    run.wait_for_completion()
    store = workspace.get_default_datastore()
    places = [f"dataset/{run.id}_{number}/kept/lr.txt" for number in range(2)]
    assert [(Path(store._folder_or_none()) / place).read_text() for place in places] == ["1", "2"]


UNTIL_STOPPED = """
import sys, time
from azureml.core import Run
level, run = float(sys.argv[-1]), Run.get_context()
for epoch in range(3000):
    run.log("accuracy", level)
    if level > 0.5 and epoch == 5:
        break
    time.sleep(0.02)
"""


@pytest.mark.parametrize("policy", [BanditPolicy(slack_factor=0.2, delay_evaluation=3), AshaPolicy(first_rung=3)])
def test_a_run_that_is_not_worth_it_is_stopped_and_says_why(search: Search, policy: Any) -> None:
    run = search(UNTIL_STOPPED, GridParameterSampling({"level": choice(0.9, 0.3)}), policy=policy)
    assert run.wait_for_completion()["status"] == "Completed"
    good, bad = (Run.get(run.experiment.workspace, f"{run.id}_{number}") for number in (0, 1))
    assert (good.get_status(), bad.get_status()) == ("Completed", "Canceled")
    reason = bad.get_detailed_status()["details"][0]["message"]
    assert reason.startswith(f"Stopped early by the {policy.POLICY_NAME} policy at interval ")
    assert ": accuracy 0.3 " in reason
    assert run.get_diagnostics()["stopped"] == {bad.id: reason}
    assert f"Stopping {bad.id}: {reason}" in log_of(run)
    assert "1 completed, 1 canceled" in run.get_detailed_status()["details"][0]["message"]
    assert run.get_best_run_by_primary_metric() == good
    assert run.get_termination_policy() == policy


def test_cancelling_a_search_cancels_its_runs(search: Search) -> None:
    run = search(UNTIL_STOPPED, GridParameterSampling({"level": choice(0.1, 0.2, 0.3)}))
    until(lambda: len(run.get_metrics("accuracy")) == 2)
    assert run.cancel() is True
    assert run.wait_for_completion()["status"] == "Canceled"
    assert {child.get_status() for child in run.get_children()} == {"Canceled"}
    assert len(list(run.get_children())) == 2


def test_a_search_ends_after_its_time(search: Search) -> None:
    run = search(
        UNTIL_STOPPED, GridParameterSampling({"level": choice(0.1)}), max_total_runs=2, max_duration_minutes=0.02
    )
    assert run.wait_for_completion()["status"] == "Canceled"
    assert "longer than max_duration_minutes=0.02" in run.get_detailed_status()["details"][0]["message"]


FAILS = """
import sys
from azureml.core import Run
assert float(sys.argv[-1]) > 4, "too small"
Run.get_context().log("accuracy", 1)
"""


def test_when_the_first_runs_fail_the_search_has_failed_and_says_why(search: Search) -> None:
    run = search(FAILS, GridParameterSampling({"x": choice(range(8))}), max_total_runs=8, max_concurrent_runs=1)
    with pytest.raises(ActivityFailedException, match="too small"):
        run.wait_for_completion()
    assert run.get_status() == "Failed"
    assert len(list(run.get_children())) == 3
    assert run.get_best_run_by_primary_metric() is None
    assert len(run.get_diagnostics()["failed"]) == 3


def test_a_search_completes_although_some_of_its_runs_fail(search: Search) -> None:
    run = search(FAILS, GridParameterSampling({"x": choice(5, 1, 6)}))
    assert run.wait_for_completion()["status"] == "Completed"
    rows = run.get_children_sorted_by_primary_metric()
    assert [row["status"] for row in rows] == ["Completed", "Completed", "Failed"]
    assert rows[-1]["best_primary_metric"] is None
    assert len(run.get_children_sorted_by_primary_metric(discard_no_metric=True)) == 2


def test_a_failed_run_may_be_the_best_unless_it_is_left_out(search: Search) -> None:
    code = FAILS.replace("assert", "Run.get_context().log('accuracy', -float(sys.argv[-1]))\nassert").rsplit("Run", 1)[
        0
    ]
    run = search(code, GridParameterSampling({"x": choice(5, 1)}))
    run.wait_for_completion()
    assert run.get_best_run_by_primary_metric().get_status() == "Failed"
    assert run.get_best_run_by_primary_metric(include_failed=False).get_status() == "Completed"


def test_the_same_request_sent_again_makes_no_second_search(experiment: Experiment, script: Any) -> None:
    config = HyperDriveConfig(
        GridParameterSampling({"lr": choice(0.1, 0.2), "batch-size": choice(1)}), "accuracy", "maximize", 2,
        run_config=ScriptRunConfig(script(TRAIN), "train.py"),
    )  # fmt: skip
    body = sweep_body(experiment, config, None, None, {})
    workspace = experiment.workspace

    def send() -> Any:
        made = workspace._client.call("POST", workspace._base + "/runs", {"runs": [body]})
        return Run.get(workspace, made["runs"][0]["id"])

    first, again = send(), send()
    assert first == again
    first.wait_for_completion()
    assert send().get_status() == "Completed"
    assert len(list(first.get_children())) == 2
    assert log_of(first).count("The search begins") == 1


def test_a_metric_that_no_run_logs_is_told_while_the_search_goes_on(search: Search, tmp_path: Path) -> None:
    code = f"""
import os, sys, time
from azureml.core import Run
Run.get_context().log("acc", 1)
if sys.argv[-1] == "1":
    open({str(tmp_path / "second")!r}, "w").write("here\\n")
    while not os.path.exists({str(tmp_path / "go")!r}): time.sleep(0.02)
"""
    run = search(code, GridParameterSampling({"x": choice(0, 1)}), max_concurrent_runs=1)
    until_written(tmp_path / "second")
    said = f"no run has logged 'accuracy' yet: {run.id}_0 has completed and logged 'acc'"
    assert said in run.get_detailed_status()["details"][0]["message"]
    assert said in log_of(run)
    (tmp_path / "go").touch()
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_best_run_by_primary_metric() is None
    assert run.properties["best_metric_status"] == "Failed"


CHECKPOINTS = """
import argparse, os
from azureml.core import Run
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--resume-from")
given = parser.parse_args()
steps = 0
if given.resume_from:
    assert given.resume_from == os.environ["AZUREML_DATAREFERENCE_MODEL_LOCATION"]
    steps = int(open(given.resume_from + "/deep/steps.txt").read())
os.makedirs("outputs/deep")
open("outputs/deep/steps.txt", "w").write(str(steps + 10))
Run.get_context().log("accuracy", given.lr * (steps + 10))
"""


def test_a_search_starts_warm_from_earlier_ones_and_goes_on_with_their_runs(search: Search) -> None:
    first = search(CHECKPOINTS, RandomParameterSampling({"lr": uniform(10, 20)}), max_total_runs=2)
    first.wait_for_completion()
    best = first.get_best_run_by_primary_metric()
    space = RandomParameterSampling({"lr": uniform(0, 1)})
    second = search(CHECKPOINTS, space, max_total_runs=2, resume_from=first, resume_child_runs=[best])
    second.wait_for_completion()
    resumed = Run.get(second.experiment.workspace, f"{second.id}_0")
    assert resumed.tags["hyperparameters"] == best.tags["hyperparameters"]
    assert resumed.get_metrics()["accuracy"] == 2 * best.get_metrics()["accuracy"]
    assert f"going on from {best.id}" in log_of(second)
    assert json.loads(second.properties["resume_from"]) == [first.id]

    third = search(CHECKPOINTS, space, max_total_runs=1, max_concurrent_runs=1, resume_from=[first, second])
    third.wait_for_completion()
    assert third.get_best_run_by_primary_metric() == resumed
    assert third.get_best_run_by_primary_metric(include_resume_from_runs=False).parent == third


def test_a_search_is_found_again_by_its_id(search: Search) -> None:
    run = search(TRAIN, GridParameterSampling({"lr": choice(0.1), "batch-size": choice(1)}), max_concurrent_runs=1)
    run.wait_for_completion()
    again = HyperDriveRun(run.experiment, run.id)
    assert again == run == Run.get(run.experiment.workspace, run.id)
    assert type(next(iter(run.experiment.get_runs()))) is HyperDriveRun
    assert again.hyperdrive_config["metric"] == "accuracy"
    child = next(iter(run.get_children()))
    with pytest.raises(HyperDriveRehydrateException, match="is no hyperparameter search"):
        HyperDriveRun(run.experiment, child.id)
    with pytest.raises(HyperDriveScenarioNotSupportedException):
        run.fail()


def test_what_cannot_be_searched_is_refused_before_anything_is_made(experiment: Experiment, script: Any) -> None:
    config = ScriptRunConfig(script(TRAIN), "train.py")
    good = {"lr": uniform(0, 1)}
    random = RandomParameterSampling(good)

    def made(sampling: Any = random, goal: Any = PrimaryMetricGoal.MAXIMIZE, total: Any = 4, **more: Any) -> Any:
        return HyperDriveConfig(sampling, "accuracy", goal, total, **{"run_config": config, **more})

    bad: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: RandomParameterSampling({}), HyperDriveConfigException, "is empty"),
        (lambda: GridParameterSampling(good), HyperDriveConfigException, "use choice"),
        (lambda: BayesianParameterSampling({"x": normal(0, 1)}), HyperDriveConfigException, "choice, uniform"),
        (
            lambda: made(BayesianParameterSampling(good), policy=BanditPolicy(slack_factor=0.1)),
            HyperDriveScenarioNotSupportedException,
            "without early termination",
        ),
        (lambda: made(max_concurrent_runs=5), HyperDriveConfigException, "more than max_total_runs=4"),
        (lambda: made(goal="best"), HyperDriveConfigException, "PrimaryMetricGoal.MAXIMIZE"),
        (lambda: made(total=0), HyperDriveConfigException, "max_total_runs"),
        (lambda: made(run_config=None), HyperDriveConfigException, "run_config"),
        (lambda: made(run_config="train.py"), HyperDriveConfigException, "ScriptRunConfig"),
        (lambda: made(policy="bandit"), HyperDriveConfigException, "policy"),
        (lambda: made(pipeline=object()), NotThereYet, "pipeline"),
        (lambda: made(resume_from="HD_1"), HyperDriveConfigException, "takes runs"),
        (lambda: experiment.submit(made(run_config=ScriptRunConfig(".", "no.py"))), UserErrorException, "no.py"),
    ]  # fmt: skip
    for attempt, error, said in bad:
        with pytest.raises(error) as refused:
            attempt()
        assert said in str(refused.value)
    assert issubclass(HyperDriveConfigException, HyperDriveException)
    assert list(experiment.get_runs()) == []


def test_a_bayesian_search_that_is_short_warns(script: Any, caplog: pytest.LogCaptureFixture) -> None:
    config = ScriptRunConfig(script(TRAIN), "train.py")
    HyperDriveConfig(BayesianParameterSampling({"x": uniform(0, 1)}), "a", "maximize", 19, run_config=config)
    assert "max_total_runs=20" in caplog.text

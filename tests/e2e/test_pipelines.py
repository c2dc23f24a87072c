"""Pipelines, end to end on this machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Dataset, Experiment, Run, ScriptRunConfig, Workspace
from azureml.core.runconfig import RunConfiguration
from azureml.data import OutputFileDatasetConfig
from azureml.data.data_reference import DataReference
from azureml.data.datapath import DataPath, DataPathComputeBinding
from azureml.data.dataset_consumption_config import DatasetConsumptionConfig
from azureml.exceptions import ActivityFailedException
from azureml.pipeline.core import (
    Pipeline,
    PipelineData,
    PipelineParameter,
    PipelineRun,
    StepRun,
    StepSequence,
    TrainingOutput,
)
from azureml.pipeline.steps import CommandStep, HyperDriveStep, HyperDriveStepRun, PythonScriptStep
from azureml.train.hyperdrive import GridParameterSampling, HyperDriveConfig, PrimaryMetricGoal, choice
from lapis.testing import Home, until

LOG = "logs/azureml/executionlogs.txt"
WRITE = """
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--to"); parser.add_argument("--text", default="hello")
given = parser.parse_args()
assert not os.path.exists(given.to)
os.makedirs(given.to, exist_ok=True)
with open(os.path.join(given.to, "words.txt"), "w") as file:
    file.write(given.text)
print("wrote", given.text)
"""
READ = """
import argparse, os
from azureml.core import Run
parser = argparse.ArgumentParser()
parser.add_argument("--of"); parser.add_argument("--to")
given = parser.parse_args()
text = open(os.path.join(given.of, "words.txt")).read()
with open(given.to, "w") as file:
    file.write(text.upper())
Run.get_context().log("letters", len(text))
print("read", text)
"""


@pytest.fixture
def store(workspace: Workspace) -> Any:
    return workspace.get_default_datastore()


@pytest.fixture
def code(tmp_path: Path) -> str:
    folder = tmp_path / "steps"
    folder.mkdir()
    (folder / "write.py").write_text(WRITE)
    (folder / "read.py").write_text(READ)
    return str(folder)


def two_steps(workspace: Workspace, code: str, text: Any = "hello", **more: Any) -> Pipeline:
    words = PipelineData("words", datastore=workspace.get_default_datastore(), is_directory=True)
    loud = PipelineData("loud", pipeline_output_name="result")
    first = PythonScriptStep(
        "write.py", "write", ["--to", words, "--text", text], "local", outputs=[words], source_directory=code, **more
    )
    second = PythonScriptStep(
        "read.py", "read", ["--of", words, "--to", loud], inputs=[words], outputs=[loud], source_directory=code, **more
    )
    return Pipeline(workspace, steps=[second, first])


def log_of(run: Any) -> str:
    return str(run._text_of(LOG))


def test_what_one_step_writes_the_next_one_reads(
    workspace: Workspace, experiment: Experiment, code: str, tmp_path: Path, capsys: Any
) -> None:
    pipeline = two_steps(workspace, code)
    assert pipeline.validate() == []
    run = experiment.submit(pipeline, tags={"a": "b"})
    assert isinstance(run, PipelineRun) and run.type == "azureml.PipelineRun" and run.tags == {"a": "b"}
    assert run.wait_for_completion(show_output=True, timeout_seconds=60) == "Finished", log_of(run)
    said = capsys.readouterr().out
    assert (
        f"Submitted PipelineRun {run.id}" in said
        and "StepRun( read ) Status: Finished" in said
        and "read hello" in said
    )
    assert run.get_status() == "Finished" and run.status == run.get_details()["status"] == "Completed"

    write, read = run.get_steps()
    assert [step.name for step in (write, read)] == ["write", "read"] and isinstance(write, StepRun)
    (found,) = run.find_step_run("read")
    assert found == read and read.pipeline_run_id == run.id and read.parent == run
    assert read.get_metrics() == {"letters": 5} and "read hello" in read.get_job_log()
    assert read.get_details()["runDefinition"]["arguments"] == [
        "--of", "$AZUREML_DATAREFERENCE_words", "--to", "$AZUREML_DATAREFERENCE_loud",
    ]  # fmt: skip

    output = run.get_pipeline_output("result")
    assert (output.datastore_name, output.path_on_datastore) == ("workspaceblobstore", f"azureml/{read.id}/loud")
    output.download(str(tmp_path / "here"))
    assert (tmp_path / "here" / output.path_on_datastore).read_text() == "HELLO"
    reference = write.get_output("words").get_port_data_reference()
    assert (
        reference.path_on_datastore == f"azureml/{write.id}/words" == write.get_output_data("words").path_on_datastore
    )
    assert isinstance(Run.get(workspace, run.id), PipelineRun) and isinstance(Run.get(workspace, read.id), StepRun)
    edges = run.get_graph().edges
    assert [(edge.source_port.node.name, edge.dest_port.node.name) for edge in edges] == [("write", "read")]


def command(name: str, line: Any, code: str, **more: Any) -> CommandStep:
    return CommandStep(line, name, source_directory=code, **{"allow_reuse": False, **more})


def finished(pipeline: Pipeline, **more: Any) -> Any:
    run = pipeline.submit("trial", **more)
    run.wait_for_completion(show_output=False, timeout_seconds=90, raise_on_error=False)
    return run


def states(run: Any) -> dict[str, str | None]:
    return {row["name"]: row["status"] for row in run._steps()["steps"]}


def test_steps_that_can_run_together_do_and_those_in_a_sequence_do_not(
    workspace: Workspace, code: str, tmp_path: Path
) -> None:
    def meets(mine: str, other: str) -> str:
        """Ends only when the other one runs too."""
        return f"touch {tmp_path}/{mine}; while [ ! -e {tmp_path}/{other} ]; do sleep 0.02; done"

    one, two = (command(mine, meets(mine, other), code) for mine, other in (("one", "two"), ("two", "one")))
    last = command("last", f"test -e {tmp_path}/one && test -e {tmp_path}/two", code)
    run = finished(Pipeline(workspace, StepSequence([[one, two], last])))
    assert run.status == "Completed", log_of(run)
    rows = {row["name"]: row for row in run._steps()["steps"]}
    assert rows["last"]["created_at"] >= max(rows["one"]["ended_at"], rows["two"]["ended_at"])
    assert rows["last"]["needs"] == [0, 1]


def test_a_failed_step_ends_the_pipeline_and_names_itself(workspace: Workspace, code: str) -> None:
    bad = command("bad", "echo not today; exit 3", code)
    after = command("after", "true", code)
    after.run_after(bad)
    slow = command("slow", "sleep 600", code)
    run = Pipeline(workspace, [bad, after, slow]).submit("trial")
    with pytest.raises(ActivityFailedException, match="bad"):
        run.wait_for_completion(show_output=False, timeout_seconds=90)
    assert run.get_status() == "Failed"
    assert states(run) == {"bad": "Failed", "slow": "Canceled", "after": None}
    error = run.get_details()["error"]["error"]["message"]
    assert "Step 'bad' failed" in error and "1 step was not run" in error and "not today" in error
    assert run.find_step_run("after") == [] and "not today" in run.find_step_run("bad")[0].get_stdout_log()


def test_with_continue_on_step_failure_what_hangs_on_nothing_goes_on(workspace: Workspace, code: str) -> None:
    bad, after = command("bad", "exit 3", code), command("after", "true", code)
    after.run_after(bad)
    free = command("free", "true", code)
    free_too = command("free_too", "true", code)
    free_too.run_after(free)
    run = finished(Pipeline(workspace, [after, free_too]), continue_on_step_failure=True)
    assert run.get_status() == "Failed"
    assert states(run) == {"bad": "Failed", "free": "Completed", "after": None, "free_too": "Completed"}


def test_a_cancelled_pipeline_stops_its_steps_and_a_cancelled_step_its_pipeline(
    workspace: Workspace, code: str
) -> None:
    def begun() -> Any:
        slow, after = command("slow", "echo begun; sleep 600", code), command("after", "true", code)
        after.run_after(slow)
        run = Pipeline(workspace, [after]).submit("trial")
        until(lambda: states(run)["slow"] == "Running")
        return run

    run = begun()
    run.cancel()
    assert run.wait_for_completion(show_output=False, timeout_seconds=60) == "Canceled"
    assert states(run) == {"slow": "Canceled", "after": None}

    run = begun()
    run.find_step_run("slow")[0].cancel()
    assert run.wait_for_completion(show_output=False, timeout_seconds=60, raise_on_error=False) == "Failed"
    assert "Step 'slow' was cancelled" in run.get_details()["error"]["error"]["message"]


def test_parameters_reach_arguments_variables_paths_and_data_sets(
    workspace: Workspace, store: Any, code: str, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
        store.upload(str(tmp_path / name), target_path=name, show_progress=False)
    number = PipelineParameter("number", 7)
    place = PipelineParameter("place", DataPath(store, "one"))
    files = PipelineParameter("files", Dataset.File.from_files((store, "one")))
    given = (place, DataPathComputeBinding(mode="mount"))
    dataset = DatasetConsumptionConfig("named", files).as_mount()
    step = CommandStep(
        [
            "python",
            "-c",
            '\'import sys, os; print(sys.argv[1], os.environ["AML_PARAMETER_extra"], '
            'open(sys.argv[2] + "/a.txt").read(), open(sys.argv[3]).read())\'',
            number,
            given,
            dataset,
        ],
        "show",
        inputs=[given, dataset],
        params={"extra": "more"},
        source_directory=code,
    )
    pipeline = Pipeline(workspace, [step])
    run = finished(pipeline)
    assert "7 more one one" in run.find_step_run("show")[0].get_job_log(), log_of(run)
    assert '"number": "7"' in run.properties["azureml.parameters"]
    other = {"number": 8, "place": DataPath(store, "two"), "files": Dataset.File.from_files((store, "two"))}
    run = finished(pipeline, pipeline_parameters=other)
    assert "8 more two two" in run.find_step_run("show")[0].get_job_log(), log_of(run)
    for wrong, said in [({"nubmer": 1}, "no parameter 'nubmer'"), ({"number": "many"}, "a whole number")]:
        with pytest.raises(ValueError, match=said):
            pipeline.submit("trial", pipeline_parameters=wrong)


def test_outputs_as_data_sets_join_steps_and_are_registered(workspace: Workspace, store: Any, code: str) -> None:
    made = OutputFileDatasetConfig("made", (store, "made/{run-id}")).register_on_complete("made-by-pipeline")
    files = PipelineData("files", datastore=store)
    as_files = files.as_dataset().register("files-by-pipeline")
    PythonScriptStep("both.py", "first", ["--made", made, "--files", files], outputs=[as_files], source_directory=code)
    Path(code, "both.py").write_text(
        "import os, sys\n"
        "open(os.path.join(sys.argv[2], 't.csv'), 'w').write('x,y\\n1,2\\n')\n"
        "os.makedirs(sys.argv[4]); open(os.path.join(sys.argv[4], 'n.txt'), 'w').write('n')\n"
    )
    second = PythonScriptStep(
        "look.py",
        "second",
        [made.as_input(), as_files.as_named_input("renamed").as_mount()],
        inputs=[made.as_input(), as_files.as_named_input("renamed").as_mount()],
        source_directory=code,
    )
    Path(code, "look.py").write_text(
        "import os, sys\nfrom azureml.core import Run\n"
        "print(open(sys.argv[1]).read(), open(sys.argv[2]).read())\n"
        "print(sorted(Run.get_context().input_datasets))\n"
    )
    run = finished(Pipeline(workspace, [second]))
    assert run.status == "Completed", log_of(run) + str([step.get_job_log() for step in run.get_steps()])
    said = run.find_step_run("second")[0].get_job_log()
    assert "1,2" in said and "['made', 'renamed']" in said
    assert Dataset.get_by_name(workspace, "made-by-pipeline").to_path() == ["/t.csv"]
    assert Dataset.get_by_name(workspace, "files-by-pipeline").to_path() == ["/n.txt"]


def test_an_output_that_was_never_written_is_told_by_name_and_path(workspace: Workspace, code: str) -> None:
    empty = PipelineData("empty")
    command("lazy", ["true", empty], code, outputs=[empty])
    reader = command("reader", ["cat", empty], code, inputs=[empty])
    run = finished(Pipeline(workspace, [reader]))
    assert run.status == "Failed" and states(run) == {"lazy": "Completed", "reader": "Failed"}
    message = run.get_details()["error"]["error"]["message"]
    lazy_run = run.find_step_run("lazy")[0]
    assert "step 'lazy'" in message and f"azureml/{lazy_run.id}/empty" in message
    assert "'empty' was never written" in lazy_run.get_details()["warnings"][0]["message"]


def test_a_step_is_reused_until_something_of_it_changes_and_the_log_says_what(
    workspace: Workspace, experiment: Experiment, code: str, tmp_path: Path
) -> None:
    first = finished(two_steps(workspace, code))
    assert "no earlier run of it has completed" in log_of(first)
    again = finished(two_steps(workspace, code))
    assert again.status == "Completed", log_of(again)
    for before, step in zip(first.get_steps(), again.get_steps(), strict=True):
        assert step.properties["azureml.reusedrunid"] == before.id and step.status == "Completed"
        assert f"nothing has changed since {before.id}" in log_of(again)
        assert step.get_job_log() == before.get_job_log() and step.get_metrics() == before.get_metrics()
    (read,) = first.find_step_run("read")
    output = again.get_pipeline_output("result")
    assert output.path_on_datastore == f"azureml/{read.id}/loud"

    other = finished(two_steps(workspace, code, text="bye"))
    assert "its script, arguments or variables changed" in log_of(other)
    assert "input 'words' changed" in log_of(other)
    with open(os.path.join(code, "read.py"), "a") as file:
        file.write("print('once more')\n")
    changed = finished(two_steps(workspace, code))
    assert log_of(changed).count("its code") == 2
    assert log_of(finished(two_steps(workspace, code), regenerate_outputs=True)).count("regenerate_outputs=True") == 2
    assert log_of(finished(two_steps(workspace, code, allow_reuse=False))).count("allow_reuse=False") == 2
    assert log_of(finished(two_steps(workspace, code, version="2"))).count("its version changed") == 2


def test_what_was_changed_since_is_not_reused(workspace: Workspace, store: Any, code: str) -> None:
    first = finished(two_steps(workspace, code))
    (read,) = first.find_step_run("read")
    place = read.get_output_data("loud")
    with open(os.path.join(place.datastore._root(), place.path_on_datastore), "w") as file:  # type: ignore[attr-defined]
        file.write("tampered")
    again = finished(two_steps(workspace, code))
    assert f"output 'loud' of {read.id} was changed or removed since" in log_of(again)
    again.get_pipeline_output("result").download("back")
    assert Path("back", again.get_pipeline_output("result").path_on_datastore).read_text() == "HELLO"


def test_a_step_whose_input_is_written_anew_with_the_same_content_is_reused(workspace: Workspace, code: str) -> None:
    finished(two_steps(workspace, code))
    pipeline = two_steps(workspace, code)
    pipeline.steps[0]._allow_reuse = False  # type: ignore[attr-defined]
    run = finished(pipeline)
    write, read = run.get_steps()
    assert write.reused_run_id is None and read.reused_run_id is not None


def test_kill_9_of_the_server_in_the_middle_repeats_nothing(home: Home, tmp_path: Path, code: str) -> None:
    workspace = home.workspace()
    count, go = tmp_path / "count", tmp_path / "go"
    before = None
    for name in ("one", "two", "three", "four"):
        wait = f"echo {name} >> {count}; while [ ! -e {go} ]; do sleep 0.02; done"
        step = command(name, wait, code)
        if before is not None:
            step.run_after(before)
        before = step
    beside = command("beside", f"echo beside >> {count}; sleep 1", code)
    run = Pipeline(workspace, [before, beside]).submit("trial")
    until(lambda: count.exists() and len(count.read_text().split()) == 2)
    home.kill_server()
    go.write_text("")
    home.start()
    until(lambda: "two" in count.read_text())
    home.kill_server()
    run.wait_for_completion(show_output=False, timeout_seconds=90)
    assert sorted(count.read_text().split()) == ["beside", "four", "one", "three", "two"]
    assert set(states(run).values()) == {"Completed"}, log_of(run)


def test_data_from_outside_is_mounted_and_downloaded(workspace: Workspace, store: Any, code: str) -> None:
    Path("raw").mkdir()
    Path("raw/a.txt").write_text("raw data")
    store.upload("raw", target_path="raw", show_progress=False)
    reference = DataReference(store, "place", "raw")
    config = RunConfiguration()
    config.environment_variables = {"MINE": "kept"}
    Path(code, "outside.py").write_text(
        "import os, sys\nprint(open(sys.argv[1] + '/a.txt').read(), open(sys.argv[2]).read(), os.environ['MINE'])\n"
    )
    named = Dataset.File.from_files((store, "raw/a.txt")).as_named_input("one").as_download()
    step = PythonScriptStep(
        "outside.py", arguments=[reference, named], inputs=[reference, named], runconfig=config, source_directory=code
    )
    run = finished(Pipeline(workspace, step))
    assert "raw data raw data kept" in run.find_step_run("outside.py")[0].get_job_log(), log_of(run)


def test_a_search_as_a_step_passes_on_its_metrics_and_its_best_model(
    workspace: Workspace, store: Any, code: str
) -> None:
    Path(code, "trial.py").write_text(
        "import os, sys\nfrom azureml.core import Run\nrate = float(sys.argv[sys.argv.index('--rate') + 1])\n"
        "open('outputs/model.txt', 'w').write(open(sys.argv[2]).read() + str(rate))\n"
        "Run.get_context().log('score', rate)\n"
    )
    words, made = PipelineData("words", store), OutputFileDatasetConfig("seen")
    metrics = PipelineData("metrics", store, pipeline_output_name="metrics")
    model = PipelineData("model", store, training_output=TrainingOutput("Model", model_file="outputs/model.txt"))
    command("first", ["echo -n best: >", words], code, outputs=[words])
    search = HyperDriveStep(
        "search",
        HyperDriveConfig(
            GridParameterSampling({"--rate": choice(0.1, 0.5, 0.3)}),
            "score",
            PrimaryMetricGoal.MAXIMIZE,
            max_total_runs=3,
            max_concurrent_runs=2,
            run_config=ScriptRunConfig(code, "trial.py"),
        ),
        ["--of", words],
        inputs=[words],
        outputs=[model],
        metrics_output=metrics,
    )
    last = command("last", ["cp", model, made, "&& cat", model], code, inputs=[model])
    pipeline = Pipeline(workspace, [last])
    run = finished(pipeline)
    assert run.status == "Completed", log_of(run) + str(run.get_details().get("error"))
    assert "best:0.5" in run.find_step_run("last")[0].get_job_log()
    (step,) = run.find_step_run("search")
    found = HyperDriveStepRun(step)
    best = found.get_best_run_by_primary_metric()
    assert best.get_metrics() == {"score": 0.5} and best.id in {child.id for child in step.get_children()}
    run.get_pipeline_output("metrics").download("here")
    told = json.loads(Path("here", run.get_pipeline_output("metrics").path_on_datastore).read_text())
    assert told[best.id] == {"score": [0.5]} and len(told) == 3
    again = finished(pipeline)
    (reused,) = again.find_step_run("search")
    assert reused.reused_run_id == step.id, log_of(again)
    assert HyperDriveStepRun(reused).get_best_run_by_primary_metric() == best
    assert search.step_type == "HyperDriveStep" == step.properties["StepType"]

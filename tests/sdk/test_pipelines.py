"""Pipelines as they are built: what is wrong with one is said before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Dataset, Workspace
from azureml.core.runconfig import RunConfiguration
from azureml.data import OutputFileDatasetConfig
from azureml.data.datapath import DataPath
from azureml.exceptions import UserErrorException
from azureml.pipeline.core import (
    InputPortBinding,
    OutputPortBinding,
    Pipeline,
    PipelineData,
    PipelineDataset,
    PipelineParameter,
    PipelineStep,
    StepSequence,
    TrainingOutput,
)
from azureml.pipeline.core.graph import DataType, Graph, ParamDef
from azureml.pipeline.core.pipeline_output_dataset import PipelineOutputFileDataset, PipelineOutputTabularDataset
from azureml.pipeline.steps import (
    AdlaStep,
    AzureBatchStep,
    CommandStep,
    DatabricksStep,
    EstimatorStep,
    HyperDriveStep,
    KustoStep,
    MpiStep,
    PythonScriptStep,
    SynapseSparkStep,
)
from azureml.train.estimator import Estimator
from lapis.sdk.pipelines.compiling import Compiler
from lapis.sdk.pipelines.parameters import assigned


def names(pipeline: Pipeline) -> list[str]:
    return [step.name for step in pipeline.steps]


def step(name: str, reads: list[Any] = [], writes: list[Any] = []) -> PythonScriptStep:  # noqa: B006
    return PythonScriptStep("train.py", name, inputs=reads, outputs=writes)


def test_steps_are_found_through_their_inputs_and_come_in_order(workspace: Workspace) -> None:
    a, b = PipelineData("a"), PipelineData("b")
    last = step("last", [b])
    step("first", [], [a])
    step("middle", [a.as_input("other")], [b])
    assert names(Pipeline(workspace, [last])) == ["first", "middle", "last"]
    with pytest.raises(ValueError, match="Input b on step last is not connected to any previous step."):
        Pipeline(workspace, [last], resolve_closure=False)


def test_lists_and_sequences_nest(workspace: Workspace) -> None:
    one, two, three, four = (step(name) for name in ("one", "two", "three", "four"))
    pipeline = Pipeline(workspace, [StepSequence([[one, two], three]), [[four]]])
    assert names(pipeline) == ["one", "two", "four", "three"] and three.run_after_steps == [one, two]


def test_what_cannot_be_joined_is_named(workspace: Workspace) -> None:
    a = PipelineData("a", pipeline_output_name="whole")
    one, two = step("one", [], [a]), step("two", [], [a])
    with pytest.raises(ValueError, match="Two steps write 'a': 'one' and 'two'"):
        Pipeline(workspace, [one, two])
    first, second = (
        step("first", [], [PipelineData("x", pipeline_output_name="same")]),
        step("second", [], [PipelineData("y", pipeline_output_name="same")]),
    )
    with pytest.raises(ValueError, match="Duplicate pipeline output with name same"):
        Pipeline(workspace, [first, second])
    with pytest.raises(ValueError, match="Input lonely on step reader is not connected"):
        Pipeline(workspace, [step("reader", [PipelineData("lonely")])])
    with pytest.raises(ValueError, match="neither in its inputs nor in its outputs"):
        PythonScriptStep("train.py", "s", arguments=[PipelineData("z")])
    with pytest.raises(ValueError, match="two inputs or outputs named 'a'"):
        step("both", [a], [a])
    with pytest.raises(ValueError, match="at least one step"):
        Pipeline(workspace, [])
    with pytest.raises(ValueError, match="'train' is none"):
        Pipeline(workspace, ["train"])


def test_a_circle_is_named_also_when_it_was_closed_later(workspace: Workspace, script: Callable[..., str]) -> None:
    one, two = step("one"), step("two")
    two.run_after(one)
    pipeline = Pipeline(workspace, [one, two], default_source_directory=script("pass"))
    assert pipeline.validate() == []
    one.run_after(two)
    assert "'one' waits for 'two' waits for 'one'" in pipeline.validate()[0]
    with pytest.raises(ValueError, match="wait for each other"):
        pipeline.submit("trial")
    with pytest.raises(ValueError, match="wait for each other"):
        Pipeline(workspace, [one])


def test_validate_names_the_step_that_cannot_run(workspace: Workspace, script: Callable[..., str]) -> None:
    folder = script("pass")
    good = PythonScriptStep("train.py", "good", source_directory=folder)
    lost = PythonScriptStep("tarin.py", "lost", source_directory=folder)
    far = PythonScriptStep("train.py", "far", source_directory=folder, compute_target="gpu-clustr")
    problems = Pipeline(workspace, [good, lost, far]).validate()
    assert len(problems) == 2
    assert problems[0].startswith("Step 'lost': There is no script 'tarin.py'")
    assert problems[1].startswith("Step 'far': ") and "gpu-clustr" in problems[1]
    with pytest.raises(UserErrorException, match="Step 'lost'"):
        Pipeline(workspace, [good, lost]).submit("trial")


def test_arguments_become_words_that_are_known_when_the_step_starts(
    workspace: Workspace, script: Callable[..., str]
) -> None:
    store = workspace.get_default_datastore()
    a, b = PipelineData("a", store), PipelineData("b", store, output_name="written")
    made = OutputFileDatasetConfig("made")
    rate = PipelineParameter("rate", 0.5)
    first = PythonScriptStep(
        "train.py", "first", ["--n", 3, "--rate", rate, "--a", a, made], outputs=[a], source_directory=script("pass")
    )
    second = PythonScriptStep(
        "train.py",
        "second",
        ["--in", a, "--as", a.as_download("again"), "--out", b, "--made", made.as_input("read")],
        inputs=[a, a.as_download("again", path_on_compute="here")],
        outputs=[b],
        source_directory=script("pass"),
    )
    pipeline = Pipeline(workspace, [second])
    plan = Compiler(pipeline, "trial", assigned(pipeline._parameters(), {"rate": "0.25"})).whole(False, False)
    one, two = plan.steps
    assert one.name == "first" == first.name
    assert one.definition["arguments"][:6] == ["--n", "3", "--rate", "$AML_PARAMETER_rate", "--a",
                                               "$AZUREML_DATAREFERENCE_a"]  # fmt: skip
    assert one.job.environment_variables["AML_PARAMETER_rate"] == "0.25"
    assert [(each.name, each.made_by_script) for each in one.job.outputs] == [("made", False), ("a", True)]
    places = {each.input.name: (each.step, each.output, each.input.mode) for each in two.inputs}
    assert places == {"a": (0, "a", "mount"), "again": (0, "a", "download"), "read": (0, "made", "mount")}
    assert two.job.to_json()["arguments"] == [
        "--in", "$AZUREML_DATAREFERENCE_a", "--as", "$AZUREML_DATAREFERENCE_again", "--out",
        "$AZUREML_DATAREFERENCE_written", "--made", {"input": "read"},
    ]  # fmt: skip
    assert two.job.outputs[0].definition["sources"][0]["path"] == "azureml/{run-id}/written"


def test_parameters_are_checked_by_the_kind_of_their_default(workspace: Workspace) -> None:
    store = workspace.get_default_datastore()
    known = [
        PipelineParameter("n", 1), PipelineParameter("x", 0.5), PipelineParameter("s", "a"),
        PipelineParameter("b", True), PipelineParameter("p", DataPath(store, "x")),
    ]  # fmt: skip
    assert assigned(known, {"n": "3", "x": 2, "s": 5, "b": "false"})["b"] is False
    assert assigned(known, {"n": "3"})["n"] == 3 and assigned(known, {"x": 2})["x"] == 2.0
    for wrong in ({"n": 1.5}, {"n": True}, {"x": "high"}, {"b": 1}, {"p": "folder"}, {"s": object()}, {"unknown": 1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            assigned(known, wrong)
    with pytest.raises(ValueError, match="no default and was given no value"):
        assigned([PipelineParameter("open", None)], {})
    with pytest.raises(ValueError, match="Two parameters"):
        assigned([PipelineParameter("n", 1), PipelineParameter("n", 2)], {})
    with pytest.raises(ValueError, match="must be text, a number"):
        PipelineParameter("n", object())
    assert str(PipelineParameter("n", 1)) == "PipelineParameter_Name:n_Default:1"


def test_outputs_can_be_parsed_registered_and_renamed() -> None:
    data = PipelineData("rows")
    files = data.as_dataset()
    table = files.parse_delimited_files(separator=";").keep_columns("a").drop_columns(["b"])
    assert isinstance(files, PipelineOutputFileDataset) and isinstance(table, PipelineOutputTabularDataset)
    named = table.as_named_input("mine")
    assert (named.input_name, table.input_name, named.name) == ("mine", "rows", "rows")
    assert named._definition({})["type"] == "tabular" and len(named._definition({})["steps"]) == 2
    assert files.as_mount()._mode == "mount" and files.as_download()._mode == "download"
    assert len(table.random_split(0.5)) == 2
    files.register("kept")
    assert data._binding.dataset_registration.name == "kept"
    binding = data.as_mount("there")
    assert isinstance(binding, InputPortBinding) and (binding.name, binding.bind_mode) == ("there", "mount")
    assert OutputPortBinding("o", bind_mode="upload").bind_mode == "upload"
    assert TrainingOutput("Model", model_file="m.pkl").model_file == "m.pkl"
    with pytest.raises(ValueError):
        TrainingOutput("Weights")
    with pytest.raises(UserErrorException, match="Output name"):
        PipelineData("no-dashes")


def test_every_step_of_a_script_compiles(workspace: Workspace, script: Callable[..., str], tmp_path: Path) -> None:
    folder = script("pass")
    config = RunConfiguration()
    estimator = EstimatorStep(
        "estimated", Estimator(folder, compute_target="local", entry_script="train.py"), ["--x", 1]
    )
    count = PipelineParameter("count", 2)
    mpi = MpiStep("mpi", folder, "train.py", ["--y"], "local", node_count=1, process_count_per_node=count)
    nodes = PythonScriptStep("train.py", "nodes", runconfig=config, runconfig_pipeline_params={"NodeCount": count},
                             source_directory=folder)  # fmt: skip
    line = CommandStep("echo hello", source_directory=folder)
    pipeline = Pipeline(workspace, [estimator, mpi, nodes, line])
    plan = Compiler(pipeline, "trial", {"count": 2}).whole(False, False)
    jobs = {each.name: each.job for each in plan.steps}
    assert jobs["estimated"].arguments == ("--x", "1") and jobs["echo"].command == "echo hello"
    assert jobs["mpi"].to_json()["distribution"] == {"kind": "mpi", "processes_per_node": 2}
    assert jobs["nodes"].node_count == 2 and config.node_count == 1
    assert [each.type for each in plan.steps] == ["EstimatorStep", "MpiStep", "PythonScriptStep", "CommandStep"]
    with pytest.raises(ValueError, match="needs a command"):
        CommandStep()
    with pytest.raises(ValueError, match="needs an estimator"):
        EstimatorStep("e", "train.py")
    with pytest.raises(ValueError, match="Known: NodeCount"):
        PythonScriptStep("train.py", runconfig_pipeline_params={"Nodes": count})


def test_only_a_search_writes_a_training_output(workspace: Workspace, script: Callable[..., str]) -> None:
    model = PipelineData("model", training_output=TrainingOutput("Model", model_file="outputs/m.pkl"))
    step = PythonScriptStep("train.py", "plain", outputs=[model], source_directory=script("pass"))
    assert "only a HyperDriveStep writes one" in Pipeline(workspace, [step]).validate()[0]
    with pytest.raises(ValueError, match="needs a HyperDriveConfig"):
        HyperDriveStep("search", "grid")


@pytest.mark.parametrize("cloud", [AdlaStep, AzureBatchStep, DatabricksStep, KustoStep, SynapseSparkStep])
def test_a_step_of_azures_own_services_says_what_to_use_instead(cloud: Any) -> None:
    with pytest.raises(UserErrorException, match=f"{cloud.__name__} is run by Azure .*Step"):
        cloud(name="x", anything=1)
    assert issubclass(cloud, PipelineStep)


def test_a_graph_shows_steps_data_and_edges(workspace: Workspace) -> None:
    store = workspace.get_default_datastore()
    a = PipelineData("a")
    outside = Dataset.File.from_files((store, "x"), validate=False).as_named_input("raw").as_mount()
    first = PythonScriptStep("train.py", "first", [PipelineParameter("n", 4)], inputs=[outside], outputs=[a])
    graph = Pipeline(workspace, [first, step("second", [a])]).graph
    assert isinstance(graph, Graph) and [node.name for node in graph.module_nodes] == ["first", "second"]
    assert [node.name for node in graph.datasource_nodes] == ["raw"] and graph.params == {"n": 4}
    assert {(edge.source_port.node.name, edge.dest_port.name) for edge in graph.edges} == {
        ("raw", "raw"),
        ("first", "a"),
    }
    second = graph.node_name_dict["second"][0]
    assert second.get_input("a").incoming_edge.source_port.node.name == "first"  # type: ignore[union-attr]
    assert graph.node_name_dict["first"][0].params["n"].get_value() == 4
    assert ParamDef("p", 1).default_value == 1 and len(DataType.list_data_types(workspace)) == 2
    assert PipelineDataset.is_dataset(outside) and PipelineDataset.create(outside).name == "raw"

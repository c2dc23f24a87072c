"""The smallest forms of what public code written for SDK v1 does. Each was met in somebody's notebook or script."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from azureml.core import Dataset, Environment, Experiment, Run, RunConfiguration, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.conda_dependencies import CondaDependencies
from azureml.core.image import ContainerImage, Image
from azureml.core.model import InferenceConfig, Model
from azureml.core.webservice import AciWebservice, LocalWebservice, Webservice
from azureml.data.dataset_consumption_config import DatasetConsumptionConfig
from azureml.exceptions import ComputeTargetException, UserErrorException, WebserviceException
from azureml.train.estimator import Estimator
from azureml.train.hyperdrive import (
    HyperDriveConfig,
    PrimaryMetricGoal,
    RandomParameterSampling,
    choice,
)

WRITES_MODEL = "import os\nos.makedirs('outputs', exist_ok=True)\nopen('outputs/m.pkl', 'w').write('x')\n"


def completed(experiment: Experiment, folder: str, **config: Any) -> Any:
    run = experiment.submit(ScriptRunConfig(folder, script="train.py", **config))
    run.wait_for_completion()
    return run


# -- names and values


def test_a_cluster_may_have_a_name_of_24_characters(workspace: Workspace) -> None:
    configuration = AmlCompute.provisioning_configuration(vm_size="STANDARD_D2_V2", max_nodes=1)
    assert ComputeTarget.create(workspace, "low-priority-cpu-cluster", configuration).name == "low-priority-cpu-cluster"


def test_a_workspace_has_default_targets_made_from_default_configurations(workspace: Workspace) -> None:
    cpu, gpu = (workspace.get_default_compute_target(kind) for kind in ("CPU", "GPU"))
    assert (cpu.name, gpu.name) == (Workspace.DEFAULT_CPU_CLUSTER_NAME, Workspace.DEFAULT_GPU_CLUSTER_NAME)
    assert workspace.get_default_compute_target("CPU") == cpu
    assert Workspace.DEFAULT_GPU_CLUSTER_CONFIGURATION.vm_size == "STANDARD_NC6"


def test_a_model_may_be_of_any_framework(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text("x")
    model = Model.register(workspace, str(tmp_path / "m.txt"), "m", model_framework="LightGBM")
    assert model.model_framework == "LightGBM"


def test_a_path_may_begin_with_a_dot_wherever_a_runs_file_is_named(
    workspace: Workspace, experiment: Experiment, script: Callable[..., str], tmp_path: Path
) -> None:
    run = completed(experiment, script(WRITES_MODEL))
    run.download_file("./outputs/m.pkl", str(tmp_path / "back.pkl"))
    run.download_files(prefix="./outputs", output_directory=str(tmp_path / "all"))
    assert (tmp_path / "back.pkl").read_text() == (tmp_path / "all" / "outputs" / "m.pkl").read_text() == "x"
    assert run.register_model("dotted", model_path="./outputs/m.pkl").name == "dotted"
    store = workspace.get_default_datastore()
    store.upload_files([str(tmp_path / "back.pkl")], target_path="./data", show_progress=False)
    assert Dataset.File.from_files((store, "data/back.pkl")).to_path() == ["/back.pkl"]


def test_a_later_run_goes_on_from_the_outputs_of_an_earlier_one(
    experiment: Experiment, script: Callable[..., str]
) -> None:
    first = completed(experiment, script(WRITES_MODEL))
    reads = "import os, sys\nprint(sys.argv[1], open(os.path.join(sys.argv[2], 'm.pkl')).read())"
    second = completed(experiment, script(reads), resume_from=first._get_outputs_datapath())
    assert "--resume-from x" in second.get_details_with_logs()["logFiles"]["user_logs/std_log.txt"]


def test_a_reloaded_service_answers_anew_when_reload_returns(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text("def init(): pass\ndef run(data): return 'old'\n")
    config = InferenceConfig(entry_script="score.py", source_directory=str(tmp_path))
    service = Model.deploy(workspace, "fresh", [], config, LocalWebservice.deploy_configuration())
    service.wait_for_deployment()
    assert service.run("{}") == "old" and service.scoring_uri.endswith("/score")
    (tmp_path / "score.py").write_text("def init(): pass\ndef run(data): return 'new'\n")
    service.reload()
    assert service.run("{}") == "new"
    service.delete()


# -- duck typing: what would break later is refused, a mock is not


def test_mocks_stand_in_for_what_a_configuration_is_made_of(tmp_path: Path) -> None:
    config = RunConfiguration()
    config.environment = MagicMock()
    config.target = MagicMock()
    made = ScriptRunConfig(str(tmp_path), "s.py", run_config=MagicMock())
    assert ScriptRunConfig(str(tmp_path), "s.py", compute_target=Mock(), environment=MagicMock()).script == made.script
    assert DatasetConsumptionConfig("train", MagicMock()).name == "train"
    assert Estimator(str(tmp_path), compute_target=MagicMock(), entry_script="s.py", environment_definition=MagicMock())


def test_mocks_stand_in_for_workspaces_and_experiments() -> None:
    experiment = Experiment(MagicMock(), "trial")
    assert Run(MagicMock(), "an-id").id == "an-id" and experiment.name == "trial"


@pytest.mark.parametrize("wrong", ["mine", 3, ["a"]])
def test_what_cannot_be_an_environment_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(UserErrorException, match="must be an Environment"):
        RunConfiguration().environment = wrong
    with pytest.raises(UserErrorException, match="must be an Environment"):
        ScriptRunConfig(".", "s.py", environment=wrong)


def test_a_command_has_no_arguments() -> None:
    assert ScriptRunConfig(".", command=["python", "x.py"]).arguments is None
    assert ScriptRunConfig(".", script="x.py").arguments == []


# -- texts that code searches


def test_errors_hold_the_words_that_code_looks_for(workspace: Workspace) -> None:
    with pytest.raises(ComputeTargetException) as no_target:
        ComputeTarget(workspace, "nope")
    with pytest.raises(WebserviceException) as no_service:
        LocalWebservice(workspace, "nope")
    with pytest.raises(WebserviceException) as no_model:
        Model(workspace, "nope")
    with pytest.raises(UserErrorException) as no_dataset:
        Dataset.get_by_name(workspace, "nope")
    with pytest.raises(UserErrorException) as no_environment:
        Environment.get(workspace, "nope")
    assert "ComputeTargetNotFound" in no_target.value.message
    assert "WebserviceNotFound" in no_service.value.message
    assert "ModelNotFound" in no_model.value.message
    assert 'Cannot find dataset registered with name "nope"' in no_dataset.value.message
    assert "could not be found" in no_environment.value.message


# -- what the service shows


def test_details_have_the_shape_of_the_service(
    workspace: Workspace, experiment: Experiment, script: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "d.csv").write_text("a\n1\n")
    store = workspace.get_default_datastore()
    store.upload_files([str(tmp_path / "d.csv")], show_progress=False)
    data = Dataset.File.from_files((store, "d.csv")).register(workspace, "rows")
    run = completed(
        experiment, script("print(1)"), arguments=["--data", data.as_named_input("train").as_mount(), "--n", 3]
    )
    details = run.get_details()
    definition = details["runDefinition"]
    assert definition["arguments"] == ["--data", "DatasetConsumptionConfig:train", "--n", "3"]
    assert definition["data"]["train"]["dataLocation"]["dataset"] == {"id": data.id, "name": "rows", "version": "1"}
    assert definition["data"]["train"]["mechanism"] == "Mount"
    assert definition["environment"]["name"] == "Experiment trial Environment"
    assert definition["environment"]["version"].startswith("Autosave_")
    assert {"amlCompute", "pyTorch", "parallelTask", "command", "credentialPassthrough"} <= set(definition)
    assert details["properties"]["_azureml.ComputeTargetType"] == "local"
    assert details["properties"]["ProcessInfoFile"] == "azureml-logs/process_info.json"


def test_a_dataset_prints_as_its_class_and_json(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a\n1\n")
    store = workspace.get_default_datastore()
    store.upload_files([str(tmp_path / "d.csv")], show_progress=False)
    table = Dataset.Tabular.from_delimited_files((store, "d.csv")).register(workspace, "rows")
    kind, text = str(table).split("\n", 1)
    told = json.loads(text)
    assert kind == "TabularDataset" and told["source"] == ["('workspaceblobstore', 'd.csv')"]
    assert told["definition"] == ["GetDatastoreFiles", "ParseDelimited", "DropColumns", "SetColumnTypes"]
    assert told["registration"]["name"] == "rows" and told["registration"]["version"] == 1


def test_a_workspace_tells_where_its_parts_are(workspace: Workspace) -> None:
    details = workspace.get_details()
    assert details["id"].split("/")[4] == workspace.resource_group
    assert all(details[part] for part in ("storageAccount", "keyVault", "containerRegistry", "applicationInsights"))


def test_a_search_tells_of_itself_in_tags_and_of_its_best_run_in_a_metric(
    experiment: Experiment, script: Callable[..., str]
) -> None:
    code = "import sys\nfrom azureml.core import Run\nRun.get_context().log('m', float(sys.argv[-1]))\n"
    config = HyperDriveConfig(
        RandomParameterSampling({"--z": choice(2), "--a": choice(1)}), "m", PrimaryMetricGoal.MAXIMIZE, 1,
        run_config=ScriptRunConfig(script(code), script="train.py", arguments=["--a", 0]),
    )  # fmt: skip
    search = experiment.submit(config)
    search.wait_for_completion()
    child = next(iter(search.get_children()))
    assert child.get_details()["runDefinition"]["arguments"] == ["--a", "0", "--a", "1", "--z", "2"]
    generator = json.loads(search.tags["_aml_system_generator_config"])
    assert generator == {"name": "RANDOM", "parameter_space": {"--z": ["choice", [[2]]], "--a": ["choice", [[1]]]}}
    best = Run(experiment, search.id).get_metrics()["best_child_by_primary_metric"]
    assert (best["run_id"][-1], best["metric_value"][-1], best["final"][-1]) == (child.id, 2.0, True)
    assert "best_child_by_primary_metric" not in search.get_metrics()


# -- tables


def test_tables_are_as_forgiving_as_in_sdk_v1(tmp_path: Path) -> None:
    (tmp_path / "l.txt").write_text('heading\nx "y\nz, w\n')
    lines = Dataset.Tabular.from_delimited_files(str(tmp_path / "l.txt"), separator="\n").to_pandas_dataframe()
    assert lines["heading"].tolist() == ['x "y', "z, w"]
    (tmp_path / "t.csv").write_text("a,t\n1,2020-01-01\n")
    table = Dataset.Tabular.from_delimited_files(str(tmp_path / "t.csv"))
    assert table.drop_columns(["a", "nope"]).to_pandas_dataframe().columns.tolist() == ["t"]
    with pytest.raises(UserErrorException, match="goes with a timestamp column"):
        table.with_timestamp_columns(partition_timestamp="t")


def test_a_table_whose_columns_differ_in_length_is_refused(experiment: Experiment) -> None:
    with experiment.start_logging() as run:
        with pytest.raises(UserErrorException, match="its columns differ in length \\('x' has 2, 'y' has 1\\)"):
            run.log_table("t", {"x": [1, 2], "y": [3]})


def test_packages_can_be_a_mock_too() -> None:
    environment = Environment("mine")
    environment.python.conda_dependencies = MagicMock(spec=CondaDependencies)
    with pytest.raises(UserErrorException, match="must be a CondaDependencies"):
        environment.python.conda_dependencies = "numpy"  # type: ignore[assignment]


def test_a_notebook_can_be_the_entry_script_of_an_estimator(experiment: Experiment, tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Train"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import sys\n", "!echo from the shell"]},
        {"cell_type": "code", "source": ["if __name__ == '__main__':\n", "    print('got', sys.argv[1:])"]},
    ]
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.ipynb").write_text(json.dumps({"cells": cells}))
    estimator = Estimator(
        str(tmp_path / "code"), compute_target="local", entry_script="train.ipynb", user_managed=True,
        script_params={"--lr": 0.1},
    )  # fmt: skip
    run = experiment.submit(estimator)
    run.wait_for_completion()
    log = run.get_details_with_logs()["logFiles"]["user_logs/std_log.txt"]
    assert "from the shell" in log and "got ['--lr', '0.1']" in log


def test_a_service_of_2019_leaves_its_image_in_the_list(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("score.py").write_text("def init(): pass\ndef run(data): return 1\n")
    Path("m.txt").write_text("x")
    model = Model.register(workspace, "m.txt", "m")
    config = ContainerImage.image_configuration(execution_script="score.py", runtime="python")
    service = Webservice.deploy_from_model(workspace, "old", [model], config, AciWebservice.deploy_configuration())
    assert [image.name for image in Image.list(workspace)] == ["old"] and "old" in workspace.images
    service.delete()

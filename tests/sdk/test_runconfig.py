"""Run configurations: checked when set, saved and loaded, and translated for the server."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lapis.errors import NotThereYet, RunConfigurationException, UserErrorException
from lapis.sdk.config.run_config_element import RunConfigElement
from lapis.sdk.config.runconfig import (
    ApplicationEndpointConfiguration,
    CondaDependencies,
    Data,
    DatacacheConfiguration,
    DataLocation,
    DataPath,
    DataReferenceConfiguration,
    Dataset,
    DatasetRegistrationOptions,
    DockerConfiguration,
    EnvironmentDefinition,
    GlobsOptions,
    MountOptions,
    MpiConfiguration,
    OutputData,
    OutputOptions,
    ParallelTaskConfiguration,
    PyTorchConfiguration,
    RegistrationOptions,
    RunConfiguration,
    TensorflowConfiguration,
    UploadOptions,
    Uri,
    apply_distributed,
    to_run_definition,
)
from lapis.sdk.environments.environment import DEFAULT_GPU_IMAGE, Environment, EnvironmentReference


class Cluster:
    """Stands for a compute target: all that a run configuration looks at is the name."""

    name = "gpu-cluster"


def rich_configuration() -> RunConfiguration:
    run_config = RunConfiguration(
        script="train.py",
        arguments=[
            "--rate",
            0.01,
            "--steps",
            100,
            "--version",
            "3.10",
            "--flag",
            "",
            "--text",
            "a: b # c",
            None,
        ],
        framework="python",
        conda_dependencies=CondaDependencies.create(pip_packages=["numpy==1.23.5"], python_version="3.8"),
    )
    run_config.target = Cluster()
    run_config.node_count = 4
    run_config.max_run_duration_seconds = 3600
    run_config.priority = 2
    run_config.environment.environment_variables = {"LEVEL": "1"}
    run_config.environment.docker.base_image = DEFAULT_GPU_IMAGE
    run_config.docker = DockerConfiguration(use_docker=True, arguments=["--ipc", "host"], shm_size="8g")
    run_config.history.directories_to_watch = ["logs", "more"]
    run_config.mpi = MpiConfiguration(process_count_per_node=2, node_count=4)
    run_config.tensorflow = TensorflowConfiguration(worker_count=3, parameter_server_count=0)
    run_config.pytorch = PyTorchConfiguration("gloo", process_count=8, node_count=2)
    run_config.paralleltask.terminal_exit_codes = [3, 4]
    run_config.amlcompute.vm_size = "STANDARD_D2_V2"
    run_config.kubernetescompute.instance_type = "large"
    run_config.data_references = {"ref": DataReferenceConfiguration("blob", "download", "a/b", "/data/x", True)}
    run_config.data = {
        "mnist": Data(DataLocation(dataset=Dataset("id-1", "mnist", "2")), False, "mount", "mnist", None, False),
        "path": Data(DataLocation(data_path=DataPath("blob", "a")), mechanism="download", options={"k": "v"}),
        "address": Data(DataLocation(uri=Uri("https://example.org/a", True))),
    }
    run_config.output_data = {
        "out": OutputData(
            DataLocation(data_path=DataPath("blob", "out")),
            "upload",
            OutputOptions(
                "/data/out",
                RegistrationOptions("name", "text", {"k": "v"}, DatasetRegistrationOptions("parse")),
                UploadOptions(True, GlobsOptions(["*.txt"])),
                MountOptions(True),
            ),
        )
    }
    run_config.services = {"board": ApplicationEndpointConfiguration("TensorBoard", 6006, {"logDir": "logs"})}
    run_config.datacaches = [DatacacheConfiguration("id", "store")]
    run_config.source_directory_data_store = "blob"
    return run_config


def test_a_new_configuration_runs_a_python_script_on_one_local_node() -> None:
    run_config = RunConfiguration()
    assert (run_config.framework, run_config.communicator) == ("Python", "None")
    assert (run_config.target, run_config.node_count) == ("local", 1)
    assert (run_config.arguments, run_config.data, run_config.data_references) == ([], {}, {})
    assert run_config.history.directories_to_watch == ["logs"]
    assert isinstance(run_config.environment, EnvironmentDefinition)
    assert run_config.environment.name is None
    assert run_config.docker == DockerConfiguration()


def test_two_configurations_share_nothing() -> None:
    first, second = RunConfiguration(), RunConfiguration()
    first.arguments.append("x")
    first.docker.arguments.append("x")
    first.environment.python.conda_dependencies.add_pip_package("numpy")
    assert second == RunConfiguration()


@pytest.mark.parametrize(("target", "name"), [("cpu", "cpu"), (None, "local"), (Cluster(), "gpu-cluster")])
def test_a_target_is_a_name_a_compute_or_nothing(target: Any, name: str) -> None:
    run_config = RunConfiguration()
    run_config.target = target
    assert run_config.target == name


@pytest.mark.parametrize("target", [3, "", ["cpu"], object()])
def test_another_target_is_refused_and_the_old_one_stays(target: Any) -> None:
    run_config = RunConfiguration()
    run_config.target = "cpu"
    with pytest.raises(UserErrorException, match="must be a compute target or the name of one"):
        run_config.target = target
    assert run_config.target == "cpu"


def test_framework_and_communicator_are_taken_in_any_case_and_else_refused_with_the_valid_ones() -> None:
    run_config = RunConfiguration(framework="tensorflow", communicator="intelmpi")
    assert (run_config.framework, run_config.communicator) == ("TensorFlow", "IntelMpi")
    with pytest.raises(RunConfigurationException) as caught:
        run_config.framework = "Caffe"
    assert caught.value.message == (
        "RunConfiguration.framework cannot be 'Caffe'. Valid: Python, PySpark, CNTK, TensorFlow, PyTorch."
    )
    with pytest.raises(RunConfigurationException, match="Valid: None, ParameterServer, OpenMpi, IntelMpi"):
        RunConfiguration(communicator="Smoke")


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", True, None])
def test_a_node_count_is_a_whole_number_from_one(count: Any) -> None:
    with pytest.raises(RunConfigurationException, match="RunConfiguration.node_count must be a whole number, 1 or"):
        RunConfiguration().node_count = count


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        ("environment", "myenv", "must be an Environment, not 'myenv'"),
        ("arguments", "--rate 1", "must be a list"),
        ("data_references", ["x"], "must be a dict of names"),
        ("data", "x", "must be a dict of names"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_refused(attribute: str, value: Any, said: str) -> None:
    with pytest.raises(UserErrorException, match=said):
        setattr(RunConfiguration(), attribute, value)


def test_a_misspelt_setting_is_refused() -> None:
    with pytest.raises(AttributeError, match="RunConfiguration has no setting 'node_cuont'. Did you mean 'node_count'"):
        RunConfiguration().node_cuont = 2


def test_older_names_of_settings_still_work() -> None:
    run_config = RunConfiguration()
    run_config.auto_prepare_environment = False
    run_config.environment_variables = {"A": "1"}
    assert run_config.environment.environment_variables == {"A": "1"}
    assert run_config.environment_variables == {"A": "1"}
    assert run_config.auto_prepare_environment is True
    location = DataLocation(datapath=DataPath("blob"))
    assert location.data_path == location.datapath == DataPath("blob")


def test_a_dataset_with_a_name_and_a_mode_becomes_an_input() -> None:
    class Mnist:
        id, name, version = "id-1", "mnist dataset", 3

    class Consumption:
        name, dataset, mode, path_on_compute = "mnist", Mnist(), "mount", "/data"

    made = Data.create(Consumption())
    assert made.data_location == DataLocation(dataset=Dataset("id-1", "mnist dataset", 3))  # type: ignore[arg-type]
    assert (made.mechanism, made.environment_variable_name, made.path_on_compute) == (
        "mount",
        "mnist",
        "/data",
    )
    assert Data.create(made) is made
    with pytest.raises(UserErrorException, match="must be a dataset"):
        Data.create("mnist")
    with pytest.raises(NotThereYet):
        DatacacheConfiguration.create(None)


# Distributed settings


@pytest.mark.parametrize(
    ("settings", "framework", "communicator", "nodes"),
    [
        (None, "Python", "None", 1),
        (MpiConfiguration(process_count_per_node=2, node_count=3), "Python", "IntelMpi", 3),
        (
            TensorflowConfiguration(worker_count=2, parameter_server_count=1),
            "TensorFlow",
            "ParameterServer",
            2,
        ),
        (
            TensorflowConfiguration(worker_count=2, parameter_server_count=4),
            "TensorFlow",
            "ParameterServer",
            2,
        ),
        (PyTorchConfiguration(process_count=8, node_count=2), "PyTorch", "Nccl", 2),
        (PyTorchConfiguration("gloo", node_count=5), "PyTorch", "Gloo", 5),
        (ParallelTaskConfiguration(), "Python", "ParallelTask", 1),
    ],
)
def test_distributed_settings_are_translated(settings: Any, framework: str, communicator: str, nodes: int) -> None:
    run_config = RunConfiguration()
    apply_distributed(run_config, settings)
    assert (run_config.framework, run_config.communicator, run_config.node_count) == (
        framework,
        communicator,
        nodes,
    )


def test_distributed_settings_are_kept_in_their_section_as_a_copy() -> None:
    settings = MpiConfiguration(process_count_per_node=2, node_count=3)
    run_config = RunConfiguration()
    apply_distributed(run_config, settings)
    settings.process_count_per_node = 9
    assert run_config.mpi == MpiConfiguration(process_count_per_node=2, node_count=3)


def test_other_distributed_settings_are_refused_and_change_nothing() -> None:
    run_config = RunConfiguration()
    with pytest.raises(UserErrorException, match="must be a MpiConfiguration"):
        apply_distributed(run_config, "mpi")
    with pytest.raises(RunConfigurationException, match="worker_count must be 1 or more for a run"):
        apply_distributed(run_config, TensorflowConfiguration(worker_count=0))
    with pytest.raises(RunConfigurationException, match="node_count must be a whole number, 1 or more, not 0"):
        apply_distributed(run_config, MpiConfiguration(node_count=0))
    with pytest.raises(RunConfigurationException, match="Valid: Nccl, Gloo"):
        PyTorchConfiguration("smoke")
    assert run_config == RunConfiguration()


# The definition


def test_the_definition_has_the_keys_of_sdk_v1_in_its_order() -> None:
    known = [
        "script", "command", "useAbsolutePath", "arguments", "framework", "communicator", "target",
        "dataReferences", "data", "outputData", "jobName", "maxRunDurationSeconds", "nodeCount", "priority",
        "environment", "history", "spark", "docker", "hdi", "tensorflow", "mpi", "pytorch", "paralleltask",
        "amlcompute", "sourceDirectoryDataStore", "datacaches",
    ]  # fmt: skip
    definition = to_run_definition(rich_configuration())
    assert [key for key in definition if key in known] == known


def test_the_definition_is_json_and_its_arguments_are_text() -> None:
    class Consumption:
        def __str__(self) -> str:
            return "DatasetConsumptionConfig:mnist"

    run_config = RunConfiguration(arguments=["--rate", 0.01, 3, Consumption()])
    definition = json.loads(json.dumps(to_run_definition(run_config)))
    assert definition["arguments"] == ["--rate", "0.01", "3", "DatasetConsumptionConfig:mnist"]
    run_config.command = ["python", "train.py", 1]
    assert to_run_definition(run_config)["command"] == ["python", "train.py", "1"]
    run_config.command = "python train.py"
    assert to_run_definition(run_config)["command"] == "python train.py"
    assert run_config.arguments[1] == 0.01


def test_a_data_reference_that_knows_its_configuration_is_asked_for_it() -> None:
    class Reference:
        def to_config(self) -> DataReferenceConfiguration:
            return DataReferenceConfiguration("blob", path_on_datastore="mnist")

    run_config = RunConfiguration()
    run_config.data_references = {"ref": Reference()}
    assert to_run_definition(run_config)["dataReferences"]["ref"] == {
        "dataStoreName": "blob",
        "mode": "mount",
        "pathOnDataStore": "mnist",
        "pathOnCompute": None,
        "overwrite": False,
    }


def test_the_definition_reads_back_as_the_configuration() -> None:
    definition = json.loads(json.dumps(rich_configuration()._to_dict()))
    assert RunConfiguration._from_dict(definition) == rich_configuration()


def test_every_kind_of_section_reads_back_what_it_writes() -> None:
    def kinds(root: type[RunConfigElement]) -> list[type[RunConfigElement]]:
        return [kind for child in root.__subclasses__() for kind in (child, *kinds(child))]

    found = kinds(RunConfigElement)
    assert len(found) > 40
    for kind in found:
        blank = kind._blank()
        assert kind._from_dict(blank._to_dict()) == blank, kind
        assert set(kind._fields) <= {name for name in dir(blank) if hasattr(blank, name)}, kind


# Files


@pytest.mark.parametrize("separate", [False, True])
def test_a_saved_configuration_loads_as_it_was(tmp_path: Path, separate: bool) -> None:
    rich_configuration().save(str(tmp_path), "mnist.runconfig", separate_environment_yaml=separate)
    assert RunConfiguration.load(str(tmp_path), "mnist") == rich_configuration()
    assert RunConfiguration.load(str(tmp_path), "mnist.runconfig") == rich_configuration()
    assert RunConfiguration.load(str(tmp_path / ".azureml" / "mnist.runconfig")) == rich_configuration()


def test_saving_in_a_project_writes_the_file_and_the_packages_beside_it(tmp_path: Path) -> None:
    rich_configuration().save(str(tmp_path), "mnist.runconfig")
    assert sorted(file.name for file in (tmp_path / ".azureml").iterdir()) == [
        "conda_dependencies.yml",
        "mnist.runconfig",
    ]
    saved = yaml.safe_load((tmp_path / ".azureml" / "mnist.runconfig").read_text())
    python = saved["environment"]["python"]
    assert python["condaDependenciesFile"] == ".azureml/conda_dependencies.yml"
    assert "condaDependencies" not in python
    packages = yaml.safe_load((tmp_path / ".azureml" / "conda_dependencies.yml").read_text())
    assert packages["dependencies"] == ["python=3.8", {"pip": ["numpy==1.23.5"]}]


def test_a_separate_environment_has_a_file_of_its_own(tmp_path: Path) -> None:
    rich_configuration().save(str(tmp_path), "mnist", separate_environment_yaml=True)
    saved = yaml.safe_load((tmp_path / ".azureml" / "mnist").read_text())
    assert saved["environment"] == ".azureml/environment.yml"
    assert (tmp_path / ".azureml" / "environment.yml").is_file()


def test_the_working_folder_is_the_project_when_none_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rich_configuration().save(name="mnist.runconfig")
    assert (tmp_path / ".azureml" / "mnist.runconfig").is_file()
    assert RunConfiguration.load(".", "mnist") == rich_configuration()


def test_a_path_may_be_the_file_itself_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rich_configuration().save(str(tmp_path / "my.yml"), name="left out")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["conda_dependencies.yml", "my.yml"]
    monkeypatch.chdir(tmp_path)
    assert RunConfiguration.load("my.yml") == rich_configuration()


def test_an_older_project_keeps_its_aml_config_folder(tmp_path: Path) -> None:
    (tmp_path / "aml_config").mkdir()
    rich_configuration().save(str(tmp_path), "local.runconfig")
    assert (tmp_path / "aml_config" / "local.runconfig").is_file()
    assert RunConfiguration.load(str(tmp_path), "local") == rich_configuration()


def test_a_reference_to_a_registered_environment_survives(tmp_path: Path) -> None:
    run_config = RunConfiguration()
    run_config.environment = EnvironmentReference("shared", "3")
    run_config.save(str(tmp_path), "x")
    assert RunConfiguration.load(str(tmp_path), "x") == run_config


def test_a_named_environment_survives(tmp_path: Path) -> None:
    run_config = RunConfiguration()
    run_config.environment = Environment("mine")
    run_config.save(str(tmp_path), "x")
    assert RunConfiguration.load(str(tmp_path), "x").environment == Environment("mine")


OLD_FILE = """\
# The script to run.
script: train.py
arguments:
- --data-folder
- DatasetConsumptionConfig:mnist
target: cpu-cluster
framework: python
communicator: None
autoPrepareEnvironment: true
maxRunDurationSeconds:
nodeCount: 4
environment:
# Python details
  python:
    userManagedDependencies: true
    interpreterPath: /opt/python
    condaDependenciesFile: aml_config/conda_dependencies.yml
  docker:
    enabled: true
    gpuSupport: false
    baseImage: example.org/base:0.2.4
    baseImageRegistry:
      address:
hdi:
  yarnDeployMode: cluster
mpi:
  processCountPerNode: 1
data:
  mnist:
    dataLocation:
      dataset:
        id: ed4b4117-8eec-4a5f-afb6-481bd5ef0017
      datapath:
    mechanism: mount
amlcompute:
  vmSize:
  retainCluster: false
  name:
  clusterMaxNodeCount: 1
"""


@pytest.mark.parametrize("as_json", [False, True])
def test_a_file_of_an_older_release_is_understood_in_yaml_and_in_json(tmp_path: Path, as_json: bool) -> None:
    (tmp_path / "aml_config").mkdir()
    text = json.dumps(yaml.safe_load(OLD_FILE), indent=2) if as_json else OLD_FILE
    (tmp_path / "aml_config" / "docker.runconfig").write_text(text)
    run_config = RunConfiguration.load(str(tmp_path), "docker")
    assert (run_config.framework, run_config.communicator, run_config.node_count) == ("Python", "None", 4)
    assert run_config.environment.python.interpreter_path == "/opt/python"
    assert run_config.environment.docker.enabled is True
    assert run_config.data["mnist"].data_location.dataset.id == "ed4b4117-8eec-4a5f-afb6-481bd5ef0017"
    assert run_config.history.directories_to_watch == ["logs"]


def test_a_file_may_name_another_from_its_own_folder(tmp_path: Path) -> None:
    rich_configuration().save(str(tmp_path), "x.runconfig")
    file = tmp_path / ".azureml" / "x.runconfig"
    file.write_text(file.read_text().replace(".azureml/conda_dependencies.yml", "conda_dependencies.yml"))
    assert RunConfiguration.load(str(tmp_path), "x") == rich_configuration()


def test_the_packages_of_a_file_that_is_missing_are_missed(tmp_path: Path) -> None:
    (tmp_path / "x.runconfig").write_text("environment:\n  python:\n    condaDependenciesFile: gone.yml\n")
    with pytest.raises(UserErrorException, match="There is no conda file '.*gone.yml'"):
        RunConfiguration.load(str(tmp_path / "x"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("framework: Caffe\n", "x.runconfig': RunConfiguration.framework cannot be 'Caffe'"),
        ("mpi: 3\n", "MpiConfiguration is written as a map of settings, not as 3"),
        ("data: [a]\n", "Expected a map of names to Data"),
        ("- a\n", "must be a map of settings"),
        ("script: 'open\n", "Line 1: the quote opened here is never closed"),
        ("environment: gone.yml\n", "There is no file"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_reason(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.runconfig").write_text(text)
    with pytest.raises((UserErrorException, RunConfigurationException)) as caught:
        RunConfiguration.load(str(tmp_path / "x.runconfig"))
    assert said in caught.value.message


def test_an_unknown_key_in_a_file_is_left_out_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "x.runconfig").write_text("nodeCont: 3\n")
    with pytest.warns(UserWarning, match="does not know 'nodeCont'.*Did you mean 'nodeCount'"):
        assert RunConfiguration.load(str(tmp_path / "x.runconfig")) == RunConfiguration()


def test_saving_without_a_name_or_a_folder_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    for path, name in (
        (tmp_path, None),
        (tmp_path, "a/b"),
        (tmp_path, "conda_dependencies.yml"),
        (tmp_path / "no" / "file", "x"),
    ):
        with pytest.raises(UserErrorException):
            RunConfiguration().save(str(path), name)
    assert not list(tmp_path.iterdir())


def test_loading_what_is_not_there_names_what_is(tmp_path: Path) -> None:
    RunConfiguration().save(str(tmp_path), "mnist.runconfig")
    with pytest.raises(UserErrorException, match="no run configuration 'minst' in .* Known: mnist.runconfig."):
        RunConfiguration.load(str(tmp_path), "minst")
    with pytest.raises(UserErrorException, match="say which run configuration is meant. Known: mnist.runconfig."):
        RunConfiguration.load(str(tmp_path))
    with pytest.raises(UserErrorException, match="There is no run configuration"):
        RunConfiguration.load(str(tmp_path / "nowhere"))


def test_deleting_removes_the_file_once(tmp_path: Path) -> None:
    RunConfiguration().save(str(tmp_path), "mnist.runconfig")
    RunConfiguration.delete(str(tmp_path), "mnist")
    assert not (tmp_path / ".azureml" / "mnist.runconfig").exists()
    with pytest.raises(UserErrorException, match="There is no run configuration 'mnist'"):
        RunConfiguration.delete(str(tmp_path), "mnist")


# What people see


def test_a_configuration_shows_what_differs_from_the_default() -> None:
    assert repr(RunConfiguration()) == "RunConfiguration()"
    assert repr(MpiConfiguration(node_count=2)) == "MpiConfiguration(node_count=2)"
    run_config = RunConfiguration(script="train.py")
    run_config.environment = Environment("mine")
    assert repr(run_config) == "RunConfiguration(script='train.py', environment=Environment(name='mine'))"
    assert "<td>script</td><td>train.py</td>" in run_config._repr_html_()


def test_a_copy_is_equal_and_apart() -> None:
    run_config = rich_configuration()
    other = copy.deepcopy(run_config)
    assert other == run_config
    other.environment.python.conda_dependencies.add_pip_package("six")
    assert other != run_config
    assert run_config != "something else"

"""Estimators as values: what their parameters come to, and which of them do not fit together."""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Environment
from azureml.core.container_registry import ContainerRegistry
from azureml.core.runconfig import (
    DEFAULT_CPU_IMAGE,
    DEFAULT_GPU_IMAGE,
    MpiConfiguration,
    PyTorchConfiguration,
    RunConfiguration,
    TensorflowConfiguration,
)
from azureml.exceptions import TrainingException, UserErrorException
from azureml.train.dnn import Chainer, Gloo, Mpi, Nccl, ParameterServer, PyTorch, TensorFlow
from azureml.train.estimator import Estimator, MMLBaseEstimator, MMLBaseEstimatorRunConfig
from azureml.train.sklearn import SKLearn
from lapis.sdk.training import estimator as estimator_module

ALL = [Estimator, TensorFlow, PyTorch, Chainer, SKLearn]


class Cluster:
    name = "gpu-cluster"


def spread(estimator: Any) -> tuple[str, str, int]:
    config = estimator.run_config
    return config.framework, config.communicator, config.node_count


# -- what they come to


@pytest.mark.parametrize("make", ALL)
def test_an_estimator_becomes_a_run_configuration_like_any_other(make: Any) -> None:
    made = make("train", compute_target="local", entry_script="train.py", max_run_duration_seconds=60)
    assert isinstance(made, MMLBaseEstimator)
    config = made.run_config
    assert isinstance(config, RunConfiguration)
    assert (config.script, config.target, config.max_run_duration_seconds) == ("train.py", "local", 60)
    assert spread(made) == ("Python", "None", 1)
    assert made.source_directory == "train"
    assert made.conda_dependencies is config.environment.python.conda_dependencies
    assert config.environment.docker.shm_size == "2g"
    assert config.environment.name is None


def test_script_params_are_laid_out_in_order_and_an_empty_value_is_a_flag() -> None:
    made = Estimator(
        ".", compute_target="local", script_params={"--epochs": 3, "--verbose": "", "--rate": 0.1, "--name": " "}
    )
    assert made.run_config.arguments == ["--epochs", 3, "--verbose", "--rate", 0.1, "--name", " "]


def test_what_is_changed_in_the_run_configuration_is_what_is_submitted() -> None:
    made = Estimator(".", compute_target="local", entry_script="train.py")
    made.run_config.arguments = ["--epochs", 5]
    made.run_config.environment.environment_variables["A"] = "1"
    config = made._script_run_config({})
    assert config.run_config.arguments == ["--epochs", 5]
    assert config.run_config.environment.environment_variables["A"] == "1"


def test_parameters_for_one_run_change_nothing_of_the_estimator() -> None:
    made = Estimator(".", compute_target="local", entry_script="train.py", script_params={"--a": 1, "--b": 2})
    config = made._script_run_config({"script_params": {"--b": 3, "--c": ""}, "source_directory_data_store": "files"})
    assert config.run_config.arguments == ["--a", 1, "--b", 3, "--c"]
    assert config.run_config.source_directory_data_store == "files"
    assert made.run_config.arguments == ["--a", 1, "--b", 2]
    assert made.run_config.source_directory_data_store is None


def test_an_estimator_without_a_script_says_what_is_missing() -> None:
    with pytest.raises(TrainingException, match="give it an entry_script"):
        SKLearn(".", compute_target="local")._script_run_config({})


@pytest.mark.parametrize("params", [["--a"], "--a 1", {1: 2}])
def test_script_params_are_a_dict_of_names(params: Any) -> None:
    with pytest.raises(TrainingException, match="script_params"):
        Estimator(".", compute_target="local", script_params=params)


def test_the_base_class_takes_a_target_and_a_configuration() -> None:
    assert MMLBaseEstimator(".", compute_target="local").run_config.target == "local"
    config = MMLBaseEstimatorRunConfig("local", entry_script="a.py", node_count=1, conda_packages=["numpy"])
    made = MMLBaseEstimator(".", compute_target="local", estimator_config=config)
    assert made.run_config is config
    assert "numpy" in made.conda_dependencies.conda_packages
    assert "script='a.py'" in repr(config)


def test_an_estimator_can_be_copied_and_shown() -> None:
    made = TensorFlow("train", compute_target="local", entry_script="train.py", script_params={"--a": 1})
    again = copy.deepcopy(made)
    assert again.run_config == made.run_config
    assert repr(again) == repr(made)
    assert "entry_script='train.py'" in repr(made)


def test_a_parameter_that_does_not_exist_is_refused_and_private_ones_are_not() -> None:
    TensorFlow(".", compute_target="local", _disable_validation=True, _show_lint_warnings=False)
    with pytest.raises(TypeError, match=r"TensorFlow\(\) does not know entry_scrip"):
        TensorFlow(".", compute_target="local", entry_scrip="train.py")


# -- frameworks


def test_the_versions_of_each_framework_are_those_of_sdk_v1() -> None:
    assert TensorFlow.get_supported_versions() == ["1.10", "1.12", "1.13", "2.0", "2.1", "2.2", "2.3"]
    assert PyTorch.get_supported_versions() == ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6"]
    assert SKLearn.get_supported_versions() == ["0.20.3"]
    defaults = [cls(".", compute_target="local").framework_version for cls in (TensorFlow, PyTorch, Chainer, SKLearn)]
    assert defaults == ["1.13", "1.4", "5.1.0", "0.20.3"]


def test_tensorflow_lists_the_packages_that_sdk_v1_lists() -> None:
    dependencies = TensorFlow(".", compute_target="local").conda_dependencies
    assert dependencies.get_python_version() == "3.6.2"
    assert dependencies.pip_packages == [
        "azureml-defaults",
        "azureml-dataset-runtime[fuse,pandas]",
        "tensorflow==1.13.1",
        "horovod==0.16.1",
    ]


def test_a_gpu_means_another_package_and_another_image() -> None:
    without = TensorFlow(".", compute_target="local", framework_version="2.2")
    with_gpu = TensorFlow(".", compute_target="local", framework_version="2.2", use_gpu=True)
    assert "tensorflow==2.2.0" in without.conda_dependencies.pip_packages
    assert "tensorflow-gpu==2.2.0" in with_gpu.conda_dependencies.pip_packages
    images = [made.run_config.environment.docker.base_image for made in (without, with_gpu)]
    assert images == [DEFAULT_CPU_IMAGE, DEFAULT_GPU_IMAGE]
    assert "cupy-cuda90==5.1.0" in Chainer(".", compute_target="local", use_gpu=True).conda_dependencies.pip_packages


@pytest.mark.parametrize("cls", [TensorFlow, PyTorch, Chainer, SKLearn])
def test_an_unknown_version_is_refused_with_those_that_are_known(cls: Any) -> None:
    with pytest.raises(TrainingException) as raised:
        cls(".", compute_target="local", framework_version="9.9")
    assert "'9.9'" in raised.value.message
    assert cls.DEFAULT_VERSION in raised.value.message


def test_a_version_may_be_a_number() -> None:
    assert TensorFlow(".", compute_target="local", framework_version=2.3).framework_version == "2.3"  # type: ignore[arg-type]


def test_packages_of_the_user_are_added_and_win_over_the_frameworks() -> None:
    made = TensorFlow(
        ".", compute_target="local", conda_packages=["scikit-learn"], pip_packages=["keras", "tensorflow==1.14.0"]
    )
    assert made.conda_dependencies.conda_packages == ["python=3.6.2", "scikit-learn"]
    assert "keras" in made.conda_dependencies.pip_packages
    assert [p for p in made.conda_dependencies.pip_packages if p.startswith("tensorflow")] == ["tensorflow==1.14.0"]


@pytest.mark.parametrize("parameter", ["conda_dependencies_file", "conda_dependencies_file_path"])
def test_a_conda_file_of_the_source_folder_takes_the_place_of_the_frameworks_packages(
    tmp_path: Path, parameter: str
) -> None:
    (tmp_path / "env.yml").write_text("dependencies:\n- python=3.8\n- pip:\n  - tensorflow==2.2.0\n")
    made = TensorFlow(str(tmp_path), compute_target="local", pip_packages=["keras"], **{parameter: "env.yml"})  # type: ignore[arg-type]
    assert made.conda_dependencies.get_python_version() == "3.8"
    assert made.conda_dependencies.pip_packages == ["tensorflow==2.2.0", "keras"]


@pytest.mark.parametrize("parameter", ["pip_requirements_file", "pip_requirements_file_path"])
def test_a_requirements_file_adds_to_the_frameworks_packages(tmp_path: Path, parameter: str) -> None:
    (tmp_path / "requirements.txt").write_text("--pre\npandas==1.1.5\n")
    made = SKLearn(str(tmp_path), compute_target="local", **{parameter: "requirements.txt"})  # type: ignore[arg-type]
    assert made.conda_dependencies.pip_options == ["--pre"]
    assert {"scikit-learn==0.20.3", "pandas==1.1.5"} <= set(made.conda_dependencies.pip_packages)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingException, match="no conda file '.*gone.yml'"):
        Estimator(str(tmp_path), compute_target="local", conda_dependencies_file="gone.yml")
    with pytest.raises(TrainingException, match="no requirements file '.*gone.txt'"):
        Estimator(str(tmp_path), compute_target="local", pip_requirements_file="gone.txt")


@pytest.mark.parametrize("parameter", ["conda_packages", "pip_packages"])
def test_packages_are_given_as_a_list(parameter: str) -> None:
    with pytest.raises(TrainingException, match=parameter):
        Estimator(".", compute_target="local", **{parameter: "numpy"})  # type: ignore[arg-type]


# -- environments


def test_image_registry_variables_and_shared_memory_go_into_the_environment() -> None:
    registry = ContainerRegistry()
    registry.address = "registry.example.org"
    made = Estimator(
        ".",
        compute_target="local",
        custom_docker_image="lab/image:1",
        image_registry_details=registry,
        user_managed=True,
        use_gpu=True,
        shm_size="8g",
        environment_variables={"A": "1"},
    )
    environment = made.run_config.environment
    assert environment.docker.enabled
    assert environment.docker.base_image == "lab/image:1"
    assert environment.docker.base_image_registry.address == "registry.example.org"
    assert environment.docker.shm_size == "8g"
    assert environment.python.user_managed_dependencies
    assert environment.environment_variables["A"] == "1"


def test_without_docker_is_without_docker() -> None:
    assert not Estimator(".", compute_target="local", use_docker=False).run_config.environment.docker.enabled


def test_an_environment_wins_over_everything_else_about_the_environment(caplog: pytest.LogCaptureFixture) -> None:
    mine = Environment("mine")
    made = TensorFlow(".", compute_target="local", environment_definition=mine, use_gpu=True, pip_packages=["keras"])
    assert made.run_config.environment is mine
    assert "keras" not in made.conda_dependencies.pip_packages
    assert "left out: pip_packages, use_gpu" in caplog.text


def test_packages_of_a_python_that_the_user_manages_are_left_out_and_said_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Estimator(".", compute_target="local", user_managed=True, conda_packages=["numpy"])
    assert "user_managed=True says what the environment is; left out: conda_packages" in caplog.text


def test_an_environment_must_be_one() -> None:
    with pytest.raises(TrainingException, match="environment_definition must be an Environment, not str"):
        Estimator(".", compute_target="local", environment_definition="mine")


@pytest.mark.parametrize(
    "both",
    [
        {"custom_docker_image": "a", "custom_docker_base_image": "b"},
        {"conda_dependencies_file": "a", "conda_dependencies_file_path": "b"},
        {"pip_requirements_file": "a", "pip_requirements_file_path": "b"},
    ],
)
def test_an_older_and_a_newer_name_of_the_same_parameter_exclude_each_other(both: dict[str, Any]) -> None:
    with pytest.raises(TrainingException, match="not both"):
        TensorFlow(".", compute_target="local", **both)


def test_the_older_name_of_the_image_works() -> None:
    made = TensorFlow(".", compute_target="local", custom_docker_base_image="lab/image:1")
    assert made.run_config.environment.docker.base_image == "lab/image:1"


# -- where


@pytest.mark.parametrize("make", ALL)
def test_an_estimator_needs_a_target_or_the_size_of_one(make: Any) -> None:
    with pytest.raises(TrainingException, match="needs a compute_target"):
        make(".", entry_script="train.py")


def test_a_size_means_a_cluster_that_is_made_for_the_run() -> None:
    config = Estimator(".", vm_size="STANDARD_NC6", vm_priority="lowpriority").run_config
    assert (config.target, config.amlcompute.vm_size, config.amlcompute.vm_priority) == (
        "amlcompute",
        "STANDARD_NC6",
        "lowpriority",
    )


def test_several_nodes_need_a_cluster_and_not_its_name() -> None:
    with pytest.raises(TrainingException, match="node_count=2 needs a cluster"):
        TensorFlow(".", compute_target="gpu-cluster", node_count=2, distributed_backend="mpi")


# -- over several processes


@pytest.mark.parametrize(
    ("cls", "given", "expected"),
    [
        (Estimator, {"distributed_backend": "mpi"}, ("Python", "IntelMpi", 2)),
        (TensorFlow, {"distributed_backend": "mpi"}, ("Python", "IntelMpi", 2)),
        (TensorFlow, {"distributed_backend": "ps", "worker_count": 2}, ("TensorFlow", "ParameterServer", 2)),
        (TensorFlow, {"distributed_training": Mpi()}, ("Python", "IntelMpi", 2)),
        (TensorFlow, {"distributed_training": MpiConfiguration()}, ("Python", "IntelMpi", 2)),
        (TensorFlow, {"distributed_training": ParameterServer(3)}, ("TensorFlow", "ParameterServer", 2)),
        (TensorFlow, {"distributed_training": TensorflowConfiguration(2)}, ("TensorFlow", "ParameterServer", 2)),
        (PyTorch, {"distributed_backend": "NCCL"}, ("PyTorch", "Nccl", 2)),
        (PyTorch, {"distributed_backend": "gloo"}, ("PyTorch", "Gloo", 2)),
        (PyTorch, {"distributed_training": Gloo()}, ("PyTorch", "Gloo", 2)),
        (PyTorch, {"distributed_training": Nccl()}, ("PyTorch", "Nccl", 2)),
        (PyTorch, {"distributed_training": PyTorchConfiguration("Gloo")}, ("PyTorch", "Gloo", 2)),
        (PyTorch, {"distributed_training": Mpi()}, ("Python", "IntelMpi", 2)),
        (Chainer, {"distributed_training": Mpi()}, ("Python", "IntelMpi", 2)),
    ],
)
def test_framework_communicator_and_nodes_are_those_of_sdk_v1(cls: Any, given: Any, expected: Any) -> None:
    assert spread(cls(".", compute_target=Cluster(), node_count=2, **given)) == expected


def test_the_counts_reach_their_sections() -> None:
    def config(**given: Any) -> Any:
        return TensorFlow(".", compute_target=Cluster(), node_count=2, **given).run_config

    assert config(distributed_backend="mpi", process_count_per_node=4).mpi == MpiConfiguration(4, 2)
    assert config(distributed_training=Mpi(4)).mpi == MpiConfiguration(4, 2)
    by_name = config(distributed_backend="ps", worker_count=2, parameter_server_count=3)
    assert by_name.tensorflow == TensorflowConfiguration(2, 3)
    assert config(distributed_training=ParameterServer(2, 3)).tensorflow == TensorflowConfiguration(2, 3)


def test_several_processes_on_one_node_may_run_on_this_machine() -> None:
    made = Estimator(".", compute_target="local", process_count_per_node=2, distributed_backend="mpi")
    assert (made.run_config.communicator, made.run_config.mpi.process_count_per_node) == ("IntelMpi", 2)


def test_the_settings_that_were_given_are_not_changed() -> None:
    given = MpiConfiguration()
    TensorFlow(".", compute_target=Cluster(), node_count=2, distributed_training=given)
    assert given == MpiConfiguration()


@pytest.mark.parametrize(
    ("cls", "given", "message"),
    [
        (TensorFlow, {"node_count": 2}, "node_count=2 needs distributed_training"),
        (Estimator, {"process_count_per_node": 2}, "process_count_per_node=2 needs distributed_training"),
        (TensorFlow, {"distributed_backend": "nccl"}, "cannot be used with distributed_backend='nccl'.*'mpi'.*'ps'"),
        (Estimator, {"distributed_backend": "ps"}, "cannot be used with distributed_backend='ps'"),
        (PyTorch, {"distributed_training": ParameterServer()}, "PyTorch cannot be used with.*'gloo'"),
        (TensorFlow, {"distributed_training": "mpi"}, "distributed_training of TensorFlow cannot be 'mpi'"),
        (TensorFlow, {"distributed_training": Mpi(), "distributed_backend": "mpi"}, "not both"),
        (TensorFlow, {"distributed_backend": "mpi", "worker_count": 2}, "worker_count=2 .* goes with 'ps'"),
        (TensorFlow, {"distributed_backend": "ps", "process_count_per_node": 2}, "goes with 'mpi', not with 'ps'"),
        (TensorFlow, {"distributed_training": Mpi(2), "process_count_per_node": 3}, "Leave the first one out"),
        (TensorFlow, {"distributed_training": MpiConfiguration(node_count=2)}, "node_count=2"),
        (TensorFlow, {"distributed_training": Mpi(-1)}, "process_count_per_node"),
        (TensorFlow, {"node_count": 0}, "node_count must be a whole number, 1 or more"),
        (TensorFlow, {"node_count": "2"}, "node_count must be a whole number, 1 or more"),
    ],
)
def test_what_does_not_fit_together_is_refused(cls: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingException) as raised:
        cls(".", compute_target=Cluster(), **given)
    assert re.search(message, raised.value.message), raised.value.message


def test_a_way_of_spreading_says_which_estimators_it_is_for() -> None:
    Mpi().validate("Chainer")
    ParameterServer().validate("TensorFlow")
    Nccl().validate("PyTorch")
    with pytest.raises(TrainingException, match="TensorFlow cannot be used with distributed_training=Gloo"):
        Gloo().validate("TensorFlow")
    with pytest.raises(TrainingException, match="SKLearn runs as one process"):
        Mpi().validate("SKLearn")


# -- what is said


def test_each_estimator_says_once_that_it_is_of_another_time(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimator_module, "_said", set())
    make: Callable[[], Any] = lambda: TensorFlow(".", compute_target="local")  # noqa: E731
    make()
    make()
    Estimator(".", compute_target="local")
    said = [(record.name, record.levelno, record.getMessage()) for record in caplog.records]
    assert [message for _, _, message in said if "'TensorFlow' estimator is deprecated" in message] == [said[0][2]]
    assert said[0][:2] == ("azureml.train.dnn", logging.WARNING)
    assert "framework_version of TensorFlow is not given: it is 1.13." in said[1][2]
    assert "'Estimator' estimator is deprecated" in said[2][2]
    assert len(said) == 3


def test_going_on_from_an_earlier_run_takes_a_data_path() -> None:
    with pytest.raises(UserErrorException, match="resume_from must be a DataPath, .* not str"):
        PyTorch(".", compute_target="local", resume_from="outputs")


@pytest.mark.parametrize("inputs", ["data", 3, ["data"]])
def test_inputs_are_references_and_named_datasets(inputs: Any) -> None:
    with pytest.raises(TrainingException, match="inputs"):
        Estimator(".", compute_target="local", inputs=inputs)

"""Estimators for TensorFlow, PyTorch, Chainer and scikit-learn: the packages of each version that SDK v1 offered."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from lapis.errors import TrainingException
from lapis.sdk.environments.conda_dependencies import CondaDependencies
from lapis.sdk.training.estimator import MMLBaseEstimator, parameters, say_once
from lapis.sdk.training.estimator_run_config import MMLBaseEstimatorRunConfig

# What SDK v1 listed. How it is installed today is the business of whoever builds the environment.
_PYTHON = "3.6.2"
_OURS = ("azureml-defaults", "azureml-dataset-runtime[fuse,pandas]")
_TENSORFLOW = {
    "1.10": ("tensorflow==1.10.0", "horovod==0.15.2"),
    "1.12": ("tensorflow==1.12.0", "horovod==0.15.2"),
    "1.13": ("tensorflow==1.13.1", "horovod==0.16.1"),
    "2.0": ("tensorflow==2.0.0", "horovod==0.18.1"),
    "2.1": ("tensorflow==2.1.0", "horovod==0.19.1"),
    "2.2": ("tensorflow==2.2.0", "horovod==0.19.5"),
    "2.3": ("tensorflow==2.3.0", "horovod==0.19.5"),
}
_PYTORCH = {
    "1.0": ("torch==1.0.0", "torchvision==0.2.1", "horovod==0.16.1"),
    "1.1": ("torch==1.1.0", "torchvision==0.3.0", "horovod==0.16.1"),
    "1.2": ("torch==1.2.0", "torchvision==0.4.0", "horovod==0.16.1"),
    "1.3": ("torch==1.3.0", "torchvision==0.4.1", "horovod==0.18.1"),
    "1.4": ("torch==1.4.0", "torchvision==0.5.0", "horovod==0.18.1"),
    "1.5": ("torch==1.5.0", "torchvision==0.6.0", "horovod==0.19.1"),
    "1.6": ("torch==1.6.0", "torchvision==0.7.0", "horovod==0.20.0"),
}
_CHAINER = {
    "5.1.0": ("chainer==5.1.0", "mpi4py==3.0.0"),
    "7.0.0": ("chainer==7.0.0", "mpi4py==3.0.0"),
}
_CUPY = {"5.1.0": "cupy-cuda90==5.1.0", "7.0.0": "cupy-cuda101==7.0.0"}
_SKLEARN = {"0.20.3": ("scikit-learn==0.20.3", "scipy==1.2.1", "joblib==0.13.2")}


class FrameworkBaseEstimator(MMLBaseEstimator):
    """An estimator that brings the packages of its framework along."""

    FRAMEWORK_NAME: str
    DEFAULT_VERSION: str
    _versions: Mapping[str, Sequence[str]]
    _logger = "azureml.train.dnn"

    def __init__(
        self,
        source_directory: str,
        *,
        compute_target: Any = None,
        vm_size: str | None = None,
        vm_priority: str | None = None,
        entry_script: str | None = None,
        script_params: dict[str, Any] | None = None,
        node_count: int = 1,
        process_count_per_node: int = 1,
        distributed_backend: str | None = None,
        distributed_training: Any = None,
        use_gpu: bool = False,
        use_docker: bool = True,
        custom_docker_base_image: str | None = None,
        custom_docker_image: str | None = None,
        image_registry_details: Any = None,
        user_managed: bool = False,
        conda_packages: list[str] | None = None,
        pip_packages: list[str] | None = None,
        conda_dependencies_file_path: str | None = None,
        pip_requirements_file_path: str | None = None,
        conda_dependencies_file: str | None = None,
        pip_requirements_file: str | None = None,
        environment_variables: dict[str, Any] | None = None,
        environment_definition: Any = None,
        inputs: list[Any] | None = None,
        source_directory_data_store: Any = None,
        shm_size: str | None = None,
        resume_from: Any = None,
        max_run_duration_seconds: int | None = None,
        framework_version: str | None = None,
        **private: Any,
    ) -> None:
        self._set_up(**parameters(locals()))

    @classmethod
    def get_supported_versions(cls) -> list[str]:
        """The versions that `framework_version` may be."""
        return list(cls._versions)

    @property
    def framework_version(self) -> str:
        """The version of the framework whose packages the estimator lists."""
        return self._framework_version

    def _set_up(self, source_directory: str, framework_version: Any, compute_target: Any, **settings: Any) -> None:
        name = self.FRAMEWORK_NAME
        self._framework_version = self._checked_version(framework_version)
        config = MMLBaseEstimatorRunConfig(
            compute_target,
            source_directory=source_directory,
            _estimator=name,
            _dependencies=self._dependencies(bool(settings.get("use_gpu"))),
            **settings,
        )
        super().__init__(source_directory, compute_target=compute_target, estimator_config=config)
        say_once(
            f"'{name}' estimator is deprecated, as in SDK v1: ScriptRunConfig with an environment does the same.",
            self._logger,
        )
        if framework_version is None:
            say_once(f"framework_version of {name} is not given: it is {self.DEFAULT_VERSION}.", self._logger)

    def _checked_version(self, version: Any) -> str:
        if version is None:
            return self.DEFAULT_VERSION
        if str(version) not in self._versions:
            raise TrainingException(
                f"framework_version of {self.FRAMEWORK_NAME} cannot be {version!r}. "
                f"Supported: {', '.join(self._versions)}."
            )
        return str(version)

    def _dependencies(self, gpu: bool) -> CondaDependencies:
        dependencies = CondaDependencies()
        dependencies.set_python_version(_PYTHON)
        dependencies.set_pip_requirements([*_OURS, *self._packages(gpu)])
        return dependencies

    def _packages(self, gpu: bool) -> list[str]:
        return list(self._versions[self._framework_version])


class TensorFlow(FrameworkBaseEstimator):
    """An estimator for TensorFlow. Keras comes with `pip_packages=['keras']`."""

    FRAMEWORK_NAME = "TensorFlow"
    DEFAULT_VERSION = "1.13"
    _versions = _TENSORFLOW

    def __init__(
        self,
        source_directory: str,
        *,
        compute_target: Any = None,
        vm_size: str | None = None,
        vm_priority: str | None = None,
        entry_script: str | None = None,
        script_params: dict[str, Any] | None = None,
        node_count: int = 1,
        process_count_per_node: int = 1,
        worker_count: int = 1,
        parameter_server_count: int = 1,
        distributed_backend: str | None = None,
        distributed_training: Any = None,
        use_gpu: bool = False,
        use_docker: bool = True,
        custom_docker_base_image: str | None = None,
        custom_docker_image: str | None = None,
        image_registry_details: Any = None,
        user_managed: bool = False,
        conda_packages: list[str] | None = None,
        pip_packages: list[str] | None = None,
        conda_dependencies_file_path: str | None = None,
        pip_requirements_file_path: str | None = None,
        conda_dependencies_file: str | None = None,
        pip_requirements_file: str | None = None,
        environment_variables: dict[str, Any] | None = None,
        environment_definition: Any = None,
        inputs: list[Any] | None = None,
        source_directory_data_store: Any = None,
        shm_size: str | None = None,
        resume_from: Any = None,
        max_run_duration_seconds: int | None = None,
        framework_version: str | None = None,
        **private: Any,
    ) -> None:
        self._set_up(**parameters(locals()))

    def _packages(self, gpu: bool) -> list[str]:
        packages = super()._packages(gpu)
        return [package.replace("tensorflow==", "tensorflow-gpu==") for package in packages] if gpu else packages


class PyTorch(FrameworkBaseEstimator):
    """An estimator for PyTorch."""

    FRAMEWORK_NAME = "PyTorch"
    DEFAULT_VERSION = "1.4"
    _versions = _PYTORCH


class Chainer(FrameworkBaseEstimator):
    """An estimator for Chainer."""

    FRAMEWORK_NAME = "Chainer"
    DEFAULT_VERSION = "5.1.0"
    _versions = _CHAINER

    def _packages(self, gpu: bool) -> list[str]:
        return super()._packages(gpu) + ([_CUPY[self._framework_version]] if gpu else [])


class SKLearn(FrameworkBaseEstimator):
    """An estimator for scikit-learn: one process on one node."""

    FRAMEWORK_NAME = "SKLearn"
    DEFAULT_VERSION = "0.20.3"
    _versions = _SKLEARN
    _logger = "azureml.train.sklearn"

    def __init__(
        self,
        source_directory: str,
        *,
        compute_target: Any = None,
        vm_size: str | None = None,
        vm_priority: str | None = None,
        entry_script: str | None = None,
        script_params: dict[str, Any] | None = None,
        use_docker: bool = True,
        custom_docker_image: str | None = None,
        image_registry_details: Any = None,
        user_managed: bool = False,
        conda_packages: list[str] | None = None,
        pip_packages: list[str] | None = None,
        conda_dependencies_file_path: str | None = None,
        pip_requirements_file_path: str | None = None,
        conda_dependencies_file: str | None = None,
        pip_requirements_file: str | None = None,
        environment_variables: dict[str, Any] | None = None,
        environment_definition: Any = None,
        inputs: list[Any] | None = None,
        shm_size: str | None = None,
        resume_from: Any = None,
        max_run_duration_seconds: int | None = None,
        framework_version: str | None = None,
        **private: Any,
    ) -> None:
        self._set_up(**parameters(locals()))

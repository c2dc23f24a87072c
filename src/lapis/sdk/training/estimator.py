"""Estimators: a script, its parameters, its packages and its target in one object, as SDK v1 had them before 1.19."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from lapis.errors import TrainingException
from lapis.sdk.config.script_run_config import ScriptRunConfig
from lapis.sdk.environments.conda_dependencies import CondaDependencies
from lapis.sdk.training.estimator_run_config import MMLBaseEstimatorRunConfig

if TYPE_CHECKING:
    from lapis.sdk.compute.compute_target import ComputeTarget

_said: set[str] = set()


class MMLBaseEstimator:
    """What all estimators have in common. `Experiment.submit()` takes them like a ScriptRunConfig."""

    # What submit() may be given to change for one run.
    _overridable = ("script_params", "inputs", "source_directory_data_store")

    def __init__(
        self,
        source_directory: str,
        *,
        compute_target: ComputeTarget | str | None,
        estimator_config: MMLBaseEstimatorRunConfig | None = None,
    ) -> None:
        if estimator_config is None:
            estimator_config = MMLBaseEstimatorRunConfig(compute_target)
        if not hasattr(estimator_config, "environment"):
            raise TrainingException(
                f"estimator_config must be a MMLBaseEstimatorRunConfig, not {type(estimator_config).__name__}."
            )
        self._source_directory = source_directory
        self._estimator_config = estimator_config

    @property
    def source_directory(self) -> str:
        """The folder that is sent with the run."""
        return self._source_directory

    @property
    def run_config(self) -> MMLBaseEstimatorRunConfig:
        """The run configuration that the parameters come to. What is changed in it counts at submit."""
        return self._estimator_config

    @property
    def conda_dependencies(self) -> CondaDependencies:
        """The packages of the run's environment."""
        dependencies: CondaDependencies = self.run_config.environment.python.conda_dependencies
        return dependencies

    def _script_run_config(self, override_params: dict[str, Any]) -> ScriptRunConfig:
        """The same as a ScriptRunConfig, with `override_params` for one run. The estimator stays as it is."""
        run_config = self.run_config
        if override_params:
            run_config = copy.deepcopy(run_config)
            run_config._override_arguments(override_params.get("script_params"))
            run_config._add_inputs(override_params.get("inputs"))
            store = override_params.get("source_directory_data_store")
            if store is not None:
                run_config.source_directory_data_store = getattr(store, "name", store)
        if not run_config.script and not run_config.command:
            raise TrainingException(f"{type(self).__name__} has nothing to run: give it an entry_script.")
        return ScriptRunConfig(self.source_directory, run_config=run_config, max_run_duration_seconds=None)

    def __repr__(self) -> str:
        config = self.run_config
        return (
            f"{type(self).__name__}(source_directory={self.source_directory!r}, entry_script={config.script!r}, "
            f"compute_target={config.target!r}, arguments={config.arguments!r})"
        )


class Estimator(MMLBaseEstimator):
    """An estimator for any script."""

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
        **private: Any,
    ) -> None:
        config = MMLBaseEstimatorRunConfig(**parameters(locals()))
        super().__init__(source_directory, compute_target=compute_target, estimator_config=config)
        say_once(f"'{type(self).__name__}' estimator is deprecated, as in SDK v1: ScriptRunConfig does the same.")


def parameters(given: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a constructor by their names, from its locals().

    SDK v1 took a few private ones, such as _disable_validation, which mean nothing here.
    """
    unknown = [name for name in given["private"] if not name.startswith("_")]
    if unknown:
        estimator = type(given["self"]).__name__
        raise TypeError(f"{estimator}() does not know {', '.join(unknown)}. See help({estimator}).")
    return {name: value for name, value in given.items() if name not in ("self", "private", "__class__")}


def say_once(message: str, logger: str = "azureml.train.estimator") -> None:
    """As a warning in the log, which a notebook shows; once in a process."""
    if message in _said:
        return
    import logging

    _said.add(message)
    logging.getLogger(logger).warning(message)

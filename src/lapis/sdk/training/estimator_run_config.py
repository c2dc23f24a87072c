"""The run configuration of an estimator: made from the parameters that estimators take."""

from __future__ import annotations

import os
from typing import Any, Iterable

from lapis.errors import AzureMLException, TrainingException
from lapis.sdk.config.resume import resume_arguments
from lapis.sdk.config.runconfig import EnvironmentDefinition, RunConfiguration, apply_distributed
from lapis.sdk.data.consumption import DatasetConsumptionConfig
from lapis.sdk.data.data_reference import DataReference
from lapis.sdk.environments.conda_dependencies import CondaDependencies
from lapis.sdk.environments.container_registry import ContainerRegistry
from lapis.sdk.environments.environment import DEFAULT_GPU_IMAGE, Environment
from lapis.sdk.environments.pip_requirements import read_pip_requirements
from lapis.sdk.training.estimator_distribution import distribution

AUTO_CLUSTER = "amlcompute"  # the target of SDK v1 for a cluster that is made for one run


class MMLBaseEstimatorRunConfig(RunConfiguration):
    """A RunConfiguration like any other once it is made: scripts read it and change it."""

    def __init__(
        self,
        compute_target: Any,
        vm_size: str | None = None,
        vm_priority: str | None = None,
        entry_script: str | None = None,
        script_params: dict[str, Any] | None = None,
        node_count: int | None = None,
        process_count_per_node: int | None = None,
        distributed_backend: str | None = None,
        use_gpu: bool | None = None,
        use_docker: bool | None = None,
        custom_docker_base_image: str | None = None,
        custom_docker_image: str | None = None,
        image_registry_details: ContainerRegistry | None = None,
        user_managed: bool = False,
        conda_packages: list[str] | None = None,
        pip_packages: list[str] | None = None,
        environment_definition: Environment | None = None,
        inputs: list[Any] | None = None,
        source_directory_data_store: Any = None,
        shm_size: str | None = None,
        *,
        source_directory: str = ".",
        distributed_training: Any = None,
        worker_count: int | None = None,
        parameter_server_count: int | None = None,
        conda_dependencies_file_path: str | None = None,
        pip_requirements_file_path: str | None = None,
        conda_dependencies_file: str | None = None,
        pip_requirements_file: str | None = None,
        environment_variables: dict[str, Any] | None = None,
        resume_from: Any = None,
        max_run_duration_seconds: int | None = None,
        _estimator: str = "Estimator",
        _dependencies: CondaDependencies | None = None,
    ) -> None:
        super().__init__(script=entry_script)
        image = _one_of(
            "custom_docker_image", custom_docker_image, custom_docker_base_image, "custom_docker_base_image"
        )
        conda_file = _one_of(
            "conda_dependencies_file", conda_dependencies_file, conda_dependencies_file_path,
            "conda_dependencies_file_path",
        )  # fmt: skip
        pip_file = _one_of(
            "pip_requirements_file", pip_requirements_file, pip_requirements_file_path, "pip_requirements_file_path"
        )
        counts = {
            "node_count": node_count,
            "process_count_per_node": process_count_per_node,
            "worker_count": worker_count,
            "parameter_server_count": parameter_server_count,
        }
        spread = distribution(_estimator, counts, distributed_backend, distributed_training)
        apply_distributed(self, spread)
        self.node_count = node_count or 1
        self._set_target(_estimator, compute_target, vm_size, vm_priority)
        self._resume = resume_arguments(resume_from)
        self._script_params = checked_script_params(script_params)
        self.arguments = laid_out(self._script_params) + self._resume
        self._add_inputs(inputs)
        self.source_directory_data_store = getattr(source_directory_data_store, "name", source_directory_data_store)
        self.max_run_duration_seconds = max_run_duration_seconds
        if environment_definition is not None:
            self.environment = _checked_environment(environment_definition)
        else:
            dependencies = _dependencies or CondaDependencies()
            if conda_file is not None:  # then the framework's own packages are left to it, as in SDK v1
                dependencies = _read_conda_file(conda_file, source_directory)
            _add_packages(dependencies, source_directory, conda_packages, pip_file, pip_packages)
            self.environment = _new_environment(
                dependencies, user_managed, use_docker, image, use_gpu, image_registry_details, shm_size,
                environment_variables,
            )  # fmt: skip
        without_effect = {
            "conda_packages": conda_packages,
            "pip_packages": pip_packages,
            "conda_dependencies_file": conda_file,
            "pip_requirements_file": pip_file,
        }
        if environment_definition is not None:
            without_effect.update(
                use_gpu=use_gpu,
                custom_docker_image=image,
                image_registry_details=image_registry_details,
                user_managed=user_managed,
                environment_variables=environment_variables,
                shm_size=shm_size,
            )
        if environment_definition is not None or user_managed:
            winner = "environment_definition" if environment_definition is not None else "user_managed=True"
            _say_what_is_left_out(_estimator, winner, [name for name, value in without_effect.items() if value])

    @classmethod
    def _blank(cls) -> Any:
        return RunConfiguration()  # what is changed of it is what its repr shows

    @property
    def shm_size(self) -> str | None:
        """Where older scripts look for it."""
        return self.environment.docker.shm_size

    def _add_inputs(self, inputs: Any) -> None:
        """Data that the run needs and that no argument names."""
        if inputs is not None and (isinstance(inputs, str) or not isinstance(inputs, Iterable)):
            raise TrainingException(f"inputs must be a list of data references and named datasets, not {inputs!r}.")
        for given in inputs or []:
            if isinstance(given, DataReference):
                self.data_references[given.data_reference_name] = given.to_config()
            elif isinstance(given, DatasetConsumptionConfig):
                self.data[given.name] = given
            else:
                raise TrainingException(
                    "inputs takes data references, such as datastore.as_mount(), and datasets with a name, such as "
                    f"dataset.as_named_input('mnist'), not {type(given).__name__} ({given!r})."
                )

    def _override_arguments(self, script_params: Any) -> None:
        """Put other values in place of those of the same name, and what is new behind them."""
        self._script_params = {**self._script_params, **checked_script_params(script_params)}
        self.arguments = laid_out(self._script_params) + self._resume

    def _set_target(self, estimator: str, compute_target: Any, vm_size: Any, vm_priority: Any) -> None:
        if compute_target is None and vm_size is None:
            raise TrainingException(
                f"{estimator} needs a compute_target to run on, such as 'local', or a vm_size to make one of."
            )
        if self.node_count > 1 and isinstance(compute_target, str):
            raise TrainingException(
                f"{estimator} with node_count={self.node_count} needs a cluster as its compute_target, the object and "
                f"not its name: ComputeTarget(workspace, {compute_target!r})."
            )
        self.target = AUTO_CLUSTER if compute_target is None else compute_target
        self.amlcompute.vm_size = vm_size
        self.amlcompute.vm_priority = vm_priority


def checked_script_params(script_params: Any) -> dict[str, Any]:
    if script_params is not None and not isinstance(script_params, dict):
        raise TrainingException(
            f"script_params must be a dict such as {{'--epochs': 3}}, not {type(script_params).__name__}."
        )
    wrong = [name for name in script_params or {} if not isinstance(name, str)]
    if wrong:
        raise TrainingException(f"The names in script_params must be text, such as '--epochs', not {wrong[0]!r}.")
    return dict(script_params or {})


def laid_out(script_params: dict[str, Any]) -> list[Any]:
    """Names and values in their order. A value of '' leaves the name alone: a flag."""
    arguments: list[Any] = []
    for name, value in script_params.items():
        is_flag = isinstance(value, str) and value == ""
        arguments += [name] if is_flag else [name, value]
    return arguments


def _one_of(name: str, value: Any, older_value: Any, older_name: str) -> Any:
    if value is not None and older_value is not None:
        raise TrainingException(f"{older_name} is the older name of {name}. Give one of them, not both.")
    return older_value if value is None else value


def _checked_environment(environment: Any) -> Any:
    if not hasattr(environment, "python"):
        raise TrainingException(f"environment_definition must be an Environment, not {type(environment).__name__}.")
    return environment


def _read_conda_file(path: str, source_directory: str) -> CondaDependencies:
    try:
        return CondaDependencies(_found(path, source_directory))
    except AzureMLException as error:
        raise TrainingException(error.message, inner_exception=error)


def _add_packages(
    dependencies: CondaDependencies,
    source_directory: str,
    conda_packages: list[str] | None,
    pip_file: str | None,
    pip_packages: list[str] | None,
) -> None:
    """What is named last wins: a package of the lists takes the place of the framework's."""
    try:
        for package in _listed("conda_packages", conda_packages):
            dependencies.add_conda_package(package)
        requirements = read_pip_requirements(_found(pip_file, source_directory)) if pip_file is not None else []
        for line in requirements + _listed("pip_packages", pip_packages):
            if isinstance(line, str) and line.startswith("-"):
                dependencies.set_pip_option(line)
            else:
                dependencies.add_pip_package(line)
    except AzureMLException as error:
        raise TrainingException(error.message, inner_exception=error)


def _found(path: str, source_directory: str) -> str:
    """SDK v1 means paths from the source directory; one from the working folder is found as well."""
    inside = os.path.join(source_directory or ".", path)
    return inside if os.path.isfile(inside) or not os.path.isfile(path) else path


def _listed(name: str, packages: Any) -> list[str]:
    if isinstance(packages, str):
        raise TrainingException(f"{name} must be a list, not one text: ['{packages}'].")
    return list(packages or [])


def _new_environment(
    dependencies: CondaDependencies,
    user_managed: bool,
    use_docker: bool | None,
    image: str | None,
    use_gpu: bool | None,
    registry: ContainerRegistry | None,
    shm_size: str | None,
    variables: dict[str, Any] | None,
) -> Environment:
    environment = EnvironmentDefinition()
    environment.python.conda_dependencies = dependencies
    environment.python.user_managed_dependencies = bool(user_managed)
    environment.docker.enabled = use_docker is not False
    if image or use_gpu:
        environment.docker.base_image = image or DEFAULT_GPU_IMAGE
    if registry is not None:
        environment.docker.base_image_registry = registry
    if shm_size is not None:
        environment.docker.shm_size = shm_size
    environment.environment_variables.update(variables or {})
    return environment


def _say_what_is_left_out(estimator: str, winner: str, names: list[str]) -> None:
    if not names:
        return
    import logging

    logging.getLogger("azureml.train.estimator").warning(
        "%s: %s says what the environment is; left out: %s.", estimator, winner, ", ".join(names)
    )

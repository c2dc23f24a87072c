"""Environments: the packages, the container and the variables that code runs with."""

from __future__ import annotations

import copy
import json
import os
import re
from typing import TYPE_CHECKING, Any, Iterable

from lapis.errors import NotFound, UserErrorException
from lapis.sdk.config.run_config_element import Field, RunConfigElement, section
from lapis.sdk.environments.conda_dependencies import CONDA_FILE_NAME, CondaDependencies
from lapis.sdk.environments.container_registry import ContainerRegistry
from lapis.sdk.environments.environment_sections import DEFAULT_CPU_IMAGE as DEFAULT_CPU_IMAGE
from lapis.sdk.environments.environment_sections import DEFAULT_GPU_IMAGE as DEFAULT_GPU_IMAGE
from lapis.sdk.environments.environment_sections import DatabricksSection as DatabricksSection
from lapis.sdk.environments.environment_sections import DockerBuildContext as DockerBuildContext
from lapis.sdk.environments.environment_sections import DockerEnvironment as DockerEnvironment
from lapis.sdk.environments.environment_sections import DockerImagePlatform as DockerImagePlatform
from lapis.sdk.environments.environment_sections import DockerSection as DockerSection
from lapis.sdk.environments.environment_sections import PythonEnvironment as PythonEnvironment
from lapis.sdk.environments.environment_sections import PythonSection as PythonSection
from lapis.sdk.environments.environment_sections import RCranPackage as RCranPackage
from lapis.sdk.environments.environment_sections import RGitHubPackage as RGitHubPackage
from lapis.sdk.environments.environment_sections import RSection as RSection
from lapis.sdk.environments.environment_sections import SparkEnvironment as SparkEnvironment
from lapis.sdk.environments.environment_sections import SparkPackage as SparkPackage
from lapis.sdk.environments.environment_sections import SparkSection as SparkSection
from lapis.sdk.environments.pip_requirements import read_pip_requirements

if TYPE_CHECKING:
    from lapis.sdk.environments.environment_builds import DockerImageDetails, ImageBuildDetails
    from lapis.sdk.workspace.workspace import Workspace

ENVIRONMENT_FILE_NAME = "azureml_environment.json"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}$")


def check_name(what: str, name: Any) -> Any:
    if name is not None and not (isinstance(name, str) and _NAME.match(name)):
        raise UserErrorException(
            f"{what} cannot be {name!r}: a name has 1 to 255 letters, digits, dots, dashes and underscores."
        )
    return name


def _check_version(what: str, version: Any) -> str | None:
    return None if version is None else str(version)


def _check_variables(what: str, variables: Any) -> dict[str, Any]:
    if variables is None:
        return {}
    if not isinstance(variables, dict):
        raise UserErrorException(f"{what} must be a dict of names to values, not {variables!r}.")
    return variables


def _write_variables(variables: dict[str, Any]) -> dict[str, str]:
    return {str(name): "" if value is None else str(value) for name, value in variables.items()}


class Environment(RunConfigElement):
    """A named set of packages, a container and environment variables. Versioned once it is registered."""

    _fields = {
        "name": Field("name", check=check_name),
        "version": Field("version", check=_check_version),
        "environment_variables": Field("environmentVariables", write=_write_variables, check=_check_variables),
        "python": Field("python", read=section(PythonSection)),
        "docker": Field("docker", read=section(DockerSection)),
        "spark": Field("spark", read=section(SparkSection)),
        "databricks": Field("databricks", read=section(DatabricksSection)),
        "r": Field("r", read=section(RSection)),
        "inferencing_stack_version": Field("inferencingStackVersion"),
        "asset_id": Field("assetId"),
    }

    def __init__(self, name: str, **kwargs: Any) -> None:
        if name is None:
            raise UserErrorException("An environment needs a name.")
        self._set_defaults(name)
        for setting, value in kwargs.items():
            if not setting.startswith("_"):
                setattr(self, setting, value)

    def _set_defaults(self, name: str | None) -> None:
        self.name: str | None = name
        self.version: str | None = None
        self.environment_variables: dict[str, Any] = {"EXAMPLE_ENV_VAR": "EXAMPLE_VALUE"}
        self.python = PythonSection()
        self.docker = DockerSection()
        self.spark = SparkSection()
        self.databricks = DatabricksSection()
        self.r: RSection | None = None
        self.inferencing_stack_version: str | None = None
        self.asset_id: str | None = None

    @classmethod
    def _blank(cls) -> Any:
        blank = cls.__new__(cls)
        blank._set_defaults(None)
        return blank

    # New environments

    @staticmethod
    def from_conda_specification(name: str, file_path: str) -> Environment:
        """Return an environment with the packages of a conda file."""
        environment = Environment(name)
        environment.python.conda_dependencies = CondaDependencies(conda_dependencies_file_path=file_path)
        return environment

    @staticmethod
    def from_pip_requirements(name: str, file_path: str, pip_version: str | None = None) -> Environment:
        """Return an environment with the packages of a requirements file, and this version of pip."""
        environment = Environment(name)
        environment.python.conda_dependencies.add_conda_package(f"pip={pip_version}" if pip_version else "pip")
        environment.python.conda_dependencies.set_pip_requirements(read_pip_requirements(file_path))
        return environment

    @staticmethod
    def from_docker_image(
        name: str,
        image: str,
        container_registry: ContainerRegistry | None = None,
        conda_specification: str | None = None,
        pip_requirements: str | None = None,
    ) -> Environment:
        """Return an environment in a container, with the packages of one of the files, or the image's own."""
        environment = _with_packages(name, conda_specification, pip_requirements)
        environment.docker.base_image = image
        if container_registry is not None:
            environment.docker.base_image_registry = container_registry
        return environment

    @staticmethod
    def from_dockerfile(
        name: str,
        dockerfile: str,
        conda_specification: str | None = None,
        pip_requirements: str | None = None,
    ) -> Environment:
        """Return an environment in a container built from a Dockerfile, given as text or as a file name."""
        environment = _with_packages(name, conda_specification, pip_requirements)
        environment.docker.base_dockerfile = dockerfile
        return environment

    @staticmethod
    def from_docker_build_context(name: str, docker_build_context: DockerBuildContext) -> Environment:
        """Return an environment in a container built from a folder, with the packages of that image."""
        environment = _with_packages(name, None, None)
        environment.docker.build_context = docker_build_context
        return environment

    @staticmethod
    def from_existing_conda_environment(name: str, conda_environment_name: str) -> Environment:
        """Return an environment with the packages of a conda environment of this machine."""
        from lapis.sdk.environments.existing_conda import exported

        environment = Environment(name)
        environment.python.conda_dependencies = exported(conda_environment_name)
        return environment

    def clone(self, new_name: str) -> Environment:
        """Return a copy with another name and no version."""
        clone = copy.deepcopy(self)
        clone.name = new_name
        clone.version = None
        clone.asset_id = None
        return clone

    # Folders

    def save_to_directory(self, path: str, overwrite: bool = False) -> None:
        """Write the definition and the conda file in a new folder `path`, or in any with `overwrite`."""
        if os.path.exists(path) and not overwrite:
            raise FileExistsError(f"'{path}' is there already. Pass overwrite=True to write into it.")
        definition = self._to_dict()
        definition["python"].pop("condaDependencies")
        definition["python"]["condaDependenciesFile"] = CONDA_FILE_NAME
        os.makedirs(path, exist_ok=True)
        self.python.conda_dependencies.save_to_file(path)
        with open(os.path.join(path, ENVIRONMENT_FILE_NAME), "w", encoding="utf-8") as file:
            json.dump(definition, file, indent=4)
            file.write("\n")

    @staticmethod
    def load_from_directory(path: str) -> Environment:
        """Return the environment that `save_to_directory` wrote."""
        definition_file = os.path.join(path, ENVIRONMENT_FILE_NAME)
        if not os.path.isfile(definition_file):
            raise NotFound(f"There is no environment in '{path}': it has no {ENVIRONMENT_FILE_NAME}.")
        with open(definition_file, encoding="utf-8") as file:
            try:
                definition = json.load(file)
            except ValueError as error:
                raise UserErrorException(f"'{definition_file}' is not JSON: {error}.", inner_exception=error)
        environment: Environment = Environment._from_dict(definition)
        if environment.name is None:
            raise UserErrorException(f"The environment in '{definition_file}' has no name.")
        conda_file = environment.python._conda_dependencies_file
        if conda_file:
            environment.python.conda_dependencies = CondaDependencies(os.path.join(path, conda_file))
            environment.python._conda_dependencies_file = None
        return environment

    # With a workspace

    @staticmethod
    def get(workspace: Workspace, name: str, version: str | None = None, label: str | None = None) -> Environment:
        """Return a registered or curated environment: this version, the one with this label, or the newest."""
        from lapis.sdk.environments import environment_registry

        return environment_registry.get(workspace, name, version, label)

    @staticmethod
    def list(workspace: Workspace) -> dict[str, Environment]:
        """Return the newest version of each environment by its name, the curated ones too."""
        from lapis.sdk.environments import environment_registry

        return environment_registry.all_of(workspace)

    @staticmethod
    def label(workspace: Workspace, name: str, version: str, labels: str | Iterable[str]) -> None:
        """Put labels on a version. A label is on one version of a name at most: it moves."""
        from lapis.sdk.environments import environment_registry

        environment_registry.label(workspace, name, version, labels)

    def register(self, workspace: Workspace) -> Environment:
        """Keep it in the workspace and return it with its version: the next, or the same for the same definition."""
        from lapis.sdk.environments import environment_registry

        return environment_registry.register(workspace, self)

    def build(self, workspace: Workspace, image_build_compute: str | None = None) -> ImageBuildDetails:
        """Have it built now, before a run needs it. It is built where runs execute, whatever the compute."""
        from lapis.sdk.environments import environment_builds

        return environment_builds.build(workspace, self)

    def build_local(self, workspace: Workspace, platform: DockerImagePlatform | None = None, **kwargs: Any) -> str:
        """Build it, show the log as it grows, and return the log."""
        return self.build(workspace).wait_for_completion(show_output=True).get_log()

    def get_image_details(self, workspace: Workspace) -> DockerImageDetails:
        """Return where it is or would be built, and what from."""
        from lapis.sdk.environments import environment_builds

        return environment_builds.image_details(workspace, self)

    @staticmethod
    def add_private_pip_wheel(workspace: Workspace, file_path: str, exist_ok: bool = False) -> str:
        """Keep a wheel in the workspace and return its address, for `add_pip_package`."""
        from lapis.sdk.environments.environment_files import add_wheel

        return add_wheel(workspace, file_path, exist_ok)

    def __str__(self) -> str:
        """The definition as JSON, as SDK v1 prints it, but for the passwords."""
        return json.dumps(self._to_dict_without_secrets(), indent=4)


class EnvironmentReference(RunConfigElement):
    """The name and version of a registered environment."""

    _fields = {"name": Field("name", check=check_name), "version": Field("version", check=_check_version)}

    def __init__(self, name: str, version: str | None = None) -> None:
        self.name = name
        self.version = version

    @classmethod
    def _blank(cls) -> Any:
        return cls(None)  # type: ignore[arg-type]  # the name is read next

    def get_environment(self, workspace: Workspace) -> Environment:
        return Environment.get(workspace, self.name, self.version)


def _with_packages(name: str, conda_specification: str | None, pip_requirements: str | None) -> Environment:
    """An environment with the packages of one of the files, or of its image where there is none."""
    if conda_specification is not None and pip_requirements is not None:
        raise UserErrorException("Give conda_specification or pip_requirements, not both.")
    if conda_specification is not None:
        return Environment.from_conda_specification(name, conda_specification)
    if pip_requirements is not None:
        return Environment.from_pip_requirements(name, pip_requirements)
    environment = Environment(name)
    environment.python.user_managed_dependencies = True
    return environment

"""The sections of an environment: python, docker, spark, databricks and r."""

from __future__ import annotations

import os
from typing import Any

from lapis.errors import UserErrorException
from lapis.sdk.config.run_config_element import Field, RunConfigElement, list_of_sections, section
from lapis.sdk.environments.conda_dependencies import CondaDependencies
from lapis.sdk.environments.container_registry import ContainerRegistry

DEFAULT_CPU_IMAGE = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"
DEFAULT_GPU_IMAGE = "mcr.microsoft.com/azureml/openmpi4.1.0-cuda11.8-cudnn8-ubuntu22.04"
DEFAULT_SHM_SIZE = "2g"


def _check_conda_dependencies(name: str, value: Any) -> Any:
    if value is None:
        return CondaDependencies()
    if not hasattr(value, "serialize_to_string"):
        raise UserErrorException(f"{name} must be a CondaDependencies, not {value!r}.")
    return value


class PythonSection(RunConfigElement):
    """The Python of an environment: built from conda dependencies, or managed by the user."""

    _fields = {
        "user_managed_dependencies": Field("userManagedDependencies"),
        "interpreter_path": Field("interpreterPath"),
        # What the file says travels with the definition; its name means nothing elsewhere.
        "_conda_dependencies_file": Field("condaDependenciesFile", write=lambda path: None),
        "_base_conda_environment": Field("baseCondaEnvironment"),
        "conda_dependencies": Field(
            "condaDependencies",
            read=lambda data: CondaDependencies(_underlying_structure=data),
            write=CondaDependencies.as_dict,
            check=_check_conda_dependencies,
        ),
    }

    def __init__(self, **kwargs: Any) -> None:
        self.user_managed_dependencies = False
        self.interpreter_path: str | None = "python"
        self.conda_dependencies = CondaDependencies()
        self._conda_dependencies_file: str | None = None
        self._base_conda_environment: str | None = None
        _assign(self, kwargs)

    @property
    def conda_dependencies_file(self) -> str | None:
        """The conda file that was read last. Assigning one reads it into `conda_dependencies`."""
        return self._conda_dependencies_file

    @conda_dependencies_file.setter
    def conda_dependencies_file(self, path: str | None) -> None:
        if path is not None:
            self.conda_dependencies = CondaDependencies(conda_dependencies_file_path=path)
        self._conda_dependencies_file = path


class PythonEnvironment(PythonSection):
    """The older name of PythonSection."""

    def __init__(self) -> None:
        super().__init__()


class DockerImagePlatform(RunConfigElement):
    """The operating system and processor of an image."""

    _fields = {"os": Field("os"), "architecture": Field("architecture")}

    def __init__(self) -> None:
        self.os = "Linux"
        self.architecture = "amd64"


class DockerBuildContext(RunConfigElement):
    """A folder with a Dockerfile and what it copies, kept in git or in storage."""

    class LocationType:
        """Where a build context can be."""

        Git = "git"
        StorageAccount = "storageAccount"

    _fields = {
        "location_type": Field("locationType"),
        "location": Field("location"),
        "dockerfile_path": Field("dockerfilePath"),
    }

    def __init__(
        self,
        location_type: str | None = None,
        location: str | None = None,
        dockerfile_path: str = "Dockerfile",
    ) -> None:
        self.location_type = location_type
        self.location = location
        self.dockerfile_path = dockerfile_path

    @staticmethod
    def from_local_directory(workspace: Any, path: str, dockerfile_path: str = "Dockerfile") -> DockerBuildContext:
        """Keep the folder `path` in the workspace and return it as a build context."""
        from lapis.sdk.environments.environment_files import add_docker_context

        location = add_docker_context(workspace, path, dockerfile_path)
        return DockerBuildContext(DockerBuildContext.LocationType.StorageAccount, location, dockerfile_path)


class DockerSection(RunConfigElement):
    """The container of an environment.

    `base_image`, `base_dockerfile` and `build_context` exclude each other: assigning one clears the others.
    `base_dockerfile` takes the text of a Dockerfile, or its file name, and then reads it.
    """

    _fields = {
        "enabled": Field("enabled"),
        "base_image": Field("baseImage"),
        "base_dockerfile": Field("baseDockerfile"),
        "build_context": Field("buildContext", read=section(DockerBuildContext)),
        "shared_volumes": Field("sharedVolumes"),
        "shm_size": Field("shmSize"),
        "arguments": Field("arguments"),
        "base_image_registry": Field("baseImageRegistry", read=section(ContainerRegistry)),
        "platform": Field("platform", read=section(DockerImagePlatform)),
    }
    _obsolete_keys = ("gpuSupport",)

    gpu_support = False  # of older releases: a GPU is used where the compute has one

    def __init__(self, **kwargs: Any) -> None:
        self.enabled = False
        self._base_image: str | None = DEFAULT_CPU_IMAGE
        self._base_dockerfile: str | None = None
        self._build_context: DockerBuildContext | None = None
        self.shared_volumes = True
        self.shm_size: str | None = DEFAULT_SHM_SIZE
        self.arguments: list[str] = []
        self.base_image_registry = ContainerRegistry()
        self.platform = DockerImagePlatform()
        _assign(self, kwargs)

    @property
    def base_image(self) -> str | None:
        return self._base_image

    @base_image.setter
    def base_image(self, image: str | None) -> None:
        if image is not None:
            self._base_dockerfile = self._build_context = None
        self._base_image = image

    @property
    def base_dockerfile(self) -> str | None:
        return self._base_dockerfile

    @base_dockerfile.setter
    def base_dockerfile(self, dockerfile: str | None) -> None:
        text = None if dockerfile is None else _dockerfile_text(dockerfile)
        if text is not None:
            self._base_image = self._build_context = None
        self._base_dockerfile = text

    @property
    def build_context(self) -> DockerBuildContext | None:
        return self._build_context

    @build_context.setter
    def build_context(self, build_context: DockerBuildContext | None) -> None:
        if build_context is not None and not isinstance(build_context, DockerBuildContext):
            raise UserErrorException(f"build_context must be a DockerBuildContext, not {build_context!r}.")
        if build_context is not None:
            self._base_image = self._base_dockerfile = None
        self._build_context = build_context


class DockerEnvironment(DockerSection):
    """The older name of DockerSection."""

    def __init__(self) -> None:
        super().__init__()


class SparkPackage(RunConfigElement):
    """A package of Spark, as Maven names it."""

    _fields = {"group": Field("group"), "artifact": Field("artifact"), "version": Field("version")}

    def __init__(self, group: str | None = None, artifact: str | None = None, version: str | None = None) -> None:
        self.group = group
        self.artifact = artifact
        self.version = version


class SparkSection(RunConfigElement):
    """The Spark packages of an environment. Kept and handed on; no engine of Lapis runs Spark yet."""

    _fields = {
        "repositories": Field("repositories"),
        "packages": Field("packages", read=list_of_sections(SparkPackage)),
        "precache_packages": Field("precachePackages"),
    }

    def __init__(self, **kwargs: Any) -> None:
        self.repositories: list[str] = []
        self.packages: list[SparkPackage] = []
        self.precache_packages = True
        _assign(self, kwargs)


class SparkEnvironment(SparkSection):
    """The older name of SparkSection."""

    def __init__(self) -> None:
        super().__init__()


class JarLibrary(RunConfigElement):
    """A jar file for Databricks."""

    _fields = {"library": Field("library")}

    def __init__(self, library: str | None = None) -> None:
        self.library = library


class DatabricksSection(RunConfigElement):
    """The libraries for Databricks. Kept and handed on; Lapis runs nothing on Databricks."""

    _fields = {
        "maven_libraries": Field("mavenLibraries"),
        "pypi_libraries": Field("pypiLibraries"),
        "rcran_libraries": Field("rcranLibraries"),
        "jar_libraries": Field("jarLibraries", read=list_of_sections(JarLibrary)),
        "egg_libraries": Field("eggLibraries"),
    }

    def __init__(self, **kwargs: Any) -> None:
        self.maven_libraries: list[Any] = []
        self.pypi_libraries: list[Any] = []
        self.rcran_libraries: list[Any] = []
        self.jar_libraries: list[JarLibrary] = []
        self.egg_libraries: list[Any] = []
        _assign(self, kwargs)


class RCranPackage(RunConfigElement):
    """A package of R from CRAN."""

    _fields = {"name": Field("name"), "version": Field("version"), "repository": Field("repository")}

    def __init__(self) -> None:
        self.name: str | None = None
        self.version: str | None = None
        self.repository: str | None = None


class RGitHubPackage(RunConfigElement):
    """A package of R from GitHub."""

    _fields = {"repository": Field("repository"), "auth_token": Field("authToken", secret=True)}

    def __init__(self) -> None:
        self.repository: str | None = None
        self.auth_token: str | None = None


class RSection(RunConfigElement):
    """The R of an environment. Kept and handed on; Lapis builds no R environment yet."""

    _fields = {
        "r_version": Field("rVersion"),
        "user_managed": Field("userManaged"),
        "rscript_path": Field("rscriptPath"),
        "snapshot_date": Field("snapshotDate"),
        "cran_packages": Field("cranPackages", read=list_of_sections(RCranPackage)),
        "github_packages": Field("gitHubPackages", read=list_of_sections(RGitHubPackage), also=("githubPackages",)),
        "custom_url_packages": Field("customUrlPackages"),
        "bioconductor_packages": Field("bioConductorPackages", also=("bioconductorPackages",)),
    }

    def __init__(self) -> None:
        self.r_version: str | None = None
        self.user_managed = False
        self.rscript_path: str | None = None
        self.snapshot_date: str | None = None
        self.cran_packages: list[RCranPackage] | None = None
        self.github_packages: list[RGitHubPackage] | None = None
        self.custom_url_packages: list[str] | None = None
        self.bioconductor_packages: list[str] | None = None


def _assign(element: RunConfigElement, settings: dict[str, Any]) -> None:
    """Assign the keywords of a constructor. Those with an underscore were never for users."""
    for name, value in settings.items():
        if not name.startswith("_"):
            setattr(element, name, value)


def _dockerfile_text(dockerfile: str) -> str:
    """The text of a Dockerfile, given as text or as a file name."""
    if not isinstance(dockerfile, str):
        raise UserErrorException(f"A Dockerfile is given as text or as a file name, not {dockerfile!r}.")
    if "\n" not in dockerfile and os.path.isfile(dockerfile):
        with open(dockerfile, encoding="utf-8") as file:
            return file.read()
    if not dockerfile.strip() or len(dockerfile.split()) == 1:
        raise UserErrorException(
            f"There is no Dockerfile '{dockerfile}', and as the text of one it would be incomplete."
        )
    return dockerfile

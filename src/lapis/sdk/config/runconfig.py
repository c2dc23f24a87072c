"""Run configurations: what to run, where, on how many nodes, with which environment and data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lapis.errors import RunConfigurationException, UserErrorException
from lapis.sdk.config import runconfig_files
from lapis.sdk.config.data_sections import SUPPORTED_DATAREF_MODES as SUPPORTED_DATAREF_MODES
from lapis.sdk.config.data_sections import Data as Data
from lapis.sdk.config.data_sections import DatacacheConfiguration as DatacacheConfiguration
from lapis.sdk.config.data_sections import DataLocation as DataLocation
from lapis.sdk.config.data_sections import DataPath as DataPath
from lapis.sdk.config.data_sections import DataReferenceConfiguration as DataReferenceConfiguration
from lapis.sdk.config.data_sections import Dataset as Dataset
from lapis.sdk.config.data_sections import DatasetRegistrationOptions as DatasetRegistrationOptions
from lapis.sdk.config.data_sections import GlobsOptions as GlobsOptions
from lapis.sdk.config.data_sections import MountOptions as MountOptions
from lapis.sdk.config.data_sections import OutputData as OutputData
from lapis.sdk.config.data_sections import OutputOptions as OutputOptions
from lapis.sdk.config.data_sections import RegistrationOptions as RegistrationOptions
from lapis.sdk.config.data_sections import UploadOptions as UploadOptions
from lapis.sdk.config.data_sections import Uri as Uri
from lapis.sdk.config.distribution import MpiConfiguration as MpiConfiguration
from lapis.sdk.config.distribution import ParallelTaskConfiguration as ParallelTaskConfiguration
from lapis.sdk.config.distribution import PyTorchConfiguration as PyTorchConfiguration
from lapis.sdk.config.distribution import TensorflowConfiguration as TensorflowConfiguration
from lapis.sdk.config.distribution import apply_distributed as apply_distributed
from lapis.sdk.config.run_config_element import (
    Field,
    RunConfigElement,
    list_of_sections,
    one_of,
    plain,
    section,
    sections_by_name,
    whole_number,
)
from lapis.sdk.environments.conda_dependencies import CondaDependencies as CondaDependencies
from lapis.sdk.environments.container_registry import ContainerRegistry as ContainerRegistry
from lapis.sdk.environments.environment import DEFAULT_CPU_IMAGE as DEFAULT_CPU_IMAGE
from lapis.sdk.environments.environment import DEFAULT_GPU_IMAGE as DEFAULT_GPU_IMAGE
from lapis.sdk.environments.environment import Environment as Environment
from lapis.sdk.environments.environment import EnvironmentReference as EnvironmentReference
from lapis.sdk.environments.environment_sections import DEFAULT_SHM_SIZE
from lapis.sdk.environments.environment_sections import JarLibrary as JarLibrary

if TYPE_CHECKING:
    from lapis.sdk.compute.compute_target import ComputeTarget

LOCAL_TARGET = "local"
FRAMEWORKS = ("Python", "PySpark", "CNTK", "TensorFlow", "PyTorch")
COMMUNICATORS = ("None", "ParameterServer", "OpenMpi", "IntelMpi", "Mpi", "Nccl", "Gloo", "ParallelTask")


class AzureContainerRegistry(ContainerRegistry):
    """The older name of ContainerRegistry."""


class EnvironmentDefinition(Environment):
    """The environment of one run, which may go without a name."""

    def __init__(self, name: str | None = None) -> None:
        self._set_defaults(name)


class HistoryConfiguration(RunConfigElement):
    """What is recorded of a run."""

    _fields = {
        "output_collection": Field("outputCollection"),
        "snapshot_project": Field("snapshotProject"),
        "directories_to_watch": Field("directoriesToWatch"),
    }

    def __init__(self) -> None:
        self.output_collection = True
        self.snapshot_project = True
        self.directories_to_watch: list[str] | None = ["logs"]


class DockerConfiguration(RunConfigElement):
    """Whether and how a run happens in a container."""

    _fields = {
        "use_docker": Field("useDocker"),
        "shared_volumes": Field("sharedVolumes"),
        "arguments": Field("arguments"),
        "shm_size": Field("shmSize"),
    }

    def __init__(
        self,
        use_docker: bool = False,
        shared_volumes: bool = True,
        arguments: list[str] | None = None,
        shm_size: str | None = DEFAULT_SHM_SIZE,
    ) -> None:
        self.use_docker = use_docker
        self.shared_volumes = shared_volumes
        self.arguments = list(arguments or [])
        self.shm_size = shm_size


class SparkConfiguration(RunConfigElement):
    """Settings of Spark. Kept and handed on; no engine of Lapis runs Spark yet."""

    _fields = {"configuration": Field("configuration")}

    def __init__(self) -> None:
        self.configuration: dict[str, Any] = {
            "spark.app.name": "Azure ML Experiment",
            "spark.yarn.maxAppAttempts": 1,
        }


class HdiConfiguration(RunConfigElement):
    """Settings of HDInsight. Kept and handed on."""

    _fields = {"yarn_deploy_mode": Field("yarnDeployMode")}

    def __init__(self) -> None:
        self.yarn_deploy_mode = "cluster"


class AmlComputeConfiguration(RunConfigElement):
    """The cluster that is made for one run, where the target is no cluster of its own."""

    _fields = {
        "vm_size": Field("vmSize"),
        "vm_priority": Field("vmPriority"),
        "_retain_cluster": Field("retainCluster"),
        "_name": Field("name"),
        "_cluster_max_node_count": Field("clusterMaxNodeCount"),
    }

    def __init__(self) -> None:
        self.vm_size: str | None = None
        self.vm_priority: str | None = None
        self._retain_cluster = False
        self._name: str | None = None
        self._cluster_max_node_count: int | None = None


class KubernetesComputeConfiguration(RunConfigElement):
    """What a run asks of a Kubernetes cluster."""

    _fields = {"instance_type": Field("instanceType")}

    def __init__(self) -> None:
        self.instance_type: str | None = None


class ApplicationEndpointConfiguration(RunConfigElement):
    """A port of the run's node that people may open: a notebook server, TensorBoard."""

    _fields = {"type": Field("type"), "port": Field("port"), "properties": Field("properties")}

    def __init__(
        self, type: str | None = None, port: int | None = None, properties: dict[str, str] | None = None
    ) -> None:
        self.type = type
        self.port = port
        self.properties = properties


def _check_target(name: str, target: Any) -> str:
    if target is None:
        return LOCAL_TARGET
    named = target if isinstance(target, str) else getattr(target, "name", None)
    if not named:
        raise UserErrorException(f"{name} must be a compute target or the name of one, not {target!r}.")
    return named  # of a mock it is a mock: submit() looks at it again


def _check_environment(name: str, environment: Any) -> Any:
    if not hasattr(environment, "python") and not hasattr(environment, "get_environment"):
        raise UserErrorException(f"{name} must be an Environment, not {environment!r}.")
    return environment


def _read_environment(data: Any) -> Any:
    """A name, with or without a version, refers to a registered environment; more is a definition."""
    refers = isinstance(data, dict) and data.get("name") and set(data) <= {"name", "version"}
    return (EnvironmentReference if refers else EnvironmentDefinition)._from_dict(data)


def _check_words(name: str, words: Any) -> list[Any]:
    if words is None:
        return []
    if isinstance(words, (str, dict)) or not hasattr(words, "__iter__"):
        raise UserErrorException(f"{name} must be a list, not {words!r}.")
    return words if isinstance(words, list) else list(words)


def _check_by_name(name: str, by_name: Any) -> dict[str, Any]:
    if by_name is None:
        return {}
    if not isinstance(by_name, dict):
        raise UserErrorException(f"{name} must be a dict of names to settings, not {by_name!r}.")
    return by_name


def _write_words(words: list[Any]) -> list[Any]:
    return [word if word is None or isinstance(word, (bool, int, float, str)) else str(word) for word in words]


def _write_command(command: Any) -> Any:
    return _write_words(list(command)) if isinstance(command, (list, tuple)) else plain(command)


def _write_inputs(inputs: dict[str, Any]) -> dict[str, Any]:
    return {str(name): Data.create(data)._to_dict() for name, data in inputs.items()}


def _write_references(references: dict[str, Any]) -> dict[str, Any]:
    """Data references, given as their configuration or as objects that know it."""
    return {
        str(name): plain(reference.to_config() if hasattr(reference, "to_config") else reference)
        for name, reference in references.items()
    }


class RunConfiguration(RunConfigElement):
    """All that is said about a run, apart from its source folder."""

    _fields = {
        "script": Field("script"),
        "command": Field("command", write=_write_command),
        "_use_absolute_path": Field("useAbsolutePath"),
        "arguments": Field("arguments", write=_write_words, check=_check_words),
        "framework": Field("framework", check=one_of(FRAMEWORKS, default="Python")),
        "communicator": Field("communicator", check=one_of(COMMUNICATORS, default="None")),
        "target": Field("target", check=_check_target),
        "data_references": Field(
            "dataReferences",
            read=sections_by_name(DataReferenceConfiguration),
            write=_write_references,
            check=_check_by_name,
        ),
        "data": Field("data", read=sections_by_name(Data), write=_write_inputs, check=_check_by_name),
        "output_data": Field("outputData", read=sections_by_name(OutputData), check=_check_by_name),
        "_job_name": Field("jobName"),
        "max_run_duration_seconds": Field("maxRunDurationSeconds", check=whole_number(at_least=0, optional=True)),
        "node_count": Field("nodeCount", check=whole_number(at_least=1)),
        "priority": Field("priority", check=whole_number(at_least=0, optional=True)),
        "environment": Field("environment", read=_read_environment, check=_check_environment),
        "history": Field("history", read=section(HistoryConfiguration)),
        "spark": Field("spark", read=section(SparkConfiguration)),
        "docker": Field("docker", read=section(DockerConfiguration)),
        "hdi": Field("hdi", read=section(HdiConfiguration)),
        "tensorflow": Field("tensorflow", read=section(TensorflowConfiguration)),
        "mpi": Field("mpi", read=section(MpiConfiguration)),
        "pytorch": Field("pytorch", read=section(PyTorchConfiguration), also=("pyTorch",)),
        "paralleltask": Field("paralleltask", read=section(ParallelTaskConfiguration)),
        "amlcompute": Field("amlcompute", read=section(AmlComputeConfiguration), also=("amlCompute",)),
        "kubernetescompute": Field(
            "kubernetescompute", read=section(KubernetesComputeConfiguration), also=("kubernetesCompute",)
        ),
        "services": Field("services", read=sections_by_name(ApplicationEndpointConfiguration), check=_check_by_name),
        "credential_passthrough": Field("credentialPassthrough"),
        "auto_cluster_compute_specification": Field("autoClusterComputeSpecification"),
        "source_directory_data_store": Field("sourceDirectoryDataStore"),
        "datacaches": Field("datacaches", read=list_of_sections(DatacacheConfiguration)),
    }
    _obsolete_keys = ("autoPrepareEnvironment", "cntk")

    def __init__(
        self,
        script: str | None = None,
        arguments: list[Any] | None = None,
        framework: str | None = None,
        communicator: str | None = None,
        conda_dependencies: CondaDependencies | None = None,
        command: Any = None,
    ) -> None:
        self.script = script
        self.command = command
        self._use_absolute_path = False
        self.arguments: list[Any] = arguments or []
        self.framework = framework or "Python"
        self.communicator = communicator or "None"
        self.target: ComputeTarget | str = LOCAL_TARGET  # the name of the one that is assigned
        self.data_references: dict[str, Any] = {}
        self.data: dict[str, Any] = {}
        self.output_data: dict[str, OutputData] = {}
        self._job_name: str | None = None
        self.max_run_duration_seconds: int | None = None
        self.node_count = 1
        self.priority: int | None = None
        self.environment: Environment = EnvironmentDefinition()
        self.history = HistoryConfiguration()
        self.spark = SparkConfiguration()
        self.docker = DockerConfiguration()
        self.hdi = HdiConfiguration()
        self.tensorflow = TensorflowConfiguration()
        self.mpi = MpiConfiguration()
        self.pytorch = PyTorchConfiguration()
        self.paralleltask = ParallelTaskConfiguration()
        self.amlcompute = AmlComputeConfiguration()
        self.kubernetescompute = KubernetesComputeConfiguration()
        self.services: dict[str, ApplicationEndpointConfiguration] = {}
        self.credential_passthrough = False
        self.auto_cluster_compute_specification: Any = None
        self.source_directory_data_store: str | None = None
        self.datacaches: list[DatacacheConfiguration] = []
        if conda_dependencies is not None:
            self.environment.python.conda_dependencies = conda_dependencies

    @property
    def environment_variables(self) -> dict[str, Any]:
        """The variables of the environment, under the name that older code uses."""
        variables: dict[str, Any] = self.environment.environment_variables
        return variables

    @environment_variables.setter
    def environment_variables(self, variables: dict[str, Any]) -> None:
        self.environment.environment_variables = variables

    @property
    def auto_prepare_environment(self) -> bool:
        """Of older code: environments are always prepared."""
        return True

    @auto_prepare_environment.setter
    def auto_prepare_environment(self, value: bool) -> None:
        pass

    def save(self, path: str | None = None, name: str | None = None, separate_environment_yaml: bool = False) -> None:
        """Write the configuration to a file, and its packages to conda_dependencies.yml beside it.

        `path` is a project folder, the working folder if it is None: the file is .azureml/<name> in it. Or
        `path` is the file itself. With `separate_environment_yaml` the environment goes to environment.yml
        beside it. Files of these two names that are there are replaced.
        """
        runconfig_files.save(self._to_dict(), path or ".", name, separate_environment_yaml)

    @staticmethod
    def load(path: str, name: str | None = None) -> RunConfiguration:
        """Return the configuration in the file `path`, or the one called `name` in the project `path`."""
        file = runconfig_files.find(path, name)
        try:
            loaded: RunConfiguration = RunConfiguration._from_dict(runconfig_files.load(file))
        except RunConfigurationException as error:
            raise RunConfigurationException(f"In the run configuration '{file}': {error.message}")
        return loaded

    @staticmethod
    def delete(path: str, name: str) -> None:
        """Delete the file of the configuration called `name`. Its conda file may serve others, and stays."""
        runconfig_files.delete(path, name)


def to_run_definition(run_config: RunConfiguration) -> dict[str, Any]:
    """Return the configuration as JSON can hold it, the arguments as the text that reaches the script."""
    definition = run_config._to_dict()
    definition["arguments"] = [str(argument) for argument in run_config.arguments]
    if isinstance(run_config.command, (list, tuple)):
        definition["command"] = [str(word) for word in run_config.command]
    return definition


def environment_of(definition: dict[str, Any], workspace: Any) -> Environment:
    """The environment of a run that was submitted; a reference is looked up. Passwords were not kept."""
    environment = _read_environment(definition["environment"])
    if isinstance(environment, EnvironmentReference):
        return environment.get_environment(workspace)
    environment.docker.base_image_registry.password = None
    found: Environment = Environment._from_dict(environment._to_dict())
    return found

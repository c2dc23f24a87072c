"""How a run is spread over nodes and processes: MPI, TensorFlow, PyTorch, or independent tasks."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from lapis.errors import RunConfigurationException, UserErrorException
from lapis.sdk.config.run_config_element import Field, RunConfigElement, one_of, whole_number

if TYPE_CHECKING:
    from lapis.domain.job import Distribution
    from lapis.sdk.config.runconfig import RunConfiguration


class MpiConfiguration(RunConfigElement):
    """Processes that are started by MPI, Horovod's among them."""

    _fields = {
        "process_count_per_node": Field("processCountPerNode", check=whole_number(at_least=0)),
        "node_count": Field("nodeCount", check=whole_number(at_least=0)),
    }

    def __init__(self, process_count_per_node: int = 1, node_count: int = 1) -> None:
        self.process_count_per_node = process_count_per_node
        self.node_count = node_count


class TensorflowConfiguration(RunConfigElement):
    """Workers and parameter servers. The servers share the nodes with the workers."""

    _fields = {
        "worker_count": Field("workerCount", check=whole_number(at_least=0)),
        "parameter_server_count": Field("parameterServerCount", check=whole_number(at_least=0)),
    }

    def __init__(self, worker_count: int = 1, parameter_server_count: int = 1) -> None:
        self.worker_count = worker_count
        self.parameter_server_count = parameter_server_count


class PyTorchConfiguration(RunConfigElement):
    """Processes that meet through torch.distributed. `process_count` is the total; None is one per node."""

    _fields = {
        "communication_backend": Field("communicationBackend", check=one_of(("Nccl", "Gloo"), default="Nccl")),
        "process_count": Field("processCount", check=whole_number(at_least=1, optional=True)),
        "node_count": Field("nodeCount", check=whole_number(at_least=0)),
    }

    def __init__(
        self, communication_backend: str = "Nccl", process_count: int | None = None, node_count: int = 1
    ) -> None:
        self.communication_backend = communication_backend
        self.process_count = process_count
        self.node_count = node_count


class ParallelTaskConfiguration(RunConfigElement):
    """Workers that know nothing of each other and are started again when they fail."""

    _fields = {
        "max_retries_per_worker": Field("maxRetriesPerWorker", check=whole_number(at_least=0)),
        "worker_count_per_node": Field("workerCountPerNode", check=whole_number(at_least=1)),
        "terminal_exit_codes": Field("terminalExitCodes"),
    }

    def __init__(self) -> None:
        self.max_retries_per_worker = 0
        self.worker_count_per_node = 1
        self.terminal_exit_codes: list[int] | None = None


def apply_distributed(run_config: RunConfiguration, distributed_job_config: Any) -> None:
    """Set framework, communicator, nodes and section of `run_config` as the distributed settings ask for.

    None changes nothing. The run configuration keeps a copy of the settings.
    """
    if distributed_job_config is None:
        return
    settings = copy.deepcopy(distributed_job_config)
    if isinstance(settings, MpiConfiguration):
        _spread(run_config, "Python", "IntelMpi", settings.node_count)
        run_config.mpi = settings
    elif isinstance(settings, TensorflowConfiguration):
        workers = _at_least_one("TensorflowConfiguration", "worker_count", settings.worker_count)
        _spread(run_config, "TensorFlow", "ParameterServer", workers)
        run_config.tensorflow = settings
    elif isinstance(settings, PyTorchConfiguration):
        _spread(run_config, "PyTorch", settings.communication_backend, settings.node_count)
        run_config.pytorch = settings
    elif isinstance(settings, ParallelTaskConfiguration):
        _spread(run_config, "Python", "ParallelTask", run_config.node_count)
        run_config.paralleltask = settings
    else:
        raise UserErrorException(
            "distributed_job_config must be a MpiConfiguration, TensorflowConfiguration, "
            f"PyTorchConfiguration or ParallelTaskConfiguration, not {distributed_job_config!r}."
        )


def distribution_of(run_config: RunConfiguration) -> Distribution | None:
    """What the agents of a run need to know; None for one process on one node. Raises if it could never start."""
    from lapis.domain.job import Mpi, Plain, PyTorch, TensorFlow

    communicator = str(run_config.communicator or "None").lower()
    nodes = int(run_config.node_count or 1)
    if communicator in ("mpi", "openmpi", "intelmpi"):
        each = _at_least_one("MpiConfiguration", "process_count_per_node", run_config.mpi.process_count_per_node)
        return Mpi(each)
    if communicator == "parameterserver":
        section = run_config.tensorflow
        workers = _at_least_one("TensorflowConfiguration", "worker_count", section.worker_count)
        return TensorFlow(workers, int(section.parameter_server_count))
    if communicator in ("nccl", "gloo"):
        given = run_config.pytorch.process_count if run_config.pytorch is not None else None
        processes = int(given or nodes)
        if processes < nodes:
            raise UserErrorException(
                f"PyTorchConfiguration asks for process_count={processes} in all on {nodes} nodes: each node needs one "
                "at least. process_count is the total; leave it out for one process on each node."
            )
        return PyTorch(processes, communicator)
    if communicator in ("none", "paralleltask"):
        return Plain() if nodes > 1 else None
    raise UserErrorException(
        f"communicator cannot be {run_config.communicator!r}. Known: None, OpenMpi, IntelMpi, ParameterServer, Nccl, "
        "Gloo."
    )


def _at_least_one(configuration: str, name: str, count: Any) -> int:
    if int(count or 0) < 1:
        raise RunConfigurationException(
            f"{configuration}.{name} must be 1 or more for a run to do anything, not {count}."
        )
    return int(count)


def _spread(run_config: RunConfiguration, framework: str, communicator: str, node_count: int) -> None:
    run_config.node_count = node_count  # first: the one that may be refused
    run_config.framework = framework
    run_config.communicator = communicator

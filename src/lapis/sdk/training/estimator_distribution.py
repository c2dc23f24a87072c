"""How the run of an estimator is spread over nodes: by the names of three generations of SDK v1, checked here."""

from __future__ import annotations

import copy
from typing import Any

from lapis.errors import AzureMLException, TrainingException
from lapis.sdk.config.distribution import MpiConfiguration, PyTorchConfiguration, TensorflowConfiguration
from lapis.sdk.config.run_config_element import whole_number

# How the processes of a run can find each other, by estimator.
BACKENDS: dict[str, tuple[str, ...]] = {
    "Estimator": ("mpi",),
    "TensorFlow": ("mpi", "ps"),
    "PyTorch": ("mpi", "gloo", "nccl"),
    "Chainer": ("mpi",),
    "SKLearn": (),
}
_CLASSES = {
    "mpi": "Mpi or MpiConfiguration",
    "ps": "ParameterServer or TensorflowConfiguration",
    "gloo": "Gloo or PyTorchConfiguration",
    "nccl": "Nccl or PyTorchConfiguration",
}
# Which of an estimator's counts mean something.
_COUNTS: dict[str, tuple[str, ...]] = {
    "mpi": ("process_count_per_node",),
    "ps": ("worker_count", "parameter_server_count"),
    "gloo": (),
    "nccl": (),
}


class DistributedTraining:
    """What `distributed_training` of an estimator takes, beside the classes of azureml.core.runconfig."""

    _backend: str

    def validate(self, estimator_name: str) -> None:
        """Raise TrainingException where that estimator cannot be spread in this way."""
        _check_backend(estimator_name, self._backend, f"distributed_training={type(self).__name__}()")

    def _configuration(self) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


class Mpi(DistributedTraining):
    """Processes that are started by MPI, Horovod's among them."""

    _backend = "mpi"

    def __init__(self, process_count_per_node: int = 1) -> None:
        self.process_count_per_node = process_count_per_node

    def _configuration(self) -> MpiConfiguration:
        return MpiConfiguration(process_count_per_node=self.process_count_per_node)


class ParameterServer(DistributedTraining):
    """TensorFlow's own workers and parameter servers."""

    _backend = "ps"

    def __init__(self, worker_count: int = 1, parameter_server_count: int = 1) -> None:
        self.worker_count = worker_count
        self.parameter_server_count = parameter_server_count

    def _configuration(self) -> TensorflowConfiguration:
        return TensorflowConfiguration(self.worker_count, self.parameter_server_count)


class Gloo(DistributedTraining):
    """Processes of PyTorch that meet through Gloo."""

    _backend = "gloo"

    def _configuration(self) -> PyTorchConfiguration:
        return PyTorchConfiguration("Gloo")


class Nccl(DistributedTraining):
    """Processes of PyTorch that meet through NCCL."""

    _backend = "nccl"

    def _configuration(self) -> PyTorchConfiguration:
        return PyTorchConfiguration("Nccl")


def distribution(estimator: str, counts: dict[str, Any], backend: Any, training: Any) -> Any:
    """The configuration that `apply_distributed` takes; None for one process on one node.

    `counts` are the node_count, process_count_per_node, worker_count and parameter_server_count that the estimator
    was given; 1 is what they are when nobody says.
    """
    counts = {name: _checked_count(name, count) for name, count in counts.items()}
    if backend is not None and training is not None:
        raise TrainingException(
            f"{estimator} takes distributed_training or the older distributed_backend, not both "
            f"({training!r} and {backend!r})."
        )
    if training is not None:
        return _from_object(estimator, counts, training)
    if backend is not None:
        return _from_backend(estimator, counts, backend)
    several = [f"{name}={count}" for name, count in counts.items() if count > 1]
    if several:
        raise TrainingException(
            f"{estimator} with {', '.join(several)} needs distributed_training, which says how the processes find "
            f"each other. {_valid(estimator)}"
        )
    return None


def _from_object(estimator: str, counts: dict[str, int], training: Any) -> Any:
    try:
        configuration = training._configuration() if isinstance(training, DistributedTraining) else training
    except AzureMLException as error:
        raise TrainingException(f"distributed_training={training!r} cannot be used: {error.message}")
    backend = _backend_of(configuration)
    if backend is None:
        raise TrainingException(f"distributed_training of {estimator} cannot be {training!r}. {_valid(estimator)}")
    _check_backend(estimator, backend, f"distributed_training={training!r}")
    _refuse_other_counts(estimator, backend, counts)
    for name in _COUNTS[backend]:
        if counts[name] not in (1, getattr(configuration, name)):
            raise TrainingException(
                f"{estimator} has {name}={counts[name]}, and its distributed_training has "
                f"{name}={getattr(configuration, name)}. Leave the first one out."
            )
    return _on_nodes(estimator, copy.deepcopy(configuration), counts["node_count"])


def _from_backend(estimator: str, counts: dict[str, int], backend: Any) -> Any:
    name = str(backend).lower()
    _check_backend(estimator, name, f"distributed_backend={backend!r}")
    _refuse_other_counts(estimator, name, counts)
    mine = {count: counts[count] for count in _COUNTS[name]}
    made: dict[str, Any] = {"mpi": MpiConfiguration, "ps": TensorflowConfiguration}
    configuration = made[name](**mine) if name in made else PyTorchConfiguration(name)
    return _on_nodes(estimator, configuration, counts["node_count"])


def _backend_of(configuration: Any) -> str | None:
    if isinstance(configuration, MpiConfiguration):
        return "mpi"
    if isinstance(configuration, TensorflowConfiguration):
        return "ps"
    return configuration.communication_backend.lower() if isinstance(configuration, PyTorchConfiguration) else None


def _on_nodes(estimator: str, configuration: Any, node_count: int) -> Any:
    """An estimator says itself on how many nodes it runs."""
    own = getattr(configuration, "node_count", 1)
    if own not in (1, node_count):
        raise TrainingException(
            f"distributed_training asks for {own} nodes, and node_count of {estimator} is {node_count}. "
            f"Give the estimator node_count={own}."
        )
    if hasattr(configuration, "node_count"):
        configuration.node_count = node_count
    return configuration


def _refuse_other_counts(estimator: str, backend: str, counts: dict[str, int]) -> None:
    for name, count in counts.items():
        if name != "node_count" and name not in _COUNTS[backend] and count > 1:
            means = next(other for other, names in _COUNTS.items() if name in names)
            raise TrainingException(f"{name}={count} of {estimator} goes with '{means}', not with '{backend}'.")


def _check_backend(estimator: str, backend: str, given: str) -> None:
    if backend not in BACKENDS.get(estimator, BACKENDS["Estimator"]):
        raise TrainingException(f"{estimator} cannot be used with {given}. {_valid(estimator)}")


def _valid(estimator: str) -> str:
    valid = BACKENDS.get(estimator, BACKENDS["Estimator"])
    if not valid:
        return f"{estimator} runs as one process."
    return "Valid: " + "; ".join(f"'{name}' ({_CLASSES[name]})" for name in valid) + "."


def _checked_count(name: str, count: Any) -> int:
    try:
        return int(whole_number(at_least=1)(name, 1 if count is None else count))
    except AzureMLException as error:
        raise TrainingException(error.message)

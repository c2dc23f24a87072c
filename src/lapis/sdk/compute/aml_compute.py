"""Clusters whose nodes come when runs need them and leave when they have been idle."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Iterable, Iterator, NoReturn

from lapis.client.http_client import quoted
from lapis.domain.compute import check_scale
from lapis.domain.run import ENDED
from lapis.domain.vm_sizes import all_sizes, vm_size
from lapis.errors import ComputeTargetException, NotThereYet
from lapis.sdk.base import display
from lapis.sdk.compute.compute_target import ComputeTarget, ComputeTargetProvisioningConfiguration

if TYPE_CHECKING:
    from lapis.sdk.runs.experiment import LabelFilter, RunType
    from lapis.sdk.runs.run import Run
    from lapis.sdk.workspace.workspace import Workspace

_LOOK_EVERY = 0.2  # seconds
_KEPT = (
    "admin_username", "admin_user_ssh_key", "vnet_resourcegroup_name", "vnet_name", "subnet_name",
    "remote_login_port_public_access", "identity_type", "identity_id",
)  # fmt: skip


class ScaleSettings:
    """Between how many nodes a cluster moves, and how long one may be idle."""

    def __init__(
        self, minimum_node_count: int, maximum_node_count: int | None, idle_seconds_before_scaledown: float
    ) -> None:
        self.minimum_node_count = minimum_node_count
        self.maximum_node_count = maximum_node_count
        self.idle_seconds_before_scaledown = idle_seconds_before_scaledown

    def serialize(self) -> dict[str, Any]:
        return {
            "minNodeCount": self.minimum_node_count,
            "maxNodeCount": self.maximum_node_count,
            "nodeIdleTimeBeforeScaleDown": f"PT{self.idle_seconds_before_scaledown:g}S",
        }

    @staticmethod
    def deserialize(object_dict: dict[str, Any]) -> ScaleSettings:
        idle = str(object_dict["nodeIdleTimeBeforeScaleDown"])
        return ScaleSettings(object_dict["minNodeCount"], object_dict["maxNodeCount"], _seconds(idle))


class AmlComputeProvisioningConfiguration(ComputeTargetProvisioningConfiguration["AmlCompute"]):
    """What a cluster is made from."""

    def __init__(
        self,
        vm_size: str = "",
        vm_priority: str = "dedicated",
        min_nodes: int = 0,
        max_nodes: int | None = None,
        idle_seconds_before_scaledown: int | None = 1800,
        admin_username: str | None = None,
        admin_user_password: str | None = None,
        admin_user_ssh_key: str | None = None,
        vnet_resourcegroup_name: str | None = None,
        vnet_name: str | None = None,
        subnet_name: str | None = None,
        tags: dict[str, str] | None = None,
        description: str | None = None,
        remote_login_port_public_access: str = "NotSpecified",
        identity_type: str | None = None,
        identity_id: Any = None,
        compute_location: str | None = None,
        enable_node_public_ip: bool = True,
    ) -> None:
        super().__init__(AmlCompute, compute_location)
        self.vm_size = vm_size or "STANDARD_D2_V2"
        self.vm_priority = vm_priority or "dedicated"
        idle = 1800 if idle_seconds_before_scaledown is None else idle_seconds_before_scaledown
        self.scale_settings = ScaleSettings(min_nodes or 0, max_nodes, idle)
        self.admin_username = admin_username
        self.admin_user_password = admin_user_password
        self.admin_user_ssh_key = admin_user_ssh_key
        self.vnet_resourcegroup_name = vnet_resourcegroup_name
        self.vnet_name = vnet_name
        self.subnet_name = subnet_name
        self.tags = tags
        self.description = description
        self.remote_login_port_public_access = remote_login_port_public_access
        self.identity_type = identity_type
        self.identity_id = identity_id
        self.compute_location = compute_location
        self.enable_node_public_ip = enable_node_public_ip
        self.validate_configuration()

    def validate_configuration(self) -> None:
        scale = self.scale_settings
        if scale.maximum_node_count is None:
            raise ComputeTargetException("max_nodes is needed: the most nodes that the cluster may have.")
        for what, value in (("min_nodes", scale.minimum_node_count), ("max_nodes", scale.maximum_node_count)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ComputeTargetException(f"{what} must be a whole number, not {value!r}.")
        check_scale(scale.minimum_node_count, scale.maximum_node_count, scale.idle_seconds_before_scaledown)
        vm_size(self.vm_size)
        if self.vm_priority.lower() not in ("dedicated", "lowpriority"):
            raise ComputeTargetException(f"vm_priority cannot be {self.vm_priority!r}. Known: dedicated, lowpriority.")

    def _to_new(self) -> dict[str, Any]:
        scale = self.scale_settings
        return {
            "type": AmlCompute._compute_type,
            "vm_size": self.vm_size,
            "vm_priority": self.vm_priority.lower(),
            "min_nodes": scale.minimum_node_count,
            "max_nodes": scale.maximum_node_count,
            "idle_seconds": scale.idle_seconds_before_scaledown,
            "tags": self.tags or {},
            "description": self.description,
            "more": {name: getattr(self, name) for name in _KEPT if getattr(self, name)},
        }


class AmlComputeNodeStateCounts:
    """How many nodes are in which state."""

    def __init__(
        self,
        idle_node_count: int,
        leaving_node_count: int,
        preempted_node_count: int,
        preparing_node_count: int,
        running_node_count: int,
        unusable_node_count: int,
    ) -> None:
        self.idle_node_count = idle_node_count
        self.leaving_node_count = leaving_node_count
        self.preempted_node_count = preempted_node_count
        self.preparing_node_count = preparing_node_count
        self.running_node_count = running_node_count
        self.unusable_node_count = unusable_node_count

    def serialize(self) -> dict[str, Any]:
        return {_camel(name): value for name, value in vars(self).items()}

    @staticmethod
    def deserialize(object_dict: dict[str, Any]) -> AmlComputeNodeStateCounts:
        names = ("idle", "leaving", "preempted", "preparing", "running", "unusable")
        return AmlComputeNodeStateCounts(*(object_dict[f"{name}NodeCount"] for name in names))


class AmlComputeStatus:
    """A cluster at one moment."""

    def __init__(
        self,
        allocation_state: str,
        allocation_state_transition_time: Any,
        creation_time: Any,
        current_node_count: int,
        errors: Any,
        modified_time: Any,
        node_state_counts: Any,
        provisioning_state: str,
        provisioning_state_transition_time: Any,
        scale_settings: Any,
        target_node_count: int,
        vm_priority: str,
        vm_size: str,
    ) -> None:
        self.allocation_state = allocation_state
        self.allocation_state_transition_time = allocation_state_transition_time
        self.creation_time = creation_time
        self.current_node_count = current_node_count
        self.errors = errors
        self.modified_time = modified_time
        self.node_state_counts = node_state_counts
        self.provisioning_state = provisioning_state
        self.provisioning_state_transition_time = provisioning_state_transition_time
        self.scale_settings = scale_settings
        self.target_node_count = target_node_count
        self.vm_priority = vm_priority
        self.vm_size = vm_size

    def serialize(self) -> dict[str, Any]:
        parts = dict(vars(self))
        parts["node_state_counts"] = self.node_state_counts.serialize()
        parts["scale_settings"] = self.scale_settings.serialize()
        return {_camel(name): value for name, value in parts.items()}

    @staticmethod
    def deserialize(object_dict: dict[str, Any]) -> AmlComputeStatus:
        parts = {_snake(name): value for name, value in object_dict.items()}
        parts["node_state_counts"] = AmlComputeNodeStateCounts.deserialize(parts["node_state_counts"])
        parts["scale_settings"] = ScaleSettings.deserialize(parts["scale_settings"])
        return AmlComputeStatus(**parts)


class AmlCompute(ComputeTarget):
    """A cluster. Its nodes are this machine's, or those of the engine that it was attached to."""

    _compute_type = "AmlCompute"

    @staticmethod
    def provisioning_configuration(
        vm_size: str = "",
        vm_priority: str = "dedicated",
        min_nodes: int = 0,
        max_nodes: int | None = None,
        idle_seconds_before_scaledown: int | None = 1800,
        admin_username: str | None = None,
        admin_user_password: str | None = None,
        admin_user_ssh_key: str | None = None,
        vnet_resourcegroup_name: str | None = None,
        vnet_name: str | None = None,
        subnet_name: str | None = None,
        tags: dict[str, str] | None = None,
        description: str | None = None,
        remote_login_port_public_access: str = "NotSpecified",
        identity_type: str | None = None,
        identity_id: Any = None,
        location: str | None = None,
        enable_node_public_ip: bool = True,
    ) -> AmlComputeProvisioningConfiguration:
        """What ComputeTarget.create() takes. `max_nodes` is needed; names of networks and accounts are kept."""
        return AmlComputeProvisioningConfiguration(
            vm_size, vm_priority, min_nodes, max_nodes, idle_seconds_before_scaledown, admin_username,
            admin_user_password, admin_user_ssh_key, vnet_resourcegroup_name, vnet_name, subnet_name, tags,
            description, remote_login_port_public_access, identity_type, identity_id, location, enable_node_public_ip,
        )  # fmt: skip

    @staticmethod
    def supported_vmsizes(workspace: Workspace, location: str | None = None) -> list[dict[str, Any]]:
        """Every size that a cluster can be asked for."""
        return [
            {
                "name": size.name,
                "vCPUs": size.cores,
                "gpus": size.gpus,
                "memoryGB": size.memory_gb,
                "maxResourceVolumeMB": 0,
            }
            for size in all_sizes()
        ]

    def get(self) -> dict[str, Any]:
        self.refresh_state()
        return self.serialize()

    def get_status(self) -> AmlComputeStatus:
        """The cluster as it is now: how many nodes, in which states, and between which limits."""
        self.refresh_state()
        return self.status

    def list_nodes(self) -> list[dict[str, Any]]:
        """The nodes that there are now, with address and state, and the run that each works on."""
        self.refresh_state()
        return [
            {
                "nodeId": node["id"],
                "ipAddress": node["place"].get("address"),
                "privateIpAddress": node["place"].get("address"),
                "port": node["place"].get("port"),
                "nodeState": node["state"],
                "runId": node["run_id"],
            }
            for node in self._view["nodes"]
        ]

    def update(
        self,
        min_nodes: int | None = None,
        max_nodes: int | None = None,
        idle_seconds_before_scaledown: int | None = None,
    ) -> None:
        """Change the limits. Nodes beyond a smaller `max_nodes` leave as soon as they are idle."""
        asked = {"min_nodes": min_nodes, "max_nodes": max_nodes, "idle_seconds": idle_seconds_before_scaledown}
        changes = {name: value for name, value in asked.items() if value is not None}
        if changes:
            path = f"{self.workspace._base}/computes/{quoted(self.name)}"
            self._take(self.workspace._client.call("PATCH", path, changes))

    def get_active_runs(
        self,
        type: RunType = None,
        tags: LabelFilter = None,
        properties: LabelFilter = None,
        status: str | Iterable[str] | None = None,
    ) -> Iterator[Run]:
        """The runs on this cluster that have not ended, or those in `status`."""
        from lapis.sdk.runs.run import Run

        found = (
            run
            for experiment in self.workspace.experiments.values()
            for run in Run.list(experiment, type=type, tags=tags, properties=properties, status=status)
        )
        return (
            run
            for run in found
            if run._facts()["target"] == self.name and (status is not None or run._facts()["status"] not in ENDED)
        )

    def wait_for_completion(  # type: ignore[override]  # SDK v1's own signature
        self,
        show_output: bool = False,
        min_node_count: int | None = None,
        timeout_in_minutes: float = 25,
        is_delete_operation: bool = False,
    ) -> None:
        """Wait until the cluster has `min_node_count` nodes; without it, as many as it always has."""
        if is_delete_operation:
            super().wait_for_completion(show_output, True)
            return
        self.refresh_state()
        needed = self._view["min_nodes"] if min_node_count is None else min_node_count
        if needed > self._view["min_nodes"]:
            raise ComputeTargetException(
                f"Cluster '{self.name}' keeps {self._view['min_nodes']} nodes when nothing runs, so waiting for "
                f"{needed} could take for ever. update(min_nodes={needed}) brings them up."
            )
        deadline = time.monotonic() + timeout_in_minutes * 60
        if show_output:
            print("Creating", flush=True)
        while self.status.current_node_count < needed:
            if time.monotonic() > deadline:
                told = "; ".join(self.provisioning_errors or []) or "no node reported a fault"
                print(
                    f"Wait timeout has been reached: {self.status.current_node_count} of {needed} nodes are there "
                    f"after {timeout_in_minutes} minutes ({told})."
                )
                return
            time.sleep(_LOOK_EVERY)
            self.refresh_state()
        if show_output:
            print("Succeeded\nAmlCompute wait for completion finished\n")
            print("Minimum number of nodes requested have been provisioned", flush=True)

    def add_identity(self, identity_type: str, identity_id: Any = None) -> None:
        raise NotThereYet(
            "AmlCompute.add_identity", "Identities are a cloud's own; runs here have tokens of their own."
        )

    def remove_identity(self, identity_id: Any = None) -> None:
        raise NotThereYet("AmlCompute.remove_identity", "This cluster has no identity.")

    @staticmethod
    def list_quotas(workspace: Workspace, location: str | None = None) -> list[NoReturn]:
        return []  # machines of one's own have no quota

    @staticmethod
    def list_usages(workspace: Workspace, show_all: bool = False, location: str | None = None) -> list[NoReturn]:
        return []

    @staticmethod
    def update_quotas(workspace: Workspace, vm_family: str, limit: Any = None, location: str | None = None) -> NoReturn:
        raise NotThereYet("AmlCompute.update_quotas", "Machines of your own have no quota; max_nodes is the limit.")

    def _take(self, view: dict[str, Any]) -> None:
        super()._take(view)
        self.vm_size: str = view["vm_size"]
        self.vm_priority: str = view["vm_priority"]
        self.scale_settings = ScaleSettings(view["min_nodes"], view["max_nodes"], view["idle_seconds"])
        for name in _KEPT:
            setattr(self, name, view["more"].get(name))
        self.admin_user_password = None
        self.status: AmlComputeStatus = _status(self, view)


def _status(cluster: AmlCompute, view: dict[str, Any]) -> AmlComputeStatus:
    states = [node["state"] for node in view["nodes"]]
    counts = AmlComputeNodeStateCounts(
        states.count("idle"), states.count("leaving"), states.count("preempted"), states.count("preparing"),
        states.count("running"), 0,
    )  # fmt: skip
    alive = sum(1 for state in states if state in ("idle", "running"))
    changed = display.when(max([view["changed_at"], *(node["since"] for node in view["nodes"])]))
    return AmlComputeStatus(
        allocation_state="Resizing" if alive < view["min_nodes"] else "Steady",
        allocation_state_transition_time=changed,
        creation_time=cluster.created_on,
        current_node_count=alive,
        errors=cluster.provisioning_errors,
        modified_time=cluster.modified_on,
        node_state_counts=counts,
        provisioning_state=cluster.provisioning_state,
        provisioning_state_transition_time=None,
        scale_settings=cluster.scale_settings,
        target_node_count=max(alive, view["min_nodes"]),
        vm_priority="LowPriority" if view["vm_priority"] == "lowpriority" else "Dedicated",
        vm_size=view["vm_size"],
    )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _seconds(text: str) -> float:
    return float(text[2:-1]) if text.startswith("PT") and text.endswith("S") else float(text)

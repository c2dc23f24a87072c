"""Compute targets: where runs go. What all kinds have in common, and how one is found, made and attached."""

from __future__ import annotations

import builtins
import sys
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lapis.client.http_client import quoted
from lapis.errors import ComputeTargetException
from lapis.sdk.base import display

if TYPE_CHECKING:
    from lapis.sdk.compute.aml_compute import AmlComputeStatus
    from lapis.sdk.compute.compute_instance import ComputeInstanceStatus
    from lapis.sdk.workspace.workspace import Workspace


Kind = TypeVar("Kind", bound="ComputeTarget")


class ComputeTargetProvisioningConfiguration(Generic[Kind]):
    """What a compute target is made from."""

    def __init__(self, type: type[Kind], location: str | None) -> None:
        self._compute_type = type
        self.location = location

    def validate_configuration(self) -> None:
        """Raise ComputeTargetException if no such target can be made."""

    def _to_new(self) -> dict[str, Any]:
        raise NotImplementedError


class ComputeTargetAttachConfiguration(Generic[Kind]):
    """What is known of a machine or cluster that is there already."""

    def __init__(self, type: type[Kind]) -> None:
        self._compute_type = type

    def validate_configuration(self) -> None:
        """Raise ComputeTargetException if it cannot be attached."""

    def _to_new(self) -> dict[str, Any]:
        raise NotImplementedError


class ComputeTargetUpdateConfiguration(Generic[Kind]):
    """What changes of a compute target."""

    def __init__(self, type: type[Kind]) -> None:
        self.compute = type

    def validate_configuration(self) -> None:
        """Raise ComputeTargetException if it cannot be changed so."""


class ComputeTarget:
    """A compute target of a workspace. `ComputeTarget(ws, name)` gives an object of the target's own kind."""

    _compute_type = ""
    workspace: Workspace
    status: AmlComputeStatus | ComputeInstanceStatus  # of clusters and instances; other kinds have none

    def __new__(cls, workspace: Workspace, name: str) -> Any:
        view = _fetch(workspace, name)
        kind = _kinds().get(view["type"], ComputeTarget)
        if not issubclass(kind, cls):
            raise ComputeTargetException(
                f"Compute target '{name}' is of type {view['type']}, not {cls._compute_type}. Use "
                f"ComputeTarget(ws, '{name}')."
            )
        return _made(kind, workspace, view)

    def __init__(self, workspace: Workspace, name: str) -> None:
        """Everything is read by `__new__`, which knows the kind."""

    @staticmethod
    def create(
        workspace: Workspace, name: str, provisioning_configuration: ComputeTargetProvisioningConfiguration[Kind]
    ) -> Kind:
        """Make a target. It is there when this returns; its nodes come when a run needs them."""
        if not hasattr(provisioning_configuration, "validate_configuration"):
            raise ComputeTargetException(
                "provisioning_configuration comes from provisioning_configuration() of a kind of target, such as "
                f"AmlCompute; it cannot be {provisioning_configuration!r}."
            )
        provisioning_configuration.validate_configuration()
        return _sent(provisioning_configuration._compute_type, workspace, name, provisioning_configuration._to_new())

    @staticmethod
    def attach(workspace: Workspace, name: str, attach_configuration: ComputeTargetAttachConfiguration[Kind]) -> Kind:
        """Let a machine or cluster that is there already be a target."""
        if not hasattr(attach_configuration, "validate_configuration"):
            raise ComputeTargetException(
                "attach_configuration comes from attach_configuration() of a kind of target, such as "
                f"KubernetesCompute; it cannot be {attach_configuration!r}."
            )
        attach_configuration.validate_configuration()
        return _sent(attach_configuration._compute_type, workspace, name, attach_configuration._to_new())

    @staticmethod
    def list(workspace: Workspace) -> list[ComputeTarget]:
        """All targets of the workspace."""
        views = workspace._client.call("GET", workspace._base + "/computes")["computes"]
        return [_made(_kinds().get(view["type"], ComputeTarget), workspace, view) for view in views]

    def refresh_state(self) -> None:
        """Read the target again, in place."""
        self._take(_fetch(self.workspace, self.name))

    def get_status(self) -> AmlComputeStatus | ComputeInstanceStatus | str:
        """The state in one word."""
        self.refresh_state()
        return self.provisioning_state

    def wait_for_completion(self, show_output: bool = False, is_delete_operation: bool = False) -> None:
        """Return once the target is there: which it is, unless something went wrong."""
        if is_delete_operation:
            _wait_until_gone(self)
            return
        self.refresh_state()
        if show_output:
            print(f'{self.provisioning_state}\nProvisioning operation finished, operation "{self.provisioning_state}"')

    def delete(self) -> None:
        """Remove the target from the workspace. Refused while runs use it or wait for it."""
        self.workspace._client.call("DELETE", f"{self.workspace._base}/computes/{quoted(self.name)}")
        self.provisioning_state = "Deleting"

    def detach(self) -> None:
        """Remove an attached target from the workspace; what it stands for goes on."""
        self.delete()

    def serialize(self) -> dict[str, Any]:
        view = self._view
        return {
            "id": self.id,
            "name": self.name,
            "location": self.location,
            "tags": self.tags,
            "properties": {
                "computeType": self.type,
                "computeLocation": self.cluster_location,
                "description": self.description,
                "provisioningState": self.provisioning_state,
                "createdOn": self.created_on,
                "modifiedOn": self.modified_on,
                "isAttachedCompute": self.is_attached,
                "engine": view["engine"],
                "properties": {"vmSize": view["vm_size"], "vmPriority": view["vm_priority"]},
            },
        }

    @staticmethod
    def deserialize(workspace: Workspace, object_dict: dict[str, Any]) -> ComputeTarget:
        """The target that `serialize` described, as it is now."""
        return ComputeTarget(workspace, object_dict["name"])

    def _take(self, view: dict[str, Any]) -> None:
        self._view = view
        self.name: str = view["name"]
        self.id = f"{self.workspace._resource_id}/computes/{self.name}"
        self.type: str = view["type"]
        self.tags: dict[str, str] = view["tags"]
        self.description: str | None = view["description"]
        self.location = self.workspace.location
        self.cluster_location = self.location
        self.cluster_resource_id = self.id
        self.created_on = display.when(view["created_at"])
        self.modified_on = display.when(view["changed_at"])
        self.is_attached: bool = view["attached"]
        self.provisioning_state = "Succeeded"
        self.provisioning_errors: builtins.list[str] | None = [each["message"] for each in view["errors"]] or None

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(workspace={self.workspace!r}, name={self.name!r}, id={self.id!r}, "
            f"type={self.type!r}, provisioning_state={self.provisioning_state!r}, location={self.location!r}, "
            f"tags={self.tags!r})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComputeTarget) and (self.workspace, self.name) == (other.workspace, other.name)

    def __hash__(self) -> int:
        return hash(self.name)


class LocalTarget:
    """The machine of the server itself, which every workspace has under the name 'local'."""

    name = "local"
    type = "local"


def _kinds() -> dict[str, type[ComputeTarget]]:
    from lapis.sdk.compute.aks_compute import AksCompute
    from lapis.sdk.compute.aml_compute import AmlCompute
    from lapis.sdk.compute.attached_compute import DsvmCompute, KubernetesCompute, RayCompute, RemoteCompute
    from lapis.sdk.compute.compute_instance import ComputeInstance

    known = (AmlCompute, AksCompute, ComputeInstance, KubernetesCompute, RayCompute, RemoteCompute, DsvmCompute)
    return {kind._compute_type: kind for kind in known}


def _fetch(workspace: Workspace, name: Any) -> dict[str, Any]:
    if not isinstance(name, str) or not name:
        raise ComputeTargetException(f"A compute target has a name; {name!r} is none.")
    view: dict[str, Any] = workspace._client.call("GET", f"{workspace._base}/computes/{quoted(name)}")
    return view


def _made(kind: type[Kind], workspace: Workspace, view: dict[str, Any]) -> Kind:
    made = object.__new__(kind)
    made.workspace = workspace
    made._take(view)
    return made


def _sent(kind: type[Kind], workspace: Workspace, name: str, new: dict[str, Any]) -> Kind:
    view = workspace._client.call("POST", workspace._base + "/computes", {"name": name, **new})
    made = _made(kind, workspace, view)
    made.provisioning_state = "Creating" if not view["attached"] else "Succeeded"
    return made


def _wait_until_gone(target: ComputeTarget, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            target.refresh_state()
        except ComputeTargetException:
            return
        time.sleep(0.1)
    print(f"Compute target '{target.name}' is still there after {seconds:.0f} s.", file=sys.stderr)

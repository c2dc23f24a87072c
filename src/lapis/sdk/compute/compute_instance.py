"""A compute instance: the machine that the server runs on, under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Iterator

from lapis.domain.vm_sizes import vm_size as size_named
from lapis.sdk.compute.aml_compute import AmlCompute
from lapis.sdk.compute.compute_target import ComputeTarget, ComputeTargetProvisioningConfiguration

if TYPE_CHECKING:
    from lapis.sdk.runs.experiment import LabelFilter, RunType
    from lapis.sdk.runs.run import Run
    from lapis.sdk.workspace.workspace import Workspace


_OF_A_CLOUD = (
    "admin_username", "admin_user_ssh_public_key", "assigned_user_object_id", "assigned_user_tenant_id",
    "private_ip_address", "public_ip_address", "ssh_port", "subnet_id", "subnet_name", "vnet_name",
    "vnet_resourcegroup_name",
)  # fmt: skip


class ComputeInstanceProvisioningConfiguration(ComputeTargetProvisioningConfiguration["ComputeInstance"]):
    """What a compute instance is made from."""

    def __init__(
        self,
        vm_size: str = "",
        ssh_public_access: bool = False,
        admin_user_ssh_public_key: str | None = None,
        vnet_resourcegroup_name: str | None = None,
        vnet_name: str | None = None,
        subnet_name: str | None = None,
        tags: dict[str, str] | None = None,
        description: str | None = None,
        assigned_user_object_id: str | None = None,
        assigned_user_tenant_id: str | None = None,
    ) -> None:
        super().__init__(ComputeInstance, None)
        self.vm_size = vm_size or "STANDARD_D2_V2"
        self.ssh_public_access = ssh_public_access
        self.admin_user_ssh_public_key = admin_user_ssh_public_key
        self.vnet_resourcegroup_name = vnet_resourcegroup_name
        self.vnet_name = vnet_name
        self.subnet_name = subnet_name
        self.tags = tags
        self.description = description
        self.assigned_user_object_id = assigned_user_object_id
        self.assigned_user_tenant_id = assigned_user_tenant_id

    def validate_configuration(self) -> None:
        size_named(self.vm_size)

    def _to_new(self) -> dict[str, Any]:
        return {
            "type": ComputeInstance._compute_type,
            "vm_size": self.vm_size,
            "min_nodes": 0,
            "max_nodes": 1,
            "tags": self.tags or {},
            "description": self.description,
        }


class ComputeInstanceStatus:
    """A compute instance at one moment."""

    def __init__(
        self,
        creation_time: Any,
        created_by_user_name: Any,
        created_by_user_id: Any,
        created_by_user_org: Any,
        errors: Any,
        modified_time: Any,
        state: str,
        vm_size: str,
    ) -> None:
        self.creation_time = creation_time
        self.created_by_user_name = created_by_user_name
        self.created_by_user_id = created_by_user_id
        self.created_by_user_org = created_by_user_org
        self.errors = errors
        self.modified_time = modified_time
        self.state = state
        self.vm_size = vm_size

    def serialize(self) -> dict[str, Any]:
        return {
            "errors": self.errors,
            "creationTime": self.creation_time,
            "createdBy": {
                "userObjectId": self.created_by_user_id,
                "userTenantId": self.created_by_user_org,
                "userName": self.created_by_user_name,
            },
            "modifiedTime": self.modified_time,
            "state": self.state,
            "vmSize": self.vm_size,
        }

    @staticmethod
    def deserialize(object_dict: dict[str, Any]) -> ComputeInstanceStatus:
        who = object_dict["createdBy"]
        return ComputeInstanceStatus(
            object_dict["creationTime"], who["userName"], who["userObjectId"], who["userTenantId"],
            object_dict["errors"], object_dict["modifiedTime"], object_dict["state"], object_dict["vmSize"],
        )  # fmt: skip


class ComputeInstance(ComputeTarget):
    """The machine that the server runs on. It is there as long as the server is: start and stop change nothing."""

    _compute_type = "ComputeInstance"

    @staticmethod
    def provisioning_configuration(
        vm_size: str = "",
        ssh_public_access: bool = False,
        admin_user_ssh_public_key: str | None = None,
        vnet_resourcegroup_name: str | None = None,
        vnet_name: str | None = None,
        subnet_name: str | None = None,
        tags: dict[str, str] | None = None,
        description: str | None = None,
        assigned_user_object_id: str | None = None,
        assigned_user_tenant_id: str | None = None,
    ) -> ComputeInstanceProvisioningConfiguration:
        """What ComputeTarget.create() takes."""
        return ComputeInstanceProvisioningConfiguration(
            vm_size, ssh_public_access, admin_user_ssh_public_key, vnet_resourcegroup_name, vnet_name, subnet_name,
            tags, description, assigned_user_object_id, assigned_user_tenant_id,
        )  # fmt: skip

    @staticmethod
    def supported_vmsizes(workspace: Workspace, location: str | None = None) -> list[dict[str, Any]]:
        return AmlCompute.supported_vmsizes(workspace, location)

    def get(self) -> dict[str, Any]:
        self.refresh_state()
        return self.serialize()

    def get_status(self) -> ComputeInstanceStatus:
        self.refresh_state()
        return self.status

    def get_active_runs(
        self,
        type: RunType = None,
        tags: LabelFilter = None,
        properties: LabelFilter = None,
        status: str | Iterable[str] | None = None,
    ) -> Iterator[Run]:
        return AmlCompute.get_active_runs(self, type, tags, properties, status)  # type: ignore[arg-type]

    @classmethod
    def get_docs_url(cls) -> str:
        return "docs/compute.md"

    def start(self, wait_for_completion: bool = False, show_output: bool = False) -> None:
        """It runs already."""

    def stop(self, wait_for_completion: bool = False, show_output: bool = False) -> None:
        """Nothing is paid for while nothing runs, so nothing is stopped."""

    def restart(self, wait_for_completion: bool = False, show_output: bool = False) -> None:
        """It runs already."""

    def update_sso_settings(self, value: bool) -> None:
        """There is no sign-on to change."""

    def delete(self, wait_for_completion: bool = False, show_output: bool = False) -> None:
        super().delete()

    def _take(self, view: dict[str, Any]) -> None:
        super()._take(view)
        self.vm_size: str = view["vm_size"]
        self.status: ComputeInstanceStatus = ComputeInstanceStatus(
            self.created_on, None, None, None, self.provisioning_errors, self.modified_on, "Running", view["vm_size"]
        )
        self.errors = self.provisioning_errors
        self.instance_location, self.instance_resource_id = self.location, self.id
        self.applications: list[Any] = []
        for of_a_cloud in _OF_A_CLOUD:
            setattr(self, of_a_cloud, None)
        self.ssh_public_access = False

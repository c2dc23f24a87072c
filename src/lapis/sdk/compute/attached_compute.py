"""Machines and clusters that were there before, attached under a name."""

from __future__ import annotations

from typing import Any, NoReturn

from lapis.errors import ComputeTargetException, NotThereYet
from lapis.sdk.compute.compute_target import ComputeTarget, ComputeTargetAttachConfiguration

_SSH = (
    "Lapis does not run on a machine over ssh. Start a Ray node there (`ray start --address=...`) and attach the Ray "
    "cluster with RayCompute, or start a Lapis server there and set LAPIS_SERVER."
)


class RayComputeAttachConfiguration(ComputeTargetAttachConfiguration["RayCompute"]):
    """Where a Ray cluster is, and what runs may take of it."""

    def __init__(
        self,
        address: str,
        vm_size: str = "STANDARD_D2_V2",
        max_nodes: int = 100,
        server_address: str | None = None,
        namespace: str = "lapis",
    ) -> None:
        super().__init__(RayCompute)
        self.address = address
        self.vm_size = vm_size
        self.max_nodes = max_nodes
        self.server_address = server_address
        self.namespace = namespace

    def validate_configuration(self) -> None:
        if not isinstance(self.address, str) or ":" not in self.address:
            raise ComputeTargetException(
                f"A Ray cluster is given by its address, such as '10.0.0.5:6379' or 'ray://10.0.0.5:10001', not "
                f"{self.address!r}."
            )

    def _to_new(self) -> dict[str, Any]:
        settings = {"address": self.address, "server_address": self.server_address, "namespace": self.namespace}
        return {
            "type": RayCompute._compute_type,
            "engine": "ray",
            "vm_size": self.vm_size,
            "max_nodes": self.max_nodes,
            "idle_seconds": 0.0,  # Ray's autoscaler knows better how long a machine may be idle
            "attached": True,
            "settings": {name: value for name, value in settings.items() if value is not None},
        }


class RayCompute(ComputeTarget):
    """A Ray cluster. Lapis' own: SDK v1 has none. Ray's autoscaler brings its nodes up and down."""

    _compute_type = "Ray"

    @staticmethod
    def attach_configuration(
        address: str,
        vm_size: str = "STANDARD_D2_V2",
        max_nodes: int = 100,
        server_address: str | None = None,
        namespace: str = "lapis",
    ) -> RayComputeAttachConfiguration:
        """What ComputeTarget.attach() takes. A node of a run gets the cores and GPUs of `vm_size`."""
        return RayComputeAttachConfiguration(address, vm_size, max_nodes, server_address, namespace)

    def _take(self, view: dict[str, Any]) -> None:
        super()._take(view)
        self.vm_size: str = view["vm_size"]
        self.address: str | None = view["settings"].get("address")


class KubernetesComputeAttachConfiguration(ComputeTargetAttachConfiguration["KubernetesCompute"]):
    """Where a Kubernetes cluster is."""

    def __init__(
        self,
        resource_id: str | None = None,
        namespace: str | None = None,
        identity_type: str | None = None,
        identity_ids: Any = None,
        default_instance_type: str | None = None,
        instance_types: Any = None,
    ) -> None:
        super().__init__(KubernetesCompute)
        self.resource_id = resource_id
        self.namespace = namespace
        self.identity_type = identity_type
        self.identity_ids = identity_ids
        self.default_instance_type = default_instance_type
        self.instance_types = instance_types

    def validate_configuration(self) -> None:
        raise NotThereYet(
            "KubernetesCompute", "Attach a Ray cluster that runs on Kubernetes (KubeRay) with RayCompute instead."
        )

    def to_dict(self) -> dict[str, Any]:
        return {"resourceId": self.resource_id, "properties": {"namespace": self.namespace}}


class KubernetesCompute(ComputeTarget):
    """A Kubernetes cluster."""

    _compute_type = "Kubernetes"

    @staticmethod
    def attach_configuration(
        resource_id: str | None = None,
        namespace: str | None = None,
        identity_type: str | None = None,
        identity_ids: Any = None,
        default_instance_type: str | None = None,
        instance_types: Any = None,
    ) -> KubernetesComputeAttachConfiguration:
        return KubernetesComputeAttachConfiguration(
            resource_id, namespace, identity_type, identity_ids, default_instance_type, instance_types
        )


class RemoteComputeAttachConfiguration(ComputeTargetAttachConfiguration["RemoteCompute"]):
    """How to reach a machine over ssh."""

    def __init__(
        self,
        username: str,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        vm_name: str | None = None,
        resource_id: str | None = None,
        address: str | None = None,
        ssh_port: int = 22,
        password: str = "",
        private_key_file: str = "",
        private_key_passphrase: str = "",
    ) -> None:
        super().__init__(RemoteCompute)
        self.username = username
        self.subscription_id = subscription_id
        self.resource_group = resource_group
        self.vm_name = vm_name
        self.resource_id = resource_id
        self.address = address
        self.ssh_port = ssh_port
        self.password = password
        self.private_key_file = private_key_file
        self.private_key_passphrase = private_key_passphrase

    def validate_configuration(self) -> None:
        raise NotThereYet("RemoteCompute", _SSH)


class RemoteCompute(ComputeTarget):
    """A machine that is reached over ssh."""

    _compute_type = "VirtualMachine"

    @staticmethod
    def attach(
        workspace: Any,
        name: str,
        username: Any = None,
        address: str | None = None,
        ssh_port: int = 22,
        password: str = "",
        private_key_file: str = "",
        private_key_passphrase: str = "",
    ) -> NoReturn:
        raise NotThereYet("RemoteCompute.attach", _SSH)

    @staticmethod
    def attach_configuration(
        username: str,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        vm_name: str | None = None,
        resource_id: str | None = None,
        address: str | None = None,
        ssh_port: int = 22,
        password: str = "",
        private_key_file: str = "",
        private_key_passphrase: str = "",
    ) -> RemoteComputeAttachConfiguration:
        return RemoteComputeAttachConfiguration(
            username, subscription_id, resource_group, vm_name, resource_id, address, ssh_port, password,
            private_key_file, private_key_passphrase,
        )  # fmt: skip

    def get_credentials(self) -> NoReturn:
        raise NotThereYet("RemoteCompute.get_credentials", _SSH)


class DsvmCompute(ComputeTarget):
    """A data science virtual machine of Azure's."""

    _compute_type = "DSVM"

    @staticmethod
    def provisioning_configuration(vm_size: Any = None, ssh_port: Any = None, location: Any = None) -> NoReturn:
        raise NotThereYet("DsvmCompute", "Use ComputeInstance, which is the server's own machine, or a cluster.")

    def get_credentials(self) -> NoReturn:
        raise NotThereYet("DsvmCompute.get_credentials", _SSH)

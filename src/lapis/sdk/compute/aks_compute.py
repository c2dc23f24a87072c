"""Clusters that serve models: what Azure runs as Kubernetes is the server's own machine here, under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from lapis.domain.vm_sizes import vm_size as size_named
from lapis.errors import ComputeTargetException
from lapis.sdk.compute.compute_target import (
    ComputeTarget,
    ComputeTargetAttachConfiguration,
    ComputeTargetProvisioningConfiguration,
    ComputeTargetUpdateConfiguration,
)

if TYPE_CHECKING:
    from lapis.sdk.workspace.workspace import Workspace

_SIZE = "STANDARD_D3_V2"
_SHOWN = ("cluster_purpose", "load_balancer_type", "load_balancer_subnet")


class SslConfiguration:
    """A certificate. Kept and shown: services listen on this machine only."""

    def __init__(
        self,
        status: str | None = None,
        cert: str | None = None,
        key: str | None = None,
        cname: str | None = None,
        leaf_domain_label: str | None = None,
        overwrite_existing_domain: bool = False,
        renew: bool = False,
    ) -> None:
        self.status = status
        self.cert = cert
        self.key = key
        self.cname = cname
        self.leaf_domain_label = leaf_domain_label
        self.overwrite_existing_domain = overwrite_existing_domain
        self.renew = renew

    def serialize(self) -> dict[str, Any]:
        return {"status": self.status, "cname": self.cname, "leafDomainLabel": self.leaf_domain_label,
                "overwriteExistingDomain": self.overwrite_existing_domain, "renew": self.renew}  # fmt: skip

    @staticmethod
    def deserialize(object_dict: Mapping[str, Any] | None) -> SslConfiguration | None:
        if not object_dict:
            return None
        return SslConfiguration(
            object_dict.get("status"), None, None, object_dict.get("cname"), object_dict.get("leafDomainLabel"),
            bool(object_dict.get("overwriteExistingDomain")), bool(object_dict.get("renew")),
        )  # fmt: skip


class SystemService:
    """A service that a cluster itself runs."""

    def __init__(self, service_type: Any, version: Any, public_ip_address: Any) -> None:
        self.service_type = service_type
        self.version = version
        self.public_ip_address = public_ip_address

    def serialize(self) -> dict[str, Any]:
        return {
            "systemServiceType": self.service_type,
            "version": self.version,
            "publicIpAddress": self.public_ip_address,
        }

    @staticmethod
    def deserialize(object_dict: dict[str, Any]) -> SystemService:
        return SystemService(*(object_dict.get(name) for name in ("systemServiceType", "version", "publicIpAddress")))


class _Certificate:
    """What both configurations say of a certificate."""

    ssl_cname: str | None = None
    ssl_cert_pem_file: str | None = None
    ssl_key_pem_file: str | None = None
    leaf_domain_label: str | None = None
    overwrite_existing_domain: bool = False

    def enable_ssl(
        self,
        ssl_cname: str | None = None,
        ssl_cert_pem_file: str | None = None,
        ssl_key_pem_file: str | None = None,
        leaf_domain_label: str | None = None,
        overwrite_existing_domain: bool = False,
    ) -> None:
        """Kept and shown: services listen on this machine only."""
        self.ssl_cname = ssl_cname
        self.ssl_cert_pem_file = ssl_cert_pem_file
        self.ssl_key_pem_file = ssl_key_pem_file
        self.leaf_domain_label = leaf_domain_label
        self.overwrite_existing_domain = overwrite_existing_domain

    def _more(self) -> dict[str, Any]:
        shown = {name: getattr(self, name) for name in (*_SHOWN, "ssl_cname", "leaf_domain_label")}
        return {name: value for name, value in shown.items() if value is not None}


class AksProvisioningConfiguration(_Certificate, ComputeTargetProvisioningConfiguration["AksCompute"]):
    """What a cluster is made from."""

    def __init__(
        self,
        agent_count: int | None,
        vm_size: str | None,
        ssl_cname: str | None,
        ssl_cert_pem_file: str | None,
        ssl_key_pem_file: str | None,
        location: str | None,
        vnet_resourcegroup_name: str | None,
        vnet_name: str | None,
        subnet_name: str | None,
        service_cidr: str | None,
        dns_service_ip: str | None,
        docker_bridge_cidr: str | None,
        cluster_purpose: str | None,
        load_balancer_type: str | None,
        load_balancer_subnet: str | None,
    ) -> None:
        super().__init__(AksCompute, location)
        self.agent_count = agent_count
        self.vm_size = vm_size
        self.ssl_cname = ssl_cname
        self.ssl_cert_pem_file = ssl_cert_pem_file
        self.ssl_key_pem_file = ssl_key_pem_file
        self.leaf_domain_label = None
        self.overwrite_existing_domain = False
        self.vnet_resourcegroup_name = vnet_resourcegroup_name
        self.vnet_name = vnet_name
        self.subnet_name = subnet_name
        self.service_cidr = service_cidr
        self.dns_service_ip = dns_service_ip
        self.docker_bridge_cidr = docker_bridge_cidr
        self.cluster_purpose = cluster_purpose
        self.load_balancer_type = load_balancer_type
        self.load_balancer_subnet = load_balancer_subnet

    def validate_configuration(self) -> None:
        size_named(self.vm_size or _SIZE)
        _check_purpose(self.cluster_purpose)
        if self.agent_count is not None and (not isinstance(self.agent_count, int) or self.agent_count < 1):
            raise ComputeTargetException(f"agent_count must be a whole number of 1 at least, not {self.agent_count!r}.")

    def _to_new(self) -> dict[str, Any]:
        count = self.agent_count or (1 if self.cluster_purpose == AksCompute.ClusterPurpose.DEV_TEST else 3)
        return {"type": AksCompute._compute_type, "vm_size": self.vm_size or _SIZE, "min_nodes": 0, "max_nodes": count,
                "more": self._more()}  # fmt: skip


class AksAttachConfiguration(_Certificate, ComputeTargetAttachConfiguration["AksCompute"]):
    """A cluster that is there already."""

    def __init__(
        self,
        resource_group: str | None = None,
        cluster_name: str | None = None,
        resource_id: str | None = None,
        cluster_purpose: str | None = None,
        load_balancer_type: str | None = None,
        load_balancer_subnet: str | None = None,
    ) -> None:
        super().__init__(AksCompute)
        self.resource_group = resource_group
        self.cluster_name = cluster_name
        self.resource_id = resource_id
        self.cluster_purpose = cluster_purpose
        self.load_balancer_type = load_balancer_type
        self.load_balancer_subnet = load_balancer_subnet
        self.ssl_cname = None
        self.ssl_cert_pem_file = None
        self.ssl_key_pem_file = None
        self.leaf_domain_label = None
        self.overwrite_existing_domain = False

    def validate_configuration(self) -> None:
        _check_purpose(self.cluster_purpose)
        if not self.resource_id and not (self.resource_group and self.cluster_name):
            raise ComputeTargetException("A cluster is attached by resource_group and cluster_name, or by resource_id.")

    def _to_new(self) -> dict[str, Any]:
        return {"type": AksCompute._compute_type, "vm_size": _SIZE, "max_nodes": 3, "attached": True,
                "more": self._more()}  # fmt: skip


class AksUpdateConfiguration(ComputeTargetUpdateConfiguration["AksCompute"]):
    """What changes of a cluster."""

    def __init__(
        self,
        ssl_configuration: SslConfiguration | None = None,
        load_balancer_type: str | None = None,
        load_balancer_subnet: str | None = None,
    ) -> None:
        super().__init__(AksCompute)
        self.ssl_configuration = ssl_configuration
        self.load_balancer_type = load_balancer_type
        self.load_balancer_subnet = load_balancer_subnet

    def validate_configuration(self) -> None:
        if self.ssl_configuration is not None and not isinstance(self.ssl_configuration, SslConfiguration):
            raise ComputeTargetException(
                f"ssl_configuration must be an SslConfiguration, not {self.ssl_configuration!r}."
            )


class AksCompute(ComputeTarget):
    """A target for AksWebservice. Its services run on the server's own machine; attach a Ray cluster for others."""

    _compute_type = "AKS"
    ssl_configuration: SslConfiguration | None
    load_balancer_type: str
    load_balancer_subnet: str | None

    class ClusterPurpose:
        """What a cluster is for."""

        FAST_PROD = "FastProd"
        DEV_TEST = "DevTest"

    @staticmethod
    def provisioning_configuration(
        agent_count: int | None = None,
        vm_size: str | None = None,
        ssl_cname: str | None = None,
        ssl_cert_pem_file: str | None = None,
        ssl_key_pem_file: str | None = None,
        location: str | None = None,
        vnet_resourcegroup_name: str | None = None,
        vnet_name: str | None = None,
        subnet_name: str | None = None,
        service_cidr: str | None = None,
        dns_service_ip: str | None = None,
        docker_bridge_cidr: str | None = None,
        cluster_purpose: str | None = None,
        load_balancer_type: str | None = None,
        load_balancer_subnet: str | None = None,
    ) -> AksProvisioningConfiguration:
        """What ComputeTarget.create() takes. Networks and certificates are a cloud's: kept and not used."""
        return AksProvisioningConfiguration(
            agent_count, vm_size, ssl_cname, ssl_cert_pem_file, ssl_key_pem_file, location, vnet_resourcegroup_name,
            vnet_name, subnet_name, service_cidr, dns_service_ip, docker_bridge_cidr, cluster_purpose,
            load_balancer_type, load_balancer_subnet,
        )  # fmt: skip

    @staticmethod
    def attach_configuration(
        resource_group: str | None = None,
        cluster_name: str | None = None,
        resource_id: str | None = None,
        cluster_purpose: str | None = None,
        load_balancer_type: str | None = None,
        load_balancer_subnet: str | None = None,
    ) -> AksAttachConfiguration:
        """What ComputeTarget.attach() takes. The name stands for this machine from then on."""
        return AksAttachConfiguration(
            resource_group, cluster_name, resource_id, cluster_purpose, load_balancer_type, load_balancer_subnet
        )

    @staticmethod
    def attach(  # type: ignore[override]  # SDK v1's own signature
        workspace: Workspace, name: str, resource_id: str
    ) -> AksCompute:
        return ComputeTarget.attach(workspace, name, AksAttachConfiguration(resource_id=resource_id))

    @staticmethod
    def deserialize(workspace: Workspace, object_dict: dict[str, Any]) -> AksCompute:
        return AksCompute(workspace, object_dict["name"])

    def refresh_state(self) -> None:
        super().refresh_state()

    def delete(self) -> None:
        """Remove it from the workspace. Refused while services are on it."""
        super().delete()

    def detach(self) -> None:
        super().detach()

    def update(self, update_configuration: AksUpdateConfiguration) -> None:
        """Certificates and load balancers are a cloud's: what is given is shown by this object, and not used."""
        update_configuration.validate_configuration()
        self.ssl_configuration = update_configuration.ssl_configuration or self.ssl_configuration
        self.load_balancer_type = update_configuration.load_balancer_type or self.load_balancer_type
        self.load_balancer_subnet = update_configuration.load_balancer_subnet or self.load_balancer_subnet

    def get_credentials(self) -> dict[str, Any]:
        """There is no Kubernetes behind it, so there are none."""
        raise ComputeTargetException(f"'{self.name}' is no Kubernetes cluster: it has no credentials.")

    def serialize(self) -> dict[str, Any]:
        found = super().serialize()
        found["properties"]["properties"].update(agentCount=self.agent_count, agentVmSize=self.agent_vm_size)
        return found

    def _take(self, view: dict[str, Any]) -> None:
        super()._take(view)
        more = view["more"]
        self.agent_count = view["max_nodes"]
        self.agent_vm_size = view["vm_size"]
        self.cluster_purpose = more.get("cluster_purpose") or self.ClusterPurpose.FAST_PROD
        self.cluster_fqdn = None
        self.load_balancer_type = more.get("load_balancer_type") or "PublicIp"
        self.load_balancer_subnet = more.get("load_balancer_subnet")
        cname = more.get("ssl_cname")
        self.ssl_configuration = SslConfiguration("Enabled", cname=cname) if cname else None
        self.system_services: list[SystemService] = []


def _check_purpose(purpose: Any) -> None:
    known = (AksCompute.ClusterPurpose.FAST_PROD, AksCompute.ClusterPurpose.DEV_TEST)
    if purpose is not None and purpose not in known:
        raise ComputeTargetException(f"cluster_purpose cannot be {purpose!r}. Known: {', '.join(known)}.")

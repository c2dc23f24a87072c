"""Services with one replica: what Azure runs in a container instance."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Iterable, NoReturn, Sequence

from lapis.domain.service_settings import ACI, ServiceSettings
from lapis.errors import WebserviceException
from lapis.sdk.models import deployment
from lapis.sdk.models.deployment_config import AciServiceDeploymentConfiguration
from lapis.sdk.models.service_parts import ContainerResourceRequirements, EncryptionProperties, VnetConfiguration
from lapis.sdk.models.webservice import Webservice

if TYPE_CHECKING:
    from lapis.sdk.models.image import Image
    from lapis.sdk.models.inference_config import InferenceConfig
    from lapis.sdk.models.model import Model


class AciWebservice(Webservice):
    _kind = ACI

    @staticmethod
    def deploy_configuration(
        cpu_cores: float | None = None,
        memory_gb: float | None = None,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        description: str | None = None,
        location: str | None = None,
        auth_enabled: bool | None = None,
        ssl_enabled: bool | None = None,
        enable_app_insights: bool | None = None,
        ssl_cert_pem_file: str | None = None,
        ssl_key_pem_file: str | None = None,
        ssl_cname: str | None = None,
        dns_name_label: str | None = None,
        primary_key: str | None = None,
        secondary_key: str | None = None,
        collect_model_data: bool | None = None,
        cmk_vault_base_url: str | None = None,
        cmk_key_name: str | None = None,
        cmk_key_version: str | None = None,
        vnet_name: str | None = None,
        subnet_name: str | None = None,
    ) -> AciServiceDeploymentConfiguration:
        """How it is to run. What only a cloud has (networks, vaults, certificates) is kept and not used."""
        return AciServiceDeploymentConfiguration(
            cpu_cores, memory_gb, tags, properties, description, location, auth_enabled, ssl_enabled,
            enable_app_insights, ssl_cert_pem_file, ssl_key_pem_file, ssl_cname, dns_name_label, primary_key,
            secondary_key, collect_model_data, cmk_vault_base_url, cmk_key_name, cmk_key_version, vnet_name,
            subnet_name,
        )  # fmt: skip

    def run(self, input_data: Any) -> Any:
        """Send a request; the answer, parsed where it is JSON."""
        return super().run(input_data)

    def get_token(self) -> NoReturn:
        """A service of this kind has keys only, in Azure too."""
        raise WebserviceException("A service of AciWebservice is opened by keys, not by tokens. Use get_keys().")

    def update(
        self,
        image: Image | None = None,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        description: str | None = None,
        auth_enabled: bool | None = None,
        ssl_enabled: bool | None = None,
        ssl_cert_pem_file: str | None = None,
        ssl_key_pem_file: str | None = None,
        ssl_cname: str | None = None,
        enable_app_insights: bool | None = None,
        models: Sequence[Model | str] | None = None,
        inference_config: InferenceConfig | None = None,
    ) -> None:
        """Change what is given. New models or code are served once they are ready; until then the old ones are."""
        if ssl_enabled:
            print("Lapis: ssl is not used: the service listens on this machine only.", file=sys.stderr)
        given = {"image": image, "tags": tags, "properties": properties, "description": description, "models": models,
                 "inference_config": inference_config}  # fmt: skip
        settings = {"auth_enabled": auth_enabled, "enable_app_insights": enable_app_insights}
        kept = {"ssl_enabled": ssl_enabled, "ssl_cname": ssl_cname, "ssl_cert_pem_file": ssl_cert_pem_file,
                "ssl_key_pem_file": ssl_key_pem_file}  # fmt: skip
        self._change(deployment.change(self.workspace, given, {**settings, **kept}))

    def add_tags(self, tags: dict[str, Any]) -> None:
        self._add_tags(tags)

    def remove_tags(self, tags: str | Iterable[str]) -> None:
        self._remove_tags(tags)

    def add_properties(self, properties: dict[str, Any]) -> None:
        """Properties that are set stay as they are."""
        self._add_properties(properties)

    def serialize(self) -> dict[str, Any]:
        requirements = self.container_resource_requirements
        return {
            **super().serialize(),
            "containerResourceRequirements": requirements.serialize(),
            "location": self.location,
            "publicIp": self.public_ip,
            "publicFqdn": self.public_fqdn,
            "sslEnabled": self.ssl_enabled,
            "appInsightsEnabled": self.enable_app_insights,
            "cname": self.cname,
        }

    def _take(self, view: dict[str, Any]) -> None:
        super()._take(view)
        settings = ServiceSettings.from_json(view["settings"]).with_defaults()
        self.container_resource_requirements = ContainerResourceRequirements(settings.cpu_cores, settings.memory_gb)
        self.location = settings.location or self.workspace.location
        self.enable_app_insights = bool(settings.enable_app_insights)
        self.ssl_enabled = bool(settings.ssl_enabled)
        self.ssl_certificate = settings.ssl_cert_pem_file
        self.ssl_key = settings.ssl_key_pem_file
        self.cname = settings.ssl_cname
        self.public_ip = str(view["address"]).rpartition(":")[0]
        self.public_fqdn = None
        self.encryption_properties = _part(EncryptionProperties, settings)
        self.vnet_configuration = _part(VnetConfiguration, settings)


AciServiceDeploymentConfiguration.webservice_type = AciWebservice


def _part(kind: Any, settings: ServiceSettings) -> Any:
    values = {name: getattr(settings, name, None) for name in kind._names}
    return kind(**values) if any(values.values()) else None

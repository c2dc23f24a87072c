"""How a service is to run: the deployment configurations of SDK v1, each for one kind of service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lapis.domain.service import check_version_name
from lapis.domain.service_settings import ACI, AKS, ENDPOINT, LOCAL, Keys, ServiceSettings
from lapis.errors import WebserviceException

if TYPE_CHECKING:
    from lapis.sdk.models.webservice import Webservice

_LABELS = ("tags", "properties", "description")
_SECRET = ("primary_key", "secondary_key")
_ELSEWHERE = ("compute_target_name", "version_name")  # not settings: where it runs, and what it is called


class WebserviceDeploymentConfiguration:
    """What all of them have in common."""

    webservice_type: type[Webservice] | None = None  # the class that it deploys, as releases before 1.0.45 tell it
    _kind = ""
    _fields: tuple[str, ...] = ()

    def __init__(
        self,
        type: Any,
        description: str | None = None,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        primary_key: str | None = None,
        secondary_key: str | None = None,
        location: str | None = None,
    ) -> None:
        self._webservice_type = type
        self.description = description
        self.tags = tags
        self.properties = properties
        self.primary_key = primary_key
        self.secondary_key = secondary_key
        self.location = location

    def validate_configuration(self) -> None:
        """Raise WebserviceException if no service can be so."""
        for name in _SECRET:
            if not isinstance(getattr(self, name), (str, type(None))):
                raise WebserviceException(f"{name} must be text, not {getattr(self, name)!r}.")
        ServiceSettings.asked(self._settings()).check(self._kind, Keys(self.primary_key, self.secondary_key))
        for name in ("tags", "properties"):
            if getattr(self, name) is not None and not isinstance(getattr(self, name), dict):
                raise WebserviceException(f"{name} must be a dict, not {getattr(self, name)!r}.")

    def print_deploy_configuration(self) -> None:
        """Print what is set, without the keys."""
        for name in self._fields:
            value = getattr(self, name)
            if value is not None:
                print(f"{name}: {'********' if name in _SECRET else value}")

    @classmethod
    def validate_image(cls, image: Any) -> None:
        """Raise WebserviceException if nothing can be deployed from it."""
        if image is None:
            raise WebserviceException("Image is None: there is nothing to deploy.")
        if getattr(image, "creation_state", "Succeeded") != "Succeeded":
            raise WebserviceException(f"Image '{image.name}' is {image.creation_state}; wait_for_creation() first.")

    def _settings(self) -> dict[str, Any]:
        left_out = (*_LABELS, *_SECRET, *_ELSEWHERE)
        values = {name: getattr(self, name) for name in self._fields if name not in left_out}
        return {name: value for name, value in values.items() if value is not None}

    def _keys(self) -> dict[str, str]:
        given = {"primary": self.primary_key, "secondary": self.secondary_key}
        return {which: key for which, key in given.items() if key}

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        return f"{type(self).__name__}({shown})"


class AciServiceDeploymentConfiguration(WebserviceDeploymentConfiguration):
    """One replica, open unless it is told to have keys."""

    _kind = ACI
    _fields = ("cpu_cores", "memory_gb", "tags", "properties", "description", "location", "auth_enabled",
               "ssl_enabled", "enable_app_insights", "ssl_cert_pem_file", "ssl_key_pem_file", "ssl_cname",
               "dns_name_label", "primary_key", "secondary_key", "collect_model_data", "cmk_vault_base_url",
               "cmk_key_name", "cmk_key_version", "vnet_name", "subnet_name")  # fmt: skip

    def __init__(
        self,
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
    ) -> None:
        from lapis.sdk.models.aci_webservice import AciWebservice

        super().__init__(AciWebservice, description, tags, properties, primary_key, secondary_key, location)
        self.cpu_cores = cpu_cores
        self.memory_gb = memory_gb
        self.auth_enabled = auth_enabled
        self.ssl_enabled = ssl_enabled
        self.enable_app_insights = enable_app_insights
        self.ssl_cert_pem_file = ssl_cert_pem_file
        self.ssl_key_pem_file = ssl_key_pem_file
        self.ssl_cname = ssl_cname
        self.dns_name_label = dns_name_label
        self.collect_model_data = collect_model_data
        self.cmk_vault_base_url = cmk_vault_base_url
        self.cmk_key_name = cmk_key_name
        self.cmk_key_version = cmk_key_version
        self.vnet_name = vnet_name
        self.subnet_name = subnet_name
        self.validate_configuration()


class AksServiceDeploymentConfiguration(WebserviceDeploymentConfiguration):
    """Several replicas, opened by keys unless it is told otherwise."""

    _kind = AKS
    _fields: tuple[str, ...] = (
        "autoscale_enabled", "autoscale_min_replicas", "autoscale_max_replicas", "autoscale_refresh_seconds",
        "autoscale_target_utilization", "collect_model_data", "auth_enabled", "cpu_cores", "memory_gb",
        "enable_app_insights", "scoring_timeout_ms", "replica_max_concurrent_requests", "max_request_wait_time",
        "num_replicas", "primary_key", "secondary_key", "tags", "properties", "description", "gpu_cores",
        "period_seconds", "initial_delay_seconds", "timeout_seconds", "success_threshold", "failure_threshold",
        "namespace", "token_auth_enabled", "compute_target_name", "cpu_cores_limit", "memory_gb_limit",
        "blobfuse_enabled",
    )  # fmt: skip

    def __init__(
        self,
        autoscale_enabled: bool | None,
        autoscale_min_replicas: int | None,
        autoscale_max_replicas: int | None,
        autoscale_refresh_seconds: int | None,
        autoscale_target_utilization: int | None,
        collect_model_data: bool | None,
        auth_enabled: bool | None,
        cpu_cores: float | None,
        memory_gb: float | None,
        enable_app_insights: bool | None,
        scoring_timeout_ms: int | None,
        replica_max_concurrent_requests: int | None,
        max_request_wait_time: int | None,
        num_replicas: int | None,
        primary_key: str | None,
        secondary_key: str | None,
        tags: dict[str, Any] | None,
        properties: dict[str, Any] | None,
        description: str | None,
        gpu_cores: int | None,
        period_seconds: int | None,
        initial_delay_seconds: int | None,
        timeout_seconds: int | None,
        success_threshold: int | None,
        failure_threshold: int | None,
        namespace: str | None,
        token_auth_enabled: bool | None,
        compute_target_name: str | None,
        cpu_cores_limit: float | None,
        memory_gb_limit: float | None,
        blobfuse_enabled: bool | None = None,
    ) -> None:
        from lapis.sdk.models.aks_webservice import AksWebservice

        super().__init__(AksWebservice, description, tags, properties, primary_key, secondary_key)
        self.autoscale_enabled = autoscale_enabled
        self.autoscale_min_replicas = autoscale_min_replicas
        self.autoscale_max_replicas = autoscale_max_replicas
        self.autoscale_refresh_seconds = autoscale_refresh_seconds
        self.autoscale_target_utilization = autoscale_target_utilization
        self.collect_model_data = collect_model_data
        self.auth_enabled = auth_enabled
        self.cpu_cores = cpu_cores
        self.memory_gb = memory_gb
        self.enable_app_insights = enable_app_insights
        self.scoring_timeout_ms = scoring_timeout_ms
        self.replica_max_concurrent_requests = replica_max_concurrent_requests
        self.max_request_wait_time = max_request_wait_time
        self.num_replicas = num_replicas
        self.gpu_cores = gpu_cores
        self.period_seconds = period_seconds
        self.initial_delay_seconds = initial_delay_seconds
        self.timeout_seconds = timeout_seconds
        self.success_threshold = success_threshold
        self.failure_threshold = failure_threshold
        self.namespace = namespace
        self.token_auth_enabled = token_auth_enabled
        self.compute_target_name = compute_target_name
        self.cpu_cores_limit = cpu_cores_limit
        self.memory_gb_limit = memory_gb_limit
        self.blobfuse_enabled = blobfuse_enabled
        self.validate_configuration()


class AksEndpointDeploymentConfiguration(AksServiceDeploymentConfiguration):
    """An endpoint with its first version."""

    _kind = ENDPOINT
    _fields = (*AksServiceDeploymentConfiguration._fields, "version_name", "traffic_percentile")

    def __init__(
        self,
        autoscale_enabled: bool | None,
        autoscale_min_replicas: int | None,
        autoscale_max_replicas: int | None,
        autoscale_refresh_seconds: int | None,
        autoscale_target_utilization: int | None,
        collect_model_data: bool | None,
        auth_enabled: bool | None,
        cpu_cores: float | None,
        memory_gb: float | None,
        enable_app_insights: bool | None,
        scoring_timeout_ms: int | None,
        replica_max_concurrent_requests: int | None,
        max_request_wait_time: int | None,
        num_replicas: int | None,
        primary_key: str | None,
        secondary_key: str | None,
        tags: dict[str, Any] | None,
        properties: dict[str, Any] | None,
        description: str | None,
        gpu_cores: int | None,
        period_seconds: int | None,
        initial_delay_seconds: int | None,
        timeout_seconds: int | None,
        success_threshold: int | None,
        failure_threshold: int | None,
        namespace: str | None,
        token_auth_enabled: bool | None,
        version_name: str | None,
        traffic_percentile: int | None,
        compute_target_name: str | None,
        cpu_cores_limit: float | None,
        memory_gb_limit: float | None,
    ) -> None:
        from lapis.sdk.models.aks_webservice import AksEndpoint

        self.version_name = version_name
        self.traffic_percentile = traffic_percentile
        super().__init__(
            autoscale_enabled, autoscale_min_replicas, autoscale_max_replicas, autoscale_refresh_seconds,
            autoscale_target_utilization, collect_model_data, auth_enabled, cpu_cores, memory_gb, enable_app_insights,
            scoring_timeout_ms, replica_max_concurrent_requests, max_request_wait_time, num_replicas, primary_key,
            secondary_key, tags, properties, description, gpu_cores, period_seconds, initial_delay_seconds,
            timeout_seconds, success_threshold, failure_threshold, namespace, token_auth_enabled, compute_target_name,
            cpu_cores_limit, memory_gb_limit,
        )  # fmt: skip
        self._webservice_type = AksEndpoint
        self.validate_endpoint_configuration()

    def validate_endpoint_configuration(self) -> None:
        """Raise WebserviceException if an endpoint cannot have such a first version."""
        if self.version_name is not None:
            check_version_name(self.version_name)


class LocalWebserviceDeploymentConfiguration(WebserviceDeploymentConfiguration):
    """One replica on a port of this machine, open to whoever is on it."""

    _kind = LOCAL
    _fields = ("port", *_LABELS)

    def __init__(self, port: int | None = None) -> None:
        from lapis.sdk.models.local_webservice import LocalWebservice

        super().__init__(LocalWebservice)
        self.port = port
        self.validate_configuration()

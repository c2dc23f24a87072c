"""Services with several replicas, and endpoints that split requests between versions: what Azure runs on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Sequence

from lapis.client.http_client import quoted
from lapis.domain.service import check_version_name
from lapis.domain.service_settings import AKS, ENDPOINT, ServiceSettings
from lapis.errors import WebserviceException
from lapis.sdk.models import deployment
from lapis.sdk.models.deployment_config import AksEndpointDeploymentConfiguration, AksServiceDeploymentConfiguration
from lapis.sdk.models.service_parts import (
    AksServiceAccessToken,
    AutoScaler,
    ContainerResourceRequirements,
    DataCollection,
    LivenessProbeRequirements,
)
from lapis.sdk.models.webservice import Webservice

if TYPE_CHECKING:
    from datetime import datetime

    from lapis.sdk.models.image import Image
    from lapis.sdk.models.inference_config import InferenceConfig
    from lapis.sdk.models.model import Model


class AksWebservice(Webservice):
    """Opened by keys unless it is told otherwise; scales between replicas unless it is told how many."""

    _kind = AKS

    @staticmethod
    def deploy_configuration(
        autoscale_enabled: bool | None = None,
        autoscale_min_replicas: int | None = None,
        autoscale_max_replicas: int | None = None,
        autoscale_refresh_seconds: int | None = None,
        autoscale_target_utilization: int | None = None,
        collect_model_data: bool | None = None,
        auth_enabled: bool | None = None,
        cpu_cores: float | None = None,
        memory_gb: float | None = None,
        enable_app_insights: bool | None = None,
        scoring_timeout_ms: int | None = None,
        replica_max_concurrent_requests: int | None = None,
        max_request_wait_time: int | None = None,
        num_replicas: int | None = None,
        primary_key: str | None = None,
        secondary_key: str | None = None,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        description: str | None = None,
        gpu_cores: int | None = None,
        period_seconds: int | None = None,
        initial_delay_seconds: int | None = None,
        timeout_seconds: int | None = None,
        success_threshold: int | None = None,
        failure_threshold: int | None = None,
        namespace: str | None = None,
        token_auth_enabled: bool | None = None,
        compute_target_name: str | None = None,
        cpu_cores_limit: float | None = None,
        memory_gb_limit: float | None = None,
        blobfuse_enabled: bool | None = None,
    ) -> AksServiceDeploymentConfiguration:
        """How it is to run. A namespace and blobfuse are a cluster's own: kept and not used."""
        return AksServiceDeploymentConfiguration(
            autoscale_enabled, autoscale_min_replicas, autoscale_max_replicas, autoscale_refresh_seconds,
            autoscale_target_utilization, collect_model_data, auth_enabled, cpu_cores, memory_gb, enable_app_insights,
            scoring_timeout_ms, replica_max_concurrent_requests, max_request_wait_time, num_replicas, primary_key,
            secondary_key, tags, properties, description, gpu_cores, period_seconds, initial_delay_seconds,
            timeout_seconds, success_threshold, failure_threshold, namespace, token_auth_enabled, compute_target_name,
            cpu_cores_limit, memory_gb_limit, blobfuse_enabled,
        )  # fmt: skip

    def run(self, input_data: Any) -> Any:
        """Send a request; the answer, parsed where it is JSON."""
        return super().run(input_data)

    def get_access_token(self) -> AksServiceAccessToken:
        """A token that opens the service for some hours."""
        view = self._call("POST", "/token", {})
        return AksServiceAccessToken(
            view["access_token"], view["token_type"], _moment(view["refresh_after"]), _moment(view["expiry_on"])
        )

    def get_token(self) -> tuple[str, datetime]:
        """A token, and when it is to be replaced."""
        token = self.get_access_token()
        return token.access_token, token.refresh_after

    def update(
        self,
        image: Image | None = None,
        autoscale_enabled: bool | None = None,
        autoscale_min_replicas: int | None = None,
        autoscale_max_replicas: int | None = None,
        autoscale_refresh_seconds: int | None = None,
        autoscale_target_utilization: int | None = None,
        collect_model_data: bool | None = None,
        auth_enabled: bool | None = None,
        cpu_cores: float | None = None,
        memory_gb: float | None = None,
        enable_app_insights: bool | None = None,
        scoring_timeout_ms: int | None = None,
        replica_max_concurrent_requests: int | None = None,
        max_request_wait_time: int | None = None,
        num_replicas: int | None = None,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        description: str | None = None,
        models: Sequence[Model | str] | None = None,
        inference_config: InferenceConfig | None = None,
        gpu_cores: int | None = None,
        period_seconds: int | None = None,
        initial_delay_seconds: int | None = None,
        timeout_seconds: int | None = None,
        success_threshold: int | None = None,
        failure_threshold: int | None = None,
        namespace: str | None = None,
        token_auth_enabled: bool | None = None,
        cpu_cores_limit: float | None = None,
        memory_gb_limit: float | None = None,
        **kwargs: Any,
    ) -> None:
        """Change what is given. New models or code are served once they are ready; until then the old ones are."""
        if kwargs:
            raise WebserviceException(f"update() does not know {', '.join(sorted(kwargs))}.")
        given = {"image": image, "tags": tags, "properties": properties, "description": description, "models": models,
                 "inference_config": inference_config}  # fmt: skip
        settings = {
            "autoscale_enabled": autoscale_enabled, "autoscale_min_replicas": autoscale_min_replicas,
            "autoscale_max_replicas": autoscale_max_replicas, "autoscale_refresh_seconds": autoscale_refresh_seconds,
            "autoscale_target_utilization": autoscale_target_utilization, "collect_model_data": collect_model_data,
            "auth_enabled": auth_enabled, "cpu_cores": cpu_cores, "memory_gb": memory_gb, "enable_app_insights":
            enable_app_insights, "scoring_timeout_ms": scoring_timeout_ms, "replica_max_concurrent_requests":
            replica_max_concurrent_requests, "max_request_wait_time": max_request_wait_time, "num_replicas":
            num_replicas, "gpu_cores": gpu_cores, "period_seconds": period_seconds, "initial_delay_seconds":
            initial_delay_seconds, "timeout_seconds": timeout_seconds, "success_threshold": success_threshold,
            "failure_threshold": failure_threshold, "namespace": namespace, "token_auth_enabled": token_auth_enabled,
            "cpu_cores_limit": cpu_cores_limit, "memory_gb_limit": memory_gb_limit
        }  # fmt: skip
        _switch(settings)
        self._change(deployment.change(self.workspace, given, settings))

    def add_tags(self, tags: dict[str, Any]) -> None:
        self._add_tags(tags)

    def remove_tags(self, tags: str | Iterable[str]) -> None:
        self._remove_tags(tags)

    def add_properties(self, properties: dict[str, Any]) -> None:
        """Properties that are set stay as they are."""
        self._add_properties(properties)

    def serialize(self) -> dict[str, Any]:
        return {
            **super().serialize(),
            "appInsightsEnabled": self.enable_app_insights,
            "autoScaler": self.autoscaler.serialize() if self.autoscaler else None,
            "computeName": self.compute_name,
            "containerResourceRequirements": self.container_resource_requirements.serialize(),
            "dataCollection": self.data_collection.serialize() if self.data_collection else None,
            "livenessProbeRequirements": self.liveness_probe_requirements.serialize(),
            "maxConcurrentRequestsPerContainer": self.max_concurrent_requests_per_container,
            "maxQueueWaitMs": self.max_request_wait_time,
            "numReplicas": self.num_replicas,
            "deploymentStatus": self.deployment_status,
            "scoringTimeoutMs": self.scoring_timeout_ms,
            "isDefault": self.is_default,
            "trafficPercentile": self.traffic_percentile,
            "versionType": self.version_type,
            "namespace": self.namespace,
        }

    def _take(self, view: dict[str, Any]) -> None:
        super()._take(view)
        self._take_version(view["versions"][view["default"]], view)

    def _take_version(self, version: dict[str, Any], view: dict[str, Any]) -> None:
        own, common = (ServiceSettings.from_json(each["settings"]) for each in (version, view))
        settings = own.over(common).with_defaults()
        fixed = settings.num_replicas
        scales = fixed is None and settings.autoscale_enabled is not False
        self.autoscaler = AutoScaler(
            scales,
            settings.autoscale_max_replicas,
            settings.autoscale_min_replicas,
            settings.autoscale_refresh_seconds,
            settings.autoscale_target_utilization,
        )
        self.container_resource_requirements = ContainerResourceRequirements(
            settings.cpu_cores,
            settings.memory_gb,
            settings.gpu_cores,
            settings.cpu_cores_limit,
            settings.memory_gb_limit,
        )
        collects = bool(settings.collect_model_data)
        self.data_collection = DataCollection(collects, collects)
        self.liveness_probe_requirements = LivenessProbeRequirements(
            settings.period_seconds,
            settings.initial_delay_seconds,
            settings.timeout_seconds,
            settings.success_threshold,
            settings.failure_threshold,
        )
        front = version["front"] or {}
        self.num_replicas = len(front.get("replicas") or []) or fixed or settings.autoscale_min_replicas
        self.max_concurrent_requests_per_container = settings.replica_max_concurrent_requests
        self.max_request_wait_time = settings.max_request_wait_time
        self.scoring_timeout_ms = settings.scoring_timeout_ms
        self.enable_app_insights = bool(settings.enable_app_insights)
        self.compute_name = view["target"]
        self.namespace = settings.namespace
        self.deployment_status = version["stage"]
        self.is_default = version["name"] == view["default"] if view["kind"] == ENDPOINT else None
        self.traffic_percentile = version["traffic"] if view["kind"] == ENDPOINT else None
        kind = AksEndpoint.VersionType.control if version["is_control"] else AksEndpoint.VersionType.treatment
        self.version_type = kind if view["kind"] == ENDPOINT else None


class AksEndpoint(AksWebservice):
    """One address for several versions. The default version gets what the others are not given."""

    _kind = ENDPOINT

    class VersionType:
        """What a version is for."""

        control = "Control"
        treatment = "Treatment"

    @staticmethod
    def deploy_configuration(  # type: ignore[override]
        autoscale_enabled: bool | None = None,
        autoscale_min_replicas: int | None = None,
        autoscale_max_replicas: int | None = None,
        autoscale_refresh_seconds: int | None = None,
        autoscale_target_utilization: int | None = None,
        collect_model_data: bool | None = None,
        auth_enabled: bool | None = None,
        cpu_cores: float | None = None,
        memory_gb: float | None = None,
        enable_app_insights: bool | None = None,
        scoring_timeout_ms: int | None = None,
        replica_max_concurrent_requests: int | None = None,
        max_request_wait_time: int | None = None,
        num_replicas: int | None = None,
        primary_key: str | None = None,
        secondary_key: str | None = None,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        description: str | None = None,
        gpu_cores: int | None = None,
        period_seconds: int | None = None,
        initial_delay_seconds: int | None = None,
        timeout_seconds: int | None = None,
        success_threshold: int | None = None,
        failure_threshold: int | None = None,
        namespace: str | None = None,
        token_auth_enabled: bool | None = None,
        version_name: str | None = None,
        traffic_percentile: int | None = None,
        compute_target_name: str | None = None,
        cpu_cores_limit: float | None = None,
        memory_gb_limit: float | None = None,
    ) -> AksEndpointDeploymentConfiguration:
        """How the endpoint and its first version are to run."""
        return AksEndpointDeploymentConfiguration(
            autoscale_enabled, autoscale_min_replicas, autoscale_max_replicas, autoscale_refresh_seconds,
            autoscale_target_utilization, collect_model_data, auth_enabled, cpu_cores, memory_gb, enable_app_insights,
            scoring_timeout_ms, replica_max_concurrent_requests, max_request_wait_time, num_replicas, primary_key,
            secondary_key, tags, properties, description, gpu_cores, period_seconds, initial_delay_seconds,
            timeout_seconds, success_threshold, failure_threshold, namespace, token_auth_enabled, version_name,
            traffic_percentile, compute_target_name, cpu_cores_limit, memory_gb_limit,
        )  # fmt: skip

    def create_version(
        self,
        version_name: str,
        autoscale_enabled: bool | None = None,
        autoscale_min_replicas: int | None = None,
        autoscale_max_replicas: int | None = None,
        autoscale_refresh_seconds: int | None = None,
        autoscale_target_utilization: int | None = None,
        collect_model_data: bool | None = None,
        cpu_cores: float | None = None,
        memory_gb: float | None = None,
        scoring_timeout_ms: int | None = None,
        replica_max_concurrent_requests: int | None = None,
        max_request_wait_time: int | None = None,
        num_replicas: int | None = None,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        description: str | None = None,
        models: Sequence[Model | str] | None = None,
        inference_config: InferenceConfig | None = None,
        gpu_cores: int | None = None,
        period_seconds: int | None = None,
        initial_delay_seconds: int | None = None,
        timeout_seconds: int | None = None,
        success_threshold: int | None = None,
        failure_threshold: int | None = None,
        traffic_percentile: int | None = None,
        is_default: bool | None = None,
        is_control_version_type: bool | None = None,
        cpu_cores_limit: float | None = None,
        memory_gb_limit: float | None = None,
    ) -> None:
        """Serve other models or code beside the versions that there are, for a share of the requests."""
        given = {"tags": tags, "properties": properties, "description": description, "models": models,
                 "inference_config": inference_config}  # fmt: skip
        settings = {
            "autoscale_enabled": autoscale_enabled, "autoscale_min_replicas": autoscale_min_replicas,
            "autoscale_max_replicas": autoscale_max_replicas, "autoscale_refresh_seconds": autoscale_refresh_seconds,
            "autoscale_target_utilization": autoscale_target_utilization, "collect_model_data": collect_model_data,
            "cpu_cores": cpu_cores, "memory_gb": memory_gb, "scoring_timeout_ms": scoring_timeout_ms,
            "replica_max_concurrent_requests": replica_max_concurrent_requests, "max_request_wait_time":
            max_request_wait_time, "num_replicas": num_replicas, "gpu_cores": gpu_cores, "period_seconds":
            period_seconds, "initial_delay_seconds": initial_delay_seconds, "timeout_seconds": timeout_seconds,
            "success_threshold": success_threshold, "failure_threshold": failure_threshold, "traffic_percentile":
            traffic_percentile, "cpu_cores_limit": cpu_cores_limit, "memory_gb_limit": memory_gb_limit
        }  # fmt: skip
        self._send("POST", version_name, given, settings, is_default, is_control_version_type)

    def update_version(
        self,
        version_name: str,
        autoscale_enabled: bool | None = None,
        autoscale_min_replicas: int | None = None,
        autoscale_max_replicas: int | None = None,
        autoscale_refresh_seconds: int | None = None,
        autoscale_target_utilization: int | None = None,
        collect_model_data: bool | None = None,
        cpu_cores: float | None = None,
        memory_gb: float | None = None,
        scoring_timeout_ms: int | None = None,
        replica_max_concurrent_requests: int | None = None,
        max_request_wait_time: int | None = None,
        num_replicas: int | None = None,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        description: str | None = None,
        models: Sequence[Model | str] | None = None,
        inference_config: InferenceConfig | None = None,
        gpu_cores: int | None = None,
        period_seconds: int | None = None,
        initial_delay_seconds: int | None = None,
        timeout_seconds: int | None = None,
        success_threshold: int | None = None,
        failure_threshold: int | None = None,
        traffic_percentile: int | None = None,
        is_default: bool | None = None,
        is_control_version_type: bool | None = None,
        cpu_cores_limit: float | None = None,
        memory_gb_limit: float | None = None,
    ) -> None:
        """Change what is given of one version: its models, its code, its share of the requests."""
        given = {"tags": tags, "properties": properties, "description": description, "models": models,
                 "inference_config": inference_config}  # fmt: skip
        settings = {
            "autoscale_enabled": autoscale_enabled, "autoscale_min_replicas": autoscale_min_replicas,
            "autoscale_max_replicas": autoscale_max_replicas, "autoscale_refresh_seconds": autoscale_refresh_seconds,
            "autoscale_target_utilization": autoscale_target_utilization, "collect_model_data": collect_model_data,
            "cpu_cores": cpu_cores, "memory_gb": memory_gb, "scoring_timeout_ms": scoring_timeout_ms,
            "replica_max_concurrent_requests": replica_max_concurrent_requests, "max_request_wait_time":
            max_request_wait_time, "num_replicas": num_replicas, "gpu_cores": gpu_cores, "period_seconds":
            period_seconds, "initial_delay_seconds": initial_delay_seconds, "timeout_seconds": timeout_seconds,
            "success_threshold": success_threshold, "failure_threshold": failure_threshold, "traffic_percentile":
            traffic_percentile, "cpu_cores_limit": cpu_cores_limit, "memory_gb_limit": memory_gb_limit
        }  # fmt: skip
        self._send("PATCH", version_name, given, settings, is_default, is_control_version_type)

    def delete_version(self, version_name: str) -> None:
        """End one version; the default one gets its share. The default one itself cannot go."""
        check_version_name(version_name)
        self._take(self._call("DELETE", f"/versions/{quoted(version_name)}"))

    def update(  # type: ignore[override]
        self,
        auth_enabled: bool | None = None,
        token_auth_enabled: bool | None = None,
        enable_app_insights: bool | None = None,
        description: str | None = None,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
    ) -> None:
        """Change what all versions have in common."""
        given = {"tags": tags, "properties": properties, "description": description}
        settings = {"auth_enabled": auth_enabled, "token_auth_enabled": token_auth_enabled,
                    "enable_app_insights": enable_app_insights}  # fmt: skip
        _switch(settings)
        self._change(deployment.change(self.workspace, given, settings))

    def serialize(self) -> dict[str, Any]:
        return {**super().serialize(), "versions": {name: each.serialize() for name, each in self.versions.items()}}

    @property
    def versions(self) -> dict[str, Any]:
        """The versions by their names, each as a service with an address of its own."""
        return {name: _version(self, name) for name in self._view["versions"]}

    def _send(
        self, method: str, name: str, given: dict[str, Any], settings: dict[str, Any], default: Any, control: Any
    ) -> None:
        check_version_name(name)
        asked: dict[str, Any] = {"settings": {}}
        if default is None and control is None or any(v is not None for v in (*given.values(), *settings.values())):
            asked = deployment.change(self.workspace, given, settings)
        asked.update(is_default=default, is_control=control)
        self._take(self._call(method, f"/versions/{quoted(name)}", asked, timeout=deployment.LONGEST))


def _version(endpoint: AksEndpoint, name: str) -> AksWebservice:
    """One version of an endpoint: it can be looked at and asked, and is changed through the endpoint."""
    view = endpoint._view["versions"][name]
    own = ("state", "error", "address", "models", "tags", "properties", "description")
    version: AksWebservice = object.__new__(AksWebservice)
    version.workspace = endpoint.workspace
    version._take({**endpoint._view, "default": name, **{key: view[key] for key in own}})
    version._take_version(view, endpoint._view)
    return version


def _switch(settings: dict[str, Any]) -> None:
    """Keys or tokens: turning one on turns the other off, unless both are named."""
    for one, other in (("auth_enabled", "token_auth_enabled"), ("token_auth_enabled", "auth_enabled")):
        if settings.get(one) and settings.get(other) is None:
            settings[other] = False


def _moment(seconds: float) -> datetime:
    from datetime import datetime, timezone

    return datetime.fromtimestamp(seconds, timezone.utc)

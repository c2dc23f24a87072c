"""Small values that a service is described with, under the names that SDK v1 has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, TypeVar

if TYPE_CHECKING:
    from datetime import datetime

_Self = TypeVar("_Self", bound="_Part")


class _Part:
    """A value with named fields, each of which has a name in Azure's payloads."""

    _names: dict[str, str] = {}

    def serialize(self) -> dict[str, Any]:
        return {theirs: getattr(self, ours) for ours, theirs in self._names.items()}

    @classmethod
    def _read(cls: type[_Self], payload: Mapping[str, Any] | None) -> _Self | None:
        if payload is None:
            return None
        return cls(**{ours: payload.get(theirs) for ours, theirs in cls._names.items()})

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)
        return f"{type(self).__name__}({shown})"


class ContainerResourceRequirements(_Part):
    """How much processor and memory a replica is given."""

    _names = {"cpu": "cpu", "memory_in_gb": "memoryInGB", "gpu": "gpu", "cpu_limit": "cpuLimit",
              "memory_in_gb_limit": "memoryInGBLimit"}  # fmt: skip

    def __init__(
        self,
        cpu: float | None,
        memory_in_gb: float | None,
        gpu: int | None = None,
        cpu_limit: float | None = None,
        memory_in_gb_limit: float | None = None,
    ) -> None:
        self.cpu = cpu
        self.memory_in_gb = memory_in_gb
        self.gpu = gpu
        self.cpu_limit = cpu_limit
        self.memory_in_gb_limit = memory_in_gb_limit

    @staticmethod
    def deserialize(payload_obj: Mapping[str, Any] | None) -> ContainerResourceRequirements | None:
        return ContainerResourceRequirements._read(payload_obj)


class AutoScaler(_Part):
    """Between how many replicas a service scales, and when."""

    _names = {"autoscale_enabled": "autoscaleEnabled", "max_replicas": "maxReplicas", "min_replicas": "minReplicas",
              "refresh_period_seconds": "refreshPeriodInSeconds",
              "target_utilization": "targetUtilization"}  # fmt: skip

    def __init__(
        self,
        autoscale_enabled: bool | None,
        max_replicas: int | None,
        min_replicas: int | None,
        refresh_period_seconds: int | None,
        target_utilization: int | None,
    ) -> None:
        self.autoscale_enabled = autoscale_enabled
        self.max_replicas = max_replicas
        self.min_replicas = min_replicas
        self.refresh_period_seconds = refresh_period_seconds
        self.target_utilization = target_utilization

    @staticmethod
    def deserialize(payload_obj: Mapping[str, Any] | None) -> AutoScaler | None:
        return AutoScaler._read(payload_obj)


class DataCollection(_Part):
    """Whether what a service is asked is kept."""

    _names = {"event_hub_enabled": "eventHubEnabled", "storage_enabled": "storageEnabled"}

    def __init__(self, event_hub_enabled: bool | None, storage_enabled: bool | None) -> None:
        self.event_hub_enabled = event_hub_enabled
        self.storage_enabled = storage_enabled

    @staticmethod
    def deserialize(payload_obj: Mapping[str, Any] | None) -> DataCollection | None:
        return DataCollection._read(payload_obj)


class LivenessProbeRequirements(_Part):
    """How it is found out whether a replica still lives."""

    _names = {"period_seconds": "periodSeconds", "initial_delay_seconds": "initialDelaySeconds",
              "timeout_seconds": "timeoutSeconds", "success_threshold": "successThreshold",
              "failure_threshold": "failureThreshold"}  # fmt: skip

    def __init__(
        self,
        period_seconds: int | None,
        initial_delay_seconds: int | None,
        timeout_seconds: int | None,
        success_threshold: int | None,
        failure_threshold: int | None,
    ) -> None:
        self.period_seconds = period_seconds
        self.initial_delay_seconds = initial_delay_seconds
        self.timeout_seconds = timeout_seconds
        self.success_threshold = success_threshold
        self.failure_threshold = failure_threshold

    @staticmethod
    def deserialize(payload_obj: Mapping[str, Any] | None) -> LivenessProbeRequirements | None:
        return LivenessProbeRequirements._read(payload_obj)


class EncryptionProperties(_Part):
    """A key of a cloud's vault. Kept and shown: here, nothing is encrypted with it."""

    _names = {"cmk_vault_base_url": "vaultBaseUrl", "cmk_key_name": "keyName", "cmk_key_version": "keyVersion"}

    def __init__(self, cmk_vault_base_url: str | None, cmk_key_name: str | None, cmk_key_version: str | None) -> None:
        self.cmk_vault_base_url = cmk_vault_base_url
        self.cmk_key_name = cmk_key_name
        self.cmk_key_version = cmk_key_version

    @staticmethod
    def deserialize(payload_obj: Mapping[str, Any] | None) -> EncryptionProperties | None:
        return EncryptionProperties._read(payload_obj)


class VnetConfiguration(_Part):
    """A cloud's network. Kept and shown."""

    _names = {"vnet_name": "vnetName", "subnet_name": "subnetName"}

    def __init__(self, vnet_name: str | None, subnet_name: str | None) -> None:
        self.vnet_name = vnet_name
        self.subnet_name = subnet_name

    @staticmethod
    def deserialize(payload_obj: Mapping[str, Any] | None) -> VnetConfiguration | None:
        return VnetConfiguration._read(payload_obj)


class WebServiceAccessToken(_Part):
    """A token that opens a service for some hours."""

    _names = {"access_token": "accessToken", "token_type": "tokenType", "refresh_after": "refreshAfter",
              "expiry_on": "expiryOn"}  # fmt: skip

    def __init__(self, access_token: str, token_type: str, refresh_after: datetime, expiry_on: datetime) -> None:
        self.access_token = access_token
        self.token_type = token_type
        self.refresh_after = refresh_after
        self.expiry_on = expiry_on

    def __repr__(self) -> str:
        return f"{type(self).__name__}(expiry_on={self.expiry_on!r})"

    @staticmethod
    def deserialize(payload_obj: Mapping[str, Any] | None) -> WebServiceAccessToken | None:
        return WebServiceAccessToken._read(payload_obj)


class AksServiceAccessToken(WebServiceAccessToken):
    """The same, of a service on a cluster."""

    @staticmethod
    def deserialize(payload_obj: Mapping[str, Any] | None) -> AksServiceAccessToken | None:
        return AksServiceAccessToken._read(payload_obj)

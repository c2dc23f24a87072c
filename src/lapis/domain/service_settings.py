"""How a service is to run: what may be set, within which bounds, what Azure takes where nothing is, what changes do."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Mapping, NamedTuple, TypeVar

from lapis.domain.limits import REPLICAS as _REPLICAS
from lapis.domain.limits import SERVICE_BODY, WORD
from lapis.domain.values import Value, within
from lapis.errors import UserErrorException, WebserviceException

ACI, AKS, ENDPOINT, LOCAL, PROFILED = "ACI", "AKS", "AKSENDPOINT", "LOCAL", "PROFILE"
KINDS = (ACI, AKS, ENDPOINT, LOCAL)
CLUSTER_KINDS = (AKS, ENDPOINT)
"""Kinds that serve with replicas, and with keys unless they are told otherwise."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
           "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")  # fmt: skip

_DAY = 86400
_OF_VERSION = "of_version"
T = TypeVar("T")


class Defaults(NamedTuple):
    """What Azure takes where nothing is given."""

    cpu_cores: float = 0.1
    memory_gb: float = 0.5
    scoring_timeout_ms: int = 60000
    replica_max_concurrent_requests: int = 1
    max_request_wait_time: int = 500
    autoscale_min_replicas: int = 1
    autoscale_max_replicas: int = 10
    autoscale_refresh_seconds: int = 1
    autoscale_target_utilization: int = 70
    period_seconds: int = 10
    initial_delay_seconds: int = 310
    timeout_seconds: int = 2
    success_threshold: int = 1
    failure_threshold: int = 3


AZURE = Defaults()


@dataclass(frozen=True)
class Keys(Value):
    """Keys that somebody chose for a service."""

    primary: str | None = field(default=None, repr=False)
    secondary: str | None = field(default=None, repr=False)


NO_KEYS = Keys()


def _common(bounds: Mapping[str, Any] = {}) -> Any:
    """A setting that all versions of an endpoint share."""
    return field(default=None, metadata=bounds)


def _own(bounds: Mapping[str, Any] = {}) -> Any:
    """A setting that each version of an endpoint has for itself."""
    return field(default=None, metadata={**bounds, _OF_VERSION: True})


@dataclass(frozen=True)
class ServiceSettings(Value):
    """None stands for what Azure takes by default."""

    cpu_cores: float | None = _own(within(0.001, 100_000))
    memory_gb: float | None = _own(within(0.001, 1_000_000))
    cpu_cores_limit: float | None = _own(within(0.001, 100_000))
    memory_gb_limit: float | None = _own(within(0.001, 1_000_000))
    gpu_cores: int | None = _own(within(0, 1000))
    collect_model_data: bool | None = _own()

    num_replicas: int | None = _own(within(1, _REPLICAS))
    autoscale_enabled: bool | None = _own()
    autoscale_min_replicas: int | None = _own(within(1, _REPLICAS))
    autoscale_max_replicas: int | None = _own(within(1, _REPLICAS))
    autoscale_refresh_seconds: int | None = _own(within(1, _DAY))
    autoscale_target_utilization: int | None = _own(within(1, 100))

    scoring_timeout_ms: int | None = _own(within(1, _DAY * 1000))
    replica_max_concurrent_requests: int | None = _own(within(1, 100_000))
    max_request_wait_time: int | None = _own(within(1, _DAY * 1000))

    period_seconds: int | None = _own(within(1, _DAY))
    initial_delay_seconds: int | None = _own(within(0, _DAY))
    timeout_seconds: int | None = _own(within(1, _DAY))
    success_threshold: int | None = _own(within(1, _REPLICAS))
    failure_threshold: int | None = _own(within(1, _REPLICAS))

    auth_enabled: bool | None = _common()
    token_auth_enabled: bool | None = _common()
    enable_app_insights: bool | None = _common()
    traffic_percentile: int | None = _common(within(0, 100))
    port: int | None = _common(within(1, 65535))

    # what only a cloud has: kept, shown and not used
    location: str | None = _common()
    namespace: str | None = _common()
    blobfuse_enabled: bool | None = _common()
    dns_name_label: str | None = _common()
    ssl_enabled: bool | None = _common()
    ssl_cname: str | None = _common()
    ssl_cert_pem_file: str | None = _common()
    ssl_key_pem_file: str | None = _common()
    cmk_vault_base_url: str | None = _common()
    cmk_key_name: str | None = _common()
    cmk_key_version: str | None = _common()
    vnet_name: str | None = _common()
    subnet_name: str | None = _common()

    @classmethod
    def asked(cls, body: Mapping[str, Any]) -> ServiceSettings:
        """As a user of the SDK asks for them, who expects another class of error."""
        try:
            return cls.checked(dict(body), "settings")
        except UserErrorException as error:
            raise WebserviceException(error.message) from None

    @classmethod
    def _read(cls, value: Any, strict: bool) -> Any:
        """What was kept is taken as it is: no setting of another release may keep a service from being read."""
        if strict:
            return super()._read(value, strict)
        return cls(**{name: found for name, found in value.items() if name in _NAMES})

    # -- changed

    def changed(self, by: ServiceSettings) -> ServiceSettings:
        """After a change: a fixed number of replicas ends scaling, and scaling ends a fixed number."""
        kept = self
        if by.autoscale_enabled is False or (by.num_replicas is not None and not by._scaling()):
            kept = replace(kept, **{name: None for name in kept._scaling()})
        elif by._scaling() and by.num_replicas is None:
            kept = replace(kept, num_replicas=None, autoscale_enabled=None)
        return replace(kept, **by.to_json())

    def of_version(self) -> ServiceSettings:
        """Those that each version of an endpoint has for itself."""
        return ServiceSettings(**{name: value for name, value in self.to_json().items() if name in _NAMES_OF_VERSION})

    def over(self, others: ServiceSettings) -> ServiceSettings:
        """These, and of the others what these leave open."""
        return replace(others, **self.to_json())

    def with_defaults(self) -> ServiceSettings:
        return ServiceSettings(**{**AZURE._asdict(), **self.to_json()})

    def _scaling(self) -> list[str]:
        return [name for name in self.to_json() if name.startswith("autoscale_")]

    # -- together

    def check(self, kind: str, keys: Keys = NO_KEYS) -> None:
        """Raise if a service of that kind cannot be so."""
        self._check_limits()
        self._check_scaling()
        self._check_access(kind, keys)
        missing = [name for name in ("ssl_cname", "ssl_cert_pem_file", "ssl_key_pem_file") if not getattr(self, name)]
        if self.ssl_enabled and missing:
            raise WebserviceException(f"ssl_enabled=True needs {', '.join(missing)} too.")

    def _check_limits(self) -> None:
        cores, memory = given(self.cpu_cores, AZURE.cpu_cores), given(self.memory_gb, AZURE.memory_gb)
        if self.cpu_cores_limit is not None and self.cpu_cores_limit < cores:
            raise WebserviceException(
                f"cpu_cores_limit={self.cpu_cores_limit} is less than cpu_cores, which it limits."
            )
        if self.memory_gb_limit is not None and self.memory_gb_limit < memory:
            raise WebserviceException(
                f"memory_gb_limit={self.memory_gb_limit} is less than memory_gb, which it limits."
            )

    def _check_scaling(self) -> None:
        if self.autoscale_enabled and self.num_replicas is not None:
            raise WebserviceException(
                f"num_replicas={self.num_replicas} is a fixed number, and autoscale_enabled=True lets it change. Give "
                "one of them."
            )
        said = [name for name in self._scaling() if name != "autoscale_enabled"]
        if self.autoscale_enabled is False and said:
            raise WebserviceException(f"{said[0]} says nothing with autoscale_enabled=False. Leave one of them out.")
        least = given(self.autoscale_min_replicas, AZURE.autoscale_min_replicas)
        most = given(self.autoscale_max_replicas, max(least, AZURE.autoscale_max_replicas))
        if least > most:
            raise WebserviceException(f"autoscale_min_replicas={least} is more than autoscale_max_replicas={most}.")

    def _check_access(self, kind: str, keys: Keys) -> None:
        chosen = {f"{which}_key": key for which, key in keys.to_json().items() if key}
        for name, key in chosen.items():
            check_key(name, key)
        if self.token_auth_enabled and kind not in CLUSTER_KINDS:
            raise WebserviceException(
                "Tokens open services of AksWebservice only: this one takes keys, auth_enabled=True."
            )
        if self.token_auth_enabled and self.auth_enabled:
            raise WebserviceException(
                "auth_enabled and token_auth_enabled cannot both be True: keys or tokens open it."
            )
        if chosen and not self.uses_keys(kind):
            raise WebserviceException(
                f"{next(iter(chosen))} is given, and no key opens this service. Pass auth_enabled=True."
            )

    # -- what they mean

    def uses_keys(self, kind: str) -> bool:
        """Azure's defaults: a cluster's services have keys unless they have tokens, others only if told so."""
        if self.token_auth_enabled:
            return False
        return kind in CLUSTER_KINDS if self.auth_enabled is None else self.auth_enabled

    def uses_tokens(self, kind: str) -> bool:
        return kind in CLUSTER_KINDS and bool(self.token_auth_enabled)

    def replicas(self, kind: str, cores: int) -> dict[str, Any]:
        """How many processes answer. Where nobody said how many there may be, not more than the machine has cores."""
        told = {
            "target_utilization": given(self.autoscale_target_utilization, AZURE.autoscale_target_utilization),
            "refresh_seconds": given(self.autoscale_refresh_seconds, AZURE.autoscale_refresh_seconds),
            "concurrent_per_replica": given(
                self.replica_max_concurrent_requests, AZURE.replica_max_concurrent_requests
            ),
        }
        fixed = self.num_replicas
        if kind not in CLUSTER_KINDS or fixed is not None or self.autoscale_enabled is False:
            return {"min": fixed or 1, "max": fixed or 1, **told}
        least = given(self.autoscale_min_replicas, AZURE.autoscale_min_replicas)
        most = given(self.autoscale_max_replicas, max(least, min(AZURE.autoscale_max_replicas, cores)))
        return {"min": least, "max": most, **told}

    def limits(self) -> dict[str, Any]:
        seconds = given(self.scoring_timeout_ms, AZURE.scoring_timeout_ms) / 1000
        told = {"request_bytes": SERVICE_BODY, "seconds": seconds, "queue": 512, "worker_start_seconds": 600}
        wait = self.max_request_wait_time
        return {**told, "wait_seconds": wait / 1000} if wait else told

    def probe(self) -> dict[str, Any]:
        return {
            "initial_delay": given(self.initial_delay_seconds, AZURE.initial_delay_seconds),
            "period": given(self.period_seconds, AZURE.period_seconds),
            "timeout": given(self.timeout_seconds, AZURE.timeout_seconds),
            "failures": given(self.failure_threshold, AZURE.failure_threshold),
        }

    def thread_variables(self) -> dict[str, str]:
        """Plain processes cannot be kept to a share of a core; their libraries can be kept to a number of threads."""
        cores = self.cpu_cores_limit or self.cpu_cores
        if cores is None:
            return {}
        count = str(max(1, -int(-float(cores) // 1)))
        return {name: count for name in THREADS}


_NAMES = frozenset(each.name for each in fields(ServiceSettings))
_NAMES_OF_VERSION = frozenset(each.name for each in fields(ServiceSettings) if _OF_VERSION in each.metadata)


def given(value: T | None, default: T) -> T:
    return default if value is None else value


def check_key(name: str, key: str) -> None:
    if len(key) < 8 or len(key) > WORD or not key.isprintable():
        raise WebserviceException(f"{name} must be text of 8 characters at least.")

"""A deployed service as a value: its names, what its settings may be, what state it is in, who gets which request."""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple

from lapis.errors import WebserviceException

ACI, AKS, ENDPOINT, LOCAL, PROFILED = "ACI", "AKS", "AKSENDPOINT", "LOCAL", "PROFILE"
KINDS = (ACI, AKS, ENDPOINT, LOCAL, PROFILED)
CLUSTER_KINDS = (AKS, ENDPOINT)
"""Kinds that serve with replicas, and with keys unless they are told otherwise."""

SERVICE_RUN = "lapis.service"  # the type of the runs that services live in
EXPERIMENT = "~services"  # where these runs are kept: no experiment of a user can have such a name

HEALTHY, TRANSITIONING, UNHEALTHY, FAILED = "Healthy", "Transitioning", "Unhealthy", "Failed"
STARTING, READY = "starting", "ready"

LONGEST_BACKOFF = 60.0
STEADY = 60.0  # seconds that a service must have lived before its next restart counts as the first again
TOKEN_SECONDS = 12 * 3600.0
REFRESH_BEFORE = 3600.0

_NAME = re.compile(r"[a-z]([a-z0-9-]{1,30}[a-z0-9])")
_VERSION = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9_-]{0,30}[a-zA-Z0-9])?")

DEFAULTS: Mapping[str, Any] = {
    "cpu_cores": 0.1,
    "memory_gb": 0.5,
    "scoring_timeout_ms": 60000,
    "replica_max_concurrent_requests": 1,
    "max_request_wait_time": 500,
    "autoscale_min_replicas": 1,
    "autoscale_max_replicas": 10,
    "autoscale_refresh_seconds": 1,
    "autoscale_target_utilization": 70,
    "period_seconds": 10,
    "initial_delay_seconds": 310,
    "timeout_seconds": 2,
    "success_threshold": 1,
    "failure_threshold": 3,
}
"""What Azure takes where nothing is given."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
           "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")  # fmt: skip


# -- what may be asked for


def check_service_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise WebserviceException(
            f"Service name {name!r} cannot be used. A name is 3 to 32 lower-case letters, digits and dashes, begins "
            "with a letter and does not end with a dash."
        )
    return name


def check_version_name(name: Any) -> str:
    if not isinstance(name, str) or not _VERSION.fullmatch(name):
        raise WebserviceException(
            f"Version name {name!r} cannot be used. A name is 1 to 32 letters, digits, dashes and underscores, and "
            "begins and ends with a letter or a digit."
        )
    return name


def check_settings(kind: str, given: Mapping[str, Any]) -> None:
    """Raise if a service of that kind cannot be so. None stands for Azure's default."""
    asked = {key: value for key, value in given.items() if value is not None}
    for name in ("cpu_cores", "memory_gb", "cpu_cores_limit", "memory_gb_limit"):
        _positive(asked, name)
    for name in ("autoscale_min_replicas", "autoscale_max_replicas", "autoscale_refresh_seconds", "num_replicas",
                 "scoring_timeout_ms", "replica_max_concurrent_requests", "max_request_wait_time", "period_seconds",
                 "timeout_seconds", "success_threshold", "failure_threshold"):  # fmt: skip
        _whole(asked, name, 1)
    for name in ("initial_delay_seconds", "gpu_cores"):
        _whole(asked, name, 0)
    _whole(asked, "autoscale_target_utilization", 1, 100)
    _whole(asked, "traffic_percentile", 0, 100)
    _whole(asked, "port", 1, 65535)
    for name, limit in (("cpu_cores", "cpu_cores_limit"), ("memory_gb", "memory_gb_limit")):
        if limit in asked and asked[limit] < asked.get(name, DEFAULTS[name]):
            raise WebserviceException(f"{limit}={asked[limit]} is less than {name}, which it limits.")
    _check_scaling(asked)
    _check_access(kind, asked)
    _check_certificate(asked)


def merged(before: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings after a change: a fixed number of replicas ends scaling, and scaling ends a fixed number."""
    given = {key: value for key, value in changes.items() if value is not None}
    kept = dict(before)
    scales = [name for name in given if name.startswith("autoscale_")]
    if "num_replicas" in given and not scales:
        kept = {key: value for key, value in kept.items() if not key.startswith("autoscale_")}
    elif scales and given.get("autoscale_enabled") is not False and "num_replicas" not in given:
        kept.pop("num_replicas", None)
        kept.pop("autoscale_enabled", None)
    elif given.get("autoscale_enabled") is False:
        kept = {key: value for key, value in kept.items() if not key.startswith("autoscale_")}
    return {**kept, **given}


def _check_scaling(asked: Mapping[str, Any]) -> None:
    scaling = [name for name in asked if name.startswith("autoscale_") and name != "autoscale_enabled"]
    if asked.get("autoscale_enabled") and "num_replicas" in asked:
        raise WebserviceException(
            f"num_replicas={asked['num_replicas']} is a fixed number, and autoscale_enabled=True lets it change. Give "
            "one of them."
        )
    if asked.get("autoscale_enabled") is False and scaling:
        raise WebserviceException(f"{scaling[0]} says nothing with autoscale_enabled=False. Leave one of them out.")
    least = asked.get("autoscale_min_replicas", DEFAULTS["autoscale_min_replicas"])
    most = asked.get("autoscale_max_replicas", max(least, DEFAULTS["autoscale_max_replicas"]))
    if least > most:
        raise WebserviceException(f"autoscale_min_replicas={least} is more than autoscale_max_replicas={most}.")


def _check_access(kind: str, asked: Mapping[str, Any]) -> None:
    keys = [name for name in ("primary_key", "secondary_key") if asked.get(name)]
    for name in keys:
        if not isinstance(asked[name], str) or len(asked[name]) < 8 or not asked[name].isprintable():
            raise WebserviceException(f"{name} must be text of 8 characters at least.")
    if asked.get("token_auth_enabled") and kind not in CLUSTER_KINDS:
        raise WebserviceException("Tokens open services of AksWebservice only: this one takes keys, auth_enabled=True.")
    if asked.get("token_auth_enabled") and asked.get("auth_enabled"):
        raise WebserviceException("auth_enabled and token_auth_enabled cannot both be True: keys or tokens open it.")
    if keys and (asked.get("token_auth_enabled") or not uses_keys(kind, asked)):
        raise WebserviceException(f"{keys[0]} is given, and no key opens this service. Pass auth_enabled=True.")


def _check_certificate(asked: Mapping[str, Any]) -> None:
    if not asked.get("ssl_enabled"):
        return
    missing = [name for name in ("ssl_cname", "ssl_cert_pem_file", "ssl_key_pem_file") if not asked.get(name)]
    if missing:
        raise WebserviceException(f"ssl_enabled=True needs {', '.join(missing)} too.")


def _positive(asked: Mapping[str, Any], name: str) -> None:
    value = asked.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0):
        raise WebserviceException(f"{name} must be a number greater than 0, not {value!r}.")


def _whole(asked: Mapping[str, Any], name: str, least: int, most: int | None = None) -> None:
    value = asked.get(name)
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        limits = f"of {least} at least" if most is None else f"from {least} to {most}"
        raise WebserviceException(f"{name} must be a whole number {limits}, not {value!r}.")


def uses_keys(kind: str, settings: Mapping[str, Any]) -> bool:
    """Azure's defaults: a cluster's services have keys unless they have tokens, others only if told so."""
    if settings.get("token_auth_enabled"):
        return False
    asked = settings.get("auth_enabled")
    return kind in CLUSTER_KINDS if asked is None else bool(asked)


def uses_tokens(kind: str, settings: Mapping[str, Any]) -> bool:
    return kind in CLUSTER_KINDS and bool(settings.get("token_auth_enabled"))


# -- what the front is told


def replicas(kind: str, settings: Mapping[str, Any], cores: int) -> dict[str, Any]:
    """How many processes answer. Where nobody said how many there may be, not more than the machine has cores."""

    def of(name: str) -> Any:
        value = settings.get(name)
        return DEFAULTS[name] if value is None else value

    told = {
        "target_utilization": of("autoscale_target_utilization"),
        "refresh_seconds": of("autoscale_refresh_seconds"),
        "concurrent_per_replica": of("replica_max_concurrent_requests"),
    }
    fixed = settings.get("num_replicas")
    if kind not in CLUSTER_KINDS or fixed is not None or settings.get("autoscale_enabled") is False:
        return {"min": fixed or 1, "max": fixed or 1, **told}
    least, most = of("autoscale_min_replicas"), settings.get("autoscale_max_replicas")
    return {"min": least, "max": most or max(least, min(DEFAULTS["autoscale_max_replicas"], cores)), **told}


def limits(settings: Mapping[str, Any]) -> dict[str, Any]:
    seconds = (settings.get("scoring_timeout_ms") or DEFAULTS["scoring_timeout_ms"]) / 1000
    told = {"request_bytes": 100 << 20, "seconds": seconds, "queue": 512, "worker_start_seconds": 600}
    wait = settings.get("max_request_wait_time")
    return {**told, "wait_seconds": wait / 1000} if wait else told


def probe(settings: Mapping[str, Any]) -> dict[str, Any]:
    names = {"initial_delay": "initial_delay_seconds", "period": "period_seconds", "timeout": "timeout_seconds",
             "failures": "failure_threshold"}  # fmt: skip
    return {ours: settings.get(theirs) or DEFAULTS[theirs] for ours, theirs in names.items()}


def thread_variables(settings: Mapping[str, Any]) -> dict[str, str]:
    """Plain processes cannot be kept to a share of a core; their libraries can be kept to a number of threads."""
    cores = settings.get("cpu_cores_limit") or settings.get("cpu_cores")
    if cores is None:
        return {}
    count = str(max(1, -int(-float(cores) // 1)))
    return {name: count for name in THREADS}


class Share(NamedTuple):
    """A version of an endpoint, as traffic is concerned."""

    name: str
    percent: int
    address: str | None  # None: it cannot be reached yet


def routes(versions: list[Share], gateway: str, default: str) -> list[dict[str, Any]]:
    """Who gets which percentage of the requests that come in at `gateway`; what is left stays there.

    The default version gets what is not given away. A version that cannot be reached gets nothing.
    """
    shares = effective({each.name: each.percent for each in versions}, default)
    reachable = {each.name: each.address for each in versions if each.address}
    return [
        {"percent": percent, "address": reachable[name]}
        for name, percent in shares.items()
        if name != gateway and percent > 0 and name in reachable
    ]


def effective(percents: Mapping[str, int], default: str) -> dict[str, int]:
    """What each version gets; the default one what the others are not given, whatever was said of it."""
    shares = {name: percent for name, percent in percents.items() if name != default}
    return {**shares, default: 100 - sum(shares.values())}


def check_traffic(shares: Mapping[str, int], default: str) -> None:
    """Raise if the versions beside the default one are promised more than there is."""
    given = sum(percent for name, percent in shares.items() if name != default)
    if given > 100:
        told = ", ".join(f"{name} {percent}" for name, percent in shares.items() if name != default and percent)
        raise WebserviceException(f"The versions beside the default one would get {given} percent of traffic: {told}.")


# -- how it fares


def state_of(wanted: Mapping[str, Any], alive: bool) -> str:
    """Azure's word for a revision. `alive`: its front has spoken a moment ago, and has a replica that answers."""
    if wanted["state"] == "failed":
        return FAILED
    if wanted["state"] == READY:
        return HEALTHY if alive else UNHEALTHY
    return TRANSITIONING


def worst(states: list[str]) -> str:
    """The word for an endpoint: that of the version which fares worst."""
    return max(states, key=(HEALTHY, TRANSITIONING, UNHEALTHY, FAILED).index) if states else TRANSITIONING


def backoff(restarts: int) -> float:
    """Seconds to wait before the next start of a service that ended by itself."""
    return min(LONGEST_BACKOFF, 0.5 * 2.0 ** min(restarts, 10)) if restarts else 0.0

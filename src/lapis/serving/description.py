"""service.json as a value: what a front is to serve, how, and to whom."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from lapis.domain.limits import HEAD_SECONDS, SERVICE_BODY
from lapis.errors import UserErrorException


@dataclass(frozen=True)
class Listen:
    host: str = "127.0.0.1"
    port: int = 0  # 0: any
    anywhere: bool = False  # in a container of its own: at any address, under any name
    handover: str | None = None  # the socket where the front before this one hands its place over


@dataclass(frozen=True)
class Auth:
    """Who may ask. Both empty: everybody."""

    keys: tuple[str, ...] = ()  # SHA-256 of each, in hexadecimal
    token_secret_file: str | None = None

    @property
    def open(self) -> bool:
        return not self.keys and not self.token_secret_file


@dataclass(frozen=True)
class Worker:
    argv: tuple[str, ...]
    cwd: str
    environ: dict[str, str]


@dataclass(frozen=True)
class ReplicaCount:
    min: int = 1
    max: int = 1
    target_utilization: float = 70.0
    refresh_seconds: float = 1.0
    concurrent_per_replica: int = 1


@dataclass(frozen=True)
class Limits:
    request_bytes: int = SERVICE_BODY
    seconds: float = 60.0
    queue: int = 512
    wait_seconds: float | None = None  # in the queue; None: as long as the whole request may take
    worker_start_seconds: float = 300.0
    read_seconds: float = HEAD_SECONDS  # for a request to arrive, beside one for every 4 KB

    @property
    def held_bytes(self) -> int:
        """Of all bodies that are in memory at once."""
        return max(4 * self.request_bytes, 256 << 20)


@dataclass(frozen=True)
class Batch:
    largest: int = 64
    wait_ms: float = 0.0


@dataclass(frozen=True)
class Route:
    percent: float
    address: str


@dataclass(frozen=True)
class Report:
    file: str | None = None
    url: str | None = None
    token: str | None = None
    token_file: str | None = None


@dataclass(frozen=True)
class Description:
    id: str
    name: str
    revision: int
    worker: Worker
    load: dict[str, Any]
    listen: Listen = field(default_factory=Listen)
    auth: Auth = field(default_factory=Auth)
    cors: tuple[str, ...] = ()
    replicas: ReplicaCount = field(default_factory=ReplicaCount)
    limits: Limits = field(default_factory=Limits)
    batch: Batch = field(default_factory=Batch)
    routes: tuple[Route, ...] = ()
    collect: str | None = None
    report: Report = field(default_factory=Report)
    live: str | None = None  # whoever wrote it knows by this what is followed

    @property
    def no_code(self) -> bool:
        return not self.load.get("script")


def read(path: str) -> Description:
    """Raises UserErrorException if the file says something that cannot be."""
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    try:
        service, worker, auth = content["service"], content["worker"], content.get("auth") or {}
        return Description(
            id=service["id"],
            name=service["name"],
            revision=int(service.get("revision", 1)),
            worker=Worker(tuple(worker["argv"]), worker["cwd"], dict(worker.get("environ") or {})),
            load=dict(content["load"]),
            listen=_made(Listen, content.get("listen")),
            auth=Auth(tuple(auth.get("keys") or ()), auth.get("token_secret_file")),
            cors=tuple(content.get("cors") or ()),
            replicas=_checked(_made(ReplicaCount, content.get("replicas"))),
            limits=_made(Limits, content.get("limits")),
            batch=_made(Batch, content.get("batch")),
            routes=tuple(_made(Route, each) for each in content.get("routes") or ()),
            collect=content.get("collect"),
            report=_made(Report, content.get("report")),
            live=content.get("live"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UserErrorException(f"{path} does not describe a service: {type(error).__name__}: {error}.")


def _made(kind: Any, content: Any) -> Any:
    """Fields that are not there or null keep their defaults; ones that we do not know mean nothing to us."""
    known = {each: value for each, value in (content or {}).items() if each in kind.__dataclass_fields__}
    return kind(**{each: value for each, value in known.items() if value is not None})


def _checked(count: ReplicaCount) -> ReplicaCount:
    if not 1 <= count.min <= count.max or not 0 < count.target_utilization <= 100 or count.concurrent_per_replica < 1:
        raise ValueError(f"replicas cannot be {count}")
    return count

"""The addresses of a service: which are answered by a worker, and what the front itself says at the others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from lapis.scoring.swagger import VERSIONS
from lapis.serving.call import JSON, Call
from lapis.version import VERSION

if TYPE_CHECKING:
    from lapis.serving.front import Front, Refusal

Page = Callable[[Call, "Front"], None]

TEXT = b"content-type: text/html; charset=utf-8\r\n"
_INFER = re.compile(rb"/v2/models/[^/]+(?:/versions/[^/]+)?/infer")
_PREDICT = re.compile(rb"/v1/models/[^/:]+(?:/(?:versions|labels)/[^/:]+)?:(predict|classify|regress)")
_MODEL = re.compile(rb"/v2/models/([^/]+)(?:/versions/[^/]+)?(/ready)?")
_MODEL_STATUS = re.compile(rb"/v1/models/([^/:]+)(?:/(?:versions|labels)/[^/:]+)?(/metadata)?")


def find(call: Call, front: Front) -> Page | None | Refusal:
    """What answers a call: a page, None for a worker, or why nothing does."""
    path, method = call.path, call.method
    if path == b"/score":
        if method == b"OPTIONS" and front.about.cors and b"access-control-request-method" in call.fields:
            return _preflight
        allowed = (b"POST", b"OPTIONS") if front.about.no_code else (b"POST", b"GET", b"OPTIONS")
        if method not in allowed:
            return _wrong_method(method, *allowed)
        return _allow if method == b"OPTIONS" and front.about.no_code else None
    page = _PAGES.get(path) or _model_page(path, front)
    if page is not None:
        return page if method in (b"GET", b"HEAD") else _wrong_method(method, b"GET")
    if front.about.no_code and (_INFER.fullmatch(path) or _is_predict(path)):
        return None if method == b"POST" else _wrong_method(method, b"POST")
    shown = path[:200].decode("latin-1")
    return 404, f"Nothing is at {shown}. The service answers at /score, its description is at /swagger.json.", b""


def is_free(call: Call, page: Page | None) -> bool:
    """Whether it needs no key: whether it lives may be asked by everybody, and browsers ask ahead without one."""
    return page in (_healthy, _live, _ready, _preflight)


def _is_predict(path: bytes) -> bool:
    found = _PREDICT.fullmatch(path)
    return found is not None and found[1] == b"predict"


def _wrong_method(method: bytes, *allowed: bytes) -> Refusal:
    listed = b", ".join(allowed)
    return (
        405,
        f"{method.decode('latin-1')} is not possible here, but {listed.decode()}.",
        b"allow: " + listed + b"\r\n",
    )


def _healthy(call: Call, front: Front) -> None:
    if front.replicas.ready:
        call.answer(200, TEXT, b"Healthy")
    else:
        call.refuse(503, "No worker of the service is up.")


def _live(call: Call, front: Front) -> None:
    call.answer(200, JSON, b'{"live": true}')


def _ready(call: Call, front: Front) -> None:
    ready = bool(front.replicas.ready) and not front.draining
    call.answer(200 if ready else 503, JSON, json.dumps({"ready": ready}).encode())


def _swagger(call: Call, front: Front) -> None:
    query = parse_qs(call.target.partition(b"?")[2].decode("latin-1"))
    version = query.get("version", ["2"])[0]
    found = front.replicas.told.get("swagger", {}).get(version)
    if found is None:
        known = ", ".join(VERSIONS)
        call.refuse(404, f"Swagger version [{version[:20]}] is not valid. Supported versions: [{known}].")
        return
    call.answer(200, JSON, json.dumps(found).encode())


def _metrics(call: Call, front: Front) -> None:
    replicas = front.replicas
    gauges = {
        "lapis_waiting_requests": float(replicas.waiting),
        "lapis_queued_requests": float(len(replicas.queue)),
        "lapis_workers_ready": float(len(replicas.ready)),
        "lapis_worker_restarts_total": float(replicas.restarts),
        "lapis_connections": float(len(front.connections)),
    }
    call.answer(200, b"content-type: text/plain; version=0.0.4\r\n", front.figures.prometheus(gauges).encode())


def _server(call: Call, front: Front) -> None:
    body = {"name": "lapis", "version": VERSION, "extensions": ["binary_tensor_data"]}
    call.answer(200, JSON, json.dumps(body).encode())


def _preflight(call: Call, front: Front) -> None:
    lines = b"access-control-allow-methods: GET, POST\r\naccess-control-max-age: 600\r\n"
    asked = call.fields.get(b"access-control-request-headers")
    if asked:
        lines += b"access-control-allow-headers: " + asked + b"\r\n"
    call.answer(200, TEXT + lines, b"")


def _allow(call: Call, front: Front) -> None:
    call.answer(200, TEXT + b"allow: POST, OPTIONS\r\n", b"")


_PAGES: dict[bytes, Page] = {
    b"/": _healthy,
    b"/swagger.json": _swagger,
    b"/health/live": _live,
    b"/health/ready": _ready,
    b"/v2": _server,
    b"/v2/health/live": _live,
    b"/v2/health/ready": _ready,
    b"/metrics": _metrics,
}


def _model_page(path: bytes, front: Front) -> Page | None:
    if not front.about.no_code:
        return None
    found = _MODEL.fullmatch(path)
    if found is not None:
        return _ready if found[2] else _named(found[1], _described)
    found = _MODEL_STATUS.fullmatch(path)
    if found is not None:
        return _named(found[1], _served_metadata if found[2] else _served)
    return None


def _named(name: bytes, make: Callable[[dict[str, Any]], dict[str, Any]]) -> Page:
    def page(call: Call, front: Front) -> None:
        about = {**(front.replicas.told.get("model") or {}), "name": name.decode("latin-1")}
        call.answer(200, JSON, json.dumps(make(about)).encode())

    return page


def _described(about: dict[str, Any]) -> dict[str, Any]:
    return about


def _served(about: dict[str, Any]) -> dict[str, Any]:
    status = {"error_code": "OK", "error_message": ""}
    versions = about.get("versions", ["1"])
    return {"model_version_status": [{"version": each, "state": "AVAILABLE", "status": status} for each in versions]}


def _served_metadata(about: dict[str, Any]) -> dict[str, Any]:
    versions = about.get("versions", ["1"])
    spec = {"name": about["name"], "signature_name": "", "version": versions[0]}
    return {"model_spec": spec, "metadata": {"inputs": about.get("inputs"), "outputs": about.get("outputs")}}

"""Routes of environments: registered, found, resolved, built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lapis.domain.values import Value
from lapis.server.api.long_work import RESOLVING
from lapis.server.api.repeats import harmless, whole
from lapis.server.api.request import Response, TheControl, answer
from lapis.server.api.routing import Routes
from lapis.server.control.bounds import Offset
from lapis.server.control.environments import EnvironmentWish

router = Routes("/workspaces/{workspace_id}/environments")


@dataclass(frozen=True)
class NewEnvironment(Value):
    definition: Mapping[str, Any]


@dataclass(frozen=True)
class Labelled(Value):
    version: str
    labels: tuple[str, ...]


@router.get("")
def environments(control: TheControl, workspace_id: str) -> Response:
    return answer({"environments": control.environments.all(workspace_id)})


@router.post("")
@whole
def register(control: TheControl, workspace_id: str, new: NewEnvironment) -> Response:
    return answer(control.environments.register(workspace_id, new.definition), 201)


@router.post("/resolve")
@RESOLVING.route
@harmless("the same definition comes to the same lock")
def resolve(control: TheControl, workspace_id: str, wish: EnvironmentWish) -> Response:
    return answer(control.environments.resolve(workspace_id, wish))


@router.post("/details")
@RESOLVING.route
@harmless("it only tells")
def details(control: TheControl, workspace_id: str, wish: EnvironmentWish) -> Response:
    return answer(control.environments.details(workspace_id, wish))


@router.post("/builds")
@RESOLVING.route
@harmless("one build for each lock, however many ask")
def build(control: TheControl, workspace_id: str, wish: EnvironmentWish) -> Response:
    return answer(control.environments.build(workspace_id, wish), 201)


@router.get("/builds/{lock}")
def build_status(control: TheControl, workspace_id: str, lock: str) -> Response:
    return answer(control.environments.build_status(workspace_id, lock))


@router.get("/builds/{lock}/log")
def build_log(control: TheControl, workspace_id: str, lock: str, offset: Offset = 0) -> Response:
    log = control.environments.build_log(workspace_id, lock, offset)
    return Response(log, media_type="text/plain; charset=utf-8")


@router.get("/{name}")
def environment(
    control: TheControl,
    workspace_id: str,
    name: str,
    version: str | None = None,
    label: str | None = None,
) -> Response:
    return answer(control.environments.get(workspace_id, name, version, label))


@router.post("/{name}/labels")
@whole
def label(
    control: TheControl,
    workspace_id: str,
    name: str,
    labelled: Labelled,
) -> Response:
    return answer(control.environments.label(workspace_id, name, labelled.version, list(labelled.labels)))

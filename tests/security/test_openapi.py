"""schemathesis reads what the routes say of themselves, and asks for it in ways that fit and ways that do not."""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from starlette.requests import Request

from lapis.domain import settings as lapis_settings
from lapis.domain.values import Value
from lapis.server.api.request import BODY
from lapis.server.api.routing import App, Route
from lapis.server.app import make_app, make_system
from lapis.server.control.guard import Guarded
from lapis.testing import Home

ASKED_OF_EACH = 10
SPARED = {("POST", "/api/v1/stop"), ("DELETE", "/api/v1/workspaces/{workspace_id}")}


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the signatures of the routes say. The server itself does not tell strangers."""
    home = str(tmp_path_factory.mktemp("home"))
    system = make_system(replace(lapis_settings.load(), home=home), "http://127.0.0.1:1", time.time, lambda: None)
    app: Any = make_app(system, "127.0.0.1", lambda: None)
    while not isinstance(app, App):  # below the gate and the express lanes
        app = app._app
    paths: dict[str, Any] = {}
    for route in app.routes:
        paths.setdefault(route.path.replace(":path}", "}"), {})[route.method.lower()] = described(route)
    yield {"openapi": "3.1.0", "info": {"title": "Lapis", "version": "1"}, "paths": paths}
    system.stores.database.close()


def described(route: Route) -> dict[str, Any]:
    function = inspect.unwrap(route.endpoint)
    parameters: list[dict[str, Any]] = []
    told: dict[str, Any] = {"parameters": parameters, "responses": {"200": {"description": "well"}}}
    for name, kind in get_type_hints(function, include_extras=True).items():
        if name in route.names:
            parameters.append({"name": name, "in": "path", "required": True, "schema": {"type": "string"}})
        elif BODY in get_args(kind) or (isinstance(kind, type) and issubclass(kind, Value)):
            fields = {each.name: {} for each in dataclasses.fields(kind)} if isinstance(kind, type) else {}
            body = {"type": "object", "properties": fields}
            told["requestBody"] = {"content": {"application/json": {"schema": body}}}
        elif name != "return" and kind not in (Guarded, Request):
            parameters.append({"name": name, "in": "query", "schema": {"type": _type_of(kind)}})
    return told


def _type_of(kind: Any) -> str:
    text = str(kind)
    found = (name for word, name in (("bool", "boolean"), ("int", "integer"), ("float", "number")) if word in text)
    return next(found, "string")


def test_the_description_has_every_route_with_what_it_takes(description: dict[str, Any]) -> None:
    runs = description["paths"]["/api/v1/workspaces/{workspace_id}/runs"]
    assert {each["name"] for each in runs["get"]["parameters"]} >= {"workspace_id", "status", "tag", "limit", "cursor"}
    assert any("requestBody" in each for path in description["paths"].values() for each in path.values())
    assert sum(map(len, description["paths"].values())) > 100


@pytest.mark.full
def test_no_request_that_fits_the_description_or_nearly_does_is_a_fault(
    description: dict[str, Any], home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workspace = home.workspace("described")
    pid = home.server_pid
    token = (home.path / "token").read_text()
    schema = schemathesis.openapi.from_dict(description)
    schema.config.update(base_url=home.address)
    asked = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if (operation.method.upper(), operation.path) in SPARED:
            continue

        @settings(
            max_examples=ASKED_OF_EACH, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        def ask(case: schemathesis.Case) -> None:
            nonlocal asked
            if "workspace_id" in (case.path_parameters or {}) and asked % 5:
                case.path_parameters["workspace_id"] = workspace._workspace_id
            case.query.pop("wait", None)
            asked += 1
            case.call_and_validate(
                headers={"Authorization": f"Bearer {token}"}, checks=[not_a_server_error], timeout=60
            )

        began = time.monotonic()
        given(case=operation.as_strategy())(ask)()
        print(operation.method, operation.path, round(time.monotonic() - began, 1), flush=True)
    print(f"{asked} requests")
    assert home.server_pid == pid
    assert workspace.get_details()["name"] == "described"

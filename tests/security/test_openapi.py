"""schemathesis reads what the server says of itself, and asks for all of it in ways that fit and ways that do not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error

from lapis.domain import settings as lapis_settings
from lapis.server.app import make_app, make_system
from lapis.testing import Home

ASKED_OF_EACH = 10
SPARED = {("POST", "/api/v1/stop"), ("DELETE", "/api/v1/workspaces/{workspace_id}")}


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the app says of its routes. The server itself does not tell strangers."""
    home = str(tmp_path_factory.mktemp("home"))
    system = make_system(replace(lapis_settings.load(), home=home), "http://127.0.0.1:1", time.time, lambda: None)
    app: Any = make_app(system, "127.0.0.1", lambda: None)
    while not hasattr(app, "openapi"):  # below the gate and the express lanes
        app = app._app
    yield app.openapi()
    system.stores.database.close()


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

"""Who gets what from every route of the app, and that nothing gets past the table of rights."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import lapis.server
from lapis.domain import frames
from lapis.errors import Forbidden, UserErrorException
from lapis.server.api.express import LANES
from lapis.server.api.routing import App
from lapis.server.control import guard
from lapis.server.control.access import USER, VIEWER, Actor
from lapis.server.control.control import Control
from lapis.server.control.data import NewDataset
from lapis.server.control.environments import EnvironmentWish
from lapis.server.control.guard import TABLE, guarded
from lapis.server.control.runs import NewRun
from lapis.server.studio.login import LOGIN_PATH
from tests.server.served import Served, served

__all__ = ["served"]  # the fixture

# -- who may come in where. A run is `mine`; `sibling` is another one of its workspace, `stranger` one of another.

LET_IN = {"user", "viewer", "mine", "agent", "sibling", "stranger"}
READERS = LET_IN - {"stranger"}
UPLOADERS = LET_IN - {"viewer"}
ADDERS = READERS - {"viewer"}
THE_RUN = {"user", "mine", "agent"}
MAKERS = {"user", "mine", "sibling"}
USERS = {"user"}
EVERYTHING = {"user", "viewer"}
KEY_IN_BODY: set[str] = set()

WORKSPACE = "/api/v1/workspaces/{workspace_id}"
RUN = WORKSPACE + "/runs/{run_id}"
PAGE = "/studio/{workspace_id}/runs/{run_id}"

CONTENT: dict[str, Any] = {"models": []}
DATASET = {"name": "d", "definition": {"type": "file", "sources": []}}
WISH = {"definition": {"python": {"baseCondaEnvironment": "none"}, "docker": {"enabled": "perhaps"}}}
NEW_RUN = {"experiment": "e", "run_id": "fresh", "nonce": "n"}

ROUTES: dict[tuple[str, str], tuple[set[str], Any]] = {
    ("POST", LOGIN_PATH): (KEY_IN_BODY, b""),
    ("GET", "/api/v1/about"): (LET_IN, None),
    ("POST", "/api/v1/stop"): (USERS, {}),
    ("POST", "/api/v1/gc"): (USERS, {"dry_run": True}),
    ("POST", "/api/v1/blobs"): (UPLOADERS, frames.encode({"hashes": []})),
    ("POST", "/api/v1/blobs/missing"): (LET_IN, {"hashes": []}),
    ("PUT", "/api/v1/blobs/{digest}"): (UPLOADERS, b"x"),
    ("GET", "/api/v1/blobs/{digest}"): (EVERYTHING, None),
    ("POST", "/api/v1/workspaces"): (USERS, {"name": "another", "exist_ok": True}),
    ("GET", "/api/v1/workspaces"): (LET_IN, None),
    ("GET", WORKSPACE): (READERS, None),
    ("PATCH", WORKSPACE): (USERS, {}),
    ("DELETE", WORKSPACE): (USERS, None),
    ("POST", WORKSPACE + "/experiments"): (ADDERS, {"name": "e"}),
    ("GET", WORKSPACE + "/experiments"): (READERS, None),
    ("PATCH", WORKSPACE + "/experiments/{experiment_id}"): (USERS, {}),
    ("DELETE", WORKSPACE + "/experiments/{experiment_id}"): (USERS, None),
    ("GET", WORKSPACE + "/computes"): (READERS, None),
    ("POST", WORKSPACE + "/computes"): (USERS, {"name": "c", "type": "AmlCompute", "max_nodes": -1}),
    ("GET", WORKSPACE + "/computes/{name}"): (READERS, None),
    ("PATCH", WORKSPACE + "/computes/{name}"): (USERS, {}),
    ("DELETE", WORKSPACE + "/computes/{name}"): (USERS, None),
    ("POST", WORKSPACE + "/computes/{name}/preempt"): (USERS, {}),
    ("GET", WORKSPACE + "/datastores"): (READERS, None),
    ("POST", WORKSPACE + "/datastores"): (USERS, {"name": "s", "type": "AzureBlob"}),
    ("GET", WORKSPACE + "/datastore"): (READERS, None),
    ("DELETE", WORKSPACE + "/datastore?name=x"): (USERS, None),
    ("GET", WORKSPACE + "/datastore/access?name=x"): (ADDERS, None),
    ("PUT", WORKSPACE + "/datastore/default"): (USERS, {"name": "x"}),
    ("GET", WORKSPACE + "/datasets"): (READERS, None),
    ("POST", WORKSPACE + "/datasets"): (ADDERS, DATASET),
    ("GET", WORKSPACE + "/dataset?name=x"): (READERS, None),
    ("DELETE", WORKSPACE + "/dataset?name=x"): (USERS, None),
    ("GET", WORKSPACE + "/datasets/{dataset_id}"): (READERS, None),
    ("PATCH", WORKSPACE + "/datasets/{dataset_id}"): (ADDERS, {}),
    ("GET", WORKSPACE + "/datasets/{dataset_id}/files"): (READERS, None),
    ("GET", WORKSPACE + "/datasets/{dataset_id}/runs"): (READERS, None),
    ("GET", WORKSPACE + "/environments"): (READERS, None),
    ("POST", WORKSPACE + "/environments"): (USERS, {"definition": {}}),
    ("POST", WORKSPACE + "/environments/resolve"): (ADDERS, WISH),
    ("POST", WORKSPACE + "/environments/details"): (ADDERS, WISH),
    ("POST", WORKSPACE + "/environments/builds"): (USERS, WISH),
    ("GET", WORKSPACE + "/environments/builds/{lock}"): (READERS, None),
    ("GET", WORKSPACE + "/environments/builds/{lock}/log"): (READERS, None),
    ("GET", WORKSPACE + "/environments/{name}"): (READERS, None),
    ("POST", WORKSPACE + "/environments/{name}/labels"): (USERS, {"version": "1", "labels": []}),
    ("GET", WORKSPACE + "/models"): (READERS, None),
    ("POST", WORKSPACE + "/models"): (ADDERS, {"name": "m"}),
    ("GET", WORKSPACE + "/models/{name}"): (READERS, None),
    ("GET", WORKSPACE + "/models/{name}/{version}"): (READERS, None),
    ("GET", WORKSPACE + "/models/{name}/{version}/lineage"): (READERS, None),
    ("GET", WORKSPACE + "/models/{name}/{version}/no_code"): (READERS, None),
    ("GET", WORKSPACE + "/models/{name}/{version}/blobs/{digest}"): (READERS, None),
    ("PATCH", WORKSPACE + "/models/{name}/{version}"): (ADDERS, {}),
    ("DELETE", WORKSPACE + "/models/{name}/{version}"): (USERS, None),
    ("GET", WORKSPACE + "/services"): (READERS, None),
    ("POST", WORKSPACE + "/services"): (USERS, {"name": "s", "kind": "ACI", "target": "none"}),
    ("GET", WORKSPACE + "/services/{name}"): (READERS, None),
    ("PATCH", WORKSPACE + "/services/{name}"): (USERS, {}),
    ("DELETE", WORKSPACE + "/services/{name}"): (USERS, None),
    ("GET", WORKSPACE + "/services/{name}/logs"): (READERS, None),
    ("GET", WORKSPACE + "/services/{name}/keys"): (USERS, None),
    ("POST", WORKSPACE + "/services/{name}/keys"): (USERS, {"which": "primary"}),
    ("POST", WORKSPACE + "/services/{name}/token"): (ADDERS, {}),
    ("POST", WORKSPACE + "/services/{name}/versions/{version}"): (USERS, {}),
    ("PATCH", WORKSPACE + "/services/{name}/versions/{version}"): (USERS, {}),
    ("DELETE", WORKSPACE + "/services/{name}/versions/{version}"): (USERS, None),
    ("GET", WORKSPACE + "/images"): (READERS, None),
    ("POST", WORKSPACE + "/images"): (USERS, {"name": "i", "content": CONTENT}),
    ("GET", WORKSPACE + "/images/{name}"): (READERS, None),
    ("GET", WORKSPACE + "/images/{name}/{version}"): (READERS, None),
    ("PATCH", WORKSPACE + "/images/{name}/{version}"): (USERS, {}),
    ("DELETE", WORKSPACE + "/images/{name}/{version}"): (USERS, None),
    ("POST", WORKSPACE + "/packages"): (USERS, {"name": "p", "content": CONTENT}),
    ("GET", WORKSPACE + "/packages/{name}/{version}"): (READERS, None),
    ("POST", WORKSPACE + "/profiles"): (USERS, {"name": "p", "content": CONTENT}),
    ("GET", WORKSPACE + "/profiles/{name}"): (READERS, None),
    ("GET", WORKSPACE + "/secrets"): (ADDERS, None),
    ("POST", WORKSPACE + "/secrets"): (USERS, {"secrets": [{"name": "s", "value": "v"}]}),
    ("POST", WORKSPACE + "/secrets/read"): (ADDERS, {"names": ["s"]}),
    ("POST", WORKSPACE + "/secrets/delete"): (USERS, {"names": ["s"]}),
    ("POST", WORKSPACE + "/snapshots"): (ADDERS, frames.encode({"files": [], "hashes": []})),
    ("GET", WORKSPACE + "/snapshots/{snapshot_id}"): (READERS, None),
    ("GET", WORKSPACE + "/snapshots/{snapshot_id}/blobs/{digest}"): (READERS, None),
    ("GET", WORKSPACE + "/runs"): (READERS, None),
    ("POST", WORKSPACE + "/runs"): (MAKERS, {"runs": [NEW_RUN]}),
    ("GET", RUN): (READERS, None),
    ("PATCH", RUN): (THE_RUN, {}),
    ("DELETE", RUN): (USERS, None),
    ("POST", RUN + "/start"): (THE_RUN, {}),
    ("POST", RUN + "/complete"): (THE_RUN, {}),
    ("POST", RUN + "/fail"): (THE_RUN, {}),
    ("POST", RUN + "/cancel"): (THE_RUN, {}),
    ("POST", RUN + "/report"): (THE_RUN, frames.encode({})),
    ("GET", RUN + "/datasets"): (READERS, None),
    ("GET", RUN + "/descendants"): (READERS, None),
    ("GET", RUN + "/metrics"): (READERS, None),
    ("GET", RUN + "/values"): (READERS, None),
    ("GET", RUN + "/trials"): (READERS, None),
    ("GET", RUN + "/steps"): (READERS, None),
    ("GET", RUN + "/summaries"): (READERS, None),
    ("GET", RUN + "/curve?name=x"): (READERS, None),
    ("GET", RUN + "/watch"): (READERS, None),
    ("GET", RUN + "/files"): (READERS, None),
    ("POST", RUN + "/files"): (THE_RUN, {"files": {}}),
    ("GET", RUN + "/files/{name:path}"): (READERS, None),
    ("PUT", RUN + "/files/{name:path}"): (THE_RUN, b"x"),
    ("GET", "/studio/"): (LET_IN, None),
    ("GET", "/studio/static/{name:path}"): (LET_IN, None),
    ("GET", "/studio/{workspace_id}/runs"): (READERS, None),
    ("GET", PAGE): (READERS, None),
    ("GET", PAGE + "/state.json"): (READERS, None),
    ("GET", PAGE + "/log.json?name=x"): (READERS, None),
    ("GET", PAGE + "/curve.json?name=x"): (READERS, None),
    ("GET", PAGE + "/file/{name:path}"): (READERS, None),
    ("GET", "/studio/{rest:path}"): (LET_IN, None),
}
"""For each route: who gets past the gate and the guard, and a body that can be read. All others are refused."""


def routes_of(served: Served) -> App:
    express = served.app._app
    once = express._app  # type: ignore[attr-defined]
    app = once._app
    assert isinstance(app, App)
    return app


def test_every_route_of_the_app_says_who_may_come_in(served: Served) -> None:
    app = routes_of(served)
    there = {("POST", LOGIN_PATH), *(("POST", path) for path in LANES)}
    there |= {(route.method, route.path) for route in app.routes}
    assert there == {(method, path.partition("?")[0]) for method, path in ROUTES}


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_route_lets_in_those_it_is_for_and_nobody_else(method: str, path: str, served: Served) -> None:
    allowed, body = ROUTES[method, path]
    for who in served.tokens:  # those who are refused come first: what the others do may change something
        served.begin_mine()  # a token ends with its run, and some of these calls end it
        status = served.ask(who, method, path, body).status
        if who in ("nobody", "wrong") or allowed is KEY_IN_BODY:
            assert status == 401, who
        elif who in allowed:
            assert status not in (401, 403) and status < 500, who
        else:
            assert status == 403, who


def test_a_stranger_finds_only_the_workspace_of_its_run(served: Served) -> None:
    everywhere = guarded(served.system.control, USER).workspaces.find()
    stranger = Actor("run", everywhere[-1]["id"], "stranger")
    assert guarded(served.system.control, stranger).workspaces.find() == everywhere[-1:]
    assert len(guarded(served.system.control, VIEWER).workspaces.find()) == len(everywhere) > 1


def test_whoever_asks_is_the_one_who_was_let_in_whatever_a_route_says(served: Served) -> None:
    control: Any = guarded(served.system.control, Actor("run", served.names["workspace_id"], "mine"))
    assert control.lifetime.about(by=USER)["viewer_key"] is None


def test_a_call_that_is_not_in_the_table_is_refused_even_to_the_user(served: Served) -> None:
    control = guarded(served.system.control, USER)
    with pytest.raises(Forbidden, match="no right to it"):
        control.runs.make(served.names["workspace_id"], [])
    with pytest.raises(Forbidden, match="no right to it"):
        control.files._stores  # noqa: B018


def test_a_run_may_not_make_a_child_of_another_one(served: Served) -> None:
    workspace_id = served.names["workspace_id"]
    control = guarded(served.system.control, Actor("run", workspace_id, "sibling"))
    with pytest.raises(Forbidden):
        control.runs.create(workspace_id, [NewRun("e", "child", "child", parent_id="goes-on")])
    control.runs.create(workspace_id, [NewRun("e", "child", "child", parent_id="sibling")])
    control.runs.change(workspace_id, "child", {"tags": {"a": "b"}})


def test_an_agent_registers_the_outputs_of_its_own_run_and_of_no_other(served: Served) -> None:
    workspace_id, mine = served.names["workspace_id"], served.begin_mine()
    control = guarded(served.system.control, Actor("agent", workspace_id, mine))

    def output_of(run_id: str) -> NewDataset:
        return NewDataset(None, {"type": "file", "sources": []}, run_id=run_id, output="out")

    control.data.register_dataset(workspace_id, output_of(mine))
    with pytest.raises(Forbidden):
        control.data.register_dataset(workspace_id, output_of("sibling"))
    with pytest.raises(Forbidden):
        control.data.register_dataset("another workspace", output_of(mine))


def test_a_run_cannot_have_packages_built_from_the_servers_disk_and_the_user_can(
    served: Served, tmp_path: Path
) -> None:
    workspace_id = served.names["workspace_id"]
    lines = ["--no-index", f"--find-links {tmp_path}", "none-such"]
    section = {"condaDependencies": {"dependencies": [{"pip": lines}]}}
    for who in (Actor("run", workspace_id, "mine"), Actor("agent", workspace_id, "mine"), VIEWER):
        control = guarded(served.system.control, who)
        for call in (control.environments.resolve, control.environments.details, control.environments.build):
            with pytest.raises(Forbidden):
                call(workspace_id, EnvironmentWish({"python": section}))
    with pytest.raises(UserErrorException, match="none-such"):
        guarded(served.system.control, USER).environments.resolve(workspace_id, EnvironmentWish({"python": section}))


# -- the table itself


def test_every_call_of_the_table_is_one_of_control() -> None:
    parts = {str(field.type) for field in fields(Control)}
    assert {call.__qualname__.partition(".")[0] for call in TABLE} <= parts


@pytest.mark.parametrize("call", TABLE, ids=lambda call: call.__qualname__)
def test_a_right_looks_at_what_its_call_is_given(call: Any) -> None:
    """A right names what it looks at, in the places where the call has it: a workspace is not taken for a run."""

    def named(function: Any, skip: int) -> list[str]:
        plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
        return [each.name for each in inspect.signature(function).parameters.values() if each.kind in plain][skip:]

    looked_at = named(TABLE[call], 2)
    assert named(call, 1)[: len(looked_at)] == looked_at


# -- the code around it

SOURCES = Path(lapis.server.__file__).parent


def modules(*folders: str) -> list[tuple[str, ast.Module]]:
    found = [path for folder in folders for path in sorted((SOURCES / folder).rglob("*.py"))]
    return [(str(path.relative_to(SOURCES)), ast.parse(path.read_text())) for path in found]


def test_nobody_but_the_guard_asks_for_permission() -> None:
    asking = {
        name
        for name, tree in modules(".")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("may_")
    }
    assert asking == {"control/guard.py", "control/access.py"}


def test_routes_and_pages_make_only_calls_that_are_in_the_table() -> None:
    parts = {field.name: str(field.type) for field in fields(Control)}
    known = {call.__qualname__ for call in TABLE}
    made = set()
    for _, tree in modules("api", "studio"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
                part = node.value
                if isinstance(part.value, ast.Name) and part.value.id == "control":
                    made.add(f"{parts[part.attr]}.{node.attr}")
    assert made <= known
    assert known - made == set(), "a right that no route needs is a right too many"


def test_the_guard_is_made_before_the_first_call() -> None:
    """Nothing is looked up by name while a request is served: the calls are methods of classes made on import."""
    for name, kind in ((field.name, str(field.type)) for field in fields(Control)):
        part = guard._PARTS[name].fget.__closure__  # type: ignore[union-attr]
        (made,) = [cell.cell_contents for cell in part if isinstance(cell.cell_contents, type)]
        mine = {call.__name__ for call in TABLE if call.__qualname__.startswith(kind + ".")}
        assert mine <= set(vars(made))

"""Every number, length and list from outside has a bound, and an error that names it; what is stored breaks nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lapis.domain import frames, limits
from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.workspace.workspace import Workspace
from lapis.testing import Home
from tests.server.test_gate import Reply, ask

HUGE = 10**30
MANY = {f"t{number}": "v" for number in range(limits.LABELS + 1)}
LONG = "x" * (limits.DESCRIPTION + 1)
DEEP: Any = []
for _ in range(limits.JSON_DEPTH + 1):
    DEEP = [DEEP]
RUN = {"experiment": "e", "run_id": "fresh", "nonce": "n"}
COMPUTE = {"name": "cluster", "type": "AmlCompute", "max_nodes": 1}
JOB = {"script": "train.py"}
SPACE = {"x": ["choice", [[1, 2]]]}
SPEC = {
    "sampling": {"name": "RANDOM", "parameter_space": SPACE, "seed": 1},
    "policy": {"name": "Default", "properties": {}},
    "metric": "m", "goal": "maximize", "max_total": 1, "max_minutes": 1,
}  # fmt: skip


def search(**changes: Any) -> dict[str, Any]:
    return {"runs": [{**RUN, "sweep": {"spec": {**SPEC, **changes}, "trial": {"job": JOB}}}]}


def sampled(name: str, space: Any) -> dict[str, Any]:
    return search(sampling={"name": name, "parameter_space": space, "seed": 1})


def run(**changes: Any) -> dict[str, Any]:
    return {"runs": [{**RUN, **changes}]}


def job(**changes: Any) -> dict[str, Any]:
    return run(job={**JOB, **changes})


WS = "/api/v1{base}"
ABSURD: list[tuple[str, str, Any, str]] = [
    ("POST", WS + "/computes", {**COMPUTE, "max_nodes": HUGE}, "max_nodes"),
    ("POST", WS + "/computes", {**COMPUTE, "max_nodes": limits.NODES + 1}, "max_nodes"),
    ("POST", WS + "/computes", {**COMPUTE, "min_nodes": -HUGE}, "min_nodes"),
    ("POST", WS + "/computes", {**COMPUTE, "idle_seconds": HUGE}, "idle_seconds"),
    ("POST", WS + "/computes", {**COMPUTE, "description": LONG}, "description"),
    ("POST", WS + "/computes", {**COMPUTE, "tags": MANY}, "tags"),
    ("PATCH", WS + "/computes/there", {"max_nodes": HUGE}, "max_nodes"),
    ("PATCH", WS + "/computes/there", {"max_nodes": "abc"}, "max_nodes"),
    ("PATCH", WS + "/computes/there", {"idle_seconds": "abc"}, "idle_seconds"),
    ("PATCH", WS + "/computes/there", {"tags": MANY}, "tags"),
    ("POST", WS + "/runs", run(display_name="x" * (limits.DISPLAY_NAME + 1)), "display_name"),
    ("POST", WS + "/runs", run(description=LONG), "description"),
    ("POST", WS + "/runs", run(tags=MANY), "tags"),
    ("POST", WS + "/runs", run(tags={"k" * 2000: "v"}), "key of tags"),
    ("POST", WS + "/runs", run(properties={"k": LONG}), "properties"),
    ("POST", WS + "/runs", run(uses=[["a", "b", "c"]] * (limits.ITEMS + 1)), "uses"),
    ("POST", WS + "/runs", run(nonce="x" * 300), "nonce"),
    ("POST", WS + "/runs", {"runs": [RUN] * (limits.RUNS_AT_ONCE + 1)}, "runs can hold at most 10000"),
    ("POST", WS + "/runs", job(node_count=HUGE), "node_count"),
    ("POST", WS + "/runs", job(priority=HUGE), "priority"),
    ("POST", WS + "/runs", job(max_seconds=1e300), "max_seconds"),
    ("POST", WS + "/runs", job(arguments=["x" * (limits.WORD + 1)]), "arguments"),
    ("POST", WS + "/runs", job(arguments=["x"] * (limits.ITEMS + 1)), "arguments"),
    ("POST", WS + "/runs", job(distribution={"kind": "mpi", "processes_per_node": HUGE}), "processes_per_node"),
    ("POST", WS + "/runs", search(max_total=HUGE), "max_"),
    ("POST", WS + "/runs", search(max_minutes=HUGE), "max_"),
    ("POST", WS + "/runs", sampled("RANDOM", {"x": ["choice", [[1] * (limits.CHOICES + 1)]]}), "choice() of parameter"),
    ("POST", WS + "/runs", sampled("RANDOM", {"x": ["randint", [10**18]]}), "upper of randint"),
    ("POST", WS + "/runs", sampled("GRID", {f"x{n}": ["choice", [[1, 2]]] for n in range(60)}), "Grid sampling"),
    ("POST", WS + "/runs", sampled("RANDOM", {f"x{n}": ["uniform", [0, 1]] for n in range(1001)}), "1000 parameters"),
    ("PATCH", WS + "/runs/{run}", {"tags": MANY}, "tags"),
    ("PATCH", WS + "/runs/{run}", {"properties": MANY}, "properties"),
    ("PATCH", WS + "/runs/{run}", {"description": LONG}, "description"),
    ("PATCH", WS + "/runs/{run}", {"display_name": 7}, "display_name"),
    ("PATCH", WS + "/runs/{run}", {"tags": DEEP}, "levels deep"),
    ("POST", WS + "/runs/{run}/fail", {"error_details": "x" * 1_000_001}, "error_details"),
    ("GET", WS + "/runs?limit=1000000", None, "limit"),
    ("GET", WS + f"/runs?cursor={HUGE}", None, "cursor"),
    ("GET", WS + "/runs?" + "&".join(["tag=t"] * 101), None, "tag"),
    ("GET", WS + f"/runs/{{run}}/watch?revision={HUGE}", None, "revision"),
    ("GET", WS + "/runs/{run}/watch?wait=nan", None, "wait"),
    ("GET", WS + "/runs/{run}/watch?wait=inf", None, "wait"),
    ("GET", WS + f"/runs/{{run}}/files/a?offset={HUGE}", None, "offset"),
    ("GET", WS + f"/models/m/{HUGE}", None, "version"),
    ("GET", WS + f"/dataset?name=d&version={HUGE}", None, "version"),
    ("GET", WS + f"/images/i/{HUGE}", None, "version"),
    ("GET", WS + f"/environments/builds/{'a' * 32}/log?offset={HUGE}", None, "offset"),
    ("POST", WS + "/models", {"name": "m", "files": {}, "description": LONG}, "description"),
    ("POST", WS + "/models", {"name": "m", "files": {f"f{n}": "h" for n in range(100_001)}}, "files"),
    ("POST", WS + "/datasets", {"name": "d", "definition": {"type": "file", "sources": []}, "tags": MANY}, "tags"),
    ("POST", WS + "/datasets", {"name": "d", "definition": {"type": "file", "sources": DEEP}}, "levels deep"),
    ("POST", WS + "/datastores", {"name": "d", "type": "x", "options": {"o": LONG}}, "options"),
    ("POST", WS + "/environments", {"definition": {"name": "x" * 300}}, "name"),
    ("POST", WS + "/environments/resolve", {"definition": {"python": DEEP}}, "levels deep"),
    ("POST", WS + "/services", {"name": "s", "kind": "ACI", "settings": {"num_replicas": HUGE}}, "num_replicas"),
    ("POST", "/api/v1/workspaces", {"name": "w", "subscription_id": "x" * 300}, "subscription_id"),
    ("PATCH", WS, {"tags": MANY}, "tags"),
    ("PATCH", WS, {"description": LONG}, "description"),
]  # fmt: skip


@pytest.fixture
def bounded(on_shared_server: Home, workspace: Workspace) -> Any:
    token = (on_shared_server.path / "token").read_text()
    made = Experiment(workspace, "e").start_logging()

    def asked(method: str, path: str, body: Any = None) -> Reply:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        path = path.format(base=workspace._base, run=made.id)
        return ask(on_shared_server, method, path, token, data, Content_Type="application/json")

    yield asked
    made.complete()


def test_every_bound_is_refused_by_its_name(bounded: Any) -> None:
    assert bounded("POST", WS + "/computes", {**COMPUTE, "name": "there"}).status == 201
    for method, path, body, named in ABSURD:
        reply = bounded(method, path, body)
        said = json.loads(reply.body)["error"]["message"]
        assert reply.status in (400, 413), f"{method} {path}: {reply.status} {said[:300]}"
        assert named in said, f"{method} {path}: {said[:300]}"
        assert len(said) < 3000, f"{method} {path} is answered with {len(said)} characters"


def test_a_body_nested_as_deep_as_python_goes_is_refused(bounded: Any) -> None:
    for depth in (100, 900, 100_000):
        reply = bounded("PATCH", WS + "/runs/{run}", b'{"tags": ' + b"[" * depth + b"]" * depth + b"}")
        assert reply.status == 400 and "levels deep" in json.loads(reply.body)["error"]["message"]


def reported(bounded: Any, header: dict[str, Any], parts: list[bytes] | None = None) -> Reply:
    return bounded("POST", WS + "/runs/{run}/report", frames.encode(header, parts or []))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("header", "named"),
    [
        ({"node": {"index": 10**6}}, "node.index"),
        ({"node": {"index": -1}}, "node.index"),
        ({"node": {"index": HUGE}}, "node.index"),
        ({"node": {"index": 0, "words": "x" * 100_000}}, "node"),
        ({"steps": [{"reason": "r", "at": float("nan")}]}, "at"),
        ({"steps": [{"reason": "r", "at": HUGE}]}, "at"),
        ({"steps": [{"reason": "r", "at": -1}]}, "at"),
        ({"steps": [{"reason": "r", "at": 1}] * (limits.ITEMS + 1)}, "steps"),
        ({"steps": DEEP}, "levels deep"),
    ],
)
def test_what_an_agent_tells_has_bounds_too(bounded: Any, header: dict[str, Any], named: str) -> None:
    reply = reported(bounded, header)
    assert reply.status == 400 and named in json.loads(reply.body)["error"]["message"]


def test_points_that_no_database_keeps_are_left_out_and_the_others_taken(bounded: Any) -> None:
    points = [
        ["scalar", 1.0, "good", 1], ["scalar", 1.0, "bad", 1, HUGE], ["scalar", 1.0, "x" * 300, 1],
        ["scalar", HUGE, "bad", 1], ["list", 1.0, "bad", DEEP], ["scalar", 1.0, "large", 10**400],
        ["scalar", 1.0, "good", 2],
    ]  # fmt: skip
    journal = b"".join(json.dumps(each).encode() + b"\n" for each in points)
    header = {"parts": [{"kind": "journal", "stream": "other", "offset": 0}]}
    assert reported(bounded, header, [journal]).status == 200
    found = json.loads(bounded("GET", WS + "/runs/{run}/metrics").body)["metrics"]
    (mine,) = found.values()
    assert mine["good"] == [1, 2] and "bad" not in mine
    assert bounded("GET", WS + "/runs/{run}/summaries").status == 200


@pytest.mark.parametrize("part", [{"kind": "log", "name": "logs/a.txt"}, {"kind": "journal", "stream": "s"}])
@pytest.mark.parametrize("offset", [-1, HUGE, "abc"])
def test_offsets_of_streams_have_bounds(bounded: Any, part: dict[str, Any], offset: Any) -> None:
    reply = reported(bounded, {"parts": [{**part, "offset": offset}]}, [b"x"])
    assert reply.status == 400 and "offset" in json.loads(reply.body)["error"]["message"]


def test_names_of_streams_have_bounds(bounded: Any) -> None:
    reply = reported(bounded, {"parts": [{"kind": "journal", "stream": "s" * 300, "offset": 0}]}, [b""])
    assert reply.status == 400 and "parts[0].stream" in json.loads(reply.body)["error"]["message"]


def test_a_verdict_without_a_moment_is_of_now(bounded: Any) -> None:
    verdict = {"state": "Completed", "reason": "told", "at": None}
    assert reported(bounded, {"verdict": verdict, "ends": {}}).status == 200

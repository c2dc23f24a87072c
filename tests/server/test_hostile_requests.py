"""No request gives a 500, whatever it holds and whoever sends it; and no error tells what is the server's own."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from lapis.domain import frames, strict_json
from lapis.errors import UserErrorException
from tests.server.served import Reply, Served, served
from tests.server.test_permissions import CONTENT, ROUTES, RUN, WORKSPACE

__all__ = ["served"]  # the fixture

DEEP = 5000
RAW = {
    "nothing": b"",
    "null": b"null",
    "a list": b"[]",
    "text": b'"x"',
    "half of it": b'{"a',
    "not UTF-8": b'{"name": "\xff"}',
    "NaN": b'{"name": NaN}',
    "Infinity": b'{"name": -Infinity}',
    "a float beyond all": b'{"name": 1e999}',
    "a number of 5000 digits": b'{"name": ' + b"9" * 5000 + b"}",
    "half a character": b'{"name": "\\ud800"}',
    "half a character as a key": b'{"\\udfff": 1}',
    "deep": b'{"name": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "rather deep": b'{"name": ' + b'{"a": ' * 300 + b"1" + b"}" * 300 + b"}",
}
VALUES: list[Any] = [
    None,
    True,
    -1,
    2**62,
    1e300,
    "",
    "\0",
    "x" * 70_000,
    "../..",
    [],
    [[]],
    [1, "a"],
    {},
    {"a": {"b": 1}},
]

DATASET = {
    "name": "d",
    "definition": {"type": "file", "sources": []},
    "files": [],
    "tags": {},
    "description": "",
    "create_new_version": True,
    "run_id": None,
    "output": None,
}
MODEL = {
    "name": "m",
    "files": {"a": "0" * 64},
    "run_id": "sibling",
    "path": "outputs",
    "tags": {},
    "properties": {},
    "resources": {},
    "datasets": [],
    "sample_input": "x",
    "framework": "Custom",
    "framework_version": "1",
}
JOB = {
    "script": "a.py",
    "command": "x",
    "arguments": [],
    "python": "python",
    "environment": {"lock": "x"},
    "environment_variables": {},
    "max_seconds": 1,
    "node_count": 1,
    "distribution": {"kind": "mpi"},
    "priority": 1,
    "watch": ["logs"],
    "inputs": [],
    "outputs": [],
    "resumes": "sibling",
}
SPEC = {
    "sampling": {"name": "RANDOM", "parameter_space": {"a": ["choice", [[1, 2]]]}, "seed": 1},
    "metric": "m",
    "policy": {"name": "Bandit", "properties": {"slack_factor": 0.1, "evaluation_interval": 1}},
    "goal": "maximize",
    "max_total": 2,
    "max_concurrent": 1,
    "max_minutes": 5,
    "resume_from": [],
    "resume_child_runs": [],
}
NEW = {
    "experiment": "e",
    "run_id": "new",
    "nonce": "n",
    "tags": {},
    "properties": {},
    "definition": {},
    "job": None,
    "snapshot_id": "0" * 64,
    "sweep": None,
    "owner": {"host": "h", "pid": 1},
    "started": True,
    "warnings": [],
    "uses": [],
    "parent_id": "sibling",
    "type": "t",
    "target": "local",
}
REPORT = {
    "parts": [],
    "ends": {"log:a": 1},
    "steps": [{"state": "Running", "reason": "r", "at": 1.0}],
    "node": {"index": 0, "state": "done", "verdict": {}, "at": 1.0},
    "verdict": {"state": "Failed", "reason": "r", "error": {"code": "c", "message": "m"}, "at": 1.0, "notices": []},
    "service": {"front": {"state": "ready", "port": 1, "replicas": []}, "live": "x", "host": "h"},
}
SETTINGS = {"cpu_cores": 1, "memory_gb": 1, "auth_enabled": True, "tags": {}}

BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/api/v1/workspaces"): {"name": "another", "tags": {}, "exist_ok": True, "sku": "basic", "location": "l"},
    ("PATCH", WORKSPACE): {"tags": {"a": "b"}, "description": "d", "friendly_name": "f", "image_build_compute": "c"},
    ("POST", WORKSPACE + "/experiments"): {"name": "e"},
    ("PATCH", WORKSPACE + "/experiments/{experiment_id}"): {
        "tags": {},
        "remove_tags": [],
        "archived": True,
        "name": "n",
    },
    ("POST", WORKSPACE + "/computes"): {
        "name": "c",
        "type": "AmlCompute",
        "max_nodes": -1,
        "settings": {},
        "more": {},
        "tags": {},
        "vm_size": "v",
        "idle_seconds": 1.0,
        "engine": "local",
    },
    ("PATCH", WORKSPACE + "/computes/{name}"): {"min_nodes": 0, "max_nodes": 1, "idle_seconds": 1, "tags": {}},
    ("POST", WORKSPACE + "/computes/{name}/preempt"): {"node": "n"},
    ("POST", WORKSPACE + "/datastores"): {
        "name": "s",
        "type": "AzureBlob",
        "folder": "/nowhere",
        "options": {},
        "credentials": {},
    },
    ("PUT", WORKSPACE + "/datastore/default"): {"name": "x"},
    ("POST", WORKSPACE + "/datasets"): DATASET,
    ("PATCH", WORKSPACE + "/datasets/{dataset_id}"): {"tags": {}, "remove_tags": [], "description": "d"},
    ("POST", WORKSPACE + "/environments"): {
        "definition": {"name": "e", "version": "1", "python": {}, "docker": {"baseImageRegistry": {"password": "p"}}}
    },
    ("POST", WORKSPACE + "/environments/resolve"): {
        "definition": {"python": {"baseCondaEnvironment": "n"}, "docker": {"enabled": "perhaps"}},
        "strict": True,
        "submitter": {},
    },
    ("POST", WORKSPACE + "/environments/{name}/labels"): {"version": "1", "labels": ["a"]},
    ("POST", WORKSPACE + "/models"): MODEL,
    ("PATCH", WORKSPACE + "/models/{name}/{version}"): {
        "tags": {},
        "remove_tags": [],
        "properties": {},
        "datasets": [["a", "b"]],
        "description": "d",
    },
    ("POST", WORKSPACE + "/services"): {
        "name": "s",
        "kind": "ACI",
        "target": "none",
        "content": CONTENT,
        "tags": {},
        "settings": SETTINGS,
        "keys": {},
        "image": "i:1",
        "like": "x",
    },
    ("PATCH", WORKSPACE + "/services/{name}"): {
        "content": CONTENT,
        "models": [],
        "settings": SETTINGS,
        "tags": {},
        "remove_tags": [],
    },
    ("POST", WORKSPACE + "/images"): {"name": "i", "content": CONTENT, "tags": {}, "properties": {}},
    ("PATCH", WORKSPACE + "/images/{name}/{version}"): {"tags": {}, "remove_tags": [], "properties": {}},
    ("POST", WORKSPACE + "/packages"): {"name": "p", "content": CONTENT},
    ("POST", WORKSPACE + "/profiles"): {"name": "p", "content": CONTENT, "samples": ["x"], "cpu": 1, "memory_gb": 1},
    ("PATCH", RUN): {
        "tags": {},
        "remove_tags": [],
        "properties": {},
        "display_name": "d",
        "archived": True,
        "snapshot_id": None,
    },
    ("POST", RUN + "/fail"): {"error_details": "d", "error_code": "c"},
    ("POST", RUN + "/files"): {"files": {"a": "0" * 64}},
    ("POST", "/api/v1/blobs/missing"): {"hashes": ["0" * 64]},
    ("POST", WORKSPACE + "/runs"): {"runs": [NEW]},
}
"""A body for each route that takes one, with every field that is worth spoiling."""

LINES = [
    b'["scalar",1.0,"\xed\xa0\x80",1]',
    b'["scalar",NaN,"a",1]',
    b'["scalar",1e999,"a",1]',
    b"[]",
    b"{}",
    b"[[[[",
    b'["scalar",1.0,"a",1,' + b"9" * 30 + b"]",
    b'["scalar",1.0,"a",' + b"9" * 4000 + b"]",
    b'["scalar",1.0,"",1]',
    b'["list",1.0,"a",[1,"x",{}]]',
    b'["table",1.0,"a",{"x":"\\ud800"}]',
    b'["scalar",1.0,"a",' + b"[" * 400 + b"]" * 400 + b"]",
]

QUERY = ("offset", "cursor", "revision", "wait", "version", "limit", "lines", "most", "tag", "status", "name", "log")
OURS = re.compile(r"Traceback|Error\(|Exception\(|sqlite|SELECT |INSERT |lapis\.server|pydantic|object at 0x")


class Faults:
    """Replies that should not have been, with what was asked: all of them, so that one run shows them all."""

    def __init__(self, served: Served) -> None:
        self._home = served.system.home
        self._found: list[str] = []

    def look(self, reply: Reply, *asked: Any) -> None:
        said = reply.body.decode("utf-8", "replace") if reply.status >= 400 else ""
        if reply.status >= 500 or OURS.search(said) or self._home in said:
            self._found.append(f"{asked!r:.300} -> {reply.status} {said[:300]}")

    def none(self) -> None:
        assert not self._found, f"{len(self._found)} of them:\n" + "\n".join(self._found[:40])


def spoiled(value: Any) -> Iterator[Any]:
    """`value` with each of its parts, one after the other, in the place of which stands something else."""
    yield from VALUES
    if isinstance(value, dict):
        for key in value:
            for other in spoiled(value[key]):
                yield {**value, key: other}
            yield {name: each for name, each in value.items() if name != key}
    if isinstance(value, list):
        for place in range(len(value)):
            for other in spoiled(value[place]):
                yield [*value[:place], other, *value[place + 1 :]]


@pytest.mark.parametrize("who", ["user", "mine", "viewer"])
def test_no_body_of_any_route_gives_a_500(served: Served, who: str) -> None:
    faults = Faults(served)
    for method, route in ROUTES:
        if method == "GET" or route.endswith("/stop"):
            continue
        for what, raw in RAW.items():
            served.begin_mine()
            faults.look(served.ask(who, method, route, raw), method, route, what)
    faults.none()


@pytest.mark.parametrize(("method", "route"), BODIES, ids=lambda part: part.replace(WORKSPACE, ""))
def test_no_wrong_type_in_a_body_gives_a_500(served: Served, method: str, route: str) -> None:
    faults = Faults(served)
    for body in spoiled(BODIES[method, route]):
        faults.look(served.ask("user", method, route, body), method, route, body)
    faults.none()


def test_no_wrong_type_in_a_job_or_a_search_gives_a_500(served: Served) -> None:
    faults = Faults(served)
    trial = {"job": {"script": "a.py"}, "uses": [["a", "b", "c"]]}
    for job in spoiled(JOB):
        body = {"runs": [{**NEW, "parent_id": None, "owner": None, "job": job}]}
        faults.look(served.ask("user", "POST", WORKSPACE + "/runs", body), job)
    for spec in spoiled(SPEC):
        new = {"experiment": "e", "run_id": "search", "nonce": "n", "sweep": {"spec": spec, "trial": trial}}
        faults.look(served.ask("user", "POST", WORKSPACE + "/runs", {"runs": [new]}), spec)
    faults.none()


def test_no_report_gives_a_500(served: Served) -> None:
    faults = Faults(served)
    for header in spoiled(REPORT):
        if isinstance(header, dict):
            served.begin_mine()
            body = frames.encode({name: value for name, value in header.items() if name != "sizes"})
            faults.look(served.ask("agent", "POST", RUN + "/report", body), header)
    label = {"kind": "log", "name": "logs/a", "stream": "s", "offset": 0, "anew": False}
    for kind in ("log", "journal", "file"):
        for part in spoiled({**label, "kind": kind}):
            body = frames.encode({"parts": [part]}, [b'["scalar",1.0,"a",1]\n'])
            faults.look(served.ask("agent", "POST", RUN + "/report", body), part)
    faults.none()


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:30].decode("latin-1"))
def test_no_line_of_a_journal_gives_a_500(served: Served, line: bytes) -> None:
    served.begin_mine()
    label = {"kind": "journal", "stream": "s", "offset": 0}
    reply = served.ask("agent", "POST", RUN + "/report", frames.encode({"parts": [label]}, [line + b"\n"]))
    assert reply.status == 200 and reply.json["positions"] == {"journal:s": len(line) + 1}
    assert served.ask("user", "GET", RUN + "/metrics").status == 200


def test_no_address_gives_a_500(served: Served) -> None:
    faults = Faults(served)
    strange = ["..", "%00", "\0", "\ufffd", "ü", "x" * 5000, "-1", "9" * 30, "NaN", "1e9"]
    numbers = ["-1", "9" * 30, "NaN", "inf", "", "x", "1e3", "%ED%A0%80", "%00"]
    for (method, route), (_, body) in ROUTES.items():
        if route.endswith("/stop"):
            continue
        names = re.findall("{(.*?)(?::path)?}", route)
        for name in names:
            kept = served.names[name]
            for value in strange:
                served.names[name] = value
                faults.look(served.ask("user", method, route, body), method, route, name, value)
            served.names[name] = kept
        if method == "GET":
            for value in numbers:
                query = "&".join(f"{key}={value}" for key in QUERY)
                path = route.partition("?")[0]
                if not path.endswith("/watch") or value != "1e3":  # that is a time to wait
                    faults.look(served.ask("user", method, f"{path}?{query}"), path, value)
    faults.none()


def test_no_key_gives_a_500(served: Served) -> None:
    for bearer in ("\xff\xfe", "lapis..", "lapis.\xff.x", "lapis.e30.e30", "lapis.W10.", "." * 100, "x" * 10_000, " "):
        assert served.ask("user", "GET", "/api/v1/about", bearer=bearer).status == 401, bearer
    for query in ("signature=", "signature=%FF", "signature=x&expires=", "expires=\u0663&signature=x", "signature"):
        reply = served.ask("nobody", "GET", f"{RUN}/files/x?{query}")
        assert reply.status == 401, query


def test_a_workspace_that_is_not_there_is_named_by_every_route(served: Served) -> None:
    kept = served.names["workspace_id"]
    served.names["workspace_id"] = "nowhere"
    try:
        for (method, route), (_, body) in ROUTES.items():
            if route.startswith(WORKSPACE) and "/watch" not in route:
                reply = served.ask("user", method, route, BODIES.get((method, route), body))
                assert reply.status in (400, 404), (method, route, reply)
            if route == WORKSPACE:
                assert "nowhere" in reply.said
    finally:
        served.names["workspace_id"] = kept


def test_a_fault_that_nobody_foresaw_shows_a_number_and_the_log_says_what_it_was(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"SELECT secret FROM {served.system.home}")

    runs = served.system.control.runs
    monkeypatch.setattr(served.system.stores.files, "put", fail)
    monkeypatch.setattr(served.system.stores.runs, "find", fail)
    run_id = served.begin_mine()
    verdict = {"ends": {}, "verdict": {"state": "Failed", "reason": "r"}}
    with caplog.at_level(logging.ERROR, "lapis.server"):
        replies = [
            served.ask("user", "GET", WORKSPACE + "/runs"),
            served.ask("agent", "POST", RUN + "/report", frames.encode(verdict)),
        ]
    for reply in replies:
        number = re.search("internal error ([0-9a-f]{12})", reply.said)
        assert reply.status == 500 and number is not None
        assert "RuntimeError" not in reply.said and "SELECT" not in reply.said and served.system.home not in reply.said
        assert number[1] in caplog.text
    assert "SELECT secret" in caplog.text
    monkeypatch.undo()
    assert not runs.get(served.here, run_id).ended


def test_where_the_server_lives_stands_in_no_error(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno
    import os

    def full(*_: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    reply = served.ask("user", "POST", "/api/v1/blobs", frames.encode({"hashes": [EMPTY_LINE]}, [b"\n"]))
    assert reply.status == 507 and "LAPIS_HOME" in reply.said and served.system.home not in reply.said


EMPTY_LINE = "01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b"


# -- the reader itself


@pytest.mark.parametrize("raw", [raw for what, raw in RAW.items() if what not in ("null", "a list", "text")])
def test_what_is_not_plain_json_is_refused_in_words(raw: bytes) -> None:
    with pytest.raises(UserErrorException, match="The request cannot be read"):
        strict_json.decode(raw)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"a": [1, 2.5, "x", None, True]},
        2**63 - 1,
        "[" * 1000,
        {"}{": "]["},
        "\U0001f600",
        -1e300,
        "9" * 30,
    ],
    ids=repr,
)
def test_what_is_plain_json_is_read_as_it_is(value: Any) -> None:
    assert strict_json.decode(json.dumps(value).encode()) == value
    assert strict_json.decode(json.dumps(value, ensure_ascii=False).encode()) == value


def test_as_deep_as_it_may_be_is_read() -> None:
    deepest = json.loads("[" * strict_json.DEEPEST + "]" * strict_json.DEEPEST)
    assert strict_json.decode(json.dumps(deepest).encode()) == deepest
    with pytest.raises(UserErrorException, match="nested"):
        strict_json.decode(json.dumps([deepest]).encode())

"""What a run's token opens: its own workspace, its own run and what lies below it, and that while the run lives."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest

from lapis.domain import frames, packs
from lapis.domain.interactive import left_by, left_by_earlier_release
from lapis.domain.run import RunState
from lapis.domain.tree import Tree, TreeEntry
from lapis.environments.values import Lock
from lapis.machine import processes
from lapis.server.control.data import NewDataset
from lapis.server.control.jobs import Address, recovery_of
from lapis.server.control.models import NewModel
from lapis.server.control.run_tokens import GRACE
from lapis.testing.server import Home
from lapis.testing.waiting import until
from tests.server.served import Reply, Served, served
from tests.server.test_permissions import RUN, WORKSPACE

__all__ = ["served"]  # the fixture

SECRET, SHARED = b"of another workspace", b"of this workspace"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def tree(*contents: bytes) -> Tree:
    return Tree(TreeEntry(f"{number}.py", digest(each), len(each)) for number, each in enumerate(contents))


def keep(served: Served, workspace_id: str, content: bytes) -> str:
    """A snapshot of one file, as the user would send it; its id."""
    kept = tree(content)
    assert served.system.control.files.add_snapshot(workspace_id, kept, [(digest(content), memoryview(content))]) == []
    return kept.id


# -- a token ends with its run


@pytest.mark.parametrize("state", ["Completed", "Failed", "Canceled"])
def test_a_runs_token_ends_with_the_run(served: Served, state: str) -> None:
    run_id = served.begin_mine()
    assert served.ask("mine", "GET", RUN).status == 200
    verdict = {"ends": {}, "verdict": {"state": state, "reason": "r"}}
    assert served.ask("agent", "POST", RUN + "/report", frames.encode(verdict)).status == 200
    for method, route, body in (("GET", RUN, None), ("GET", "/api/v1/about", None), ("PATCH", RUN, {"tags": {}}),
                                ("POST", "/api/v1/blobs/missing", {"hashes": []}), ("GET", "/api/v1/workspaces", None),
                                ("POST", RUN + "/report", frames.encode({})),
                                ("POST", WORKSPACE + "/runs", {"runs": []})):  # fmt: skip
        reply = served.ask("mine", method, route, body)
        assert (reply.status, reply.json["error"]["code"]) == (401, "TokenEnded"), route
        assert run_id in reply.said and "has ended" in reply.said


def test_an_agent_may_say_its_verdict_again_and_do_nothing_else(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.begin_mine()
    verdict = frames.encode({"ends": {}, "verdict": {"state": "Completed", "reason": "r"}})
    for _ in range(2):  # the first reply may have been lost
        reply = served.ask("agent", "POST", RUN + "/report", verdict)
        assert (reply.status, reply.json["state"]) == (200, "Completed")
    for method, route, body in (("GET", RUN, None), ("PATCH", RUN, {"tags": {}}), ("GET", "/api/v1/about", None),
                                ("POST", "/api/v1/blobs/missing", {"hashes": []}), ("PUT", RUN + "/files/x", b"x"),
                                ("POST", WORKSPACE + "/runs/sibling/report", frames.encode({}))):  # fmt: skip
        assert served.ask("agent", method, route, body).status == 401, route
    later = served.system.tokens._now() + GRACE + 1
    monkeypatch.setattr(served.system.tokens, "_now", lambda: later)
    assert served.ask("agent", "POST", RUN + "/report", verdict).json["error"]["code"] == "TokenEnded"


def test_what_a_run_says_of_the_time_does_not_lengthen_its_token(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.begin_mine()
    verdict = {"state": "Failed", "reason": "r", "at": 2.0**39}
    served.ask("agent", "POST", RUN + "/report", frames.encode({"ends": {}, "verdict": verdict}))
    later = served.system.tokens._now() + GRACE + 1
    monkeypatch.setattr(served.system.tokens, "_now", lambda: later)
    assert served.ask("agent", "POST", RUN + "/report", frames.encode({})).status == 401


def test_the_token_of_a_run_that_the_user_ended_or_deleted_opens_nothing(served: Served) -> None:
    run_id = served.begin_mine()
    assert served.ask("mine", "GET", RUN).status == 200
    served.ask("user", "POST", RUN + "/cancel", {})
    assert served.ask("mine", "GET", RUN).status == 401
    served.system.control.runs.delete(served.here, run_id)
    assert "deleted" in served.ask("mine", "GET", RUN).said


def test_a_run_that_a_run_submits_has_a_token_of_its_own_and_the_first_one_ends_all_the_same(served: Served) -> None:
    mine = served.begin_mine()
    body = {"runs": [{"experiment": "e", "run_id": f"by-{mine}", "nonce": "n", "started": True}]}
    assert served.ask("mine", "POST", WORKSPACE + "/runs", body).status == 201
    assert served.ask("mine", "PATCH", WORKSPACE + f"/runs/by-{mine}", {"tags": {"a": "b"}}).status == 200
    served.system.control.runs.complete(served.here, mine)
    assert served.ask("mine", "PATCH", WORKSPACE + f"/runs/by-{mine}", {"tags": {"a": "c"}}).status == 401
    own = served.run_token("run", served.here, f"by-{mine}")
    assert served.ask("mine", "GET", WORKSPACE + f"/runs/by-{mine}", bearer=own).status == 200


def test_a_token_of_an_earlier_release_lives_as_long_as_its_run(served: Served) -> None:
    run_id = served.begin_mine()
    claims = json.dumps(["run", served.here, run_id, 1], separators=(",", ":")).encode()
    body = base64.urlsafe_b64encode(claims).decode().rstrip("=")
    token = f"lapis.{body}.{served.system.access._sign(body)}"
    assert served.ask("mine", "GET", RUN, bearer=token).status == 200
    served.system.control.runs.complete(served.here, run_id)
    assert served.ask("mine", "GET", RUN, bearer=token).status == 401


# -- what is shared by its hash


def test_a_run_reads_no_blob_by_its_hash_and_every_file_of_its_own_workspace(served: Served) -> None:
    theirs, ours = keep(served, served.elsewhere, SECRET), keep(served, served.here, SHARED)
    served.begin_mine()
    for who in ("mine", "agent"):
        assert served.ask(who, "GET", f"/api/v1/blobs/{digest(SHARED)}").status == 403
        assert served.ask(who, "GET", f"{WORKSPACE}/snapshots/{ours}/blobs/{digest(SHARED)}").body == SHARED
        assert served.ask(who, "GET", f"{WORKSPACE}/snapshots/{ours}/blobs/{digest(SECRET)}").status == 404
        assert served.ask(who, "GET", f"{WORKSPACE}/snapshots/{theirs}/blobs/{digest(SECRET)}").status == 404
        assert served.ask(who, "GET", f"{WORKSPACE}/snapshots/{theirs}").status == 404
        elsewhere = f"/api/v1/workspaces/{served.elsewhere}"
        assert served.ask(who, "GET", f"{elsewhere}/snapshots/{theirs}").status == 403
    for who in ("user", "viewer"):
        assert served.ask(who, "GET", f"/api/v1/blobs/{digest(SECRET)}").body == SECRET


def name_it(served: Served, how: str, hashed: str) -> Reply:
    if how == "as a file of the run":
        return served.ask("mine", "POST", RUN + "/files", {"files": {"outputs/x": hashed}})
    if how == "as a model":
        return served.ask("mine", "POST", WORKSPACE + "/models", {"name": "m", "files": {"x": hashed}})
    header = {"files": [["x.py", hashed, len(SECRET), False]], "hashes": []}
    return served.ask("mine", "POST", WORKSPACE + "/snapshots", frames.encode(header))


@pytest.mark.parametrize("how", ["as a file of the run", "as a model", "as a snapshot"])
def test_a_run_names_a_blob_by_its_hash_only_once_it_has_sent_it(served: Served, how: str) -> None:
    content = SECRET + how.encode()
    keep(served, served.elsewhere, content)
    served.begin_mine()
    assert served.ask("mine", "POST", "/api/v1/blobs/missing", {"hashes": [digest(content)]}).json == {
        "missing": [digest(content)]
    }
    assert served.ask("user", "POST", "/api/v1/blobs/missing", {"hashes": [digest(content)]}).json == {"missing": []}
    refused = name_it(served, how, digest(content))
    assert refused.status == 404 or refused.json["missing"] == [digest(content)]
    sent = served.ask("mine", "POST", "/api/v1/blobs", packs.encode([(digest(content), content)]))
    assert sent.status == 201
    assert served.ask("mine", "POST", "/api/v1/blobs/missing", {"hashes": [digest(content)]}).json == {"missing": []}
    named = name_it(served, how, digest(content))
    assert named.status in (200, 201) and named.json.get("missing", []) == []
    other = served.ask("stranger", "POST", "/api/v1/blobs/missing", {"hashes": [digest(content)]})
    assert other.json == {"missing": [digest(content)]}


def test_a_large_blob_that_a_run_sent_alone_is_its_to_name(served: Served) -> None:
    served.begin_mine()
    assert served.ask("mine", "PUT", f"/api/v1/blobs/{digest(b'alone')}", b"alone").status == 201
    assert served.ask("mine", "POST", RUN + "/files", {"files": {"outputs/x": digest(b"alone")}}).status == 201


def test_a_report_names_no_blob_by_its_hash(served: Served) -> None:
    keep(served, served.elsewhere, SECRET)
    served.begin_mine()
    served.ask("agent", "POST", RUN + "/report", frames.encode({"files": {"outputs/x": digest(SECRET)}}))
    assert served.ask("mine", "GET", RUN + "/files/outputs/x").status == 404


def test_what_its_own_code_is_made_of_need_not_be_sent_again(served: Served) -> None:
    snapshot_id = keep(served, served.here, b"the code")
    run_id = served.begin(served.here, "has-code", snapshot_id=snapshot_id)
    token = served.run_token("run", served.here, run_id)
    asked = {"hashes": [digest(b"the code"), digest(b"more")]}
    reply = served.ask("mine", "POST", "/api/v1/blobs/missing", asked, bearer=token)
    assert reply.json == {"missing": [digest(b"more")]}


def test_a_run_cannot_make_another_workspaces_snapshot_its_own(served: Served) -> None:
    theirs = keep(served, served.elsewhere, SECRET)
    served.begin_mine()
    assert served.ask("mine", "PATCH", RUN, {"snapshot_id": theirs}).status == 400
    for job in (None, {"script": "0.py"}):
        new = {"experiment": "e", "run_id": "copy", "nonce": "n", "snapshot_id": theirs, "job": job, "target": "local"}
        reply = served.ask("mine", "POST", WORKSPACE + "/runs", {"runs": [new]})
        assert reply.status == 400 and "not stored in this workspace" in reply.said


def test_a_file_of_a_model_is_read_by_those_of_its_workspace(served: Served) -> None:
    keep(served, served.elsewhere, SECRET)
    new = NewModel("theirs", files={"x": digest(SECRET)})
    served.system.control.models.register(served.elsewhere, new)
    route = f"models/theirs/1/blobs/{digest(SECRET)}"
    assert served.ask("stranger", "GET", f"/api/v1/workspaces/{served.elsewhere}/{route}").body == SECRET
    assert served.ask("sibling", "GET", f"/api/v1/workspaces/{served.elsewhere}/{route}").status == 403
    assert served.ask("sibling", "GET", f"{WORKSPACE}/{route}").status == 404
    assert served.ask("stranger", "GET", f"/api/v1/blobs/{digest(SECRET)}").status == 403


def test_a_run_uses_no_data_set_of_another_workspace(served: Served) -> None:
    made = served.system.control.data.register_dataset(
        served.elsewhere, NewDataset("secret", {"type": "file", "sources": [{"kind": "local", "path": "/secret"}]})
    )
    use = [[made["id"], "input", "x"]]
    mine = served.begin_mine()
    for more in ({"uses": use}, {"sweep": {"spec": {}, "trial": {"job": {"script": "x"}, "uses": use}}}):
        new = {"experiment": "e", "run_id": "user-of-it", "nonce": "n", **more}
        assert served.ask("mine", "POST", WORKSPACE + "/runs", {"runs": [new]}).status == 400
    served.system.stores.assets.note_use(served.here, mine, [(made["id"], "input", "x")])  # of an earlier release
    (found,) = served.ask("mine", "GET", RUN + "/datasets").json["datasets"]
    assert found["dataset"] is None
    assert served.ask("mine", "GET", f"{WORKSPACE}/datasets/{made['id']}").status == 404


def test_the_lock_of_an_environment_is_for_runs_of_the_workspace_that_resolved_it(served: Served) -> None:
    builds = served.system.control.environments._builds
    lock = Lock("3.11.9", "linux-x86_64", "numpy==1.0\n")
    Path(builds.lock_file(lock.hash)).write_text(json.dumps(lock.to_json()))
    served.begin_mine()
    route = f"/environments/builds/{lock.hash}"
    assert served.ask("mine", "GET", WORKSPACE + route).status == 404
    assert served.ask("mine", "GET", WORKSPACE + route + "/log").status == 404
    snapshot_id = keep(served, served.here, SHARED)
    new = {"experiment": "e", "run_id": "locked", "nonce": "n", "snapshot_id": snapshot_id, "target": "local",
           "job": {"script": "0.py", "environment": {"lock": lock.hash}}}  # fmt: skip
    assert served.ask("mine", "POST", WORKSPACE + "/runs", {"runs": [new]}).status == 403
    served.system.control.environments._holdings.resolved(served.here, lock.hash)
    assert served.ask("mine", "GET", WORKSPACE + route).status == 200
    assert served.ask("viewer", "GET", WORKSPACE + route).status == 200


# -- paths of the machine


def job_with(**data: Any) -> dict[str, Any]:
    return {"script": "0.py", **data}


def test_a_run_that_submits_another_one_names_no_folder_of_the_machine(served: Served, tmp_path: Path) -> None:
    snapshot_id = keep(served, served.here, SHARED)
    store = served.system.control.data.datastore(served.here, "workspaceblobstore")["folder"]
    files = {"type": "file", "sources": [{"kind": "datastore", "datastore": "workspaceblobstore", "path": "x"}]}
    local = {"type": "file", "sources": [{"kind": "local", "path": "/etc/passwd"}]}

    def dataset(**more: Any) -> dict[str, Any]:
        return {"type": "dataset", "name": "d", "mode": "mount", "definition": files, **more}

    def reference(place: str, **more: Any) -> dict[str, Any]:
        return {"type": "reference", "name": "d", "mode": "download", "place": place, **more}

    def output(place: str) -> dict[str, Any]:
        return {"type": "output", "name": "d", "mode": "upload", "place": place, "definition": files}

    def asked(who: str, number: int, job: dict[str, Any]) -> Reply:
        new = {"experiment": "e", "run_id": f"{who}-{number}-{served.begun}", "nonce": "n", "target": "local",
               "snapshot_id": snapshot_id, "job": job}  # fmt: skip
        return served.ask(who, "POST", WORKSPACE + "/runs", {"runs": [new]})

    scratch = os.path.join(tempfile.gettempdir(), "x")
    refused = [
        job_with(inputs=[dataset(folders={"workspaceblobstore": "/etc"})]),
        job_with(inputs=[dataset(definition=local)]),
        job_with(inputs=[dataset(folders={"workspaceblobstore": store}, path_on_compute="/root/.ssh")]),
        job_with(inputs=[reference("/etc")]),
        job_with(inputs=[reference(f"{store}/../../..")]),
        job_with(outputs=[output(str(tmp_path))]),
    ]
    allowed = [
        job_with(inputs=[dataset(folders={"workspaceblobstore": store})]),
        job_with(inputs=[reference(f"{store}/x", path_on_compute=scratch)], outputs=[output(f"{store}/y")]),
    ]
    served.begin_mine()
    for number, job in enumerate(refused):
        assert asked("mine", number, job).status == 403, job
        assert asked("user", number, job).status == 201, job  # whoever owns the machine
    for number, job in enumerate(allowed, start=len(refused)):
        assert asked("mine", number, job).status == 201, job


@pytest.mark.parametrize("field", [
    {"name": "../../../x"}, {"path_on_compute": "../../x"}, {"path_on_compute": "a/../../x"}, {"path_on_compute": "/"},
], ids=str)  # fmt: skip
def test_no_name_of_an_input_leads_out_of_the_runs_folder(served: Served, field: dict[str, str]) -> None:
    snapshot_id = keep(served, served.here, SHARED)
    wanted = {"type": "dataset", "name": "d", "mode": "mount", "definition": {"type": "file", "sources": []}, **field}
    new = {"experiment": "e", "run_id": "leads-out", "nonce": "n", "snapshot_id": snapshot_id, "target": "local",
           "job": {"script": "0.py", "inputs": [wanted]}}  # fmt: skip
    assert served.ask("user", "POST", WORKSPACE + "/runs", {"runs": [new]}).status == 400


def test_what_an_interactive_run_left_is_looked_for_where_the_server_says_and_nowhere_else(
    served: Served, tmp_path: Path
) -> None:
    home, stores = served.system.home, served.system.stores
    address = Address("http://here", "", "", home)
    owner = {"host": socket.gethostname(), "pid": 1, "journal": str(tmp_path / "j"), "spool": str(tmp_path)}
    mine = served.begin_mine()
    new = {"experiment": "e", "run_id": f"of-{mine}", "nonce": "n", "owner": owner, "started": True}
    assert served.ask("mine", "POST", WORKSPACE + "/runs", {"runs": [new]}).status == 201
    recovery = recovery_of(stores.runs.get(served.here, f"of-{mine}"), served.system.access, address)
    assert (recovery.journal, recovery.spool) == left_by(home, served.here, f"of-{mine}")
    for who, run_id, expected in (
        ("user", "old", left_by_earlier_release(home, "old")),
        ("mine", "old-2", left_by(home, served.here, "old-2")),
    ):
        Path(left_by_earlier_release(home, run_id).spool).mkdir(parents=True)
        assert served.ask(who, "POST", WORKSPACE + "/runs", {"runs": [{**new, "run_id": run_id}]}).status == 201
        recovery = recovery_of(stores.runs.get(served.here, run_id), served.system.access, address)
        assert (recovery.journal, recovery.spool) == expected


def test_an_interactive_run_of_a_script_whose_processes_are_numbered_apart_goes_with_the_scripts_run(
    served: Served,
) -> None:
    """Its pid means another process here, or none."""
    boot = processes.seen_from().split(" ")[0]
    owner = {"host": socket.gethostname(), "pid": 2**22 + 1, "started": "0", "seen_from": f"{boot} pid:[1]"}
    mine = served.begin_mine()
    new = {"experiment": "e", "run_id": f"of-{mine}", "nonce": "n", "owner": owner, "started": True}
    assert served.ask("mine", "POST", WORKSPACE + "/runs", {"runs": [new]}).status == 201
    reconciler, runs = served.system.reconciler, served.system.stores.runs
    recovered: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reconciler, "_recover", lambda run: recovered.append(run.id))
        reconciler._mind_interactive([runs.get(served.here, f"of-{mine}")])
        assert recovered == []
        served.system.control.runs.complete(served.here, mine)
        reconciler._mind_interactive([runs.get(served.here, f"of-{mine}")])
        assert recovered == [f"of-{mine}"]


def test_the_paths_that_an_owner_names_are_neither_read_nor_removed(
    on_shared_server: Home, workspace: Any, tmp_path: Path
) -> None:
    (tmp_path / "spool" / "the-run").mkdir(parents=True)
    journal, secret = tmp_path / "journal", tmp_path / "spool" / "the-run" / "secret.txt"
    journal.write_text('["scalar",1.0,"stolen",1]\n')
    secret.write_text("secret")
    owner = {"host": socket.gethostname(), "pid": 2**22 + 1, "started": "0", "journal": str(journal),
             "spool": str(tmp_path / "spool")}  # fmt: skip
    new = {"experiment": "e", "run_id": "the-run", "nonce": "n", "owner": owner, "started": True}
    workspace._client.call("POST", workspace._base + "/runs", {"runs": [new]})
    base = workspace._base + "/runs/the-run"
    until(lambda: workspace._client.call("GET", base)["status"] == RunState.FAILED.value)
    assert workspace._client.call("GET", base + "/metrics")["metrics"] == {"the-run": {}}
    assert "secret.txt" not in str(workspace._client.call("GET", base + "/files"))
    assert journal.exists() and secret.read_text() == "secret"

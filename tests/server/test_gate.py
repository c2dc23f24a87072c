"""Nothing gets past the gate without a token, and a token opens no more than it should."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from lapis.domain import frames
from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.workspace.workspace import Workspace
from lapis.server.control.access import Access
from lapis.testing import Home


class Reply:
    def __init__(self, status: int, body: bytes, headers: Any) -> None:
        self.status, self.body, self.headers = status, body, headers

    @property
    def error(self) -> str:
        return str(json.loads(self.body)["error"]["code"])


def ask(
    home: Home, method: str, path: str, token: str | None = None, data: bytes | None = None, **headers: str
) -> Reply:
    url = json.loads((home.path / "server.json").read_text())["url"]
    request = urllib.request.Request(url + path, data, method=method)
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return Reply(reply.status, reply.read(), reply.headers)
    except urllib.error.HTTPError as refused:
        with refused:
            return Reply(refused.code, refused.read(), refused.headers)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_request_under_another_host_name_is_refused_even_with_a_token(
    host: str, on_shared_server: Home, workspace: Workspace
) -> None:
    token = (on_shared_server.path / "token").read_text()
    assert ask(on_shared_server, "GET", "/api/v1/about", token, Host=host).status == 403


def test_the_token_file_is_readable_by_its_owner_alone(on_shared_server: Home, workspace: Workspace) -> None:
    assert (on_shared_server.path / "token").stat().st_mode & 0o777 == 0o600
    assert on_shared_server.path.stat().st_mode & 0o077 == 0


@pytest.fixture
def scoped(on_shared_server: Home, workspace: Workspace) -> Any:
    """A run of one's own, one of somebody else's, and the token that a script of the first would have."""
    experiment = Experiment(workspace, "e")
    mine, other = experiment.start_logging(), experiment.start_logging()
    access = Access(str(on_shared_server.path))
    token = access.run_token("run", workspace._workspace_id, mine.id)
    yield on_shared_server, workspace, mine, other, token, access
    mine.complete()
    other.complete()


def test_a_runs_token_opens_its_own_run_and_its_children_only(scoped: Any) -> None:
    home, workspace, mine, other, token, _ = scoped
    base = f"/api/v1{workspace._base}/runs"
    tags = json.dumps({"tags": {"a": "b"}}).encode()
    child = mine.child_run()
    as_json = {"Content_Type": "application/json"}
    assert ask(home, "PATCH", f"{base}/{mine.id}", token, tags, **as_json).status == 200
    assert ask(home, "PATCH", f"{base}/{child.id}", token, tags, **as_json).status == 200
    assert ask(home, "PATCH", f"{base}/{other.id}", token, tags, **as_json).status == 403
    report = frames.encode({"verdict": {"state": "Failed", "reason": "sabotage"}})
    assert ask(home, "POST", f"{base}/{other.id}/report", token, report).status == 403
    assert ask(home, "PUT", f"{base}/{other.id}/files/x", token, b"x").status == 403
    assert ask(home, "DELETE", f"{base}/{mine.id}", token).status == 403
    assert ask(home, "POST", "/api/v1/stop", token, b"{}").status == 403
    assert ask(home, "DELETE", f"/api/v1{workspace._base}", token).status == 403
    assert other.get_status() == "Running"


def test_a_runs_token_opens_no_other_workspace(scoped: Any) -> None:
    home, workspace, mine, _, token, _ = scoped
    elsewhere = Workspace.create("elsewhere-" + mine.id[:8], show_output=False)
    assert ask(home, "GET", f"/api/v1{elsewhere._base}", token).status == 403
    assert ask(home, "GET", f"/api/v1{elsewhere._base}/runs", token).status == 403
    forged = token[:-4] + ("aaaa" if not token.endswith("aaaa") else "bbbb")
    assert ask(home, "GET", f"/api/v1{workspace._base}", forged).status == 401


def test_a_viewers_key_reads_and_changes_nothing(scoped: Any) -> None:
    home, workspace, mine, _, _, access = scoped
    base = f"/api/v1{workspace._base}/runs/{mine.id}"
    key = access.viewer_key
    assert ask(home, "GET", base, key).status == 200
    assert ask(home, "POST", base + "/cancel", key, b"{}").status == 403
    as_json = {"Content_Type": "application/json"}
    new = ask(home, "POST", f"/api/v1{workspace._base}/experiments", key, b'{"name": "x"}', **as_json)
    assert new.status == 403
    change = ask(home, "PATCH", f"/api/v1{workspace._base}/experiments/{mine.experiment.id}", key, b"{}", **as_json)
    assert change.status == 403
    assert ask(home, "PUT", f"/api/v1/blobs/{'0' * 64}", key, b"x").status == 403
    empty = frames.encode({"files": [], "hashes": []})
    assert ask(home, "POST", f"/api/v1{workspace._base}/snapshots", key, empty).status == 403
    assert mine.get_status() == "Running"


def test_a_link_reads_its_one_file_until_it_expires(scoped: Any) -> None:
    home, workspace, mine, other, _, access = scoped
    for run in (mine, other):
        run._call("PUT", "/files/outputs/secret.txt", data=b"content of " + run.id.encode())
    (link,) = [file["link"] for file in mine._files()]
    assert ask(home, "GET", link).body == b"content of " + mine.id.encode()
    assert ask(home, "GET", link.replace(mine.id, other.id)).status == 401
    assert ask(home, "GET", link.replace("secret", "secre2")).status == 401
    assert ask(home, "DELETE", link).status == 401
    path = link.split("?")[0]
    assert ask(home, "GET", access.sign_link(path, time.time() - 3600)).status == 401


HOSTILE = [
    "../../token",
    "..%2f..%2ftoken",
    "%2e%2e/%2e%2e/token",
    "..%252f..%252ftoken",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "outputs/../../../token",
    "outputs/..%5c..%5ctoken",
    "C:%5cwindows",
    "outputs/%00",
    "file:%2f%2f%2fetc%2fpasswd",
    "outputs//x",
    ".",
    "..",
    "%e2%80%ae/..%2f..%2ftoken",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_leads_out_of_a_run(name: str, scoped: Any) -> None:
    home, workspace, mine, _, token, _ = scoped
    before = (home.path / "token").read_text()
    base = f"/api/v1{workspace._base}/runs/{mine.id}/files/"
    read = ask(home, "GET", base + name, token)
    assert read.status >= 400 and before.encode() not in read.body
    ask(home, "PUT", base + name, token, b"overwritten")
    log = frames.encode({"parts": [{"kind": "log", "name": name, "offset": 0}]}, [b"overwritten"])
    ask(home, "POST", f"/api/v1{workspace._base}/runs/{mine.id}/report", token, log)
    assert (home.path / "token").read_text() == before
    assert not (home.path.parent / "token").exists()


def test_a_report_that_makes_no_sense_is_refused_and_changes_nothing(scoped: Any) -> None:
    home, workspace, mine, _, token, _ = scoped
    path = f"/api/v1{workspace._base}/runs/{mine.id}/report"
    for body in (
        b"",
        b"{}",
        b"\n",
        b'{"sizes": [5]}\nab',
        b'{"sizes": []}\nmore',
        b'{"sizes": [-1]}\n',
        frames.encode({"parts": [{"kind": "log"}]}, [b"x"]),
        frames.encode({"parts": [{"kind": "log", "name": 7, "offset": 0}]}, [b"x"]),
        frames.encode({"parts": [{"kind": "journal", "stream": "s", "offset": "x"}]}, [b"x"]),
        frames.encode({"parts": []}, [b"x"]),
        frames.encode({"verdict": {"state": "Nonsense", "reason": ""}, "ends": {}}),
        frames.encode({"verdict": {"state": "Failed", "reason": ""}}),
        frames.encode({"verdict": {"state": "Failed", "reason": ""}, "ends": {"journal": 5}}),
        frames.encode({"verdict": {"state": "Failed", "reason": ""}, "ends": {"log:x": "long"}}),
    ):
        reply = ask(home, "POST", path, token, body)
        assert (reply.status, reply.error) == (400, "UserError"), body
    assert mine.get_status() == "Running"
    assert mine.get_metrics() == {}


def test_a_route_that_is_not_there_is_said_so(on_shared_server: Home, workspace: Workspace) -> None:
    token = (on_shared_server.path / "token").read_text()
    reply = ask(on_shared_server, "GET", "/api/v1/nothing", token)
    assert (reply.status, reply.error) == (404, "NotFound")

"""Classes 10 to 15, 20, 22, 24 and 28: who gets in, from where, under which name, with what, and how much of it."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from azureml.core import Experiment, Model, ScriptRunConfig, Workspace
from azureml.core.model import InferenceConfig
from azureml.core.webservice import LocalWebservice
from lapis.server.control.access import LINK_SECONDS, Access
from lapis.testing import Home, until
from tests.security.attack import Site
from tests.server.test_permissions import ROUTES

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "PROPFIND")


def test_class_10_no_route_is_open(site: Site) -> None:
    names = {"workspace_id": site.workspace._workspace_id, "run_id": site.run.id}
    for (method, route), (_, body) in ROUTES.items():
        path = re.sub(r"{(\w+)(:path)?}", lambda found: names.get(found[1], "x"), route)
        for token in (None, "", "wrong", "lapis.W10.x", "lapis..", "\u00e9"):
            assert site.ask(method, path, token, body).status == 401, (method, path, token)


def test_class_11_nothing_is_submitted_without_a_token_not_even_from_this_machine(
    site: Site, workspace: Workspace
) -> None:
    new = {
        "experiment": "e",
        "run_id": "shadow",
        "nonce": "n",
        "target": "local",
        "job": {"command": ["touch", "/tmp/x"]},
    }
    for token in (None, site.viewer):
        assert site.ask("POST", f"{site.api}/runs", token, {"runs": [new]}).status in (401, 403)
    assert [run.id for run in Experiment(workspace, "e").get_runs()] == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "::ffff:0.0.0.0", "0", "8.8.8.8", "::ffff:8.8.8.8"])
def test_class_12_no_server_listens_on_all_addresses(host: str, tmp_path: Path) -> None:
    environment = {**os.environ, "LAPIS_HOME": str(tmp_path), "LAPIS_HOST": host}
    said = subprocess.run(
        [sys.executable, "-m", "lapis.server"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert said.returncode != 0
    assert host in said.stderr and "Traceback" not in said.stderr


def test_class_12_a_server_listens_on_loopback_alone(site: Site) -> None:
    listening = [line for line in psutil.Process(site.home.server_pid).net_connections() if line.status == "LISTEN"]
    assert {line.laddr.ip for line in listening} <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize("method", METHODS)
def test_class_13_a_foreign_name_is_refused_on_every_method(method: str, site: Site) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "evil.example@127.0.0.1", ""):
        assert site.ask(method, f"{site.runs}", site.user, b"", Host=host).status in (400, 403), host


@pytest.mark.parametrize("method", METHODS)
def test_class_14_a_page_of_another_site_changes_nothing_with_the_browsers_cookie(method: str, site: Site) -> None:
    given = site.ask("POST", "/studio/login", None, site.viewer.encode())
    cookie = given.headers["set-cookie"].split(";")[0]
    assert "SameSite" in given.headers["set-cookie"] and "HttpOnly" in given.headers["set-cookie"]
    foreign = {"Origin": "http://evil.example", "Cookie": cookie, "Content_Type": "text/plain"}
    for path in (f"{site.runs}/cancel", site.runs, f"{site.api}/experiments", f"{site.runs}/files/x", "/api/v1/stop"):
        reply = site.ask(method, path, None, b'{"name": "x"}', **foreign)
        assert reply.status in (400, 401, 403, 404, 405)
        assert "access-control-allow-origin" not in reply.headers
    assert site.run.get_status() == "Running"


def test_class_15_there_is_no_default_credential(home: Home, tmp_path: Path) -> None:
    home.start()
    token = (home.path / "token").read_text()
    assert len(token) >= 43 and stat.S_IMODE((home.path / "token").stat().st_mode) == 0o600
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    for weak in ("", "admin", "password1234"):
        (other / "token").write_text(weak)
        said = subprocess.run([sys.executable, "-m", "lapis.server"], env={**os.environ, "LAPIS_HOME": str(other)},
                              capture_output=True, text=True, timeout=60)  # fmt: skip
        assert said.returncode != 0 and "fewer than 32 characters" in said.stderr


def test_class_20_no_single_request_keeps_the_others_waiting(site: Site) -> None:
    """A hundred that wait as long as they may, and the heaviest list, while an honest one is answered."""
    watching = f"GET {site.runs}/watch?revision=10&log=x&offset=99999999&wait=30 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head = f"{watching}Authorization: Bearer {site.viewer}\r\n\r\n".encode()
    host, port = site.home.address.rpartition("/")[2].split(":")
    waiting = []
    try:
        for _ in range(100):
            line = socket.create_connection((host, int(port)))
            line.sendall(head)
            waiting.append(line)
        heavy = threading.Thread(
            target=site.ask, args=("GET", f"{site.api}/runs?limit=1000&children=true", site.viewer)
        )
        heavy.start()
        assert site.ask("GET", site.runs, site.user).status == 200
        heavy.join()
    finally:
        for line in waiting:
            line.close()


def test_class_20_what_is_too_long_or_too_deep_is_refused_at_once(site: Site) -> None:
    for body in (b"[" * 200_000, b'{"a":' * 100_000, b'{"name": ' + b"1" * 100_000 + b"}", b"\xff" * 1000):
        assert site.ask("POST", f"{site.api}/experiments", site.user, body).status in (400, 413)
        assert site.ask("POST", f"{site.api}/runs", site.user, body).status in (400, 413)
    assert site.ask("GET", f"{site.api}/runs?limit=1000000000", site.user).status == 400


def test_class_22_a_link_is_for_one_file_to_be_read_for_minutes(site: Site) -> None:
    for name in ("outputs/a", "outputs/b"):
        site.ask("PUT", f"{site.runs}/files/{name}", site.token, name.encode())
    links = {file["name"]: file["link"] for file in site.ask("GET", f"{site.runs}/files", site.user).json["files"]}
    link = links["outputs/a"]
    assert site.ask("GET", link).body == b"outputs/a"
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        assert site.ask(method, link, None, b"x").status == 401
    assert site.ask("GET", link.replace("outputs/a", "outputs/b")).status == 401
    assert site.ask("GET", link.replace("outputs/a", "outputs%2Fb")).status == 401
    expires = int(re.findall(r"expires=(\d+)", link)[0])
    assert expires - time.time() <= LINK_SECONDS <= 3600
    assert site.ask("GET", link.replace(str(expires), str(expires + 10**6))).status == 401
    old = Access(str(site.home.path)).sign_link(link.partition("?")[0], time.time() - LINK_SECONDS - 1)
    assert site.ask("GET", old).status == 401


def test_class_24_no_tenant_reaches_anothers_things_by_their_ids(site: Site, tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_bytes(b"mine " + os.urandom(8))
    site.run.upload_file("outputs/mine.txt", str(mine))
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "train.py").write_text(f"# {os.urandom(8).hex()}\n")
    ran = Experiment(site.workspace, "e").submit(ScriptRunConfig(str(tmp_path / "source"), "train.py"))
    ran.wait_for_completion()
    snapshot = ran.get_details()["properties"]["ContentSnapshotId"]
    file = next(each for each in site.ask("GET", f"{site.runs}/files", site.user).json["files"])
    model = Model.register(site.workspace, str(mine), "mine")
    own = f"/api/v1/workspaces/{site.elsewhere._workspace_id}"
    theirs = [
        site.runs,
        f"{site.runs}/files",
        f"{site.runs}/files/outputs/mine.txt",
        f"{site.api}/models/{model.name}/1",
    ]
    by_id = [f"snapshots/{snapshot}", f"runs/{site.run.id}", f"models/{model.name}/1"]
    swapped = [f"{base}/{what}" for base in (site.api, own) for what in by_id]
    for path in [*theirs, *swapped, f"/api/v1/blobs/{file['hash']}"]:
        assert site.ask("GET", path, site.stranger).status in (403, 404), path
    told = site.ask("POST", "/api/v1/blobs/missing", site.stranger, {"hashes": [file["hash"]]})
    assert told.status in (403, 404) or told.json["missing"] == [file["hash"]]
    taken = {"experiment": "e", "run_id": f"taken-{os.urandom(4).hex()}", "nonce": "n", "snapshot_id": snapshot,
             "target": "local", "job": {"script": "train.py"}}  # fmt: skip
    assert site.ask("POST", f"{own}/runs", site.stranger, {"runs": [taken]}).status in (400, 403, 404)
    assert site.ask("POST", f"{own}/runs/{site.foreign.id}/files", site.stranger,
                    {"files": {"outputs/taken": file["hash"]}}).status in (400, 403, 404)  # fmt: skip


def test_class_24_a_runs_token_ends_with_its_run(site: Site) -> None:
    assert site.ask("GET", site.runs, site.token).status == 200
    site.run.complete()
    until(lambda: site.ask("GET", site.runs, site.token).status in (401, 403))


def test_class_28_no_credential_stands_in_an_address(site: Site) -> None:
    for name in ("token", "key", "access_token", "api_key", "authorization"):
        assert site.ask("GET", f"{site.runs}?{name}={site.user}").status == 401
        assert site.ask("GET", f"{site.pages}?{name}={site.viewer}").status == 401
    shown = [
        site.run.get_portal_url(),
        repr(site.run),
        site.run._repr_html_(),
        json.dumps(site.run.get_details(), default=str),
    ]
    shown += [(site.home.path / "server.log").read_text()] if (site.home.path / "server.log").exists() else []
    for text in shown:
        assert not any(secret in text for secret in (site.user, site.viewer, site.token))


def test_class_13_and_14_a_service_answers_neither_foreign_names_nor_foreign_pages(site: Site, tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text("def init(): pass\n\ndef run(data): return 'scored'\n")
    model = tmp_path / "model.txt"
    model.write_text("x")
    service = Model.deploy(
        site.workspace, "door", [Model.register(site.workspace, str(model), "m")],
        InferenceConfig("score.py", source_directory=str(tmp_path)), LocalWebservice.deploy_configuration(),
    )  # fmt: skip
    service.wait_for_deployment()
    try:
        url, path = service.scoring_uri.rpartition("/")[0], "/score"
        assert b"scored" in site.ask("POST", path, None, {}, url=url).body
        assert site.ask("POST", path, None, {}, url=url, Host="evil.example").status in (400, 403, 421)
        foreign: Any = {"Origin": "http://evil.example", "Sec_Fetch_Site": "cross-site", "Content_Type": "text/plain"}
        assert site.ask("POST", path, None, b"{}", url=url, **foreign).status in (400, 403, 415)
    finally:
        service.delete()

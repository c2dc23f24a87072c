"""Classes 1 to 6: names, addresses, links and archives that lead where they should not."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest

from azureml.core import Experiment, Model, ScriptRunConfig, Workspace
from lapis.client.handing_over import handed_over
from lapis.domain import frames
from tests.security.attack import ENCODED, TRAVERSALS, Site, files_with

CANARY = b"canary-" + os.urandom(8).hex().encode()


def _read_everywhere(site: Site, name: str) -> None:
    """No route that takes a name gives what lies outside of its own."""
    secrets = [(site.home.path / "token").read_bytes(), b"root:x:0:0"]
    places = [
        f"{site.runs}/files/{name}", f"{site.pages}/file/{name}", f"/studio/static/{name}",
        f"{site.api}/models/{name}/1",
        f"{site.api}/environments/{name}", f"{site.api}/environments/builds/{name}/log", f"{site.api}/snapshots/{name}",
        f"{site.api}/datasets/{name}/files", f"/api/v1/blobs/{name}", f"{site.api}/services/{name}/logs",
        f"{site.pages}/log.json?name={quote(name)}", f"{site.runs}/watch?log={quote(name)}",
    ]  # fmt: skip
    for place in places:
        for token in (site.user, site.token):
            reply = site.ask("GET", place, token)
            assert reply.status < 500, (place, reply)
            assert not any(secret in reply.body for secret in secrets), (place, reply)


def test_class_01_path_traversal_on_read(site: Site) -> None:
    for name in TRAVERSALS:
        _read_everywhere(site, quote(name, safe="/.:~"))


def test_class_02_encoded_and_foreign_path_traversal(site: Site) -> None:
    for name in ENCODED:
        _read_everywhere(site, name)


def test_class_03_path_traversal_on_write_and_delete(site: Site) -> None:
    beside = Path(str(site.home.path) + "-canary")
    beside.mkdir()
    canaries = [beside / "file", site.home.path / "canary"]
    for canary in canaries:
        canary.write_bytes(CANARY)
    before = (site.home.path / "token").read_bytes()
    leading = [f"../{beside.name}/file", f"..%2f{beside.name}%2ffile", "../canary", "..%2fcanary", str(canaries[0])]
    nouns = ["runs", "experiments", "computes", "services", "datasets", "images"]
    for name in [*leading, *(quote(each, safe="/.:~") for each in TRAVERSALS), *ENCODED]:
        for noun in nouns:
            site.ask("DELETE", f"{site.api}/{noun}/{name}", site.user)
        site.ask("DELETE", f"{site.api}/datastore?name={quote(name)}", site.user)
        site.ask("DELETE", f"{site.api}/models/{name}/1", site.user)
        site.ask("PUT", f"{site.runs}/files/{name}", site.token, b"overwritten")
        log = frames.encode({"parts": [{"kind": "log", "name": name, "offset": 0}]}, [b"overwritten"])
        site.ask("POST", f"{site.runs}/report", site.token, log)
        site.ask("POST", f"{site.runs}/files", site.token, {"files": {name: "0" * 64}})
    assert [canary.read_bytes() for canary in canaries] == [CANARY, CANARY]
    assert (site.home.path / "token").read_bytes() == before
    canaries[0].unlink(), beside.rmdir(), canaries[1].unlink()


def test_class_04_an_address_that_a_user_gives_is_not_read_by_the_server(site: Site, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_bytes(CANARY)
    for address in (f"file://{secret}", str(secret), f"../../../../../../..{secret}", f"file://localhost{secret}"):
        sources: list[Any] = [
            {"kind": "web", "place": address}, {"kind": "web", "url": address}, {"kind": "local", "place": address},
            {"kind": "local", "path": address}, {"datastore": "workspaceblobstore", "path": address}, {"url": address},
        ]  # fmt: skip
        for source in sources:
            made = site.ask("POST", f"{site.api}/datasets", site.token,
                            {"name": None, "definition": {"type": "file", "sources": [source]}})  # fmt: skip
            assert made.status < 500
            if made.status == 201:
                files = site.ask("GET", f"{site.api}/datasets/{made.json['id']}/files", site.token)
                assert CANARY not in files.body and b"secret.txt" not in files.body
        for body in (
            {"name": "m", "source": address},
            {"name": "m", "files": {"x": address}},
            {"name": "m", "url": address},
        ):
            assert site.ask("POST", f"{site.api}/models", site.token, body).status in (400, 403, 404, 409)
    owner = {"host": os.uname().nodename, "pid": 1, "journal": str(secret), "spool": str(tmp_path)}
    child = {"experiment": "e", "run_id": f"own-{os.urandom(4).hex()}", "nonce": "n", "started": True, "owner": owner}
    site.ask("POST", f"{site.api}/runs", site.token, {"runs": [child | {"parent_id": site.run.id}]})
    assert secret.read_bytes() == CANARY


def test_class_04_a_file_is_handed_over_open_and_never_named(site: Site, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_bytes(CANARY * 100_000)
    for named in (str(secret), "../../token", "server.json", "0", "x" * 32):
        for method in ("PUT", "GET"):
            given = site.ask(method, f"{site.runs}/files/outputs/taken", site.token, Lapis_File=named)
            assert given.status == 404 if method == "GET" else given.json == {"taken": False}
    assert "outputs/taken" not in site.run.get_file_names()


def test_class_24_a_file_in_the_servers_hands_opens_no_run(site: Site, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(os.urandom(2 << 20))
    with open(tmp_path / "mine", "rb") as file, handed_over(site.home.settings.door, file.fileno()) as ticket:
        for method, path in (("PUT", f"{site.runs}/files/outputs/theirs"), ("GET", f"{site.runs}/files/outputs/x")):
            assert site.ask(method, path, site.stranger, Lapis_File=ticket).status in (403, 404)
        assert site.ask("PUT", f"{site.runs}/files/outputs/mine", "no token", Lapis_File=ticket).status == 401
        assert site.ask("PUT", f"{site.runs}/files/outputs/mine", site.token, Lapis_File=ticket).status == 201


def test_class_05_a_link_leads_no_secret_into_the_store(site: Site, workspace: Workspace, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_bytes(CANARY)
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text(
        "import os\nos.makedirs('outputs', exist_ok=True)\n"
        f"os.symlink({str(secret)!r}, 'outputs/link.txt')\nos.symlink({str(tmp_path)!r}, 'outputs/folder')\n"
        f"os.makedirs('logs', exist_ok=True)\nos.symlink({str(secret)!r}, 'logs/link.txt')\n"
    )
    (source / "link.txt").symlink_to(secret)
    (source / "folder").symlink_to(tmp_path)
    run = Experiment(workspace, "links").submit(ScriptRunConfig(str(source), "train.py"))
    run.wait_for_completion(raise_on_error=False)
    assert files_with(site.home.path, CANARY) == []


def _bomb(inside: str, megabytes: int) -> bytes:
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(inside, "w", force_zip64=True) as file,
    ):
        for _ in range(megabytes):
            file.write(bytes(1 << 20))
    return packed.getvalue()


@pytest.mark.parametrize("inside", ["metadata.json", "../../token", "config.json"])
def test_class_06_archives_neither_escape_nor_unfold_without_end(
    inside: str, site: Site, workspace: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(_bomb(inside, 600))
    before = (site.home.path / "token").read_bytes()
    model = Model.register(workspace, str(path), "bomb", model_framework="TensorFlow", model_framework_version="2.15")
    server = psutil.Process(site.home.server_pid)
    reply = site.ask("GET", f"{site.api}/models/{model.name}/{model.version}/no_code", site.user)
    assert reply.status < 500
    assert server.memory_info().rss < 400 << 20
    assert (site.home.path / "token").read_bytes() == before

"""Datastores in object stores, on real servers: Azurite for Azure Blob, moto and rclone for S3, Samba for shares."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Dataset, Datastore, Experiment, ScriptRunConfig, Workspace
from azureml.data import OutputFileDatasetConfig
from azureml.data.azure_storage_datastore import AzureFileDatastore
from azureml.exceptions import UserErrorException
from lapis.errors import AuthenticationException, Conflict, NotFound
from lapis.files.pieces import path_of
from lapis.object_stores import helper
from lapis.object_stores.cache import PIECE, ObjectCache
from lapis.object_stores.stores import Object, ObjectStore
from lapis.server.control.access import Access
from lapis.testing import Home, until
from lapis.testing.server import processes_of
from tests.needs import need_fuse
from tests.object_stores import servers
from tests.server.test_gate import ask

pytestmark = [
    pytest.mark.full,
    pytest.mark.xdist_group("object-stores"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # the libraries' own: they leave sockets to the collector
]

for _package in ("adlfs", "s3fs", "smbprotocol"):
    if find_spec(_package) is None and os.environ.get("CI") != "true":
        pytest.skip(f"needs the package {_package}", allow_module_level=True)

AWKWARD = ["plain.txt", "with space.txt", "sub/hash#and?mark.txt", "sub/deep/100%.txt", "sub/grüße.txt"]


@dataclass
class Server:
    """One kind of store: how it is registered, and how to look at it without Lapis' server between."""

    kind: str
    scheme: str
    options: dict[str, str]
    credentials: dict[str, str]
    wrong: dict[str, str]
    make: Callable[[str], None]

    def bucket(self) -> str:
        name = f"data-{os.urandom(4).hex()}"
        self.make(name)
        return name

    def direct(self, bucket: str) -> ObjectStore:
        return ObjectStore(servers.access(self.kind, f"{self.scheme}://{bucket}", self.options, self.credentials))

    def register(self, workspace: Workspace, name: str, bucket: str, **changes: Any) -> Any:
        given = {**self.options, **self.credentials, **changes}
        if self.scheme == "az":
            return Datastore.register_azure_blob_container(workspace, name, bucket, **given)
        if self.kind == "AzureFile":
            return Datastore.register_azure_file_share(workspace, name, bucket, **given)
        if self.kind == "SmbShare":
            return Datastore.register_smb_share(workspace, name, bucket, given.pop("endpoint"), **given)
        return Datastore.register_s3_bucket(workspace, name, bucket, **given)


@pytest.fixture(scope="session")
def cache(request: pytest.FixtureRequest) -> Path:
    assert request.config.cache is not None
    return Path(request.config.cache.mkdir("object-stores"))


@pytest.fixture(scope="session")
def azure(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.azurite(cache, tmp_path_factory.mktemp("azurite")) as address:
        options = {"account_name": servers.ACCOUNT, "protocol": "http", "endpoint": address}
        key = {"account_key": servers.ACCOUNT_KEY}
        wrong = {"account_key": base64.b64encode(b"wrong" * 10).decode()}
        server = Server("AzureBlob", "az", options, key, wrong, lambda name: server.direct(name).check(create=True))
        yield server


@pytest.fixture(scope="session")
def s3(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("s3")
    keys = {"access_key": "AKIDEXAMPLE", "secret_key": "secretOfTheTests"}
    with servers.rclone(cache, root, *keys.values()) as endpoint:
        wrong = {"secret_key": "notTheSecret"}
        options = {"endpoint": endpoint}
        server = Server("AmazonS3", "s3", options, keys, wrong, lambda name: server.direct(name).check(create=True))
        yield server


@pytest.fixture(scope="session")
def s3_in_memory(cache: Path) -> Iterator[Server]:
    """Another server of the same protocol: with ETags, parts and conditions as Amazon's."""
    keys = {"access_key": "AKIDEXAMPLE", "secret_key": "secretOfTheTests"}
    with servers.moto(cache) as endpoint:
        options = {"endpoint": endpoint, "region": "eu-west-1"}
        server = Server("AmazonS3", "s3", options, keys, {}, lambda name: server.direct(name).check(create=True))
        yield server


@pytest.fixture(scope="session")
def samba(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    home = tmp_path_factory.mktemp("samba")
    with servers.samba(home, "teamshare", "secretOfTheTests") as address:
        yield home, address


@pytest.fixture(scope="session")
def azure_files(samba: tuple[Path, str]) -> Server:
    home, address = samba
    options = {"account_name": "teamshare", "endpoint": address}
    key, wrong = {"account_key": "secretOfTheTests"}, {"account_key": "notTheSecret"}
    return Server("AzureFile", "smb", options, key, wrong, lambda name: servers.make_share(home, name))


@pytest.fixture(scope="session")
def share(samba: tuple[Path, str]) -> Server:
    home, address = samba
    options = {"user": "teamshare", "endpoint": address}
    secret, wrong = {"password": "secretOfTheTests"}, {"password": "notTheSecret"}
    return Server("SmbShare", "smb", options, secret, wrong, lambda name: servers.make_share(home, name))


@pytest.fixture(params=["azure", "s3", "s3_in_memory", "share"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["azure", "s3", "azure_files", "share"])
def guarded(request: pytest.FixtureRequest) -> Server:
    """Those that look at credentials."""
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "local"
    for name in AWKWARD:
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}")
    (made / "empty.txt").touch()
    return made


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


# -- files


def test_what_is_uploaded_comes_back_as_it_was(server: Server, workspace: Workspace, folder: Path) -> None:
    store = server.register(workspace, "remote", server.bucket())
    store.upload(str(folder), "up/here", show_progress=False)
    assert store.download("back", show_progress=False) == len(AWKWARD) + 1
    assert contents(Path("back/up/here")) == contents(folder)
    assert store.download("part", prefix="up/here/sub/d", show_progress=False) == 1


def test_an_object_that_is_there_stays_unless_overwrite_is_asked_for(
    server: Server, workspace: Workspace, tmp_path: Path
) -> None:
    store = server.register(workspace, "remote", server.bucket())
    (tmp_path / "a.txt").write_text("old")
    store.upload_files([str(tmp_path / "a.txt")], show_progress=False)
    (tmp_path / "a.txt").write_text("new")
    store.upload_files([str(tmp_path / "a.txt")], show_progress=False)
    store.download("first", show_progress=False)
    store.upload_files([str(tmp_path / "a.txt")], overwrite=True, show_progress=False)
    store.download("second", show_progress=False)
    assert (Path("first/a.txt").read_text(), Path("second/a.txt").read_text()) == ("old", "new")


def test_datasets_find_one_object_all_below_a_folder_and_those_that_match(
    server: Server, workspace: Workspace, folder: Path
) -> None:
    store = server.register(workspace, "remote", server.bucket())
    store.upload(str(folder), "up", show_progress=False)
    find = Dataset.File.from_files
    assert find((store, "up/plain.txt")).to_path() == ["/plain.txt"]
    assert sorted(find((store, "up")).to_path()) == sorted("/" + name for name in contents(folder))
    assert find((store, "up/sub/*.txt")).to_path() == ["/grüße.txt", "/hash#and?mark.txt"]
    assert find((store, "up/**/100*")).to_path() == ["/sub/deep/100%.txt"]
    assert len(find((store, "up")).take(2).to_path()) == 2
    everything = find((store, "up"))
    size, time = everything.file_metadata("Size"), everything.file_metadata("LastModifiedTime")
    assert everything.filter((size >= 0) & (time > "2020-01-01")).to_path() == everything.to_path()
    assert everything.filter((size > 10**9) | (time < "2020-01-01")).to_path() == []
    with pytest.raises(NotFound, match="No file is or matches 'up/x\\*' of datastore 'remote'"):
        find((store, "up/x*"))


def test_a_registered_version_says_what_it_was(server: Server, workspace: Workspace, folder: Path) -> None:
    bucket = server.bucket()
    store = server.register(workspace, "remote", bucket)
    store.upload(str(folder), "up", show_progress=False)
    dataset = Dataset.File.from_files((store, "up/plain.txt")).register(workspace, "one")
    (recorded,) = dataset._recorded(workspace)
    found = server.direct(bucket).info("up/plain.txt")
    assert found is not None and found.mark
    assert (recorded["kind"], recorded["place"]) == ("object", "remote/up/plain.txt")
    assert (recorded["size"], recorded["mark"]) == (found.size, found.mark)


def test_a_dataset_is_mounted_and_downloaded_here(server: Server, workspace: Workspace, folder: Path) -> None:
    store = server.register(workspace, "remote", server.bucket())
    store.upload(str(folder), "up", show_progress=False)
    dataset = Dataset.File.from_files((store, "up"))
    with dataset.mount() as context:
        assert contents(Path(context.mount_point)) == contents(folder)
    dataset.download("copies")
    Path("copies/plain.txt").write_text("mine to change")
    dataset.download("again")
    assert contents(Path("again")) == contents(folder)


# -- in a run

SCRIPT = """
import os, sys
whole, one, got, mounted, up, out = sys.argv[1:]
print("whole:", sorted(os.path.relpath(os.path.join(d, f), whole) for d, _, fs in os.walk(whole) for f in fs))
print("one:", open(one).read())
print("got:", open(os.path.join(got, "plain.txt")).read())
print("mounted:", open(os.path.join(mounted, "plain.txt")).read())
open(os.path.join(mounted, "plain.txt"), "w").write("changed through the mount")
open(os.path.join(mounted, "new.txt"), "w").write("new in the mount")
open(os.path.join(up, "result.txt"), "w").write("uploaded")
os.makedirs(os.path.join(out, "deep"))
open(os.path.join(out, "deep", "o.txt"), "w").write("an output")
"""


def test_a_run_reads_and_writes_an_object_store(
    server: Server, workspace: Workspace, folder: Path, script: Callable[..., str], on_shared_server: Home
) -> None:
    bucket = server.bucket()
    store = server.register(workspace, "remote", bucket)
    store.upload(str(folder), "up", show_progress=False)
    arguments = [
        Dataset.File.from_files((store, "up/sub/**")).as_mount(),
        Dataset.File.from_files((store, "up/plain.txt")).as_download(),
        store.path("up", data_reference_name="got").as_download(),
        store.path("up", data_reference_name="mounted").as_mount(),
        store.path("results", data_reference_name="up").as_upload(),
        OutputFileDatasetConfig("out", (store, "outputs")).register_on_complete("made"),
    ]
    run = Experiment(workspace, "remote").submit(ScriptRunConfig(script(SCRIPT), "train.py", arguments))
    run.wait_for_completion(show_output=False)
    log = run.get_all_logs() and Path(run.get_all_logs()[0]).read_text()
    assert "whole: ['deep/100%.txt', 'grüße.txt', 'hash#and?mark.txt']" in log
    assert "one: content of plain.txt" in log and "got: content of plain.txt" in log
    direct = server.direct(bucket)
    assert direct.open("up/plain.txt").read() == b"changed through the mount"
    assert direct.open("up/new.txt").read() == b"new in the mount"
    assert direct.open("results/result.txt").read() == b"uploaded"
    assert direct.open("outputs/deep/o.txt").read() == b"an output"
    assert Dataset.get_by_name(workspace, "made").to_path() == ["/deep/o.txt"]
    assert list(on_shared_server.path.rglob("objects/reference")) == []  # the run's folder is gone


def test_a_run_with_credentials_that_no_longer_work_fails_and_says_why(
    guarded: Server, workspace: Workspace, folder: Path, script: Callable[..., str]
) -> None:
    bucket = guarded.bucket()
    store = guarded.register(workspace, "remote", bucket)
    store.upload(str(folder), "up", show_progress=False)
    dataset = Dataset.File.from_files((store, "up"))
    guarded.register(workspace, "remote", bucket, overwrite=True, skip_validation=True, **guarded.wrong)
    run = Experiment(workspace, "remote").submit(
        ScriptRunConfig(script("print('never')"), "train.py", [dataset.as_named_input("x").as_mount()])
    )
    run.wait_for_completion(show_output=False, raise_on_error=False)
    details = run.get_details()
    message = json.dumps(details["error"])
    assert details["status"] == "Failed"
    assert "Input 'x' could not be prepared" in message and "access is denied" in message
    assert next(iter(guarded.wrong.values())) not in str(details)


def test_a_run_can_be_cancelled_while_its_data_is_on_the_way(
    azure: Server, workspace: Workspace, tmp_path: Path, script: Callable[..., str], on_shared_server: Home
) -> None:
    bucket = azure.bucket()
    put(azure.direct(bucket), "big", os.urandom(48 * PIECE), tmp_path)
    dataset = Dataset.File.from_files((azure.register(workspace, "remote", bucket), "big"))
    config = ScriptRunConfig(script("import time; time.sleep(600)"), "train.py", [dataset.as_mount()])
    run = Experiment(workspace, "remote").submit(config)
    objects = on_shared_server.path / "cache" / "objects"
    while not list(objects.glob("*.part")):
        assert run.get_status() not in ("Failed", "Completed")
    run.cancel()
    run.wait_for_completion(show_output=False, raise_on_error=False)
    assert run.get_status() == "Canceled"
    living = [Path(f"/proc/{pid}/cmdline") for pid in processes_of(str(on_shared_server.path))]
    assert not [each for each in living if each.exists() and b"lapis.object_stores.fetch" in each.read_bytes()]


# -- registering


def test_wrong_credentials_a_missing_container_and_a_dead_endpoint_are_three_errors(
    guarded: Server, workspace: Workspace
) -> None:
    bucket = guarded.bucket()
    with pytest.raises(AuthenticationException, match="cannot be listed: access is denied"):
        guarded.register(workspace, "remote", bucket, **guarded.wrong)
    with pytest.raises(NotFound, match="there is no (container|bucket|share) of that name"):
        guarded.register(workspace, "remote", "nobody-made-this")
    dead = "http://127.0.0.1:9" if guarded.scheme == "s3" else "127.0.0.1:9"
    with pytest.raises(UserErrorException, match="cannot be reached: nobody answers at .*://127.0.0.1:9") as caught:
        guarded.register(workspace, "remote", bucket, endpoint=dead)
    assert type(caught.value) is UserErrorException
    assert "remote" not in workspace.datastores


def test_nothing_is_tried_where_validation_is_not_wanted(guarded: Server, workspace: Workspace) -> None:
    store = guarded.register(workspace, "remote", "nobody-made-this", skip_validation=True)
    with pytest.raises(NotFound, match="there is no (container|bucket|share) of that name"):
        store.download("x", show_progress=False)


def test_a_failed_replacement_leaves_the_datastore_as_it_was(guarded: Server, workspace: Workspace) -> None:
    bucket = guarded.bucket()
    guarded.register(workspace, "remote", bucket)
    with pytest.raises(Conflict, match="exists already. Pass overwrite=True"):
        guarded.register(workspace, "remote", bucket)
    with pytest.raises(AuthenticationException):
        guarded.register(workspace, "remote", bucket, overwrite=True, **guarded.wrong)
    assert Datastore(workspace, "remote").download("x", show_progress=False) == 0


def test_a_container_is_made_where_that_is_asked_for(azure: Server, workspace: Workspace) -> None:
    name = f"fresh-{os.urandom(4).hex()}"
    store = azure.register(workspace, "remote", name, create_if_not_exists=True)
    assert (store.container_name, store.account_name, store.credential_type) == (name, servers.ACCOUNT, "AccountKey")
    azure.direct(name).check()


def test_a_sas_token_opens_what_it_allows_and_no_more(azure: Server, workspace: Workspace, folder: Path) -> None:
    blob = pytest.importorskip("azure.storage.blob")
    bucket = azure.bucket()
    azure.register(workspace, "full", bucket).upload(str(folder), "up", show_progress=False)
    token = blob.generate_container_sas(
        servers.ACCOUNT,
        bucket,
        account_key=servers.ACCOUNT_KEY,
        permission=blob.ContainerSasPermissions(read=True, list=True),
        expiry=datetime(2100, 1, 1),
    )
    store = azure.register(workspace, "look", bucket, account_key=None, sas_token=token)
    assert store.is_sas and store.sas_token == token and token not in repr(store)
    assert store.download("x", prefix="up/plain", show_progress=False) == 1
    with pytest.raises(AuthenticationException, match="cannot be written: access is denied"):
        store.upload(str(folder), "other", show_progress=False)


def test_a_share_of_azure_has_the_attributes_of_sdk_v1(azure_files: Server, workspace: Workspace) -> None:
    name = azure_files.bucket()
    azure_files.register(workspace, "remote", name, create_if_not_exists=True)  # it is there
    store = workspace.datastores["remote"]
    assert isinstance(store, AzureFileDatastore)
    assert (store.container_name, store.account_name, store.datastore_type) == (name, "teamshare", "AzureFile")
    assert (store.credential_type, store.account_key, store.is_sas) == ("AccountKey", "secretOfTheTests", False)
    assert store.endpoint == azure_files.options["endpoint"]
    with pytest.raises(NotFound, match="no share of that name. It cannot be made from here"):
        azure_files.register(workspace, "other", "nobody-made-this", create_if_not_exists=True)


def test_a_share_opens_to_a_user_of_a_domain_and_without_encryption(share: Server, workspace: Workspace) -> None:
    store = share.register(workspace, "remote", share.bucket(), user="LAB\\teamshare", encrypt=False)
    store.upload_files([__file__], show_progress=False)
    assert store.download("x", show_progress=False) == 1
    assert (store.user, store.password, store.credential_type) == ("LAB\\teamshare", "secretOfTheTests", "Password")
    assert "secretOfTheTests" not in repr(store)


def test_a_second_user_of_a_server_does_not_get_in_by_the_first_ones_connection(share: Server) -> None:
    bucket = share.bucket()
    share.direct(bucket).check()
    stranger = servers.access(share.kind, f"smb://{bucket}", {**share.options, "user": "stranger"}, share.credentials)
    with pytest.raises(AuthenticationException, match="STATUS_LOGON_FAILURE"):
        ObjectStore(stranger).check()


def test_names_that_smb_does_not_know_lie_on_a_share_as_linux_and_macos_write_them(
    share: Server, samba: tuple[Path, str], tmp_path: Path
) -> None:
    bucket = share.bucket()
    names = ["a?b.txt", "ends with .", 'all "*:<>| of them', "ends with "]
    for name in names:
        put(share.direct(bucket), name, b"content", tmp_path)
    assert [each.key for each in share.direct(bucket).find("")] == sorted(names)
    kept = {path.name for path in (samba[0] / "files" / bucket).iterdir()}
    assert {"a\uf025b.txt", "ends with \uf029", "ends with\uf028"} <= kept


def test_a_share_whose_server_is_gone_is_told(tmp_path: Path) -> None:
    with servers.samba(tmp_path, "teamshare", "pw") as address:
        servers.make_share(tmp_path, "kept")
        options = {"user": "teamshare", "endpoint": address}
        store = ObjectStore(servers.access("SmbShare", "smb://kept", options, {"password": "pw"}))
        wanted = put(store, "a", b"0123456789", tmp_path)
    with pytest.raises(UserErrorException, match="cannot be reached: nobody answers at smb://"):
        store.read_part(wanted, 0, 5)


def test_without_its_package_a_store_says_what_to_install(server: Server, tmp_path: Path) -> None:
    code = (
        "import json, sys\n"
        "from lapis.object_stores.stores import ObjectStore\n"
        "from lapis.errors import UserErrorException\n"
        "try: ObjectStore(json.load(sys.stdin))\n"
        "except UserErrorException as error: print(error.message)\n"
    )
    source = str(Path(helper.__file__).parents[2])
    request = servers.access(server.kind, f"{server.scheme}://x", server.options, server.credentials)
    said = subprocess.run(
        [sys.executable, "-S", "-c", code],
        input=json.dumps(request),
        env={"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    extra = "azure" if server.scheme == "az" else server.scheme
    assert f"pip install 'lapis-ml[{extra}]'" in said


# -- secrets


def test_a_credential_is_nowhere_in_clear(
    azure: Server,
    share: Server,
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    script: Callable[..., str],
) -> None:
    monkeypatch.chdir(tmp_path)
    workspace = Workspace.create("secrets", show_output=False)
    share.register(workspace, "shared", share.bucket()).upload_files([__file__], show_progress=False)
    bucket = azure.bucket()
    canary = f"?sv=2021&sig=CANARY{os.urandom(8).hex()}"
    store = azure.register(workspace, "remote", bucket)
    store.upload_files([__file__], show_progress=False)
    kept = Dataset.File.from_files((store, "/")).register(workspace, "kept")
    bird = azure.register(workspace, "bird", bucket, account_key=None, sas_token=canary, skip_validation=True)
    config = ScriptRunConfig(script("import os; print(sorted(os.environ))"), "train.py", [kept.as_mount()])
    good = Experiment(workspace, "x").submit(config)
    good.wait_for_completion(show_output=False)
    config.arguments = [bird.path("x").as_download()]
    bad = Experiment(workspace, "x").submit(config)
    bad.wait_for_completion(show_output=False, raise_on_error=False)

    base = f"/api/v1/workspaces/{workspace._workspace_id}"
    access = Access(str(home.path))
    own = access.run_token("run", workspace._workspace_id, good.id)
    strange = access.run_token("run", "another-workspace", good.id)
    told = [repr(store), str(vars(bird)), repr(workspace.datastores), str(bad.get_details())]
    for path in (f"{base}/datastores", f"{base}/datastore?name=bird", f"{base}/runs/{bad.id}", f"{base}/datasets"):
        for token in (access.user_token, access.viewer_key, own):
            reply = ask(home, "GET", path, token)
            assert reply.status == 200
            told.append(reply.body.decode())
    for path in ("/studio", f"/studio/workspaces/{workspace._workspace_id}"):
        told.append(ask(home, "GET", path, access.viewer_key).body.decode())
    secrets = [canary[1:], canary.rpartition("=")[2], servers.ACCOUNT_KEY, *share.credentials.values()]
    for file in home.path.rglob("*"):
        if file.is_file() and "cache" not in file.parts:
            content = file.read_bytes()
            assert not [s for s in secrets if s.encode() in content], file
    assert not [secret for secret in secrets for text in told if secret in text]
    assert (home.path / "secrets.key").stat().st_mode & 0o777 == 0o600

    route = f"{base}/datastore/access?name=bird"
    assert json.loads(ask(home, "GET", route, own).body)["credentials"] == {"sas_token": canary}
    for token in (access.viewer_key, strange):
        reply = ask(home, "GET", route, token)
        assert reply.status == 403 and b"CANARY" not in reply.body

    (home.path / "secrets.key").unlink()
    with pytest.raises(UserErrorException, match="credentials of datastore 'bird' cannot be opened: .*secrets.key"):
        bird.sas_token  # noqa: B018


# -- the cache


@dataclass
class Watched:
    """A store that counts what is read from it."""

    store: ObjectStore
    reads: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def read(self, key: str, ranges: list[tuple[int, int]]) -> list[bytes]:
        self.reads += 1
        self.spans += ranges
        return self.store.read(key, ranges)


def put(store: ObjectStore, key: str, content: bytes, tmp_path: Path) -> Object:
    (tmp_path / "made").write_bytes(content)
    store.put(str(tmp_path / "made"), key, overwrite=True)
    found = store.info(key)
    assert found is not None
    return found


def quiet(count: int) -> None:
    pass


def test_two_that_want_the_same_object_download_it_once(server: Server, tmp_path: Path) -> None:
    store = server.direct(server.bucket())
    wanted = put(store, "big", os.urandom(3 * PIECE + 5), tmp_path)
    watched: Any = Watched(store)
    cache = ObjectCache(str(tmp_path / "cache"))
    places = [str(tmp_path / f"place{number}") for number in range(4)]
    threads = [threading.Thread(target=cache.bring, args=(watched, wanted, place, False, quiet)) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert watched.reads == 1
    assert {Path(place).read_bytes() for place in places} == {(tmp_path / "made").read_bytes()}


def test_a_download_that_was_killed_half_way_is_resumed_and_never_used_by_halves(
    server: Server, tmp_path: Path
) -> None:
    bucket = server.bucket()
    store = server.direct(bucket)
    wanted = put(store, "big", os.urandom(24 * PIECE), tmp_path)
    folder, place = tmp_path / "cache", tmp_path / "place"
    request = {
        "do": "bring",
        "store": servers.access(server.kind, f"{server.scheme}://{bucket}", server.options, server.credentials),
        "wanted": [[list(wanted), str(place)]],
        "copy": False,
        "cache": str(folder),
    }
    with helper.start(subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.close()
        while not any(part.stat().st_size for part in folder.glob("*.part")):
            assert process.poll() is None, "it ended before it could be killed"
        process.send_signal(signal.SIGKILL)
    (part,) = folder.glob("*.part")
    got = part.stat().st_size
    assert 0 < got < wanted.size
    assert not place.exists() and not part.with_suffix("").exists()

    came: list[int] = []
    ObjectCache(str(folder)).bring(store, wanted, str(place), False, came.append)
    assert came[0] == got and sum(came) == wanted.size
    assert place.read_bytes() == (tmp_path / "made").read_bytes()


def test_a_copy_that_a_script_wrote_through_is_fetched_anew(server: Server, tmp_path: Path) -> None:
    store = server.direct(server.bucket())
    wanted = put(store, "a", b"as it is in the store", tmp_path)
    cache = ObjectCache(str(tmp_path / "cache"))
    cache.bring(store, wanted, str(tmp_path / "first"), False, quiet)
    os.chmod(tmp_path / "first", 0o644)
    (tmp_path / "first").write_bytes(b"AS A SCRIPT HAS IT NOW")
    cache.bring(store, wanted, str(tmp_path / "second"), False, quiet)
    assert (tmp_path / "second").read_bytes() == b"as it is in the store"


def test_an_object_that_changed_since_it_was_listed_is_taken_as_it_is_now(server: Server, tmp_path: Path) -> None:
    store = server.direct(server.bucket())
    old = put(store, "a", b"old and longer", tmp_path)
    new = put(store, "a", b"new", tmp_path)
    cache = ObjectCache(str(tmp_path / "cache"))
    assert cache.bring(store, old, str(tmp_path / "place"), False, quiet) == new
    assert (tmp_path / "place").read_bytes() == b"new"
    assert list((tmp_path / "cache").glob("*.part")) == []


def test_the_cache_stays_within_its_limit_and_spares_what_runs_hold(server: Server, tmp_path: Path) -> None:
    store = server.direct(server.bucket())
    cache = ObjectCache(str(tmp_path / "cache"), limit=2500)
    for number in range(4):
        wanted = put(store, f"n{number}", bytes(1000 + number), tmp_path)
        cache.bring(store, wanted, str(tmp_path / f"place{number}"), number > 0, quiet)  # the first keeps a link
    cache.clear()
    left = sorted(path.stat().st_size for path in (tmp_path / "cache").iterdir() if "." not in path.name)
    assert left == [1000, 1003]


# -- streamed


def test_a_part_of_an_object_is_what_it_was_or_an_error(server: Server, tmp_path: Path) -> None:
    store = server.direct(server.bucket())
    wanted = put(store, "sub/grüße #1.bin", b"0123456789" * 10, tmp_path)
    assert store.read_part(wanted, 15, 25) == b"5678901234"
    put(store, wanted.key, b"abcdefghij" * 10, tmp_path)
    with pytest.raises(UserErrorException, match="'sub/grüße #1.bin' changed while it was read"):
        store.read_part(wanted, 15, 25)


def test_a_store_that_is_gone_is_told_after_a_few_tries(cache: Path, tmp_path: Path) -> None:
    with servers.moto(cache) as endpoint:
        options = {"endpoint": endpoint, "region": "eu-west-1"}
        store = ObjectStore(servers.access("AmazonS3", "s3://gone", options, {"access_key": "a", "secret_key": "b"}))
        store.check(create=True)
        wanted = put(store, "a", b"0123456789", tmp_path)
    with pytest.raises(UserErrorException, match="cannot be reached: nobody answers at"):
        store.read_part(wanted, 0, 5)


def test_a_dataset_is_streamed_and_what_was_streamed_is_not_downloaded_again(
    server: Server, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_fuse()
    bucket = server.bucket()
    content = os.urandom(2 * PIECE + 77)
    store = server.direct(bucket)
    wanted = put(store, "up/large.bin", content, tmp_path)
    put(store, "up/sub/small.txt", b"small", tmp_path)
    dataset = Dataset.File.from_files((server.register(workspace, "remote", bucket), "up"))
    monkeypatch.setenv("LAPIS_HOME", str(tmp_path / "fresh"))
    monkeypatch.setenv("LAPIS_MOUNT", "stream")
    with dataset.mount() as context:
        large, small = (Path(context.mount_point, name) for name in ("large.bin", "sub/small.txt"))
        assert large.is_symlink() and small.read_text() == "small"
        with open(large, "rb") as file:
            file.seek(PIECE)
            assert file.read(10) == content[PIECE:][:10]
        kept = ObjectCache(str(tmp_path / "fresh" / "cache" / "objects"))
        whole = kept.place(store, wanted)
        assert [os.path.exists(path_of(whole, begin)) for begin in (0, PIECE, 2 * PIECE)] == [False, True, False]
        watched: Any = Watched(store)
        kept.bring(watched, wanted, str(tmp_path / "place"), False, quiet)
        assert watched.spans == [(0, PIECE), (2 * PIECE, wanted.size)]
        assert (tmp_path / "place").read_bytes() == content == large.read_bytes()


def test_an_object_that_changes_while_it_is_streamed_fails_the_script_and_the_log_says_why(
    server: Server, workspace: Workspace, tmp_path: Path, script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need_fuse()
    bucket = server.bucket()
    put(server.direct(bucket), "a.bin", bytes(3 * PIECE), tmp_path)
    dataset = Dataset.File.from_files((server.register(workspace, "remote", bucket), "a.bin"))
    code = """
import os, sys, time
file = open(sys.argv[1], "rb", buffering=0)
print("first", file.read(1), flush=True)
while not os.path.exists(sys.argv[2]): time.sleep(0.02)
file.seek(2 * int(sys.argv[3]))
print("FURTHER", file.read(1))
"""
    monkeypatch.setenv("LAPIS_MOUNT", "stream")
    config = ScriptRunConfig(script(code), "train.py", [dataset.as_mount(), str(tmp_path / "go"), PIECE])
    run = Experiment(workspace, "remote").submit(config)
    until(lambda: "first" in run.get_logs().get("user_logs/std_log.txt", ""), seconds=60)
    put(server.direct(bucket), "a.bin", b"1" * 3 * PIECE, tmp_path)
    (tmp_path / "go").touch()
    run.wait_for_completion(show_output=False, raise_on_error=False)
    log = run.get_logs()["user_logs/std_log.txt"]
    assert run.get_status() == "Failed" and "Input/output error" in log and "FURTHER b" not in log
    assert "'a.bin' changed while it was read" in log

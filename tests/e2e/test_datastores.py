"""Datastores that are folders: found, filled, emptied, registered, and never left by a path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Dataset, Datastore, Workspace
from azureml.data.azure_storage_datastore import AzureBlobDatastore, AzureFileDatastore
from azureml.data.context_managers import DatastoreContextManager
from azureml.data.data_reference import DataReference
from azureml.data.datapath import DataPath, DataPathComputeBinding
from azureml.exceptions import UserErrorException


@pytest.fixture
def store(workspace: Workspace) -> Any:
    return workspace.get_default_datastore()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """a.txt and sub/b.txt"""
    made = tmp_path / "local"
    (made / "sub").mkdir(parents=True)
    (made / "a.txt").write_text("A")
    (made / "sub" / "b.txt").write_text("B")
    return made


def listed(store: Any, tmp_path: Path) -> dict[str, str]:
    """Everything in the datastore, as a download shows it."""
    target = tmp_path / f"listed-{os.urandom(3).hex()}"
    store.download(str(target), show_progress=False)
    return {str(path.relative_to(target)): path.read_text() for path in target.rglob("*") if path.is_file()}


# -- found


def test_every_workspace_has_the_datastores_that_azures_have(workspace: Workspace) -> None:
    assert sorted(workspace.datastores) == ["workspaceartifactstore", "workspaceblobstore", "workspacefilestore"]
    default = workspace.get_default_datastore()
    assert (default.name, default.datastore_type) == ("workspaceblobstore", "AzureBlob")
    assert isinstance(default, AzureBlobDatastore) and default.workspace == workspace
    assert isinstance(Datastore(workspace, "workspacefilestore"), AzureFileDatastore)
    assert Datastore.get(workspace, "workspaceblobstore") == default == Datastore.get_default(workspace)


def test_another_datastore_can_be_the_default(workspace: Workspace) -> None:
    workspace.set_default_datastore("workspacefilestore")
    assert workspace.get_default_datastore().name == "workspacefilestore"
    Datastore(workspace, "workspaceblobstore").set_as_default()
    assert workspace.get_default_datastore().name == "workspaceblobstore"


def test_two_workspaces_share_no_file(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    other = Workspace.create("other-" + os.urandom(4).hex(), show_output=False)
    workspace.get_default_datastore().upload(str(folder), show_progress=False)
    assert listed(other.get_default_datastore(), tmp_path) == {}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda ws: Datastore(ws, "nope"), "Datastore 'nope' could not be found .*Known: workspaceblobstore"),
        (lambda ws: Datastore.get(ws, None), "datastore_name must be text"),
        (lambda ws: Datastore("ws", "x"), "workspace must be a Workspace, not str"),
        (lambda ws: ws.set_default_datastore("nope"), "Datastore 'nope' could not be found"),
        (lambda ws: Datastore.register_folder(ws, "a-b", "."), "Datastore name 'a-b'"),
        (lambda ws: Datastore.register_folder(ws, "gone", "no/such/folder"), "'gone' needs a folder"),
        (lambda ws: Datastore.register_folder(ws, "workspaceblobstore", "."), "belongs to the workspace"),
        (lambda ws: Datastore(ws, "workspaceblobstore").unregister(), "cannot be unregistered"),
    ],
)
def test_a_wrong_call_says_what_is_wrong_and_changes_nothing(workspace: Workspace, call: Any, says: str) -> None:
    with pytest.raises(UserErrorException, match=says):
        call(workspace)
    assert sorted(workspace.datastores) == ["workspaceartifactstore", "workspaceblobstore", "workspacefilestore"]
    assert workspace.get_default_datastore().name == "workspaceblobstore"


# -- registered


def test_a_folder_can_be_registered_used_and_forgotten(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    store = Datastore.register_folder(workspace, "mine", folder)
    assert listed(store, tmp_path) == {"a.txt": "A", "sub/b.txt": "B"}
    store.set_as_default()
    store.unregister()
    assert "mine" not in workspace.datastores
    assert workspace.get_default_datastore().name == "workspaceblobstore"
    assert (folder / "a.txt").read_text() == "A"


def test_a_name_that_is_taken_is_replaced_only_on_request(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    Datastore.register_folder(workspace, "mine", folder)
    with pytest.raises(UserErrorException, match="'mine' exists already. Pass overwrite=True"):
        Datastore.register_folder(workspace, "mine", folder / "sub")
    assert sorted(listed(Datastore(workspace, "mine"), tmp_path)) == ["a.txt", "sub/b.txt"]
    Datastore.register_folder(workspace, "mine", folder / "sub", overwrite=True)
    assert listed(Datastore(workspace, "mine"), tmp_path) == {"b.txt": "B"}


# -- filled


def test_upload_copies_what_is_in_a_folder_below_the_target(store: Any, folder: Path, tmp_path: Path) -> None:
    reference = store.upload(str(folder), "up/here", show_progress=False)
    assert isinstance(reference, DataReference) and reference.path_on_datastore == "up/here"
    assert listed(store, tmp_path) == {"up/here/a.txt": "A", "up/here/sub/b.txt": "B"}


@pytest.mark.parametrize("target", [None, "", "/", "."])
def test_upload_without_a_target_goes_to_the_top(store: Any, folder: Path, tmp_path: Path, target: Any) -> None:
    store.upload(folder, target, show_progress=False)
    assert sorted(listed(store, tmp_path)) == ["a.txt", "sub/b.txt"]


def test_what_is_there_stays_unless_it_is_to_be_overwritten(
    store: Any, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store.upload(str(folder), "up", show_progress=False)
    (folder / "a.txt").write_text("changed")
    (folder / "new.txt").write_text("N")
    store.upload(str(folder), "up")
    assert "Uploaded 1 files, 2 were there already" in capfd.readouterr().err
    assert listed(store, tmp_path)["up/a.txt"] == "A"
    store.upload(str(folder), "up", overwrite=True, show_progress=False)
    assert listed(store, tmp_path)["up/a.txt"] == "changed"


def test_files_keep_their_folders_below_a_root_and_lose_them_without(store: Any, folder: Path, tmp_path: Path) -> None:
    files = [str(folder / "a.txt"), str(folder / "sub" / "b.txt")]
    store.upload_files(files, target_path="flat", show_progress=False)
    store.upload_files(files, relative_root=str(folder), target_path="deep", show_progress=False)
    assert sorted(listed(store, tmp_path)) == ["deep/a.txt", "deep/sub/b.txt", "flat/a.txt", "flat/b.txt"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda store, here: store.upload(here / "nothing"), "there is no folder .*nothing"),
        (lambda store, here: store.upload(here / "a.txt"), "there is no folder .*a.txt"),
        (lambda store, here: store.upload(here, "../out"), r"'../out' cannot be used"),
        (lambda store, here: store.upload(here, "a/../../out"), "cannot be used"),
        (lambda store, here: store.upload_files([here / "a.txt", here / "no.txt"]), "no file .*no.txt"),
        (lambda store, here: store.upload_files(str(here / "a.txt")), "takes a list"),
        (lambda store, here: store.upload_files([here / "a.txt"], relative_root=here / "sub"), "does not lie below"),
    ],
)
def test_an_upload_that_cannot_be_done_whole_is_not_begun(
    store: Any, folder: Path, tmp_path: Path, call: Any, says: str
) -> None:
    with pytest.raises(UserErrorException, match=says):
        call(store, folder)
    assert listed(store, tmp_path) == {}


def test_a_link_that_leads_nowhere_is_told_before_anything_is_copied(store: Any, folder: Path, tmp_path: Path) -> None:
    (folder / "z.txt").symlink_to(folder / "nothing")
    with pytest.raises(UserErrorException, match="z.txt is neither a file nor a folder, or a link that leads nowhere"):
        store.upload(str(folder), show_progress=False)
    assert listed(store, tmp_path) == {}


def test_a_file_where_a_folder_should_be_is_told(store: Any, folder: Path, tmp_path: Path) -> None:
    store.upload_files([str(folder / "a.txt")], target_path="up", show_progress=False)
    with pytest.raises(UserErrorException, match="up/a.txt is a file, not a folder. Nothing was copied"):
        store.upload(str(folder), "up/a.txt", show_progress=False)
    assert listed(store, tmp_path) == {"up/a.txt": "A"}


def test_many_and_large_files_arrive_whole(store: Any, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(200):
        (tmp_path / "many" / f"{number}.txt").write_text(str(number))
    (tmp_path / "many" / "large.txt").write_text("x" * 3_000_000)
    store.upload(str(tmp_path / "many"), "deep/er", show_progress=False)
    found = listed(store, tmp_path)
    assert len(found) == 201 and found["deep/er/77.txt"] == "77" and len(found["deep/er/large.txt"]) == 3_000_000


def test_a_link_in_a_datastore_is_not_a_way_out_of_it(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "door").symlink_to(outside)
    store = Datastore.register_folder(workspace, "mine", inside)
    with pytest.raises(UserErrorException, match="a link leads it out"):
        store.upload(str(folder), "door", show_progress=False)
    assert list(outside.iterdir()) == []


# -- emptied


def test_download_takes_what_begins_with_a_prefix(store: Any, folder: Path, tmp_path: Path) -> None:
    store.upload(str(folder), "up", show_progress=False)
    target = tmp_path / "down"
    assert store.download(str(target), prefix="up/sub", show_progress=False) == 1
    assert (target / "up" / "sub" / "b.txt").read_text() == "B"
    assert store.download(target, prefix="nothing", show_progress=False) == 0


def test_a_download_keeps_what_is_there_unless_told_otherwise(store: Any, folder: Path, tmp_path: Path) -> None:
    store.upload(str(folder), show_progress=False)
    (tmp_path / "a.txt").write_text("mine")
    assert store.download(tmp_path, prefix="a.txt", show_progress=False) == 0
    assert (tmp_path / "a.txt").read_text() == "mine"
    assert store.download(tmp_path, prefix="a.txt", overwrite=True, show_progress=False) == 1
    assert (tmp_path / "a.txt").read_text() == "A"


# -- referred to


def test_a_reference_says_its_variable_and_its_place(store: Any) -> None:
    assert str(store.as_mount()) == "$AZUREML_DATAREFERENCE_workspaceblobstore"
    named = store.path("a/b", data_reference_name="mnist")
    assert (str(named), named.path_on_datastore, named.mode) == ("$AZUREML_DATAREFERENCE_mnist", "a/b", "mount")
    assert str(store.path("a")) != str(store.path("a"))  # two places never share a variable
    below = named.path("c")
    assert below.path_on_datastore == "a/b/c" and below.data_reference_name != "mnist"
    upload = named.as_upload("there", overwrite=True)
    assert (upload.mode, upload.path_on_compute, upload.overwrite) == ("upload", "there", True)
    assert named.mode == "mount"
    config = named.as_download("here").to_config()
    assert (config.data_store_name, config.path_on_data_store, config.mode) == (store.name, "a/b", "download")


def test_a_data_path_becomes_a_reference(store: Any) -> None:
    path = DataPath(store, "a/b", "mnist")
    reference = path.create_data_reference(datapath_compute_binding=DataPathComputeBinding(mode="download"))
    assert (reference.data_reference_name, reference.mode, reference.path_on_datastore) == ("mnist", "download", "a/b")
    again = DataPath.create_from_data_reference(reference)
    assert (again.datastore_name, again.path_on_datastore) == (store.name, "a/b")


@pytest.mark.parametrize("use", [Dataset.File.from_files, lambda path: path.create_data_reference("mnist")])
def test_a_data_path_without_a_datastore_can_be_made_and_not_used(use: Any) -> None:
    with pytest.raises(UserErrorException, match="The path 'a/b' lies in no datastore"):
        use(DataPath(path_on_datastore="a/b"))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda store: store.path("../x"), "leads out of its datastore"),
        (lambda store: store.path(5), "must be text"),
        (lambda store: store.path("x", data_reference_name="a-b"), "Data reference name 'a-b'"),
        (lambda store: DataReference(store, mode="steal"), "not 'steal'"),
        (lambda store: store.path("x").as_download("../out"), "cannot be used"),
        (lambda store: DataReference("store"), "a datastore is needed, not str"),
    ],
)
def test_a_reference_that_cannot_be_is_refused(store: Any, call: Any, says: str) -> None:
    with pytest.raises(UserErrorException, match=says):
        call(store)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "needs account_key: shares are read over SMB"),
        ({"sas_token": "sig"}, "which knows no SAS tokens"),
        ({"account_key": "k", "file_share_name": "pho/tos"}, "'pho/tos' is not the name of a share"),
        ({"account_key": "k", "account_name": "Team!"}, "account_name 'Team!' is none"),
        ({"account_key": "k", "protocol": "smb"}, "protocol must be 'https'"),
        ({"account_key": "k", "endpoint": "nas:445/x@y"}, "not an address that can be used"),
    ],
)
def test_a_file_share_that_cannot_be_is_refused(workspace: Workspace, given: Any, says: str) -> None:
    share = {"file_share_name": "photos", "account_name": "team", **given}
    with pytest.raises(UserErrorException, match=says):
        Datastore.register_azure_file_share(workspace, "shared", **share)
    assert "shared" not in workspace.datastores


# -- in a block


def test_references_last_as_long_as_a_block(store: Any, folder: Path, tmp_path: Path) -> None:
    store.upload(str(folder), "up", show_progress=False)
    wanted = [
        store.path("up", "mounted").as_mount(),
        store.path("up/sub", "copied").as_download(),
        store.path("made", "written").as_upload(),
    ]
    with DatastoreContextManager(wanted) as context:
        mounted, copied, written = (
            Path(os.environ[f"AZUREML_DATAREFERENCE_{each.data_reference_name}"]) for each in wanted
        )
        assert context.paths == {"mounted": str(mounted), "copied": str(copied), "written": str(written)}
        assert (mounted / "sub" / "b.txt").read_text() == "B" == (copied / "b.txt").read_text()
        (copied / "b.txt").write_text("changed")
        (mounted / "new.txt").write_text("N")
        (written / "w.txt").write_text("W")
    assert "AZUREML_DATAREFERENCE_mounted" not in os.environ and not copied.exists() and not written.exists()
    found = listed(store, tmp_path)
    assert found == {"up/a.txt": "A", "up/sub/b.txt": "B", "up/new.txt": "N", "made/w.txt": "W"}


def test_nothing_is_uploaded_from_a_block_that_an_error_ended(store: Any, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        with DatastoreContextManager({"x": store.path("made", "x").as_upload(str(tmp_path / "here"))}) as context:
            Path(context.paths["x"], "w.txt").write_text("W")
            raise ZeroDivisionError
    assert listed(store, tmp_path) == {} and (tmp_path / "here" / "w.txt").exists()
    with pytest.raises(UserErrorException, match="There is nothing at 'no' of datastore 'workspaceblobstore'"):
        with DatastoreContextManager(store.path("no", "y").as_download()):
            pass
    with pytest.raises(UserErrorException, match="A data reference is needed"):
        DatastoreContextManager(["up"])

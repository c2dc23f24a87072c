"""Datastores: named places that data is kept in. In this release all of them are folders of the server's machine."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any, Iterable

from lapis.domain.tree import check_path, resolve_under
from lapis.errors import NotThereYet, UserErrorException
from lapis.sdk import display
from lapis.sdk.data_reference import DataReference
from lapis.sdk.workspace import Workspace


class AbstractDatastore:
    def __init__(self, workspace: Workspace, name: str, datastore_type: str, **_more: Any) -> None:
        self._workspace, self._name, self._type = workspace, name, datastore_type

    @property
    def workspace(self) -> Workspace:
        return self._workspace

    @property
    def name(self) -> str:
        return self._name

    @property
    def datastore_type(self) -> str:
        return self._type

    def set_as_default(self) -> None:
        self._workspace.set_default_datastore(self._name)

    def unregister(self) -> None:
        """Forget the name. The data stays where it is."""
        self._workspace._client.call("DELETE", self._workspace._base + "/datastore", query={"name": self._name})

    def __repr__(self) -> str:
        return display.as_line("Datastore", {"name": self._name, "type": self._type, "workspace": self._workspace.name})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractDatastore) and (other._name, other._workspace) == (self._name, self._workspace)

    def __hash__(self) -> int:
        return hash(self._name)


class AbstractAzureStorageDatastore(AbstractDatastore):
    def __init__(
        self,
        workspace: Workspace,
        name: str,
        datastore_type: str = "AzureBlob",
        container_name: str | None = None,
        account_name: str | None = None,
        sas_token: str | None = None,
        account_key: str | None = None,
        protocol: str | None = None,
        endpoint: str | None = None,
        **more: Any,
    ) -> None:
        super().__init__(workspace, name, datastore_type)
        self.container_name = container_name or name
        self.account_name = account_name or "lapis"
        self.sas_token, self.account_key, self.credential_type = sas_token, account_key, None
        self.protocol, self.endpoint = protocol or "file", endpoint
        self._folder = str(more.get("_folder") or "")

    @property
    def is_sas(self) -> bool:
        return self.sas_token is not None

    def path(self, path: str | None = None, data_reference_name: str | None = None) -> DataReference:
        """A place in this datastore."""
        return DataReference(self, data_reference_name, path)

    def as_mount(self) -> DataReference:
        return DataReference(self).as_mount()

    def as_download(self, path_on_compute: str | None = None) -> DataReference:
        return DataReference(self).as_download(path_on_compute)

    def as_upload(self, path_on_compute: str | None = None) -> DataReference:
        return DataReference(self).as_upload(path_on_compute)

    def upload(
        self, src_dir: Any, target_path: str | None = None, overwrite: bool = False, show_progress: bool = True
    ) -> DataReference:
        """Copy what is in a folder to `target_path`. A file that is there stays, unless `overwrite`."""
        folder = os.fspath(src_dir)
        if not os.path.isdir(folder):
            raise UserErrorException(f"upload(): there is no folder {os.path.abspath(folder)}.")
        files = [os.path.join(where, name) for where, _, names in os.walk(folder) for name in sorted(names)]
        return self._copy_in(files, folder, target_path, overwrite, show_progress)

    def upload_files(
        self,
        files: Iterable[Any],
        relative_root: Any = None,
        target_path: str | None = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> DataReference:
        """Copy files to `target_path`, by their names below `relative_root` or without folders."""
        if isinstance(files, str):
            raise UserErrorException("upload_files() takes a list of paths.")
        paths = [os.fspath(path) for path in files]
        absent = [path for path in paths if not os.path.isfile(path)]
        if absent:
            raise UserErrorException(f"upload_files(): there is no file {', '.join(absent)}. Nothing was copied.")
        root = os.fspath(relative_root) if relative_root is not None else None
        return self._copy_in(paths, root, target_path, overwrite, show_progress)

    def download(
        self, target_path: Any, prefix: str | None = None, overwrite: bool = False, show_progress: bool = True
    ) -> int:
        """Copy what begins with `prefix` to a folder; how many files."""
        root = self._root()
        count = 0
        for where, _, names in os.walk(root):
            for name in sorted(names):
                source = os.path.join(where, name)
                inside = os.path.relpath(source, root).replace(os.sep, "/")
                if inside == prefix or inside.startswith(prefix or ""):
                    target = resolve_under(os.fspath(target_path), check_path(inside))
                    count += _copy(source, target, overwrite)
        if show_progress:
            print(f"Downloaded {count} files", file=sys.stderr)
        return count

    def _copy_in(
        self, paths: list[str], relative_to: str | None, target_path: str | None, overwrite: bool, show: bool
    ) -> DataReference:
        into = "" if target_path in (None, "", ".", "/") else check_path(str(target_path).strip("/"))
        root = self._root()
        planned = []
        for path in paths:
            inside = os.path.basename(path) if relative_to is None else os.path.relpath(path, relative_to)
            name = inside.replace(os.sep, "/")
            if name.startswith("../"):
                raise UserErrorException(f"{path} does not lie below relative_root {relative_to}. Nothing was copied.")
            planned.append((path, resolve_under(root, check_path(f"{into}/{name}" if into else name))))
        copied = sum(_copy(source, target, overwrite) for source, target in planned)
        if show:
            kept = len(planned) - copied
            print(f"Uploaded {copied} files" + (f", {kept} were there already" if kept else ""), file=sys.stderr)
        return DataReference(self, path_on_datastore=into or None)

    def _root(self) -> str:
        if not os.path.isdir(self._folder):
            raise UserErrorException(
                f"Datastore '{self.name}' is a folder of the server's machine, and this process runs on another one."
            )
        return self._folder


class AzureBlobDatastore(AbstractAzureStorageDatastore):
    blob_service: Any = None
    workspace_msi_has_access = False
    subscription_id: str | None = None
    resource_group: str | None = None
    service_data_access_auth_identity: Any = None


class AzureFileDatastore(AbstractAzureStorageDatastore):
    file_service: Any = None


class Datastore:
    """`Datastore(workspace, name)` gives the datastore of that name, as the class that fits its type."""

    def __new__(cls, workspace: Workspace, name: str | None = None) -> Any:
        return _from_view(workspace, _look_up(workspace, name))

    @staticmethod
    def get(workspace: Workspace, datastore_name: str) -> Any:
        if not isinstance(datastore_name, str) or not datastore_name:
            raise UserErrorException(f"datastore_name must be text, not {datastore_name!r}.")
        return Datastore(workspace, datastore_name)

    @staticmethod
    def get_default(workspace: Workspace) -> Any:
        return Datastore(workspace)

    @staticmethod
    def register_folder(workspace: Workspace, datastore_name: str, folder: Any, overwrite: bool = False) -> Any:
        """Lapis' own: a folder of the server's machine as a datastore."""
        path = os.path.abspath(os.fspath(folder))
        body = {"name": datastore_name, "type": "AzureBlob", "folder": path, "overwrite": bool(overwrite)}
        return _from_view(workspace, workspace._client.call("POST", workspace._base + "/datastores", body))


def _later(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotThereYet(f"Datastore.{name}", "Datastore.register_folder() registers a folder.")

    refuse.__name__ = name
    return staticmethod(refuse)


for _name in (
    "register_azure_blob_container",
    "register_azure_file_share",
    "register_azure_data_lake",
    "register_azure_data_lake_gen2",
    "register_azure_my_sql",
    "register_azure_postgre_sql",
    "register_azure_sql_database",
    "register_dbfs",
    "register_hdfs",
):
    setattr(Datastore, _name, _later(_name))


def all_datastores(workspace: Workspace) -> dict[str, Any]:
    views = workspace._client.call("GET", workspace._base + "/datastores")["datastores"]
    return {view["name"]: _from_view(workspace, view) for view in views}


def _look_up(workspace: Workspace, name: str | None) -> dict[str, Any]:
    if not isinstance(workspace, Workspace):
        raise UserErrorException(f"workspace must be a Workspace, not {type(workspace).__name__}.")
    view: dict[str, Any] = workspace._client.call("GET", workspace._base + "/datastore", query={"name": name})
    return view


def _from_view(workspace: Workspace, view: dict[str, Any]) -> Any:
    cls = AzureFileDatastore if view["type"] == "AzureFile" else AzureBlobDatastore
    return cls(workspace, view["name"], view["type"], _folder=view["folder"])


def _copy(source: str, target: str, overwrite: bool) -> int:
    """1 if it was copied: whole, under a name nobody reads, then renamed."""
    if os.path.exists(target) and not overwrite:
        return 0
    os.makedirs(os.path.dirname(target), exist_ok=True)
    part = f"{target}.{os.getpid()}.part"
    try:
        shutil.copyfile(source, part)
        os.replace(part, target)
    except BaseException:
        if os.path.exists(part):
            os.remove(part)
        raise
    return 1

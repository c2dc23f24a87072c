"""Datastores: named places that data is kept in: folders of the server's machine, object stores, databases."""

from __future__ import annotations

import os
import sys
from typing import Any, Iterable, NoReturn, cast

from lapis.domain.object_store import FILES, GCS, LAKE, S3, SHARE, endpoint_of
from lapis.domain.tree import check_path, resolve_under, without_dot
from lapis.errors import NotThereYet, UserErrorException
from lapis.files.copying import copy_files, files_below, refuse_other
from lapis.files.object_store import ObjectPlace
from lapis.sdk.data import database_datastore
from lapis.sdk.data.abstract_datastore import AbstractDatastore
from lapis.sdk.data.data_reference import DataReference
from lapis.sdk.data.database_datastore import DatabaseRegistration
from lapis.sdk.data.object_places import place_of
from lapis.sdk.data.object_store_registration import ObjectStoreRegistration
from lapis.sdk.workspace.workspace import Workspace


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
        self._view: dict[str, Any] = more.get("_view") or {}
        options = self._view.get("options") or {}
        self.container_name = container_name or str(self._view.get("url", name)).rpartition("/")[2]
        self.account_name = account_name or options.get("account_name") or options.get("user") or "lapis"
        self.protocol = protocol or options.get("protocol") or ("https" if self._in_objects else "file")
        self.endpoint = endpoint or options.get("endpoint") or ("core.windows.net" if self._in_objects else None)
        self.credential_type = options.get("credential_type")
        self._folder = str(self._view.get("folder") or "")

    @property
    def account_key(self) -> str | None:
        return self._secret("account_key")

    @property
    def sas_token(self) -> str | None:
        return self._secret("sas_token")

    @property
    def is_sas(self) -> bool:
        return self.credential_type == "Sas"

    @property
    def _in_objects(self) -> bool:
        return "url" in self._view

    def path(self, path: str | None = None, data_reference_name: str | None = None) -> DataReference:
        """A place in this datastore."""
        return DataReference(self).path(path, data_reference_name)

    def as_mount(self) -> DataReference:
        return DataReference(self).as_mount()

    def as_download(self, path_on_compute: str | None = None) -> DataReference:
        return DataReference(self).as_download(path_on_compute)

    def as_upload(self, path_on_compute: str | None = None) -> DataReference:
        return DataReference(self).as_upload(path_on_compute)

    def upload(
        self,
        src_dir: str | os.PathLike[str],
        target_path: str | None = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> DataReference:
        """Copy what is in a folder to `target_path`. A file that is there stays, unless `overwrite`."""
        folder = os.fspath(src_dir)
        if not os.path.isdir(folder):
            raise UserErrorException(f"upload(): there is no folder {os.path.abspath(folder)}.")
        return self._copy_in(files_below(folder, other=refuse_other), target_path, overwrite, show_progress)

    def upload_files(
        self,
        files: Iterable[str | os.PathLike[str]],
        relative_root: str | os.PathLike[str] | None = None,
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
        named = [(path, _name_below(relative_root, path)) for path in paths]
        return self._copy_in(named, target_path, overwrite, show_progress)

    def download(
        self,
        target_path: str | os.PathLike[str],
        prefix: str | None = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> int:
        """Copy what begins with `prefix` to a folder; how many files."""
        if self._in_objects:
            count = self._bring(target_path, without_dot(prefix or ""), overwrite, show_progress)
        else:
            prefix = without_dot(prefix or "")
            inside = prefix.rpartition("/")[0]  # nothing else need be looked at
            found = files_below(self._root(), inside)
            wanted = [(path, name) for path, name in found if name.startswith(prefix)]
            count = copy_files(wanted, os.fspath(target_path), overwrite)
        if show_progress:
            print(f"Downloaded {count} files", file=sys.stderr)
        return count

    def _copy_in(
        self, named: Iterable[tuple[str, str]], target_path: str | None, overwrite: bool, show: bool
    ) -> DataReference:
        into = "" if target_path in (None, "", ".", "/") else check_path(without_dot(str(target_path)).strip("/"))
        planned = [(path, f"{into}/{name}" if into else name) for path, name in named]
        copied = self._put(planned, overwrite, show)
        if show:
            kept = len(planned) - copied
            print(f"Uploaded {copied} files" + (f", {kept} were there already" if kept else ""), file=sys.stderr)
        return DataReference(self, path_on_datastore=into or None)

    def _put(self, planned: list[tuple[str, str]], overwrite: bool, show: bool) -> int:
        if self._in_objects:
            checked = [(path, check_path(name)) for path, name in planned]
            return place_of(self.workspace, self.name, show).put(checked, overwrite)
        return copy_files(planned, self._root(), overwrite)

    def _bring(self, target: Any, prefix: str, overwrite: bool, show: bool) -> int:
        place = place_of(self.workspace, self.name, show)
        wanted = []
        for file in place.find(prefix.rpartition("/")[0]):
            to = resolve_under(os.fspath(target), check_path(file.path[1:]))
            if file.path[1:].startswith(prefix) and (overwrite or not os.path.exists(to)):
                wanted.append((file, to))
        place.bring(wanted, copy=True)
        return len(wanted)

    def _where(self) -> str | ObjectPlace:
        """What a dataset's sources are searched in."""
        return place_of(self.workspace, self.name) if self._in_objects else self._root()

    def _folder_or_none(self) -> str | None:
        return None if self._in_objects else self._root()

    def _root(self) -> str:
        if self._in_objects:
            raise UserErrorException(f"Datastore '{self.name}' is no folder: it lies at {endpoint_of(self._view)}.")
        if not os.path.isdir(self._folder):
            raise UserErrorException(
                f"Datastore '{self.name}' is a folder of the server's machine, and this process runs on another one."
            )
        return self._folder


def _name_below(root: Any, path: str) -> str:
    """A file's name below `relative_root`, or without folders."""
    inside = os.path.basename(path) if root is None else os.path.relpath(path, os.fspath(root))
    name = inside.replace(os.sep, "/")
    if name.startswith("../"):
        raise UserErrorException(f"{path} does not lie below relative_root {root}. Nothing was copied.")
    return name


class AzureBlobDatastore(AbstractAzureStorageDatastore):
    blob_service: Any = None

    def __init__(
        self,
        workspace: Workspace,
        name: str,
        container_name: str | None = None,
        account_name: str | None = None,
        sas_token: str | None = None,
        account_key: str | None = None,
        protocol: str | None = None,
        endpoint: str | None = None,
        request_session: Any = None,
        workspace_msi_has_access: bool = False,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        service_data_access_auth_identity: Any = None,
        **more: Any,
    ) -> None:
        super().__init__(
            workspace, name, more.pop("datastore_type", "AzureBlob"), container_name, account_name, sas_token,
            account_key, protocol, endpoint, **more,
        )  # fmt: skip
        self.workspace_msi_has_access = workspace_msi_has_access
        self.subscription_id, self.resource_group = subscription_id, resource_group
        self.service_data_access_auth_identity = service_data_access_auth_identity


class AzureFileDatastore(AbstractAzureStorageDatastore):
    file_service: Any = None

    def __init__(
        self,
        workspace: Workspace,
        name: str,
        container_name: str | None = None,
        account_name: str | None = None,
        sas_token: str | None = None,
        account_key: str | None = None,
        protocol: str | None = None,
        endpoint: str | None = None,
        request_session: Any = None,
        **more: Any,
    ) -> None:
        super().__init__(
            workspace, name, more.pop("datastore_type", "AzureFile"), container_name, account_name, sas_token,
            account_key, protocol, endpoint, **more,
        )  # fmt: skip


class AzureDataLakeGen2Datastore(AbstractAzureStorageDatastore):
    def __init__(
        self,
        workspace: Workspace,
        name: str,
        container_name: str | None = None,
        account_name: str | None = None,
        tenant_id: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        resource_url: str | None = None,
        authority_url: str | None = None,
        protocol: str | None = None,
        endpoint: str | None = None,
        service_data_access_auth_identity: str | None = None,
        **more: Any,
    ) -> None:
        super().__init__(
            workspace, name, more.pop("datastore_type", LAKE), container_name, account_name,
            protocol=protocol, endpoint=endpoint, **more,
        )  # fmt: skip
        self.resource_url = resource_url
        self.service_data_access_auth_identity = service_data_access_auth_identity

    @property
    def tenant_id(self) -> str | None:
        return self._view["options"].get("tenant_id")  # type: ignore[no-any-return]

    @property
    def client_id(self) -> str | None:
        return self._view["options"].get("client_id")  # type: ignore[no-any-return]

    @property
    def client_secret(self) -> str | None:
        return self._secret("client_secret")

    @property
    def authority_url(self) -> str | None:
        return self._view["options"].get("authority_url")  # type: ignore[no-any-return]


class S3Datastore(AbstractAzureStorageDatastore):
    """Lapis' own: a bucket of Amazon S3 or of a server that speaks its protocol."""


class SmbDatastore(AbstractAzureStorageDatastore):
    """Lapis' own: a share of a Windows or Samba server."""

    @property
    def user(self) -> str:
        return str(self._view["options"]["user"])

    @property
    def password(self) -> str | None:
        return self._secret("password")


class GcsDatastore(AbstractAzureStorageDatastore):
    """Lapis' own: a bucket of Google Cloud Storage."""


_CLASSES = {
    FILES: AzureFileDatastore,
    LAKE: AzureDataLakeGen2Datastore,
    S3: S3Datastore,
    GCS: GcsDatastore,
    SHARE: SmbDatastore,
}


class Datastore(ObjectStoreRegistration, DatabaseRegistration, AbstractAzureStorageDatastore):
    """`Datastore(workspace, name)` gives the datastore of that name, as the class that fits its type.

    For editors that is one with files, as nearly all are; a database is one of DatabaseDatastore.
    """

    def __new__(cls, workspace: Workspace, name: str | None = None) -> Any:
        return _from_view(workspace, _look_up(workspace, name))

    def __init__(self, workspace: Workspace, name: str | None = None) -> None:
        """Says how it is called, and is not reached: what `__new__` gives is of another class."""

    @staticmethod
    def get(workspace: Workspace, datastore_name: str) -> AbstractAzureStorageDatastore:
        if not isinstance(datastore_name, str) or not datastore_name:
            raise UserErrorException(f"datastore_name must be text, not {datastore_name!r}.")
        return Datastore(workspace, datastore_name)

    @staticmethod
    def get_default(workspace: Workspace) -> AbstractAzureStorageDatastore:
        return Datastore(workspace)

    @staticmethod
    def register_folder(
        workspace: Workspace, datastore_name: str, folder: str | os.PathLike[str], overwrite: bool = False
    ) -> AbstractAzureStorageDatastore:
        """Lapis' own: a folder of the server's machine as a datastore."""
        path = os.path.abspath(os.fspath(folder))
        body = {"name": datastore_name, "type": "AzureBlob", "folder": path, "overwrite": bool(overwrite)}
        return _from_view(workspace, workspace._client.call("POST", workspace._base + "/datastores", body))


def _later(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotThereYet(f"Datastore.{name}", "Datastore.register_folder() registers a folder.")

    refuse.__name__ = name
    return staticmethod(refuse)


for _name in (
    "register_azure_data_lake",
    "register_dbfs",
    "register_hdfs",
):
    setattr(Datastore, _name, _later(_name))


def all_datastores(workspace: Workspace) -> dict[str, AbstractAzureStorageDatastore]:
    views = workspace._client.call("GET", workspace._base + "/datastores")["datastores"]
    return {view["name"]: _from_view(workspace, view) for view in views}


def _look_up(workspace: Workspace, name: str | None) -> dict[str, Any]:
    if not hasattr(workspace, "subscription_id"):
        raise UserErrorException(f"workspace must be a Workspace, not {type(workspace).__name__}.")
    view: dict[str, Any] = workspace._client.call("GET", workspace._base + "/datastore", query={"name": name})
    return view


def _from_view(workspace: Workspace, view: dict[str, Any]) -> AbstractAzureStorageDatastore:
    if view["type"] in database_datastore.CLASSES:
        return cast("AbstractAzureStorageDatastore", database_datastore.from_view(workspace, view))
    made: type[AbstractAzureStorageDatastore] = _CLASSES.get(view["type"], AzureBlobDatastore)
    return made(workspace, view["name"], datastore_type=view["type"], _view=view)

"""What can be done with datastores and datasets."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lapis.domain.data import check_dataset_name, check_datastore_name
from lapis.domain.run import check_labels
from lapis.errors import Conflict, NotFound, UserErrorException
from lapis.server.control.access import Actor
from lapis.server.control.shelf import Shelf
from lapis.server.store.assets import DATASET, DATASTORE, Asset

# What every workspace has, as Azure's have: a name and the type that users see.
BUILT_IN = {
    "workspaceblobstore": "AzureBlob",
    "workspacefilestore": "AzureFile",
    "workspaceartifactstore": "AzureBlob",
}
DEFAULT = "workspaceblobstore"


@dataclass(frozen=True)
class NewDatastore:
    __pydantic_config__ = {"extra": "forbid"}

    name: str
    type: str
    folder: str
    overwrite: bool = False


@dataclass(frozen=True)
class NewDataset:
    __pydantic_config__ = {"extra": "forbid"}

    name: str
    definition: dict[str, Any]
    files: list[dict[str, Any]] = field(default_factory=list)  # what it resolved to
    description: str | None = None
    tags: dict[str, str | None] = field(default_factory=dict)
    create_new_version: bool = False


class Data:
    def __init__(self, shelf: Shelf, home: str, now: Callable[[], float]) -> None:
        self._shelf = shelf
        self._folder = os.path.join(home, "stores")
        self._now = now

    # -- datastores

    def datastores(self, actor: Actor, workspace_id: str) -> list[dict[str, Any]]:
        actor.may_read(workspace_id)
        registered = [self._view(a) for a in self._shelf.assets.find(workspace_id, DATASTORE)]
        return [*(self._built_in(workspace_id, name) for name in BUILT_IN), *registered]

    def datastore(self, actor: Actor, workspace_id: str, name: str | None) -> dict[str, Any]:
        """By name; without one the default."""
        actor.may_read(workspace_id)
        chosen = name or self._default(workspace_id)
        if chosen in BUILT_IN:
            return self._built_in(workspace_id, chosen)
        found = self._shelf.assets.find(workspace_id, DATASTORE, chosen)
        if not found:
            known = ", ".join(store["name"] for store in self.datastores(actor, workspace_id))
            raise UserErrorException(f"No datastore named '{chosen}' in this workspace. Known: {known}.")
        return self._view(found[0])

    def register_datastore(self, actor: Actor, workspace_id: str, new: NewDatastore) -> dict[str, Any]:
        actor.may_change_workspace()
        check_datastore_name(new.name)
        if new.name in BUILT_IN:
            raise Conflict(f"Datastore '{new.name}' belongs to the workspace and cannot be registered anew.")
        if not os.path.isabs(new.folder) or not os.path.isdir(new.folder):
            raise UserErrorException(f"Datastore '{new.name}' needs a folder of the server's machine: {new.folder} is none.")
        if new.overwrite:
            self._shelf.assets.remove(workspace_id, DATASTORE, new.name)

        def which(there: Asset | None) -> Asset | None:
            if there is not None:
                raise Conflict(f"A datastore named '{new.name}' exists already. Pass overwrite=True to replace it.")
            return None

        body = {"type": new.type, "folder": new.folder}
        asset = Asset(str(uuid.uuid4()), workspace_id, DATASTORE, new.name, self._now(), body=body)
        return self._view(self._shelf.assets.add(asset, which))

    def unregister_datastore(self, actor: Actor, workspace_id: str, name: str) -> None:
        actor.may_change_workspace()
        if name in BUILT_IN:
            raise Conflict(f"Datastore '{name}' belongs to the workspace and cannot be unregistered.")
        self.datastore(actor, workspace_id, name)
        if name == self._default(workspace_id):
            self.set_default(actor, workspace_id, DEFAULT)
        self._shelf.assets.remove(workspace_id, DATASTORE, name)

    def set_default(self, actor: Actor, workspace_id: str, name: str) -> None:
        actor.may_change_workspace()
        self.datastore(actor, workspace_id, name)
        workspace = self._shelf.workspaces.find(id=workspace_id)[0]
        self._shelf.workspaces.replace(dict(workspace, default_datastore=name))

    def _default(self, workspace_id: str) -> str:
        return str(self._shelf.workspaces.find(id=workspace_id)[0].get("default_datastore") or DEFAULT)

    def _built_in(self, workspace_id: str, name: str) -> dict[str, Any]:
        folder = os.path.join(self._folder, workspace_id, name)
        os.makedirs(folder, exist_ok=True)
        return {"name": name, "type": BUILT_IN[name], "folder": folder, "default": name == self._default(workspace_id)}

    def _view(self, asset: Asset) -> dict[str, Any]:
        return {"name": asset.name, "default": asset.name == self._default(asset.workspace_id), **asset.body}

    # -- datasets

    def register_dataset(self, actor: Actor, workspace_id: str, new: NewDataset) -> dict[str, Any]:
        actor.may_read(workspace_id)
        actor.may_upload()
        check_dataset_name(new.name)
        tags = check_labels("tags", new.tags)
        body = {"definition": new.definition, "files": new.files, "description": new.description or "", "tags": tags}

        def which(there: Asset | None) -> Asset | None:
            if there is None or new.create_new_version:
                return None
            if there.body["definition"] == new.definition:
                return there  # the same again is the same
            raise Conflict(
                f"There is already a dataset named '{new.name}', with another definition. Pass create_new_version=True "
                "to register this one as its next version."
            )

        asset = Asset(str(uuid.uuid4()), workspace_id, DATASET, new.name, self._now(), body=body)
        return self._shelf.assets.add(asset, which).to_json()

    def datasets(self, actor: Actor, workspace_id: str) -> list[dict[str, Any]]:
        """The newest version of each."""
        actor.may_read(workspace_id)
        return [asset.to_json() for asset in self._shelf.assets.find(workspace_id, DATASET, newest=True)]

    def dataset(self, actor: Actor, workspace_id: str, name: str, version: int | None) -> dict[str, Any]:
        actor.may_read(workspace_id)
        found = self._shelf.assets.find(workspace_id, DATASET, name)
        if not found:
            names = [asset.name for asset in self._shelf.assets.find(workspace_id, DATASET, newest=True)]
            known = ", ".join(names[:20]) or "none"
            raise UserErrorException(f"No dataset named '{name}' in this workspace. Known: {known}.")
        chosen = [asset for asset in found if version in (None, asset.version)]
        if not chosen:
            known = ", ".join(str(asset.version) for asset in reversed(found))
            raise UserErrorException(f"Dataset '{name}' has no version {version}. It has: {known}.")
        return chosen[0].to_json()

    def dataset_by_id(self, actor: Actor, workspace_id: str, asset_id: str) -> dict[str, Any]:
        actor.may_read(workspace_id)
        found = self._shelf.assets.get(workspace_id, asset_id)
        if found.kind != DATASET:
            raise NotFound(f"No dataset with id '{asset_id}' in this workspace.")
        return found.to_json()

    def change_dataset(
        self, actor: Actor, workspace_id: str, asset_id: str, changes: Mapping[str, Any]
    ) -> dict[str, Any]:
        """`tags` sets some, `remove_tags` removes some, `description` replaces."""
        actor.may_read(workspace_id)
        actor.may_upload()

        def apply(asset: Asset) -> Asset:
            tags = {**asset.body["tags"], **check_labels("tags", changes.get("tags") or {})}
            tags = {k: v for k, v in tags.items() if k not in (changes.get("remove_tags") or ())}
            description = changes.get("description", asset.body["description"])
            return replace(asset, body={**asset.body, "tags": tags, "description": description})

        return self._shelf.assets.change(workspace_id, asset_id, apply).to_json()

    def unregister_dataset(self, actor: Actor, workspace_id: str, name: str) -> None:
        """Every version of that name. The data itself stays where it is."""
        actor.may_change_workspace()
        if not self._shelf.assets.remove(workspace_id, DATASET, name):
            raise UserErrorException(f"No dataset named '{name}' in this workspace.")

    def lineage(self, actor: Actor, workspace_id: str, asset_id: str) -> list[dict[str, Any]]:
        """Runs that read or wrote a dataset version."""
        actor.may_read(workspace_id)
        return self._shelf.assets.used_by(workspace_id, asset_id)

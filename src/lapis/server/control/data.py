"""What can be done with datastores and datasets."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lapis.domain import database, limits
from lapis.domain.addresses import Rule, refusal
from lapis.domain.data import check_dataset_name, check_datastore_name
from lapis.domain.job import DatasetInput
from lapis.domain.object_store import check_object_store, credential_type, hosts_of
from lapis.domain.run import check_labels, check_text
from lapis.domain.values import Value, at_most
from lapis.errors import Conflict, NotFound, UserErrorException
from lapis.object_stores import helper
from lapis.server.control.access import SERVER, Actor
from lapis.server.control.sealing import Sealing
from lapis.server.control.stores import Stores
from lapis.server.store.assets import DATASET, DATASTORE, SAVED, Asset
from lapis.server.store.sealed import Sealer

# What every workspace has, as Azure's have: a name and the type that users see.
BUILT_IN = {
    "workspaceblobstore": "AzureBlob",
    "workspacefilestore": "AzureFile",
    "workspaceartifactstore": "AzureBlob",
}
DEFAULT = "workspaceblobstore"
_SHORT = at_most(limits.NAME)
_CHECK_SECONDS = 45.0  # for an object store to answer when it is registered


@dataclass(frozen=True)
class NewDatastore(Value):
    name: str = field(metadata=_SHORT)
    type: str = field(metadata=_SHORT)
    folder: str | None = field(default=None, metadata=at_most(limits.PATH))  # of the server's machine, or
    url: str | None = field(default=None, metadata=at_most(limits.PATH))  # scheme://container; a database has neither
    options: Mapping[str, str] = field(default_factory=dict)
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    overwrite: bool = False
    create: bool = False  # the container, where it is not there
    skip_validation: bool = False


@dataclass(frozen=True)
class NewDataset(Value):
    name: str | None = field(default=None, metadata=_SHORT)  # None: kept without one, as what a run read or wrote
    definition: Mapping[str, Any] = field(default_factory=dict)
    # what it resolved to
    files: tuple[Mapping[str, Any], ...] = field(default=(), metadata=at_most(limits.FILES_OF_SNAPSHOT))
    description: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    create_new_version: bool = False
    # the run that wrote it, as its output of that name
    run_id: str | None = field(default=None, metadata=_SHORT)
    output: str | None = field(default=None, metadata=_SHORT)

    def fault(self) -> str:
        return "" if self.definition else "lacks the field 'definition'."


class Data:
    def __init__(self, stores: Stores, sealing: Sealing, home: str, now: Callable[[], float], rule: Rule) -> None:
        self._rule = rule
        self._stores = stores
        self._folder = os.path.join(home, "stores")
        self._sealer = Sealer(home)
        self._sealing = sealing
        self._now = now

    # -- datastores

    def datastores(self, workspace_id: str) -> list[dict[str, Any]]:
        registered = [self._view(a) for a in self._stores.assets.find(workspace_id, DATASTORE)]
        return [*(self._built_in(workspace_id, name) for name in BUILT_IN), *registered]

    def datastore(self, workspace_id: str, name: str | None) -> dict[str, Any]:
        """By name; without one the default."""
        chosen = name or self._default(workspace_id)
        if chosen in BUILT_IN:
            return self._built_in(workspace_id, chosen)
        found = self._stores.assets.find(workspace_id, DATASTORE, chosen)
        if not found:
            known = ", ".join(store["name"] for store in self.datastores(workspace_id))
            raise UserErrorException(f"Datastore '{chosen}' could not be found in this workspace. Known: {known}.")
        return self._view(found[0])

    def register_datastore(self, workspace_id: str, new: NewDatastore) -> dict[str, Any]:
        check_datastore_name(new.name)
        if new.name in BUILT_IN:
            raise Conflict(f"Datastore '{new.name}' belongs to the workspace and cannot be registered anew.")
        self._refuse_second(workspace_id, new)
        body = self._body(new)
        if new.overwrite:
            self._stores.assets.remove(workspace_id, DATASTORE, new.name)

        def which(there: Asset | None) -> Asset | None:
            if there is not None:  # somebody was quicker
                raise _exists(new.name)
            return None

        asset = Asset(str(uuid.uuid4()), workspace_id, DATASTORE, new.name, self._now(), body=body)
        return self._view(self._stores.assets.add(asset, which))

    def datastore_access(self, workspace_id: str, name: str) -> dict[str, Any]:
        """A datastore with its credentials, for whoever may use them: the user, and runs of this workspace."""
        view = self.datastore(workspace_id, name)
        if "options" not in view:  # a folder, which nothing locks
            return view
        sealed = self._stores.assets.find(workspace_id, DATASTORE, view["name"])[0].body["sealed"]
        return {**view, "credentials": self._sealer.open(sealed, f"datastore '{view['name']}'")}

    def _refuse_second(self, workspace_id: str, new: NewDatastore) -> None:
        if not new.overwrite and self._stores.assets.find(workspace_id, DATASTORE, new.name):
            raise _exists(new.name)

    def _body(self, new: NewDatastore) -> dict[str, Any]:
        if new.type in database.KINDS:
            return self._database_body(new)
        return self._folder_body(new) if new.url is None else self._object_body(new)

    def _database_body(self, new: NewDatastore) -> dict[str, Any]:
        """Not tried: the packages that reach it are those of whoever reads it."""
        database.check_database({"type": new.type, "options": new.options, "credentials": new.credentials})
        return {"type": new.type, "options": new.options, "sealed": self._sealer.seal(new.credentials)}

    def _folder_body(self, new: NewDatastore) -> dict[str, Any]:
        folder = new.folder or ""
        if not os.path.isabs(folder) or not os.path.isdir(folder):
            raise UserErrorException(f"Datastore '{new.name}' needs a folder of this machine: {folder!r} is none.")
        return {"type": new.type, "folder": folder}

    def _object_body(self, new: NewDatastore) -> dict[str, Any]:
        """What is kept of an object store: its credentials sealed, once it has let us in with them."""
        view = {"name": new.name, "type": new.type, "url": new.url, "options": new.options}
        access = {**view, "credentials": new.credentials}
        check_object_store(access)
        for host in hosts_of(access):
            reason = refusal(self._rule, host)  # by name; what the name leads to is looked at where it is asked
            if reason is not None:
                raise UserErrorException(f"Datastore '{new.name}' cannot be registered: {reason}.")
        if not new.skip_validation:
            helper.ask_once({"do": "check", "store": access, "create": new.create}, _CHECK_SECONDS)
        options = {**new.options, "credential_type": credential_type(access)}
        return {"type": new.type, "url": new.url, "options": options, "sealed": self._sealer.seal(new.credentials)}

    def unregister_datastore(self, workspace_id: str, name: str) -> None:
        if name in BUILT_IN:
            raise Conflict(f"Datastore '{name}' belongs to the workspace and cannot be unregistered.")
        self.datastore(workspace_id, name)
        if name == self._default(workspace_id):
            self.set_default(workspace_id, DEFAULT)
        self._stores.assets.remove(workspace_id, DATASTORE, name)

    def set_default(self, workspace_id: str, name: str) -> None:
        if self.datastore(workspace_id, name)["type"] in database.KINDS:
            raise UserErrorException(f"Datastore '{name}' is a database; the default one must hold files.")
        workspace = self._stores.workspaces.find(id=workspace_id)[0]
        self._stores.workspaces.replace(dict(workspace, default_datastore=name))

    def _default(self, workspace_id: str) -> str:
        return str(self._stores.workspaces.find(id=workspace_id)[0].get("default_datastore") or DEFAULT)

    def _built_in(self, workspace_id: str, name: str) -> dict[str, Any]:
        folder = os.path.join(self._folder, workspace_id, name)
        os.makedirs(folder, exist_ok=True)
        return {"name": name, "type": BUILT_IN[name], "folder": folder, "default": name == self._default(workspace_id)}

    def _view(self, asset: Asset) -> dict[str, Any]:
        shown = {key: value for key, value in asset.body.items() if key != "sealed"}
        return {"name": asset.name, "default": asset.name == self._default(asset.workspace_id), **shown}

    # -- datasets

    def register_dataset(self, workspace_id: str, new: NewDataset, *, by: Actor = SERVER) -> dict[str, Any]:
        if not new.definition.get("type") or not isinstance(new.definition.get("sources"), list):
            raise UserErrorException(f"The definition of dataset '{new.name}' needs a type and sources.")
        if new.run_id is not None:
            before = self._written_before(workspace_id, new.run_id, new.output or "")
            if before is not None:
                return self._seen(before, by)  # an agent repeats itself when a reply is lost
        sealed = self._sealing.sealed
        new = replace(new, definition=sealed(workspace_id, new.definition), files=sealed(workspace_id, new.files))
        kept = self._saved(workspace_id, new) if new.name is None else self._registered(workspace_id, new.name, new)
        if new.run_id is not None:
            self._stores.assets.note_use(workspace_id, new.run_id, [(kept.id, "output", new.output or "")])
        return self._seen(kept, by)

    def _seen(self, asset: Asset, by: Actor) -> dict[str, Any]:
        """Addresses may be signed: whoever reads the data gets them whole, whoever looks sees stars."""
        found: dict[str, Any] = self._sealing.seen(asset.workspace_id, _without_files(asset), by)
        return found

    def _saved(self, workspace_id: str, new: NewDataset) -> Asset:
        """The same definition again is the same dataset."""
        name = hashlib.sha256(json.dumps(new.definition, sort_keys=True).encode()).hexdigest()
        body = {"definition": new.definition, "files": new.files}
        asset = Asset(str(uuid.uuid4()), workspace_id, SAVED, name, self._now(), body=body)
        return self._stores.assets.add(asset, lambda there: there)

    def _registered(self, workspace_id: str, name: str, new: NewDataset) -> Asset:
        check_dataset_name(name)
        tags = check_labels("tags", new.tags)
        body = {"definition": new.definition, "files": new.files, "description": new.description or "", "tags": tags}

        def which(there: Asset | None) -> Asset | None:
            if there is None or new.create_new_version:
                return None
            if self._sealing.sealed(workspace_id, there.body["definition"]) == new.definition:
                return there  # the same again is the same
            raise Conflict(
                f"There is already a dataset named '{name}', with another definition. Pass create_new_version=True "
                "to register this one as its next version."
            )

        asset = Asset(str(uuid.uuid4()), workspace_id, DATASET, name, self._now(), body=body)
        return self._stores.assets.add(asset, which)

    def _written_before(self, workspace_id: str, run_id: str, output: str) -> Asset | None:
        self._stores.runs.get(workspace_id, run_id)  # NotFound
        for use in self._stores.assets.uses_of(workspace_id, run_id):
            if (use.role, use.name) == ("output", output) and use.asset is not None:
                return use.asset
        return None

    def datasets(self, workspace_id: str, *, by: Actor = SERVER) -> list[dict[str, Any]]:
        """The newest version of each."""
        return [self._seen(asset, by) for asset in self._stores.assets.find(workspace_id, DATASET, newest=True)]

    def dataset(self, workspace_id: str, name: str, version: int | None, *, by: Actor = SERVER) -> dict[str, Any]:
        found = self._stores.assets.find(workspace_id, DATASET, name)
        if not found:
            names = [asset.name for asset in self._stores.assets.find(workspace_id, DATASET, newest=True)]
            known = ", ".join(names[:20]) or "none"
            raise UserErrorException(
                f'Cannot find dataset registered with name "{name}" in the workspace. Known: {known}.'
            )
        chosen = [asset for asset in found if version in (None, asset.version)]
        if not chosen:
            known = ", ".join(str(asset.version) for asset in reversed(found))
            raise UserErrorException(
                f'Cannot find dataset registered with name "{name}" (version: {version}) in the workspace. '
                f"It has: {known}."
            )
        return self._seen(chosen[0], by)

    def dataset_by_id(self, workspace_id: str, asset_id: str, *, by: Actor = SERVER) -> dict[str, Any]:
        return self._seen(self._dataset(workspace_id, asset_id), by)

    def files(self, workspace_id: str, asset_id: str, *, by: Actor = SERVER) -> list[dict[str, Any]]:
        """What a version stood for when it was registered: names, sizes, ETags or times."""
        files: list[dict[str, Any]] = self._dataset(workspace_id, asset_id).body["files"]
        found: list[dict[str, Any]] = self._sealing.seen(workspace_id, files, by)
        return found

    def _dataset(self, workspace_id: str, asset_id: str) -> Asset:
        found = self._stores.assets.get(workspace_id, asset_id)
        if found.kind not in (DATASET, SAVED):
            raise NotFound(f"No dataset with id '{asset_id}' in this workspace.")
        return found

    def change_dataset(
        self, workspace_id: str, asset_id: str, changes: Mapping[str, Any], *, by: Actor = SERVER
    ) -> dict[str, Any]:
        """`tags` sets some, `remove_tags` removes some, `description` replaces."""
        unknown = sorted(set(changes) - {"tags", "remove_tags", "description"})
        if unknown:
            raise UserErrorException(f"A dataset has no {', '.join(unknown)} to change.")
        check_text("description", changes.get("description"))
        if self._dataset(workspace_id, asset_id).kind == SAVED:
            raise UserErrorException("Only a registered dataset can be changed. register() keeps it under a name.")

        def apply(asset: Asset) -> Asset:
            tags = {**asset.body["tags"], **check_labels("tags", changes.get("tags") or {}, asset.body["tags"])}
            tags = {k: v for k, v in tags.items() if k not in (changes.get("remove_tags") or ())}
            description = changes.get("description", asset.body["description"])
            return replace(asset, body={**asset.body, "tags": tags, "description": description})

        return self._seen(self._stores.assets.change(workspace_id, asset_id, apply), by)

    def unregister_dataset(self, workspace_id: str, name: str) -> None:
        """Every version of that name. The data itself stays where it is."""
        if not self._stores.assets.remove(workspace_id, DATASET, name):
            raise UserErrorException(f'Cannot find dataset registered with name "{name}" in the workspace.')

    def lineage(self, workspace_id: str, asset_id: str) -> list[dict[str, Any]]:
        """Runs that read or wrote a dataset version."""
        self._dataset(workspace_id, asset_id)
        return self._stores.assets.used_by(workspace_id, asset_id)

    def of_run(self, workspace_id: str, run_id: str, *, by: Actor = SERVER) -> list[dict[str, Any]]:
        """The datasets that a run read or wrote, what it calls them, and how it got them."""
        job = self._stores.runs.get(workspace_id, run_id).job
        inputs = job.inputs if job is not None else ()
        modes = {each.name: each.mode for each in inputs if isinstance(each, DatasetInput)}
        return [
            {
                "id": use.asset_id,
                "role": use.role,
                "as": use.name,
                "mode": modes.get(use.name) if use.role == "input" else None,
                "dataset": None if use.asset is None else self._seen(use.asset, by),
            }
            for use in self._stores.assets.uses_of(workspace_id, run_id)
            if use.role in ("input", "output")  # not the models that it made
        ]


def _without_files(asset: Asset) -> dict[str, Any]:
    """As lists show it: there may be many thousand files."""
    shown = {key: value for key, value in asset.to_json().items() if key != "files"}
    return dict(shown, name=None, version=None) if asset.kind == SAVED else shown


def _exists(name: str) -> Conflict:
    return Conflict(f"A datastore named '{name}' exists already. Pass overwrite=True to replace it.")

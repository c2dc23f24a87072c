"""What can be done with models: registered from files or from a run, found, changed, removed."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lapis.domain import limits
from lapis.domain.limits import ITEMS, check_count
from lapis.domain.run import check_labels, check_text, with_properties
from lapis.domain.tree import check_path
from lapis.domain.values import Value, at_most
from lapis.environments.no_code import no_code
from lapis.errors import ModelNotFoundException, ModelPathNotFoundException, NotFound, UserErrorException
from lapis.server.control.access import SERVER, Actor
from lapis.server.control.holdings import Holdings
from lapis.server.control.service_uses import ServiceUses
from lapis.server.control.stores import Stores
from lapis.server.store.assets import MODEL, Asset

_SHORT = at_most(limits.NAME)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")


@dataclass(frozen=True)
class NewModel(Value):
    name: str = field(metadata=_SHORT)
    # the run whose files it is made of, and which of them: a file, or a folder
    run_id: str | None = field(default=None, metadata=_SHORT)
    path: str | None = field(default=None, metadata=at_most(limits.PATH))
    # or blobs that are stored already, by their path in the model
    files: Mapping[str, str] | None = field(default=None, metadata=at_most(limits.FILES_AT_ONCE))
    description: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    framework: str | None = field(default=None, metadata=_SHORT)
    framework_version: str | None = field(default=None, metadata=_SHORT)
    resources: Mapping[str, Any] | None = None
    datasets: tuple[tuple[str, ...], ...] = ()  # (purpose, id)
    sample_input: str | None = field(default=None, metadata=_SHORT)  # ids of datasets
    sample_output: str | None = field(default=None, metadata=_SHORT)


class Models:
    def __init__(self, stores: Stores, holdings: Holdings, uses: ServiceUses, now: Callable[[], float]) -> None:
        self._stores = stores
        self._holdings = holdings
        self._uses = uses
        self._now = now

    def register(self, workspace_id: str, new: NewModel, *, by: Actor = SERVER) -> dict[str, Any]:
        """The next version of its name. A run's files become a model's without being copied."""
        if not _NAME.fullmatch(new.name):
            raise UserErrorException(
                f"Model name {new.name!r} cannot be used: 1 to 255 letters, digits, dots, dashes and underscores, a "
                "letter or digit first."
            )
        check_labels("tags", new.tags)
        check_labels("properties", new.properties)
        check_text("description", new.description)
        files = self._files_of_run(workspace_id, new) if new.run_id is not None else self._stored(new, by)
        run = self._stores.runs.get(workspace_id, new.run_id) if new.run_id is not None else None
        body = {
            "files": files,
            "description": new.description,
            "tags": new.tags,
            "properties": new.properties,
            "framework": new.framework,
            "framework_version": new.framework_version,
            "resources": new.resources,
            "datasets": new.datasets,
            "sample_input": new.sample_input,
            "sample_output": new.sample_output,
            "run_id": new.run_id,
            "experiment": run.experiment if run is not None else None,
            "created_by": run.created_by if run is not None else None,
        }
        asset = Asset(str(uuid.uuid4()), workspace_id, MODEL, new.name, self._now(), body=body)
        made = self._stores.assets.add(asset, lambda newest: None)
        if new.run_id is not None:
            self._stores.assets.note_use(workspace_id, new.run_id, [(made.id, "model", new.name)])
        return view(made)

    def _files_of_run(self, workspace_id: str, new: NewModel) -> list[dict[str, Any]]:
        """A file under its own name; a folder with what is below it, under the folder's name."""
        path = check_path((new.path or new.name).strip("/"))
        stored = {file.name: file for file in self._stores.files.find(workspace_id, new.run_id or "")}
        base = path.rsplit("/", 1)[-1]
        if path in stored:
            chosen = {base: stored[path]}
        else:
            chosen = {base + name[len(path) :]: file for name, file in stored.items() if name.startswith(path + "/")}
        if not chosen:
            near = ", ".join(name for name in stored if name.startswith("outputs/")) or ", ".join(stored) or "none"
            raise ModelPathNotFoundException(
                f"Could not locate the provided model_path {path} in the set of files uploaded to the run: "
                f"[{near[:1000]}]. A run that has not ended may not have sent its outputs yet."
            )
        growing = [name for name, file in chosen.items() if file.hash is None]
        if growing:
            raise UserErrorException(f"'{growing[0]}' of run {new.run_id} is a log that still grows, and no model.")
        self._stores.blobs.missing(str(file.hash) for file in chosen.values())  # asked for: they stay if the run goes
        return [{"path": check_path(name), "hash": file.hash, "size": file.size} for name, file in chosen.items()]

    def _stored(self, new: NewModel, by: Actor) -> list[dict[str, Any]]:
        if not new.files:
            raise UserErrorException(f"Model '{new.name}' has no files: a model is at least one.")
        self._holdings.check(by, new.files.values())
        blobs = self._stores.blobs
        return [{"path": check_path(p), "hash": h, "size": blobs.size(h)} for p, h in sorted(new.files.items())]

    def get(self, workspace_id: str, name: str, version: int | None = None) -> dict[str, Any]:
        return view(self._asset(workspace_id, name, version))

    def open_file(self, workspace_id: str, name: str, version: int, digest: str) -> tuple[int, Iterator[bytes]]:
        """The size and the bytes of one of its files."""
        if all(file["hash"] != digest for file in self._asset(workspace_id, name, version).body["files"]):
            raise NotFound(f"Model {name}:{version} has no file with the hash {digest[:80]}.")
        return self._stores.blobs.size(digest), self._stores.blobs.read(digest)

    def _asset(self, workspace_id: str, name: str, version: int | None) -> Asset:
        there = [each for each in self._stores.assets.find(workspace_id, MODEL, name) if "gone" not in each.body]
        found = [each for each in there if version in (None, each.version)]
        if found:
            return found[0]
        if there:
            known = ", ".join(str(each.version) for each in reversed(there))
            raise ModelNotFoundException(
                f"ModelNotFound: Model '{name}' has no version {version}. Known versions: {known}."
            )
        names = sorted({each.name for each in self._stores.assets.find(workspace_id, MODEL) if "gone" not in each.body})
        workspace = self._stores.workspaces.find(id=workspace_id)[0]["name"]
        raise ModelNotFoundException(
            f"ModelNotFound: No model named '{name}' in workspace '{workspace}'. Known: "
            f"{', '.join(names[:50]) or 'none'}."
        )

    def find(
        self,
        workspace_id: str,
        name: str | None = None,
        latest: bool = False,
        run_id: str | None = None,
        framework: str | None = None,
        dataset_id: str | None = None,
    ) -> list[dict[str, Any]]:
        """The newest first."""
        found = [each for each in self._stores.assets.find(workspace_id, MODEL, name) if "gone" not in each.body]
        if latest:
            newest: dict[str, Asset] = {}
            for each in found:
                newest.setdefault(each.name, each)
            found = list(newest.values())
        chosen = [
            each
            for each in found
            if run_id in (None, each.body["run_id"])
            and framework in (None, each.body["framework"])
            and (dataset_id is None or dataset_id in {pair[1] for pair in each.body["datasets"]})
        ]
        return [view(each) for each in sorted(chosen, key=lambda each: -each.created_at)]

    def change(self, workspace_id: str, name: str, version: int, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Tags may change and properties be added; the files of a version never do."""
        known = {"tags", "remove_tags", "properties", "description", "resources", "datasets", "sample_input",
                 "sample_output"}  # fmt: skip
        if set(changes) - known:
            raise UserErrorException(f"{', '.join(sorted(set(changes) - known))} of a model cannot be changed.")
        asset = self._asset(workspace_id, name, version)

        def apply(stored: Asset) -> Asset:
            body = dict(stored.body)
            tags = {**body["tags"], **check_labels("tags", changes.get("tags") or {}, body["tags"])}
            body["tags"] = {k: v for k, v in tags.items() if k not in (changes.get("remove_tags") or ())}
            more = check_labels("properties", changes.get("properties") or {})
            body["properties"] = with_properties(f"model {name}:{version}", body["properties"], more)
            body["datasets"] = [*body["datasets"], *(changes.get("datasets") or [])]
            check_count("datasets", body["datasets"], ITEMS)
            check_text("description", changes.get("description"))
            for plain in ("description", "resources", "sample_input", "sample_output"):
                if plain in changes:
                    body[plain] = changes[plain]
            return replace(stored, body=body)

        return view(self._stores.assets.change(workspace_id, asset.id, apply))

    def delete(self, workspace_id: str, name: str, version: int) -> None:
        """Its number is never given again, so what stays is a mark."""
        asset = self._asset(workspace_id, name, version)
        services = self._uses.of_model(workspace_id, asset.id)
        if services:
            raise UserErrorException(
                f"Model {name}:{version} is deployed as {', '.join(services)} and cannot be deleted. Delete the "
                "service first."
            )
        self._stores.assets.change(workspace_id, asset.id, lambda stored: replace(stored, body={"gone": self._now()}))

    def no_code(self, workspace_id: str, name: str, version: int) -> dict[str, Any]:
        """The runtime that serves it without code, and the environment for that."""
        body = self._asset(workspace_id, name, version).body
        hashes = {str(file["path"]): str(file["hash"]) for file in body["files"]}

        runtime, definition = no_code(
            body["framework"],
            body["framework_version"],
            list(hashes),
            lambda path: self._stores.blobs.open_unchecked(hashes[path]),
        )
        return {"runtime": runtime, "definition": definition}

    def lineage(self, workspace_id: str, name: str, version: int) -> dict[str, Any]:
        """The run that made it, the datasets that the run read, and the services that serve it."""
        asset = self._asset(workspace_id, name, version)
        run_id = asset.body["run_id"]
        read = self._stores.assets.uses_of(workspace_id, run_id) if run_id is not None else []
        return {
            "run_id": run_id,
            "datasets": [
                {"id": use.asset.id, "name": use.asset.name, "version": use.asset.version, "as": use.name}
                for use in read
                if use.role == "input" and use.asset is not None
            ],
            "services": self._uses.of_model(workspace_id, asset.id),
        }


def view(asset: Asset) -> dict[str, Any]:
    return {"id": f"{asset.name}:{asset.version}", "asset_id": asset.id, "name": asset.name,
            "version": asset.version, "created_at": asset.created_at, **asset.body}  # fmt: skip

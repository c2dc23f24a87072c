"""What can be done with environments: registered, found, resolved, built."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from lapis.domain import limits
from lapis.domain.environment import check_definition
from lapis.domain.secrets import masked
from lapis.domain.values import Value, at_most
from lapis.environments.curated import curated, curated_names
from lapis.environments.environment_builds import EnvironmentBuilds, Resolved
from lapis.environments.values import NOBODY, Submitter
from lapis.errors import NotFound, UserErrorException
from lapis.server.control.access import SERVER, Actor
from lapis.server.control.holdings import Holdings
from lapis.server.control.sealing import Sealing
from lapis.server.control.stores import Stores
from lapis.server.store.assets import ENVIRONMENT, Asset

_LATEST = "latest"
_OF_THE_VERSION = ("version", "assetId")


@dataclass(frozen=True)
class EnvironmentWish(Value):
    """An environment that somebody wants resolved or built."""

    definition: Mapping[str, Any] = field(repr=False)
    strict: bool = False
    container: bool = False  # in one even where a virtual environment would do
    mpi: bool = False  # for a job that MPI starts
    horovod_in: str = field(default="", metadata=at_most(limits.PATH))  # the script of that job, if it imports Horovod
    submitter: Submitter = NOBODY  # whose Python, and whose versions of what is not pinned


class Environments:
    def __init__(
        self, stores: Stores, holdings: Holdings, builds: EnvironmentBuilds, sealing: Sealing, now: Callable[[], float]
    ) -> None:
        self._stores = stores
        self._holdings = holdings
        self._builds = builds
        self._sealing = sealing
        self._now = now

    # -- registered

    def register(self, workspace_id: str, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the next version; the same definition again is the version that there is."""
        check_definition(definition)
        name = definition.get("name")
        if not isinstance(name, str) or not name or len(name) > limits.NAME:
            raise UserErrorException(f"An environment needs a name of 1 to {limits.NAME} characters to be registered.")
        if name.lower().startswith("azureml"):
            raise UserErrorException(
                f"Environment '{name}' cannot be registered: names that begin with AzureML are kept for curated "
                "environments. Use environment.clone('another-name') and register that."
            )
        asked = definition.get("version")
        if asked is not None:
            limits.check_text("version", str(asked), limits.NAME)
        plain = self._sealing.sealed(workspace_id, {k: v for k, v in definition.items() if k not in _OF_THE_VERSION})
        same = next((each for each in self._all_of(workspace_id, name) if each.body["definition"] == plain), None)
        if same is not None and asked in (None, same.body["version"]):
            return self._view(same)
        if any(asked == each.body["version"] for each in self._all_of(workspace_id, name)):
            raise UserErrorException(
                f"Version {asked} of environment '{name}' is another definition already. Leave the version out to "
                "register the next one."
            )

        def which(newest: Asset | None) -> Asset | None:
            version = str(asked) if asked else str(newest.version + 1 if newest is not None else 1)
            asset.body.update(version=str(version))
            return None

        body: dict[str, Any] = {"definition": plain, "labels": []}
        asset = Asset(str(uuid.uuid4()), workspace_id, ENVIRONMENT, name, self._now(), body=body)
        return self._view(self._stores.assets.add(asset, which))

    def get(
        self, workspace_id: str, name: str, version: str | None = None, label: str | None = None, *, by: Actor = SERVER
    ) -> dict[str, Any]:
        there = self._all_of(workspace_id, name)
        if not there:
            return self._curated(workspace_id, name, version)
        if version is not None:
            there = [each for each in there if each.body["version"] == version]
        elif label not in (None, _LATEST):
            there = [each for each in there if label in each.body["labels"]]
        if there:
            return self._view(there[0], by)
        known = ", ".join(each.body["version"] for each in reversed(self._all_of(workspace_id, name)))
        which = f"version {version}" if version is not None else f"version labelled '{label}'"
        raise NotFound(f"Environment '{name}' has no {which}. Known versions: {known}.")

    def all(self, workspace_id: str, *, by: Actor = SERVER) -> list[dict[str, Any]]:
        """The newest version of each, and the curated ones."""
        mine = self._stores.assets.find(workspace_id, ENVIRONMENT, newest=True)
        return [self._view(each, by) for each in mine] + [self._curated_view(name) for name in curated_names()]

    def label(self, workspace_id: str, name: str, version: str, labels: list[str]) -> dict[str, Any]:
        """A label is on one version of a name at most: it moves."""
        self.get(workspace_id, name, version)
        limits.check_count("labels", labels, limits.LABELS)
        for label in labels:
            limits.check_text("A label", label, limits.NAME)
        for each in self._all_of(workspace_id, name):
            kept = [label for label in each.body["labels"] if label not in labels]
            if each.body["version"] == version:
                kept += [label for label in labels if label != _LATEST]
            self._stores.assets.change(workspace_id, each.id, partial(_with_labels, kept))
        return self.get(workspace_id, name, version)

    def _all_of(self, workspace_id: str, name: str) -> list[Asset]:
        """Every version, the newest first."""
        return self._stores.assets.find(workspace_id, ENVIRONMENT, name)

    def _view(self, asset: Asset, by: Actor = SERVER) -> dict[str, Any]:
        """Its secrets stay sealed for everybody. Who may use them gives them back so, and they are opened here."""
        kept = asset.body["definition"]
        definition = dict(masked(kept) if by.kind == "viewer" else kept, version=asset.body["version"])
        shown = {"name": asset.name, "version": asset.body["version"], "labels": asset.body["labels"]}
        return {**shown, "definition": definition, "created_at": asset.created_at, "curated": False}

    def _curated(self, workspace_id: str, name: str, version: str | None) -> dict[str, Any]:
        if curated(name) is None:
            mine = sorted({each.name for each in self._stores.assets.find(workspace_id, ENVIRONMENT, newest=True)})
            workspace = self._stores.workspaces.find(id=workspace_id)[0]["name"]
            raise NotFound(
                f"Environment '{name}' could not be found in workspace '{workspace}'. Registered: "
                f"{', '.join(mine) or 'none'}. "
                "Curated ones: Environment.list(ws), or `lapis env list --curated`."
            )
        return self._curated_view(name, version)

    def _curated_view(self, name: str, version: str | None = None) -> dict[str, Any]:
        definition = dict(curated(name) or {}, version=version or "1")  # Azure counted builds; ours is one
        shown = {"name": definition["name"], "version": definition["version"], "labels": [], "curated": True}
        return {**shown, "definition": definition, "created_at": None}

    # -- resolved and built

    def resolve(self, workspace_id: str, wish: EnvironmentWish, *, by: Actor = SERVER) -> dict[str, Any]:
        resolved = self._resolved(workspace_id, wish, by)
        return {**self._lock_view(resolved), "built": self._builds.ready(resolved.lock.hash)}

    def _resolved(self, workspace_id: str, wish: EnvironmentWish, by: Actor) -> Resolved:
        check_definition(wish.definition)
        how = (wish.strict, wish.container, wish.mpi, wish.horovod_in, wish.submitter, by.kind in ("user", SERVER.kind))
        resolved = self._builds.resolve(self._sealing.opened(workspace_id, wish.definition), *how)
        self._holdings.resolved(workspace_id, resolved.lock.hash)
        return resolved

    def build(self, workspace_id: str, wish: EnvironmentWish, *, by: Actor = SERVER) -> dict[str, Any]:
        """See to it that it is built, whether or not a run waits for it."""
        resolved = self._resolved(workspace_id, wish, by)
        self._builds.start(resolved.lock.hash, by_hand=True)
        return {**self._lock_view(resolved), **self.build_status(workspace_id, resolved.lock.hash)}

    def build_status(self, workspace_id: str, lock_hash: str, *, by: Actor = SERVER) -> dict[str, Any]:
        self._check_lock(lock_hash, by)
        failure = self._builds.failure(lock_hash)
        status = "Succeeded" if self._builds.ready(lock_hash) else "Failed" if failure else "Running"
        length = len(self._builds.log(lock_hash))
        return {"id": lock_hash, "status": status, "error": failure, "log_length": length}

    def build_log(self, workspace_id: str, lock_hash: str, offset: int, *, by: Actor = SERVER) -> bytes:
        self._check_lock(lock_hash, by)
        return self._builds.log(lock_hash, offset)

    def _check_lock(self, lock_hash: str, by: Actor) -> None:
        if not self._holdings.lets_use_lock(by, lock_hash):
            raise NotFound(f"No environment {lock_hash[:80]} was resolved in this workspace.")
        self._builds.lock(lock_hash)

    def details(self, workspace_id: str, wish: EnvironmentWish, *, by: Actor = SERVER) -> dict[str, Any]:
        """What SDK v1 tells of an environment's image; here of the folder that stands for it."""
        lock = self.resolve(workspace_id, wish, by=by)
        folder = f"{self._builds.root}/{lock['lock']}"
        return {
            "dockerImage": {"name": f"azureml/azureml_{lock['lock']}", "registry": {"address": None}},
            "imageExistsInRegistry": lock["built"],
            "pythonEnvironment": {"interpreterPath": f"{folder}/bin/python", "condaEnvironmentPath": folder},
            "dockerfile": None,
            "lock": lock,
        }

    def _lock_view(self, resolved: Resolved) -> dict[str, Any]:
        lock = resolved.lock
        return {
            "lock": lock.hash,
            "python": lock.python,
            "packages": [line.split()[0] for line in lock.packages.splitlines() if "==" in line and line[0] != " "],
            "substitutions": [{"asked": s.asked, "given": s.given, "reason": s.reason} for s in lock.substitutions],
            "notices": list(lock.notices),
            "said": list(resolved.said),
        }


def _with_labels(labels: list[str], asset: Asset) -> Asset:
    return replace(asset, body={**asset.body, "labels": labels})

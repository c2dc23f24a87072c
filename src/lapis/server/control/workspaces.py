"""What can be done with workspaces and experiments."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lapis.domain import limits
from lapis.domain.run import check_experiment_name, check_labels, check_text
from lapis.domain.service import EXPERIMENT as SERVICES
from lapis.domain.values import Value, at_most
from lapis.errors import Conflict, NotFound, UserErrorException, WorkspaceException
from lapis.server.control.access import SERVER, Actor
from lapis.server.control.stores import Stores

DEFAULT = ("local", "local", "default")  # subscription, resource group and name of the workspace that always exists
_SHORT = at_most(limits.NAME)
_NAME = re.compile(r"[a-zA-Z0-9][\w-]{1,32}", re.ASCII)


@dataclass(frozen=True)
class NewWorkspace(Value):
    name: str = field(metadata=_SHORT)
    subscription_id: str = field(default=DEFAULT[0], metadata=_SHORT)
    resource_group: str = field(default=DEFAULT[1], metadata=_SHORT)
    location: str = field(default="local", metadata=_SHORT)
    friendly_name: str | None = field(default=None, metadata=at_most(limits.DISPLAY_NAME))
    description: str | None = None
    sku: str = field(default="basic", metadata=_SHORT)
    tags: Mapping[str, str | None] = field(default_factory=dict)
    exist_ok: bool = False


class Workspaces:
    def __init__(self, stores: Stores, now: Callable[[], float]) -> None:
        self._store = stores.workspaces
        self._stores = stores
        self._now = now

    def ensure_default(self) -> dict[str, Any]:
        subscription_id, resource_group, name = DEFAULT
        new = NewWorkspace(name, subscription_id, resource_group, exist_ok=True)
        return self.create(new)

    def create(self, new: NewWorkspace) -> dict[str, Any]:
        if not _NAME.fullmatch(new.name):
            raise UserErrorException(
                f"Workspace name {new.name!r} cannot be used. A name is 2 to 33 letters, digits, dashes and "
                "underscores, and begins with a letter or a digit."
            )
        found = self._store.find(name=new.name, subscription_id=new.subscription_id, resource_group=new.resource_group)
        if found and new.exist_ok:
            return found[0]
        workspace = {
            "id": str(uuid.uuid4()),
            "name": new.name,
            "subscription_id": new.subscription_id,
            "resource_group": new.resource_group,
            "location": new.location,
            "friendly_name": new.friendly_name or new.name,
            "description": new.description or "",
            "sku": new.sku,
            "tags": check_labels("tags", new.tags),
            "created_at": self._now(),
        }
        self._store.add(workspace)
        return workspace

    def find(self, *, by: Actor = SERVER, **where: str | None) -> list[dict[str, Any]]:
        """Those that whoever asks may read."""
        return [w for w in self._store.find(**where) if by.workspace_id in (None, w["id"])]

    def get(self, workspace_id: str) -> dict[str, Any]:
        found = self._store.find(id=workspace_id)
        if not found:
            known = ", ".join(sorted(w["name"] for w in self._store.find())) or "none"
            raise WorkspaceException(f"No workspace with id '{workspace_id}' on this server. Known: {known}.")
        return found[0]

    def check(self, workspace_id: str) -> None:
        """Raise unless it is one of this server's. Asked with every request."""
        if not self._store.has(workspace_id):
            self.get(workspace_id)

    def update(self, workspace_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        known = {"friendly_name", "description", "tags", "image_build_compute"}
        if set(changes) - known:
            raise UserErrorException(f"A workspace has no {', '.join(sorted(set(changes) - known))} to change.")
        for name in known - {"tags"}:
            check_text(name, changes.get(name))
        if "tags" in changes:
            check_labels("tags", changes["tags"])
        workspace = dict(self.get(workspace_id), **changes)
        self._store.replace(workspace)
        return workspace

    def delete(self, workspace_id: str) -> None:
        workspace = self.get(workspace_id)
        services = [each.name for each in self._stores.services.of_workspace(workspace_id)]
        if services:
            raise Conflict(
                f"Workspace '{workspace['name']}' has services: {', '.join(services)}. Delete them first; `lapis "
                "service list` shows them."
            )
        live = self._stores.runs.count_active(workspace_id)
        if live:
            raise Conflict(
                f"Workspace '{workspace['name']}' has {live} runs that have not ended. Cancel them first; `lapis run "
                "list` shows them."
            )
        self._store.remove(workspace_id)
        self._stores.holdings.forget(workspace_id)

    def add_experiment(self, workspace_id: str, name: str) -> dict[str, Any]:
        self.get(workspace_id)
        return self._store.add_experiment(workspace_id, new_experiment(name, self._now()))

    def experiments(
        self, workspace_id: str, name: str | None, view: str, tags: Mapping[str, str | None]
    ) -> list[dict[str, Any]]:
        wanted = {"ActiveOnly": (False,), "ArchivedOnly": (True,), "All": (False, True)}.get(view)
        if wanted is None:
            raise UserErrorException(f"View {view!r} is unknown. Known: ActiveOnly, ArchivedOnly, All.")
        return [
            experiment
            for experiment in self._store.experiments(workspace_id, name)
            if experiment["name"] != SERVICES
            and (experiment["archived_at"] is not None) in wanted
            and all(k in experiment["tags"] and v in (None, experiment["tags"][k]) for k, v in tags.items())
        ]

    def newest_experiments(self, workspace_id: str, most: int) -> list[str]:
        """Their names, at most `most`, however many there are."""
        return [name for name in self._store.newest_experiments(workspace_id, most) if name != SERVICES]

    def change_experiment(self, workspace_id: str, experiment_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """`tags` sets some, `remove_tags` removes some, `archived` and `name` do what they say."""
        found = [e for e in self._store.experiments(workspace_id) if e["id"] == experiment_id]
        if not found:
            raise NotFound(f"No experiment with id '{experiment_id}'. Experiment.list(workspace) shows them.")
        experiment = dict(found[0])
        tags = {**experiment["tags"], **check_labels("tags", changes.get("tags", {}), experiment["tags"])}
        experiment["tags"] = {k: v for k, v in tags.items() if k not in changes.get("remove_tags", ())}
        if "archived" in changes:
            experiment["archived_at"] = self._now() if changes["archived"] else None
        if changes.get("name"):
            experiment["name"] = check_experiment_name(changes["name"])
        self._store.replace_experiment(workspace_id, experiment)
        return experiment

    def delete_experiment(self, workspace_id: str, experiment_id: str) -> None:
        self._store.remove_experiment(workspace_id, experiment_id)


def new_experiment(name: str, now: float) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid4()),
        "name": name if name == SERVICES else check_experiment_name(name),
        "created_at": now,
        "archived_at": None,
        "tags": {},
        "runs": 0,
    }

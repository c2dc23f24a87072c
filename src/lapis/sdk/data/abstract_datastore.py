"""What every datastore has: a name in a workspace, a type, and what the server keeps of it."""

from __future__ import annotations

from typing import Any, Mapping

from lapis.sdk.base import display
from lapis.sdk.workspace.workspace import Workspace


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

    def _access(self) -> Mapping[str, Any]:
        """What it is with its credentials, if it has any: asked from the server each time, and kept nowhere here."""
        path = self._workspace._base + "/datastore/access"
        return self._workspace._client.call("GET", path, query={"name": self._name})  # type: ignore[no-any-return]

    def _secret(self, name: str) -> str | None:
        found = self._access().get("credentials", {}).get(name)
        return None if found is None else str(found)

    def __repr__(self) -> str:
        return display.as_line("Datastore", {"name": self._name, "type": self._type, "workspace": self._workspace.name})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractDatastore) and (other._name, other._workspace) == (self._name, self._workspace)

    def __hash__(self) -> int:
        return hash(self._name)

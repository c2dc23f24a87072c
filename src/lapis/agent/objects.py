"""Object stores as an agent uses them: a folder stands in for a place in one, filled before and sent back after.

The agent has no packages: a helper process does its errands. Credentials are asked for when they are needed, with the
agent's own token; they are in no file of the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lapis.client.http_client import Client
from lapis.domain.job import InDatastore, Output, Reference, Stored
from lapis.errors import AzureMLException, ServiceException, UserErrorException
from lapis.files.object_store import ObjectPlace
from lapis.machine import json_files

if TYPE_CHECKING:
    from lapis.object_stores.helper import Helper

Say = Callable[[str], None]


class Objects:
    """`say` tells how far it is; `look` is called now and then and may raise, to stop it."""

    def __init__(
        self,
        client: Client,
        workspace_id: str,
        folder: str,
        say: Say = lambda text: None,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._client, self._base = client, f"/workspaces/{workspace_id}"
        self._folder = folder
        self._say, self._look = say, look
        self._helper: Helper | None = None

    def close(self) -> None:
        if self._helper is not None:
            self._helper.close()

    def place_of(self, datastore: str) -> ObjectPlace:
        def access() -> Any:
            return self._client.call("GET", self._base + "/datastore/access", query={"name": datastore})

        def errand(request: Mapping[str, Any]) -> Any:
            from lapis.object_stores.helper import Helper  # late: most runs never need it

            def progress(done: int, files: int, size: int) -> None:
                self._say(f"datastore {datastore}: {done} of {files} files, {size / 1e6:.1f} MB")

            self._helper = self._helper or Helper()
            return self._helper.ask(request, progress=progress, look=self._look)

        return ObjectPlace(datastore, access, errand)

    def laid(self, wanted: Stored) -> Stored:
        """`wanted` with a folder for its place. What the script is to find there has been brought."""
        if not isinstance(wanted.place, InDatastore):
            return wanted
        stand_in = self._stand_in(wanted)
        os.makedirs(stand_in, exist_ok=True)
        place = stand_in
        if isinstance(wanted, Reference) and wanted.mode != "upload":
            place = self._fill(wanted.place, wanted.mode, stand_in)
        laid = {path: _facts(path) for path in _paths_below(stand_in)}
        json_files.write(stand_in + ".json", {"place": place, "laid": laid})
        return replace(wanted, place=place)

    def again(self, wanted: Stored) -> Stored | None:
        """The same after the script has ended; None if it had not come so far."""
        if not isinstance(wanted.place, InDatastore):
            return wanted
        noted = self._noted(wanted)
        return None if noted is None else replace(wanted, place=noted["place"])

    def send_back(self, wanted: Reference | Output) -> list[str]:
        """Store what is new or changed; what could not be stored, and why."""
        if not isinstance(wanted.place, InDatastore) or wanted.mode == "download":
            return []
        noted, stand_in = self._noted(wanted), self._stand_in(wanted)
        if noted is None:
            return []
        fresh = [path for path in _paths_below(stand_in) if _facts(path) != noted["laid"].get(path)]
        root = wanted.place.path if noted["place"] == stand_in else os.path.dirname(wanted.place.path)
        files = [(path, _key(root, os.path.relpath(path, stand_in))) for path in fresh]
        overwrite = wanted.overwrite or wanted.mode == "mount"  # through a mount, writing replaces
        try:
            stored = self.place_of(wanted.place.datastore).put(files, overwrite)
        except (AzureMLException, ServiceException, OSError) as error:
            reason = getattr(error, "message", error)
            return [f"'{wanted.name}' could not be uploaded to its datastore: {reason}"]
        if stored < len(files):
            kept = len(files) - stored
            return [f"{kept} files of '{wanted.name}' exist already in its datastore and were not replaced."]
        return []

    def _fill(self, place: InDatastore, mode: str, stand_in: str) -> str:
        """Bring what is there; the folder, or the file if the place is one."""
        path, store = place.path, self.place_of(place.datastore)
        found = store.find(path)
        if [file.path for file in found] == ["/" + path]:
            one = os.path.join(stand_in, os.path.basename(path))
            store.bring([(found[0], one)], copy=True)
            return one
        if not found and mode == "download":
            raise UserErrorException("The place it names is not in its datastore.")
        cut = len(path) + 2 if path else 1
        # what is downloaded is copied once more, to where the script wants it; what is mounted may be written to
        store.bring([(f, os.path.join(stand_in, f.path[cut:])) for f in found], copy=mode == "mount")
        return stand_in

    def _stand_in(self, wanted: Reference | Output) -> str:
        return stand_in(self._folder, wanted)

    def _noted(self, wanted: Reference | Output) -> dict[str, Any] | None:
        return json_files.read(self._stand_in(wanted) + ".json")


def stand_in(folder: str, wanted: Reference | Output) -> str:
    """The folder of a run's folder that stands in for a place in an object store."""
    return os.path.join(folder, "objects", wanted.TAG[1], wanted.name)


def _key(root: str, name: str) -> str:
    return "/".join(filter(None, [root, name.replace(os.sep, "/")]))


def _paths_below(folder: str) -> list[str]:
    return [os.path.join(where, name) for where, _, names in os.walk(folder) for name in sorted(names)]


def _facts(path: str) -> list[int]:
    status = os.lstat(path)
    return [status.st_size, status.st_mtime_ns]

"""What a new run may be made of: things of its own workspace, and of the machine only what its asker may have.

The user owns the machine, so a path that the user names is the user's to give. A run's token is no such right: agents
lay out data with the rights of the server, so a run that asks for another one names places in datastores, no others.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable

from lapis.domain.data import LOCAL
from lapis.domain.job import DatasetInput, Job, Output, Reference
from lapis.errors import Forbidden, NotFound, UserErrorException
from lapis.machine.paths import is_within
from lapis.server.control.access import Actor
from lapis.server.control.data import Data
from lapis.server.control.holdings import Holdings
from lapis.server.control.stores import Stores


class Admission:
    def __init__(self, stores: Stores, holdings: Holdings, data: Data) -> None:
        self._stores = stores
        self._holdings = holdings
        self._data = data

    def check_snapshot(self, workspace_id: str, snapshot_id: str | None) -> None:
        if snapshot_id is not None and not self._stores.snapshots.ask_for(workspace_id, snapshot_id, time.time()):
            raise UserErrorException(f"The run's snapshot '{snapshot_id[:80]}' is not stored in this workspace.")

    def check_uses(self, workspace_id: str, uses: Iterable[tuple[str, ...]]) -> None:
        for asset_id, *_ in uses:
            try:
                self._stores.assets.get(workspace_id, asset_id)
            except NotFound:
                raise UserErrorException(f"The run uses '{asset_id[:80]}', which is not in this workspace.") from None

    def check_job(self, by: Actor, workspace_id: str, job: Job) -> None:
        if by.workspace_id is None:
            return
        if job.environment is not None and not self._holdings.lets_use_lock(by, job.environment.lock):
            raise Forbidden(f"Environment {job.environment.lock[:80]} was not resolved in this workspace.")
        if job.inputs or job.outputs:
            stores = {each["name"]: each.get("folder") for each in self._data.datastores(workspace_id)}
            for wanted in (*job.inputs, *job.outputs):
                _check_place(wanted, stores)


def _check_place(wanted: DatasetInput | Reference | Output, stores: dict[str, str | None]) -> None:
    whose = f"'{wanted.name}' of the run"
    if isinstance(wanted, DatasetInput):
        for name, folder in wanted.folders.items():
            if folder != stores.get(name):
                raise Forbidden(f"{whose} takes datastore '{name}' for a folder that it is not. {_WHY}")
        if any(isinstance(each, dict) and each.get("kind") == LOCAL for each in wanted.definition.get("sources") or ()):
            raise Forbidden(f"{whose} names a path of the machine. {_WHY}")
    elif isinstance(wanted.place, str) and not any(is_within(wanted.place, each) for each in stores.values() if each):
        raise Forbidden(f"{whose} names a folder outside of this workspace's datastores. {_WHY}")
    target = wanted.path_on_compute or ""
    if os.path.isabs(target) and not is_within(target, tempfile.gettempdir()):
        raise Forbidden(
            f"{whose} is to be laid out at {target}. {_WHY} A path_on_compute that is relative, or below "
            f"{tempfile.gettempdir()}, is for runs too."
        )


_WHY = "A run that submits another one has no right to the machine's other folders: submit it with the user's token."

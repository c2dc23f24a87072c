"""What a run's token may name by its hash alone: what its workspace has, or has shown that it has.

Blobs, snapshots and locks lie on disk once for all workspaces. Whoever knows a hash knows no content, so a run names
only what came from its own workspace; the user's token names anything. `by` is whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterable

from lapis.errors import NotFound
from lapis.server.control.access import Actor
from lapis.server.control.stores import Stores
from lapis.server.store.holdings import BLOB, LOCK


class Holdings:
    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    # -- blobs: a run has those whose content it sent, and those that its own code is made of

    def sent(self, by: Actor, digests: Iterable[str]) -> None:
        """Whoever sends a content has it."""
        if by.workspace_id is not None:
            self._stores.holdings.add(by.workspace_id, BLOB, digests)

    def lacking(self, by: Actor, digests: Iterable[str]) -> list[str]:
        """Those that are not here, or that `by` has not shown to have: for them it is the same."""
        asked = list(dict.fromkeys(digests))
        absent = self._stores.blobs.missing(asked)
        workspace_id = by.workspace_id
        if workspace_id is None:
            return absent
        known = self._stores.holdings
        unproven = {digest for digest in asked if not known.has(workspace_id, BLOB, digest)}
        if unproven:
            unproven -= self._own_code(by)
        return [digest for digest in asked if digest in unproven or digest in absent]

    def check(self, by: Actor, digests: Iterable[str]) -> None:
        """Raise unless all of them may be named."""
        lacking = self.lacking(by, digests)
        if lacking:
            raise NotFound(f"No blob {lacking[0][:80]} is stored here. Send it first: what is sent can be named.")

    def _own_code(self, by: Actor) -> frozenset[str]:
        """What came with its own snapshot."""
        try:
            run = self._stores.runs.get(by.workspace_id or "", by.run_id or "")
            return self._stores.snapshots.hashes(run.snapshot_id) if run.snapshot_id is not None else frozenset()
        except NotFound:
            return frozenset()

    # -- locks of environments

    def resolved(self, workspace_id: str, lock: str) -> None:
        self._stores.holdings.add(workspace_id, LOCK, [lock])

    def lets_use_lock(self, by: Actor, lock: str) -> bool:
        return by.workspace_id is None or self._stores.holdings.has(by.workspace_id, LOCK, lock)

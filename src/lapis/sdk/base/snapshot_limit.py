"""Lets scripts assign the size limit of snapshots in private modules of SDK v1, as its documents say."""

from __future__ import annotations

from types import ModuleType


class AssignableLimit(ModuleType):
    """A module whose SNAPSHOT_MAX_SIZE_BYTES is the one in `lapis.client.snapshot`."""

    @property
    def SNAPSHOT_MAX_SIZE_BYTES(self) -> int:
        from lapis.client import snapshot

        return snapshot.SNAPSHOT_MAX_SIZE_BYTES

    @SNAPSHOT_MAX_SIZE_BYTES.setter
    def SNAPSHOT_MAX_SIZE_BYTES(self, limit: int) -> None:
        from lapis.client import snapshot

        snapshot.SNAPSHOT_MAX_SIZE_BYTES = limit

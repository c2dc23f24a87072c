"""What is said when the machine, not the request, is at fault: a full or read-only disk, no descriptors left."""

from __future__ import annotations

import errno

from lapis.errors import StorageFull, Unavailable
from lapis.machine import shortages

_KEPT = "Nothing that was acknowledged is lost, and nothing of this request was kept: try again after that."


def told(error: BaseException) -> StorageFull | Unavailable | None:
    """In words that say what to do, and with a status that says it may work later; None of another kind of failure."""
    if shortages.of_room(error):
        return StorageFull(f"The server's disk is full. Free some space. {_KEPT}")
    if not isinstance(error, OSError) or not shortages.passing(error):
        return None
    if error.errno == errno.EROFS:
        return StorageFull(f"The server's disk is read-only. Find out why, and make it writable. {_KEPT}")
    return Unavailable(f"The server is short of what the machine gives it ({error.strerror}). {_KEPT}")

"""Failures that pass when somebody makes room: a full or read-only disk, no descriptors, no memory."""

from __future__ import annotations

import errno

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_PASSING = _NO_ROOM | frozenset({errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})


def of_room(error: BaseException) -> bool:
    """Whether a disk is full."""
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def passing(error: BaseException) -> bool:
    """Whether the same may work later, as nothing is wrong with what was asked for."""
    return isinstance(error, OSError) and error.errno in _PASSING

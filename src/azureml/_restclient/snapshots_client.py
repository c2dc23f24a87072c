"""SNAPSHOT_MAX_SIZE_BYTES, which scripts assign to."""

import sys as _sys

from lapis.sdk.base.snapshot_limit import AssignableLimit as _AssignableLimit

_sys.modules[__name__].__class__ = _AssignableLimit

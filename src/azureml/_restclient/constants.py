"""Words for how a run fares, and SNAPSHOT_MAX_SIZE_BYTES, which scripts assign to."""

import sys as _sys

from lapis.sdk.base.snapshot_limit import AssignableLimit as _AssignableLimit
from lapis.sdk.runs.run_status import RunStatus as RunStatus

_sys.modules[__name__].__class__ = _AssignableLimit

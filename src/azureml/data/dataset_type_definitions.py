"""Words for how files are to be read."""

from lapis.sdk.table_types import FileEncoding as FileEncoding
from lapis.sdk.table_types import FileType as FileType
from lapis.sdk.table_types import HistogramCompareMethod as HistogramCompareMethod
from lapis.sdk.table_types import PromoteHeadersBehavior as PromoteHeadersBehavior
from lapis.sdk.table_types import SkipLinesBehavior as SkipLinesBehavior

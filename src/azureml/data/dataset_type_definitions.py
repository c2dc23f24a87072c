"""Words for how files are to be read."""

from lapis.tables.types import FileEncoding as FileEncoding
from lapis.tables.types import FileType as FileType
from lapis.tables.types import HistogramCompareMethod as HistogramCompareMethod
from lapis.tables.types import PromoteHeadersBehavior as PromoteHeadersBehavior
from lapis.tables.types import SkipLinesBehavior as SkipLinesBehavior

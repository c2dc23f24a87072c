"""The request that an entry script marked with `rawhttp` is given."""

from lapis.scoring.raw_http import AMLRequest as AMLRequest
from lapis.scoring.raw_http import rawhttp as rawhttp

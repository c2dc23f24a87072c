"""The answer of an entry script that sets its own status and headers."""

from lapis.scoring.raw_http import AMLResponse as AMLResponse

"""The answer of an entry script that sets its own status and headers."""

from lapis.sdk.raw_http import AMLResponse as AMLResponse

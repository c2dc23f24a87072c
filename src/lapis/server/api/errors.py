"""How every error leaves the server: what was meant for the one who asks, as it is; anything else as a number.

A fault that nobody foresaw may name classes, statements and paths that are nobody's business. The server's log has all
of it, under the number that the client is shown.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from typing import Any

from lapis.errors import AzureMLException, Busy, ServiceException, Unavailable, to_wire
from lapis.server.api import shortage

_RETRY_AFTER = "2"  # seconds that whoever finds the server busy is asked to wait
_log = logging.getLogger("lapis.server")


class Errors:
    """Tells of errors to those who ask. Where the server lives on its machine is `home`, and stays its own."""

    def __init__(self, home: str) -> None:
        self._home = home

    def told(self, error: BaseException, asked: str) -> tuple[int, Any]:
        """The status and the body for an error of what was `asked`, such as 'GET /api/v1/about'."""
        meant = _meant(error)
        if meant is None:
            number = secrets.token_hex(6)
            _log.error("internal error %s: %s failed", number, asked, exc_info=error)
            said = f"The server failed at {asked}: internal error {number}. Its log says more under that number."
            return 500, to_wire(ServiceException(said))
        return meant.status, self._without_home(to_wire(meant))

    def _without_home(self, body: Any) -> Any:
        if isinstance(body, str):
            return body.replace(self._home, "LAPIS_HOME")
        if isinstance(body, Mapping):
            return {name: self._without_home(value) for name, value in body.items()}
        return [self._without_home(value) for value in body] if isinstance(body, list) else body


def more_headers(error: BaseException) -> dict[str, str]:
    """What an answer with that error says beside it."""
    return {"retry-after": _RETRY_AFTER} if isinstance(error, Busy) else {}


def _meant(error: BaseException) -> AzureMLException | Unavailable | None:
    """The error as one that says what is wrong in words that were written for it; None if there are none."""
    if isinstance(error, AzureMLException):
        return error
    return shortage.told(error)

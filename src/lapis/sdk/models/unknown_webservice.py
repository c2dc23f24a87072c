"""A service of a kind that this release does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lapis.sdk.models.webservice import Webservice

if TYPE_CHECKING:
    from datetime import datetime


class UnknownWebservice(Webservice):
    """It can be looked at, asked and deleted."""

    def run(self, input: Any) -> Any:
        """Send a request; the answer, parsed where it is JSON."""
        return super().run(input)

    def get_token(self) -> tuple[str, datetime]:
        return super().get_token()

    def update(self, *args: Any, **kwargs: Any) -> None:
        super().update(*args, **kwargs)

"""Addresses of pages.

A notebook keeps what it shows, and notebooks are passed on: the addresses in it hold no key. `lapis open` gives the
one that does. After that the browser has a cookie, and the others work in it too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lapis.sdk.workspace.workspace import Workspace


def portal_url(workspace: Workspace, path: str) -> str:
    return f"{workspace._client.endpoint.find()[0]}/studio/{workspace._workspace_id}{path}"


def portal_url_with_key(workspace: Workspace, path: str) -> str:
    """The key stands after the #, which a browser keeps to itself."""
    key = workspace._client.call("GET", "/about").get("viewer_key")
    page = portal_url(workspace, path)
    return f"{page}#key={key}" if key else page

"""Addresses of pages. The key stands after the #, which a browser keeps to itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lapis.sdk.workspace.workspace import Workspace


def portal_url(workspace: Workspace, path: str) -> str:
    client = workspace._client
    key = client.call("GET", "/about").get("viewer_key")
    page = f"{client.endpoint.find()[0]}/studio/{workspace._workspace_id}{path}"
    return f"{page}#key={key}" if key else page

"""Which server and which workspace a command is about."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lapis.sdk.workspace.workspace import Workspace

_PAGE = 100
_LOOKED_THROUGH = 1000  # runs, the newest, for one whose id begins as was said


def workspace(name: str | None) -> Workspace:
    """The workspace named; else the one of config.json; else the default one, which is told on stderr."""
    from lapis.sdk.workspace.workspace import Workspace

    if name is None:
        return Workspace.from_config()
    use_configured_server()
    return Workspace._existing(name)


def run(run_id: str, workspace_name: str | None) -> Any:
    return run_of(workspace(workspace_name), run_id)


def run_of(home: Workspace, given: str) -> Any:
    """The run with that id; else the one whose id begins or ends so; `latest` is the newest of the workspace."""
    from lapis.errors import NotFound, UserErrorException
    from lapis.sdk.runs.run import Run

    if given == "latest":
        newest = _newest(home, 1, children=False)
        if not newest:
            raise NotFound(f"No run is in workspace '{home.name}' yet, so there is no latest one.")
        return Run.get(home, newest[0])
    try:
        return Run.get(home, given)
    except NotFound:
        known = _newest(home, _LOOKED_THROUGH, children=True)
        found = [each for each in known if each.startswith(given)] or [each for each in known if each.endswith(given)]
        if not found:
            raise
    if len(found) > 1:
        shown = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
        raise UserErrorException(f"{len(found)} runs have ids like '{given}': {shown}. Say more of it.")
    return Run.get(home, found[0])


def _newest(home: Workspace, most: int, children: bool) -> list[str]:
    ids: list[str] = []
    cursor = None
    while len(ids) < most:
        query = {"children": children, "limit": min(most, _PAGE), "cursor": cursor}
        page = home._client.call("GET", home._base + "/runs", query=query)
        ids += [view["id"] for view in page["runs"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    return ids


def use_configured_server() -> None:
    """Where config.json names a server, it counts for commands that do not read the rest of that file too."""
    from lapis.client.logins import origin
    from lapis.sdk.workspace import workspace_config

    file = workspace_config.find()
    server = workspace_config.read(file).server if file is not None else None
    if server and origin(server) != origin(os.environ.get("LAPIS_SERVER", "")):
        os.environ["LAPIS_SERVER"] = server
        os.environ.pop("LAPIS_TOKEN", None)  # it was given for another address

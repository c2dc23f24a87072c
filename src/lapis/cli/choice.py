"""Which server and which workspace a command is about."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lapis.sdk.workspace.workspace import Workspace


def workspace(name: str | None) -> Workspace:
    """The workspace named; else the one of config.json; else the default one, which is told on stderr."""
    from lapis.sdk.workspace.workspace import Workspace

    if name is None:
        return Workspace.from_config()
    use_configured_server()
    return Workspace.get(name)


def run(run_id: str, workspace_name: str | None) -> Any:
    from lapis.sdk.runs.run import Run

    return Run.get(workspace(workspace_name), run_id)


def use_configured_server() -> None:
    """Where config.json names a server, it counts for commands that do not read the rest of that file too."""
    from lapis.sdk.workspace import workspace_config

    file = workspace_config.find()
    server = workspace_config.read(file).server if file is not None else None
    if server:
        os.environ["LAPIS_SERVER"] = server

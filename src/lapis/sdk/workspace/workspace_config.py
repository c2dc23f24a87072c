"""Finds, reads and writes config.json, by SDK v1's rules."""

from __future__ import annotations

import json
import os
import re
from typing import Any, NamedTuple

from lapis.errors import UserErrorException

_CANDIDATES = [
    os.path.join(folder, name) for folder in (".azureml", "aml_config", "") for name in ("config.json", "project.json")
]
_SCOPE = re.compile(
    r"^/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/Microsoft\.MachineLearningServices/workspaces/([^/]+)",
    re.IGNORECASE,
)


class WorkspaceConfig(NamedTuple):
    subscription_id: str
    resource_group: str
    workspace_name: str
    server: str | None = None  # Lapis' own key: the address of a server other than this user's
    path: str | None = None


def find(path: Any = None, file_name: str | None = None) -> str | None:
    """The file that counts. Each candidate name is looked for in the start folder and all above it, then the next."""
    start = os.path.abspath(os.fspath(path)) if path is not None else os.getcwd()
    if path is not None and not os.path.exists(start):
        raise UserErrorException(f"There is no file or folder {start} to read a workspace configuration from.")
    if os.path.isfile(start):
        return start
    candidates = _CANDIDATES
    if file_name is not None:
        candidates = [os.path.join(folder, file_name) for folder in (".azureml", "aml_config", "")]
    for candidate in candidates:
        folder = start
        while True:
            found = os.path.join(folder, candidate)
            if os.path.isfile(found):
                return found
            parent = os.path.dirname(folder)
            if parent == folder:
                break
            folder = parent
    return None


def read(path: str) -> WorkspaceConfig:
    try:
        with open(path, encoding="utf-8-sig") as file:
            body = json.load(file)
    except ValueError as error:
        raise UserErrorException(f"{path} is not JSON ({error}). Write a new one with ws.write_config().") from None
    except OSError as error:
        raise UserErrorException(f"{path} cannot be read ({error.strerror}).") from None
    if not isinstance(body, dict):
        raise UserErrorException(f"{path} must hold a JSON object, not a {type(body).__name__}.")
    if "Scope" in body:
        scope = _SCOPE.match(str(body["Scope"]))
        if scope is None:
            raise UserErrorException(f"The Scope in {path} does not name a workspace: {body['Scope']!r}.")
        return WorkspaceConfig(scope[1], scope[2], scope[3], body.get("lapis_server"), path)
    missing = [key for key in ("subscription_id", "resource_group", "workspace_name") if not body.get(key)]
    if missing:
        raise UserErrorException(
            f"{path} lacks {', '.join(missing)}. A workspace configuration has subscription_id, resource_group and "
            "workspace_name."
        )
    for key in ("subscription_id", "resource_group", "workspace_name"):
        if not isinstance(body[key], str):
            raise UserErrorException(f"{key} in {path} must be text, not {body[key]!r}.")
    return WorkspaceConfig(
        body["subscription_id"], body["resource_group"], body["workspace_name"], body.get("lapis_server"), path
    )


def write(config: WorkspaceConfig, path: Any = None, file_name: str | None = None) -> str:
    """Write `.azureml/config.json` below `path`; the path of the file."""
    root = os.path.abspath(os.fspath(path)) if path is not None else os.getcwd()
    folder = root if os.path.basename(root) in (".azureml", "aml_config") else os.path.join(root, ".azureml")
    target = os.path.join(folder, file_name or "config.json")
    body = {
        "subscription_id": config.subscription_id,
        "resource_group": config.resource_group,
        "workspace_name": config.workspace_name,
    }
    if config.server:
        body["lapis_server"] = config.server
    try:
        os.makedirs(folder, exist_ok=True)
        with open(target, "w") as file:
            json.dump(body, file, indent=4)
    except OSError as error:
        raise UserErrorException(f"{target} cannot be written ({error.strerror}).") from error
    return target

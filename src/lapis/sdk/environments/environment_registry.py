"""Environments of a workspace: kept under a name, each change a new version, found again by version or label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lapis.errors import UserErrorException

if TYPE_CHECKING:
    from lapis.sdk.environments.environment import Environment
    from lapis.sdk.workspace.workspace import Workspace

_KEPT_FOR_CURATED = "azureml"  # in any case


def get(workspace: Workspace, name: Any, version: Any = None, label: Any = None) -> Environment:
    if version is not None and label is not None:
        raise UserErrorException(f"Environment.get takes a version or a label, not both ({version!r} and {label!r}).")
    query = {"version": None if version is None else str(version), "label": label}
    return _from_view(_call(workspace, "GET", "/" + _checked_name(name), query=query))


def all_of(workspace: Workspace) -> dict[str, Environment]:
    """The newest version of each by its name, the curated ones too."""
    views = _call(workspace, "GET", "")["environments"]
    return {view["name"]: _from_view(view) for view in views}


def register(workspace: Workspace, environment: Environment) -> Environment:
    name = _checked_name(environment.name)
    if name.lower().startswith(_KEPT_FOR_CURATED):
        raise UserErrorException(
            f"Environment '{name}' cannot be registered: names that begin with AzureML are kept for curated "
            "environments. Use environment.clone('another-name') and register that."
        )
    return _from_view(_call(workspace, "POST", "", {"definition": environment._to_dict()}))


def label(workspace: Workspace, name: Any, version: Any, labels: Any) -> None:
    if isinstance(labels, str) or not all(isinstance(each, str) and each for each in labels or ()):
        raise UserErrorException(f"labels must be a list of words, such as ['production'], not {labels!r}.")
    body = {"version": str(version), "labels": list(labels or ())}
    _call(workspace, "POST", f"/{_checked_name(name)}/labels", body)


def _call(workspace: Workspace, method: str, path: str, body: Any = None, query: Any = None) -> Any:
    if not hasattr(workspace, "subscription_id"):
        raise UserErrorException(f"workspace must be a Workspace, not {type(workspace).__name__}.")
    return workspace._client.call(method, f"{workspace._base}/environments{path}", body, query=query)


def _checked_name(name: Any) -> str:
    from lapis.sdk.environments.environment import check_name

    if name is None:
        raise UserErrorException("The environment has no name. Give it one: environment.clone('my-environment').")
    return str(check_name("The name of an environment", name))


def _from_view(view: dict[str, Any]) -> Environment:
    from lapis.sdk.environments.environment import Environment

    environment: Environment = Environment._from_dict(view["definition"])
    environment.version = view["version"]
    return environment

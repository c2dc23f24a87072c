"""The key vault of a workspace: secrets by name, for scripts that must not hold them."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Iterable, Mapping

from lapis.domain.keyvault import check_secret_name, check_secret_value
from lapis.errors import UserErrorException

if TYPE_CHECKING:
    from lapis.client.http_client import Client
    from lapis.sdk.workspace.workspace import Workspace


class KeyVaultContentType(Enum):
    """What a secret holds, in words of whoever set it."""

    not_provided = ""


class Keyvault:
    def __init__(self, workspace: Workspace) -> None:
        if not hasattr(workspace, "subscription_id"):
            raise UserErrorException(f"workspace must be a Workspace, not {type(workspace).__name__}.")
        self.workspace = workspace

    def set_secret(
        self, name: str, value: str, content_type: KeyVaultContentType = KeyVaultContentType.not_provided
    ) -> None:
        """Keep a secret, sealed. One of that name that is there gets the new value."""
        self._set({name: value}, str(getattr(content_type, "value", content_type)))

    def set_secrets(self, secrets_batch: Mapping[str, str]) -> None:
        """Keep several: all of them, or none if one cannot be."""
        if not isinstance(secrets_batch, Mapping):
            raise UserErrorException(
                f"set_secrets() takes a dictionary of values by name, not {type(secrets_batch).__name__}."
            )
        self._set(secrets_batch, "")

    def get_secret(self, name: str) -> str | None:
        """Return the value; None if there is no such secret."""
        return self.get_secrets([name])[name]

    def get_secrets(self, secrets: Iterable[str]) -> dict[str, str | None]:
        """Return the values by name; None for those that are not there."""
        return values_of(self.workspace._client, self.workspace._base, secrets)

    def get_secret_content_type(self, name: str) -> str | None:
        """Return what it was said to hold; None if there is no such secret."""
        found = _read(self.workspace._client, self.workspace._base, [check_secret_name(name)])[name]
        return None if found is None else str(found["content_type"])

    def list_secrets(self) -> list[dict[str, Any]]:
        """Return a dictionary with the name of each. Their values do not come along."""
        found = self.workspace._client.call("GET", self.workspace._base + "/secrets")["secrets"]
        return [{"name": each["name"], "contentType": each["content_type"]} for each in found]

    def delete_secret(self, name: str) -> None:
        """Remove it. One that is not there is no error."""
        self.delete_secrets([name])

    def delete_secrets(self, secrets: Iterable[str]) -> None:
        names = _names("delete_secrets", secrets)
        self.workspace._client.call("POST", self.workspace._base + "/secrets/delete", {"names": names})

    def _set(self, secrets: Mapping[str, str], content_type: str) -> None:
        many = [
            {"name": check_secret_name(name), "value": check_secret_value(name, value), "content_type": content_type}
            for name, value in secrets.items()
        ]
        self.workspace._client.call("POST", self.workspace._base + "/secrets", {"secrets": many})


def values_of(client: Client, workspace_base: str, secrets: Iterable[str]) -> dict[str, str | None]:
    """Of a workspace's key vault, by name: for the vault itself, and for a run of that workspace."""
    found = _read(client, workspace_base, _names("get_secrets", secrets))
    return {name: None if each is None else str(each["value"]) for name, each in found.items()}


def _read(client: Client, workspace_base: str, names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = client.call("POST", workspace_base + "/secrets/read", {"names": names})["secrets"]
    return found


def _names(call: str, given: Any) -> list[str]:
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise UserErrorException(f"{call}() takes a list of names, not {type(given).__name__}.")
    return [check_secret_name(name) for name in given]

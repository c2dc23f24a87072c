"""Datastores that are databases: read by `Dataset.Tabular.from_sql_query`, and registered by the calls at the end."""

from __future__ import annotations

from typing import Any, Mapping, NoReturn

from lapis.domain.data import check_datastore_name
from lapis.domain.database import MYSQL, POSTGRES, SQL_SERVER, check_database
from lapis.errors import UserErrorException
from lapis.sdk.data.abstract_datastore import AbstractDatastore
from lapis.sdk.workspace.workspace import Workspace


class DatabaseDatastore(AbstractDatastore):
    def _where(self) -> NoReturn:
        raise UserErrorException(
            f"Datastore '{self.name}' is a database and holds no files. "
            "Dataset.Tabular.from_sql_query((datastore, 'select ...')) reads it."
        )

    _folder_or_none = _where


class AzurePostgreSqlDatastore(DatabaseDatastore):
    def __init__(
        self,
        workspace: Workspace,
        name: str,
        server_name: str,
        database_name: str,
        user_id: str,
        user_password: str | None = None,
        port_number: int | str | None = None,
        enforce_ssl: Any = True,
        **_more: Any,
    ) -> None:
        super().__init__(workspace, name, POSTGRES)
        self.server_name, self.database_name, self.user_id = server_name, database_name, user_id
        self.port_number = port_number
        self.enforce_ssl = str(enforce_ssl) == "True"

    @property
    def user_password(self) -> str | None:
        """Asked from the server each time, and kept nowhere here."""
        return self._secret("user_password")


class AzureMySqlDatastore(DatabaseDatastore):
    def __init__(
        self,
        workspace: Workspace,
        name: str,
        server_name: str,
        database_name: str,
        user_id: str,
        user_password: str | None = None,
        port_number: int | str | None = None,
        **_more: Any,
    ) -> None:
        super().__init__(workspace, name, MYSQL)
        self.server_name, self.database_name, self.user_id = server_name, database_name, user_id
        self.port_number = port_number

    @property
    def user_password(self) -> str | None:
        return self._secret("user_password")


class AzureSqlDatabaseDatastore(DatabaseDatastore):
    def __init__(
        self,
        workspace: Workspace,
        name: str,
        server_name: str,
        database_name: str,
        tenant_id: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        resource_url: str | None = None,
        authority_url: str | None = None,
        username: str | None = None,
        password: str | None = None,
        auth_type: str | None = None,
        service_data_access_auth_identity: Any = None,
        **_more: Any,
    ) -> None:
        super().__init__(workspace, name, SQL_SERVER)
        self.server_name, self.database_name, self.username = server_name, database_name, username
        self.tenant_id, self.client_id = tenant_id, client_id
        self.resource_url, self.authority_url = resource_url, authority_url
        self.auth_type = auth_type or ("SqlAuthentication" if username else "ServicePrincipal")
        self.service_data_access_auth_identity = service_data_access_auth_identity

    @property
    def password(self) -> str | None:
        return self._secret("password")

    @property
    def client_secret(self) -> str | None:
        return self._secret("client_secret")


CLASSES: dict[str, type[DatabaseDatastore]] = {
    POSTGRES: AzurePostgreSqlDatastore,
    MYSQL: AzureMySqlDatastore,
    SQL_SERVER: AzureSqlDatabaseDatastore,
}


def from_view(workspace: Workspace, view: Mapping[str, Any]) -> DatabaseDatastore:
    return CLASSES[view["type"]](workspace, view["name"], **view["options"])


class DatabaseRegistration:
    """The calls of `Datastore` that take databases. As in SDK v1 nothing is tried until a query is."""

    @staticmethod
    def register_azure_postgre_sql(
        workspace: Workspace,
        datastore_name: str,
        server_name: str,
        database_name: str,
        user_id: str,
        user_password: str,
        port_number: int | str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        enforce_ssl: bool = True,
        **kwargs: Any,
    ) -> AzurePostgreSqlDatastore:
        """A PostgreSQL database. `enforce_ssl` refuses a connection that is not encrypted."""
        options = {
            "server_name": server_name,
            "database_name": database_name,
            "user_id": user_id,
            "port_number": port_number,
            "endpoint": endpoint,
            "enforce_ssl": bool(enforce_ssl),
        }
        return _register(  # type: ignore[no-any-return]
            workspace, datastore_name, POSTGRES, options, {"user_password": user_password}, overwrite, kwargs
        )

    @staticmethod
    def register_azure_my_sql(
        workspace: Workspace,
        datastore_name: str,
        server_name: str,
        database_name: str,
        user_id: str,
        user_password: str,
        port_number: int | str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        **kwargs: Any,
    ) -> AzureMySqlDatastore:
        """A MySQL or MariaDB database."""
        options = {
            "server_name": server_name,
            "database_name": database_name,
            "user_id": user_id,
            "port_number": port_number,
            "endpoint": endpoint,
        }
        return _register(  # type: ignore[no-any-return]
            workspace, datastore_name, MYSQL, options, {"user_password": user_password}, overwrite, kwargs
        )

    @staticmethod
    def register_azure_sql_database(
        workspace: Workspace,
        datastore_name: str,
        server_name: str,
        database_name: str,
        tenant_id: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        resource_url: str | None = None,
        authority_url: str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        username: str | None = None,
        password: str | None = None,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        grant_workspace_access: bool = False,
        **kwargs: Any,
    ) -> AzureSqlDatabaseDatastore:
        """A SQL Server database, by a user name or a service principal. It is kept; Lapis cannot read it yet."""
        options = {
            "server_name": server_name,
            "database_name": database_name,
            "endpoint": endpoint,
            "username": username,
            "tenant_id": tenant_id,
            "client_id": client_id,
            "resource_url": resource_url,
            "authority_url": authority_url,
        }
        secrets = {"password": password, "client_secret": client_secret}
        return _register(workspace, datastore_name, SQL_SERVER, options, secrets, overwrite, kwargs)  # type: ignore[no-any-return]


def _register(
    workspace: Workspace, name: str, kind: str, options: Any, secrets: Any, overwrite: bool, more: Mapping[str, Any]
) -> Any:
    if not hasattr(workspace, "subscription_id"):
        raise UserErrorException(f"workspace must be a Workspace, not {type(workspace).__name__}.")
    strange = sorted(set(more) - {"skip_validation"})
    if strange:
        raise UserErrorException(f"A datastore of type {kind!r} has no {', '.join(strange)}.")
    body: dict[str, Any] = {"name": check_datastore_name(name), "type": kind}
    given = {key: value for key, value in options.items() if value is not None}
    body["options"] = {key: str(value) if key in _KEPT_AS_TEXT else value for key, value in given.items()}
    body["credentials"] = {key: value for key, value in secrets.items() if value is not None}
    check_database(body)
    view = workspace._client.call("POST", workspace._base + "/datastores", dict(body, overwrite=bool(overwrite)))
    return from_view(workspace, view)


_KEPT_AS_TEXT = ("port_number", "enforce_ssl")

"""Registers containers, buckets and file shares as datastores: the calls of `Datastore` that take credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lapis.domain.data import check_datastore_name
from lapis.domain.object_store import BLOB, FILES, GCS, LAKE, S3, SHARE, check_object_store
from lapis.errors import UserErrorException
from lapis.sdk.workspace.workspace import Workspace

if TYPE_CHECKING:
    from lapis.sdk.data.datastore import (
        AzureBlobDatastore,
        AzureDataLakeGen2Datastore,
        AzureFileDatastore,
        GcsDatastore,
        S3Datastore,
        SmbDatastore,
    )


class ObjectStoreRegistration:
    @staticmethod
    def register_azure_blob_container(
        workspace: Workspace,
        datastore_name: str,
        container_name: str,
        account_name: str,
        sas_token: str | None = None,
        account_key: str | None = None,
        protocol: str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        create_if_not_exists: bool = False,
        skip_validation: bool = False,
        blob_cache_timeout: int | None = None,
        grant_workspace_access: bool = False,
        subscription_id: str | None = None,
        resource_group: str | None = None,
    ) -> AzureBlobDatastore:
        """A container of Azure Blob Storage; with neither key nor token a public one."""
        if sas_token and account_key:
            raise UserErrorException("Give sas_token or account_key, not both.")
        options = {"account_name": account_name, "protocol": protocol, "endpoint": endpoint}
        credentials = {"account_key": account_key, "sas_token": sas_token}
        more = {"create": create_if_not_exists, "skip_validation": skip_validation, "overwrite": overwrite}
        made: AzureBlobDatastore = _register(
            workspace, datastore_name, BLOB, f"az://{container_name}", options, credentials, more
        )
        return made

    @staticmethod
    def register_azure_data_lake_gen2(
        workspace: Workspace,
        datastore_name: str,
        filesystem: str,
        account_name: str,
        tenant_id: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        resource_url: str | None = None,
        authority_url: str | None = None,
        protocol: str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        grant_workspace_access: bool = False,
    ) -> AzureDataLakeGen2Datastore:
        """A file system of a Data Lake, opened by a service principal."""
        if not (tenant_id and client_id and client_secret):
            raise UserErrorException(
                "register_azure_data_lake_gen2() needs tenant_id, client_id and client_secret: a Lapis server has no "
                "Azure identity of its own, and passes nobody's on."
            )
        options = {
            "account_name": account_name,
            "protocol": protocol,
            "endpoint": endpoint,
            "tenant_id": tenant_id,
            "client_id": client_id,
            "authority_url": authority_url,
        }
        secret, more = {"client_secret": client_secret}, {"overwrite": overwrite}
        made: AzureDataLakeGen2Datastore = _register(
            workspace, datastore_name, LAKE, f"az://{filesystem}", options, secret, more
        )
        return made

    @staticmethod
    def register_azure_file_share(
        workspace: Workspace,
        datastore_name: str,
        file_share_name: str,
        account_name: str,
        sas_token: str | None = None,
        account_key: str | None = None,
        protocol: str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        create_if_not_exists: bool = False,
        skip_validation: bool = False,
    ) -> AzureFileDatastore:
        """A share of Azure Files, or one that you own by an `endpoint` such as `nas.lab.lan:445`, read over SMB."""
        if sas_token or not account_key:
            raise UserErrorException(
                "register_azure_file_share() needs account_key: shares are read over SMB, which knows no SAS tokens."
            )
        if protocol not in (None, "http", "https"):
            raise UserErrorException(f"protocol must be 'https' (encrypted) or 'http', not {protocol!r}.")
        options = {"account_name": account_name, "protocol": protocol, "endpoint": endpoint}
        more = {"create": create_if_not_exists, "skip_validation": skip_validation, "overwrite": overwrite}
        key = {"account_key": account_key}
        made: AzureFileDatastore = _register(
            workspace, datastore_name, FILES, f"smb://{file_share_name}", options, key, more
        )
        return made

    @staticmethod
    def register_smb_share(
        workspace: Workspace,
        datastore_name: str,
        share: str,
        host: str,
        user: str,
        password: str,
        encrypt: bool = True,
        overwrite: bool = False,
        skip_validation: bool = False,
    ) -> SmbDatastore:
        """Lapis' own: a share of a Windows or Samba server. `host` may have a port, `user` a domain: `LAB\\\\ann`."""
        options = {"endpoint": host, "user": user, "encrypt": None if encrypt else "no"}
        more = {"overwrite": overwrite, "skip_validation": skip_validation}
        secret = {"password": password}
        made: SmbDatastore = _register(workspace, datastore_name, SHARE, f"smb://{share}", options, secret, more)
        return made

    @staticmethod
    def register_s3_bucket(
        workspace: Workspace,
        datastore_name: str,
        bucket: str,
        endpoint: str | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        region: str | None = None,
        overwrite: bool = False,
        skip_validation: bool = False,
    ) -> S3Datastore:
        """Lapis' own: a bucket of Amazon S3, or of another server by its `endpoint`; without keys a public one."""
        options = {"endpoint": endpoint, "region": region}
        credentials = {"access_key": access_key, "secret_key": secret_key}
        more = {"overwrite": overwrite, "skip_validation": skip_validation}
        made: S3Datastore = _register(workspace, datastore_name, S3, f"s3://{bucket}", options, credentials, more)
        return made

    @staticmethod
    def register_gcs_bucket(
        workspace: Workspace,
        datastore_name: str,
        bucket: str,
        service_account: Any = None,
        project: str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        skip_validation: bool = False,
    ) -> GcsDatastore:
        """Lapis' own: a bucket of Google Cloud Storage. `service_account` is the path or the content of a key file."""
        options = {"project": project, "endpoint": endpoint}
        credentials = {"service_account": _key_file(service_account)}
        more = {"overwrite": overwrite, "skip_validation": skip_validation}
        made: GcsDatastore = _register(workspace, datastore_name, GCS, f"gs://{bucket}", options, credentials, more)
        return made


def _register(
    workspace: Workspace, name: str, kind: str, url: str, options: Any, credentials: Any, more: dict[str, Any]
) -> Any:
    """Send it to the server, which tries whether it can be reached, entered and found before it is kept."""
    from lapis.sdk.data.datastore import _from_view

    if not hasattr(workspace, "subscription_id"):
        raise UserErrorException(f"workspace must be a Workspace, not {type(workspace).__name__}.")
    body: dict[str, Any] = {"name": check_datastore_name(name), "type": kind, "url": url}
    body["options"] = {key: value for key, value in options.items() if value is not None}
    body["credentials"] = {key: value for key, value in credentials.items() if value is not None}
    check_object_store(body)
    body.update((key, bool(value)) for key, value in more.items())
    return _from_view(workspace, workspace._client.call("POST", workspace._base + "/datastores", body))


def _key_file(given: Any) -> str | None:
    """The content of a service account's key file, on one line."""
    import json

    if given is None:
        return None
    try:
        if isinstance(given, dict):
            return json.dumps(given)
        if isinstance(given, str) and given.lstrip().startswith("{"):
            return json.dumps(json.loads(given))
        with open(given) as file:
            return json.dumps(json.load(file))
    except OSError as error:
        raise UserErrorException(f"service_account {given!r} cannot be read: {error.strerror}.") from None
    except (TypeError, ValueError):
        raise UserErrorException("service_account is neither the path nor the content of a JSON key file.") from None

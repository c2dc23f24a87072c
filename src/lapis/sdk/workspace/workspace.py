"""The workspace: where everything of a project is found."""

from __future__ import annotations

import builtins
import os
import sys
from typing import TYPE_CHECKING, Any, Mapping, NoReturn

from lapis.client.http_client import Client, job_endpoint
from lapis.domain import settings as settings_module
from lapis.errors import NotThereYet, ServiceException, UserErrorException, WorkspaceException
from lapis.sdk.base import display
from lapis.sdk.workspace import workspace_config

if TYPE_CHECKING:
    from lapis.sdk.compute.compute_target import ComputeTarget
    from lapis.sdk.data.datastore import AbstractAzureStorageDatastore
    from lapis.sdk.data.file_dataset import FileDataset
    from lapis.sdk.data.tabular_dataset import TabularDataset
    from lapis.sdk.environments.environment import Environment
    from lapis.sdk.models.image import Image
    from lapis.sdk.models.model import Model
    from lapis.sdk.models.webservice import Webservice
    from lapis.sdk.runs.experiment import Experiment
    from lapis.sdk.runs.run import Run
    from lapis.sdk.workspace.authentication import AbstractAuthentication
    from lapis.sdk.workspace.keyvault import Keyvault

_DEFAULT = ("local", "local", "default")


class _DefaultCluster:
    """What the default cluster of a kind is made from; read when asked for, as few need it."""

    def __init__(self, vm_size: str) -> None:
        self._vm_size = vm_size

    def __get__(self, workspace: Any, owner: Any = None) -> Any:
        from lapis.sdk.compute.aml_compute import AmlCompute

        return AmlCompute.provisioning_configuration(vm_size=self._vm_size, min_nodes=0, max_nodes=2)


class Workspace:
    DEFAULT_CPU_CLUSTER_NAME = "cpu-cluster"
    DEFAULT_GPU_CLUSTER_NAME = "gpu-cluster"
    DEFAULT_CPU_CLUSTER_CONFIGURATION: Any = _DefaultCluster("STANDARD_DS2_V2")
    DEFAULT_GPU_CLUSTER_CONFIGURATION: Any = _DefaultCluster("STANDARD_NC6")

    def __init__(
        self,
        subscription_id: str,
        resource_group: str,
        workspace_name: str,
        auth: AbstractAuthentication | None = None,
        _location: str | None = None,
        _disable_service_check: bool = False,
        _workspace_id: str | None = None,
        sku: str = "basic",
        tags: Mapping[str, Any] | None = None,
        **_more: Any,
    ) -> None:
        _check_texts(subscription_id=subscription_id, resource_group=resource_group, workspace_name=workspace_name)
        client = _client()
        found = _find(client, subscription_id, resource_group, workspace_name)
        if not found:
            found = [_made_here(client, subscription_id, resource_group, workspace_name)]
        self._become(client, found[0], auth)

    def _become(self, client: Client, info: Mapping[str, Any], auth: AbstractAuthentication | None = None) -> Workspace:
        self._client, self._info, self._auth_object = client, dict(info), auth
        return self

    @classmethod
    def _from_info(
        cls, client: Client, info: Mapping[str, Any], auth: AbstractAuthentication | None = None
    ) -> Workspace:
        return cls.__new__(cls)._become(client, info, auth)

    # -- found and made

    @staticmethod
    def from_config(
        path: str | os.PathLike[str] | None = None,
        auth: AbstractAuthentication | None = None,
        _logger: Any = None,
        _file_name: str | None = None,
    ) -> Workspace:
        """The workspace that config.json names, looked for as SDK v1 does; without any, the default one."""
        file = workspace_config.find(path, _file_name)
        if file is None:
            if path is not None:
                raise UserErrorException(
                    f"No workspace configuration (.azureml/config.json or config.json) in {os.path.abspath(path)} or "
                    "any folder above it. Write one with ws.write_config(), or leave path out for the default "
                    "workspace."
                )
            return _from_surroundings(auth)
        config = workspace_config.read(file)
        client = _client(config.server, config.path)
        try:
            found = _find(client, *config[:3])
        except ServiceException as error:
            if config.server:
                raise ServiceException(f"{config.path} points at {config.server}: {error.message}") from error
            raise
        if found:
            return Workspace._from_info(client, found[0], auth)
        return Workspace._from_info(client, _made_here(client, *config[:3], of=f" of {config.path}"), auth)

    @staticmethod
    def create(
        name: str,
        auth: AbstractAuthentication | None = None,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        location: str | None = None,
        create_resource_group: bool = True,
        sku: str = "basic",
        tags: Mapping[str, Any] | None = None,
        friendly_name: str | None = None,
        storage_account: str | None = None,
        key_vault: str | None = None,
        app_insights: str | None = None,
        container_registry: str | None = None,
        adb_workspace: str | None = None,
        primary_user_assigned_identity: str | None = None,
        cmk_keyvault: str | None = None,
        resource_cmk_uri: str | None = None,
        hbi_workspace: bool = False,
        default_cpu_compute_target: Any = None,
        default_gpu_compute_target: Any = None,
        private_endpoint_config: Any = None,
        private_endpoint_auto_approval: bool = True,
        exist_ok: bool = False,
        show_output: bool = True,
        user_assigned_identity_for_cmk_encryption: str | None = None,
        system_datastores_auth_mode: str = "accessKey",
        v1_legacy_mode: bool | None = None,
    ) -> Workspace:
        """Make a workspace on the server. What only a cloud has (storage accounts, vaults, networks) is not used."""
        _check_texts(name=name)
        for what, value in (("subscription_id", subscription_id), ("resource_group", resource_group)):
            if value is not None:
                _check_texts(**{what: value})
        client = _client()
        labels = {str(k): None if v is None else str(v) for k, v in dict(tags or {}).items()}
        about = {"location": location or "local", "friendly_name": friendly_name, "sku": sku or "basic", "tags": labels}
        info = _create(client, subscription_id, resource_group, name, exist_ok=bool(exist_ok), **about)
        ws = Workspace._from_info(client, info, auth)
        for kind, configuration in (("CPU", default_cpu_compute_target), ("GPU", default_gpu_compute_target)):
            if configuration is not None:
                ws._default_compute_target(kind, configuration)
        if show_output:
            print(f"Workspace '{name}' is there.")
        return ws

    @staticmethod
    def get(
        name: str,
        auth: AbstractAuthentication | None = None,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        location: Any = None,
        cloud: str = "AzureCloud",
        id: str | None = None,
    ) -> Workspace:
        """A workspace by name, and by subscription and resource group where several have that name."""
        _check_texts(name=name)
        client = _client()
        found = _find(client, subscription_id, resource_group, name)
        if id is not None:
            found = [info for info in found if info["id"] == id]
            if not found:
                raise _no_such(client, name, resource_group)
        if not found:
            found = [_made_here(client, subscription_id, resource_group, name)]
        if len(found) > 1:
            places = ", ".join(f"{w['subscription_id']}/{w['resource_group']}" for w in found)
            raise WorkspaceException(
                f"{len(found)} workspaces are named '{name}': {places}. Say which with subscription_id and "
                "resource_group.",
                found_multiple=True,
            )
        return Workspace._from_info(client, found[0], auth)

    @staticmethod
    def _existing(name: str) -> Workspace:
        """As get(), for whoever asks by name on a command line: a name that is not there is a slip of the pen."""
        client = _client()
        if not _find(client, None, None, name):
            raise _no_such(client, name, None)
        return Workspace.get(name)

    @staticmethod
    def list(
        subscription_id: str, auth: AbstractAuthentication | None = None, resource_group: str | None = None
    ) -> dict[str, list[Workspace]]:
        """Workspaces by name. Each name has a list, as two resource groups may use the same."""
        _check_texts(subscription_id=subscription_id)
        client = _client()
        named: dict[str, builtins.list[Workspace]] = {}
        for info in _find(client, subscription_id, resource_group, None):
            named.setdefault(info["name"], []).append(Workspace._from_info(client, info, auth))
        return named

    @staticmethod
    def setup() -> Workspace:
        """The default workspace, with its configuration written beside us."""
        ws = Workspace._from_info(_client(), _default_info(_client()))
        ws.write_config()
        return ws

    def write_config(self, path: str | os.PathLike[str] | None = None, file_name: str | None = None) -> None:
        """Write .azureml/config.json below `path`, so that from_config() finds this workspace."""
        endpoint = self._client.endpoint
        server = endpoint.url if endpoint.by_address else None
        config = workspace_config.WorkspaceConfig(self.subscription_id, self.resource_group, self.name, server)
        workspace_config.write(config, path, file_name)

    # -- what it is

    @property
    def name(self) -> str:
        return str(self._info["name"])

    @property
    def subscription_id(self) -> str:
        return str(self._info["subscription_id"])

    @property
    def resource_group(self) -> str:
        return str(self._info["resource_group"])

    @property
    def location(self) -> str:
        return str(self._info["location"])

    @property
    def sku(self) -> str:
        return str(self._info["sku"])

    @property
    def tags(self) -> dict[str, Any]:
        return dict(self._info["tags"])

    @property
    def _workspace_id(self) -> str:
        return str(self._info["id"])

    @property
    def _workspace_name(self) -> str:
        return self.name

    @property
    def _auth(self) -> AbstractAuthentication:
        from lapis.sdk.workspace.authentication import InteractiveLoginAuthentication

        if self._auth_object is None:
            self._auth_object = InteractiveLoginAuthentication()
            self._auth_object._endpoint = self._client.endpoint
        return self._auth_object

    @property
    def discovery_url(self) -> str:
        return self._client.endpoint.find()[0] + "/discovery"

    @property
    def service_context(self) -> Workspace:
        return self

    def get_details(self) -> dict[str, Any]:
        """All that is known about the workspace."""
        info = self._client.call("GET", self._base)
        return {
            "id": _arm_id(info),
            "name": info["name"],
            "identity": None,
            "location": info["location"],
            "type": "Microsoft.MachineLearningServices/workspaces",
            "tags": info["tags"],
            "sku": info["sku"],
            "workspaceid": info["id"],
            "description": info["description"],
            "friendlyName": info["friendly_name"],
            "creationTime": display.when(info["created_at"]),
            # Lapis keeps these itself. Scripts cut the ids at "/", so they are ids, and end in the workspace's name.
            "keyVault": _resource_id(info, "Microsoft.Keyvault/vaults"),
            "applicationInsights": _resource_id(info, "Microsoft.insights/components"),
            "containerRegistry": _resource_id(info, "Microsoft.ContainerRegistry/registries"),
            "storageAccount": _resource_id(info, "Microsoft.Storage/storageAccounts"),
            "identityPrincipalId": None,
            "identityTenantId": None,
            "identityType": None,
            "server": self._client.endpoint.find()[0],
        }

    def update(
        self,
        friendly_name: str | None = None,
        description: str | None = None,
        tags: Mapping[str, Any] | None = None,
        image_build_compute: str | None = None,
        service_managed_resources_settings: Any = None,
        primary_user_assigned_identity: str | None = None,
        allow_public_access_when_behind_vnet: bool | None = None,
        v1_legacy_mode: bool | None = None,
        enable_data_actions: bool | None = None,
    ) -> dict[str, Any]:
        """Change what a workspace says about itself; the details afterwards."""
        changes = {
            "friendly_name": friendly_name,
            "description": description,
            "image_build_compute": image_build_compute,
        }
        given: dict[str, Any] = {key: value for key, value in changes.items() if value is not None}
        if tags is not None:
            given["tags"] = {str(k): None if v is None else str(v) for k, v in dict(tags).items()}
        self._info = self._client.call("PATCH", self._base, given)
        return self.get_details()

    def delete(self, delete_dependent_resources: bool = False, no_wait: bool = False) -> None:
        """Remove the workspace with all its experiments and runs, for good."""
        self._client.call("DELETE", self._base)

    # -- what it holds

    @property
    def experiments(self) -> dict[str, Experiment]:
        from lapis.sdk.runs.experiment import Experiment

        return {experiment.name: experiment for experiment in Experiment.list(self)}

    def get_run(self, run_id: str) -> Run:
        from lapis.sdk.runs.run import Run

        return Run.get(self, run_id)

    @property
    def compute_targets(self) -> dict[str, ComputeTarget]:
        from lapis.sdk.compute.compute_target import ComputeTarget

        return {target.name: target for target in ComputeTarget.list(self)}

    @property
    def datasets(self) -> dict[str, FileDataset | TabularDataset]:
        from lapis.sdk.data.abstract_dataset import AbstractDataset

        return AbstractDataset.get_all(self)

    @property
    def datastores(self) -> dict[str, AbstractAzureStorageDatastore]:
        from lapis.sdk.data.datastore import all_datastores

        return all_datastores(self)

    @property
    def environments(self) -> dict[str, Environment]:
        """The newest version of each environment by its name, the curated ones too."""
        from lapis.sdk.environments import environment_registry

        return environment_registry.all_of(self)

    @property
    def images(self) -> dict[str, Image]:
        """The newest version of each image by its name."""
        from lapis.sdk.models.image import Image

        newest: dict[str, Image] = {}
        for image in Image.list(self):
            if image.name not in newest or newest[image.name].version < image.version:
                newest[image.name] = image
        return newest

    @property
    def models(self) -> dict[str, Model]:
        from lapis.sdk.models.model import Model

        return {model.name: model for model in Model.list(self, latest=True)}

    @property
    def webservices(self) -> dict[str, Webservice]:
        """The services by their names."""
        from lapis.sdk.models.webservice import Webservice

        return {service.name: service for service in Webservice.list(self)}

    @property
    def linked_services(self) -> NoReturn:
        raise NotThereYet("Workspace.linked_services")

    @property
    def private_endpoints(self) -> dict[str, NoReturn]:
        return {}  # private endpoints are a cloud's: this workspace has none

    def get_default_compute_target(self, type: str) -> ComputeTarget:
        """The target `cpu-cluster` or `gpu-cluster`, for 'CPU' and 'GPU'. Made when it is first asked for."""
        kind = str(type).upper()
        if kind not in ("CPU", "GPU"):
            raise UserErrorException(f"The type of a default compute target is 'CPU' or 'GPU', not {type!r}.")
        return self._default_compute_target(kind, getattr(self, f"DEFAULT_{kind}_CLUSTER_CONFIGURATION"))

    def _default_compute_target(self, kind: str, configuration: Any) -> ComputeTarget:
        from lapis.sdk.compute.compute_target import ComputeTarget

        name = getattr(self, f"DEFAULT_{kind}_CLUSTER_NAME")
        return self.compute_targets.get(name) or ComputeTarget.create(self, name, configuration)

    def get_default_datastore(self) -> AbstractAzureStorageDatastore:
        from lapis.sdk.data.datastore import Datastore

        return Datastore.get_default(self)

    def set_default_datastore(self, name: str) -> None:
        self._client.call("PUT", self._base + "/datastore/default", {"name": name})

    def get_default_keyvault(self) -> Keyvault:
        from lapis.sdk.workspace.keyvault import Keyvault

        return Keyvault(self)

    def get_mlflow_tracking_uri(self, _with_auth: bool = False) -> str:
        raise NotThereYet("Workspace.get_mlflow_tracking_uri")

    def add_private_endpoint(
        self,
        private_endpoint_config: Any,
        private_endpoint_auto_approval: bool = True,
        location: str | None = None,
        show_output: bool = True,
        tags: Mapping[str, Any] | None = None,
    ) -> NoReturn:
        raise NotThereYet("Workspace.add_private_endpoint", "Private endpoints belong to Azure's network.")

    def delete_private_endpoint_connection(self, private_endpoint_connection_name: str) -> None:
        raise NotThereYet("Workspace.delete_private_endpoint_connection")

    def diagnose_workspace(self, diagnose_parameters: Any) -> NoReturn:
        raise NotThereYet("Workspace.diagnose_workspace")

    def set_connection(self, name: str, category: Any, target: Any, authType: Any, value: Any) -> NoReturn:  # noqa: N803
        raise NotThereYet("Workspace.set_connection")

    def get_connection(self, name: str) -> NoReturn:
        raise NotThereYet("Workspace.get_connection")

    def list_connections(self, category: Any = None, target: Any = None) -> NoReturn:
        raise NotThereYet("Workspace.list_connections")

    def delete_connection(self, name: str) -> None:
        raise NotThereYet("Workspace.delete_connection")

    def list_keys(self) -> NoReturn:
        raise NotThereYet("Workspace.list_keys", "A Lapis workspace has no storage account or registry of Azure's.")

    def sync_keys(self, no_wait: bool = False) -> NoReturn:
        raise NotThereYet("Workspace.sync_keys", "A Lapis workspace has no storage account or registry of Azure's.")

    def update_dependencies(self, container_registry: Any = None, force: bool = False) -> NoReturn:
        raise NotThereYet("Workspace.update_dependencies")

    # -- helpers

    @property
    def _resource_id(self) -> str:
        """As Azure names it: scripts cut it at `/`."""
        return _arm_id(self._info)

    @property
    def _base(self) -> str:
        return f"/workspaces/{self._workspace_id}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workspace) and other._workspace_id == self._workspace_id

    def __hash__(self) -> int:
        return hash(self._workspace_id)

    def __repr__(self) -> str:
        named = f"name={self.name!r}, subscription_id={self.subscription_id!r}, resource_group={self.resource_group!r}"
        return f"Workspace.create({named})"

    def _repr_html_(self) -> str:
        return display.as_html(
            {
                "Name": self.name,
                "Resource group": self.resource_group,
                "Subscription": self.subscription_id,
                "Location": self.location,
            }
        )


def _client(server: str | None = None, because: str | None = None) -> Client:
    from lapis.client import local_server

    if server is None or job_endpoint() is not None:
        return local_server.client()
    settings = settings_module.load()
    if not str(server).startswith(("http://", "https://")):
        raise UserErrorException(
            f"lapis_server in {because} must be an address such as http://host:port, not {server!r}."
        )
    return Client(local_server.endpoint_at(settings, str(server)))


def _is_own_local(client: Client) -> bool:
    from lapis.client.local_server import LocalEndpoint

    return isinstance(client.endpoint, LocalEndpoint)


def _made_here(
    client: Client, subscription_id: str | None, resource_group: str | None, name: str, of: str = ""
) -> dict[str, Any]:
    """On one's own local server, a workspace that is not there: the name came from Azure, or from another machine, and
    gets a place here, so that the code runs. Never on a server that others use too."""
    if not _is_own_local(client):
        raise _no_such(client, name, resource_group)
    made = _create(client, subscription_id, resource_group, name, exist_ok=True)
    print(f"Lapis: made workspace '{name}'{of} on the local server.", file=sys.stderr)
    return made


def _create(
    client: Client, subscription_id: str | None, resource_group: str | None, name: str, **about: Any
) -> dict[str, Any]:
    body = {
        "name": name,
        "subscription_id": subscription_id or _DEFAULT[0],
        "resource_group": resource_group or _DEFAULT[1],
        "location": "local",
        "friendly_name": None,
        "sku": "basic",
        "tags": {},
        **about,
    }
    made: dict[str, Any] = client.call("POST", "/workspaces", body)
    return made


def _from_surroundings(auth: AbstractAuthentication | None) -> Workspace:
    """Without any file: the workspace of the job we are in, else the default one of the server."""
    client = _client()
    inside = os.environ.get("AZUREML_WORKSPACE_ID")
    if inside and "AZUREML_RUN_ID" in os.environ:
        return Workspace._from_info(client, client.call("GET", f"/workspaces/{inside}"), auth)
    info = _default_info(client)
    where = client.endpoint.find()[0]
    print(f"Lapis: no config.json found, using workspace '{info['name']}' of the server at {where}.", file=sys.stderr)
    return Workspace._from_info(client, info, auth)


def _default_info(client: Client) -> dict[str, Any]:
    found = _find(client, *_DEFAULT)
    if not found:
        raise _no_such(client, _DEFAULT[2], _DEFAULT[1])
    return found[0]


def _find(
    client: Client, subscription_id: str | None, resource_group: str | None, name: str | None
) -> list[dict[str, Any]]:
    query = {"subscription_id": subscription_id, "resource_group": resource_group, "name": name}
    found: list[dict[str, Any]] = client.call("GET", "/workspaces", query=query)["workspaces"]
    return found


def _no_such(client: Client, name: str, resource_group: str | None) -> WorkspaceException:
    known = ", ".join(sorted(info["name"] for info in _find(client, None, None, None))) or "none"
    where = f" in resource group '{resource_group}'" if resource_group else ""
    return WorkspaceException(
        f"No workspace named '{name}'{where} on this server. Known: {known}. Workspace.create('{name}') makes it."
    )


def _check_texts(**given: Any) -> None:
    for what, value in given.items():
        if not isinstance(value, str) or not value.strip():
            raise UserErrorException(f"{what} must be text that is not empty, not {value!r}.")


def _arm_id(info: Mapping[str, Any]) -> str:
    return _resource_id(info, "Microsoft.MachineLearningServices/workspaces")


def _resource_id(info: Mapping[str, Any], kind: str) -> str:
    place = f"/subscriptions/{info['subscription_id']}/resourceGroups/{info['resource_group']}"
    return f"{place}/providers/{kind}/{info['name']}"

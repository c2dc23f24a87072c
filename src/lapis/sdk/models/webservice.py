"""Deployed models: what all kinds of services have in common, and how one is found and deployed."""

from __future__ import annotations

import builtins
import json
from typing import TYPE_CHECKING, Any, Iterable, Sequence, TypeVar

from lapis.client.http_client import quoted
from lapis.errors import NotFound, WebserviceException
from lapis.sdk.base import display
from lapis.sdk.models import deployment, service_requests

if TYPE_CHECKING:
    from datetime import datetime

    from lapis.sdk.compute.compute_target import ComputeTarget
    from lapis.sdk.environments.environment import Environment
    from lapis.sdk.models.deployment_config import WebserviceDeploymentConfiguration
    from lapis.sdk.models.image import ContainerImageConfig, Image
    from lapis.sdk.models.model import Model
    from lapis.sdk.workspace.workspace import Workspace

Kind = TypeVar("Kind", bound="Webservice")


class Webservice:
    """A service of a workspace. `Webservice(ws, name)` gives an object of the service's own kind."""

    _kind = ""
    workspace: Workspace
    state: str

    def __new__(cls, workspace: Workspace, name: str, *args: Any, **kwargs: Any) -> Any:
        view = _fetch(workspace, name)
        kind = kinds().get(view["kind"], Webservice)
        if not issubclass(kind, cls):
            raise WebserviceException(
                f"Service '{name}' is a {kind.__name__}, not a {cls.__name__}. Use Webservice(ws, '{name}')."
            )
        return made(kind, workspace, view)

    def __init__(self, workspace: Workspace, name: str) -> None:
        """Everything is read by `__new__`, which knows the kind."""

    # -- deployed

    @staticmethod
    def deploy(
        workspace: Workspace,
        name: str,
        model_paths: str | Iterable[str],
        image_config: ContainerImageConfig,
        deployment_config: WebserviceDeploymentConfiguration | None = None,
        deployment_target: ComputeTarget | str | None = None,
        overwrite: bool = False,
    ) -> Webservice:
        """As in 2019: register files as models, and serve them."""
        return deployment.of_paths(
            workspace, name, model_paths, image_config, deployment_config, deployment_target, overwrite
        )

    @staticmethod
    def deploy_from_model(
        workspace: Workspace,
        name: str,
        models: Sequence[Model | str],
        image_config: ContainerImageConfig,
        deployment_config: WebserviceDeploymentConfiguration | None = None,
        deployment_target: ComputeTarget | str | None = None,
        overwrite: bool = False,
    ) -> Webservice:
        """As in 2019: serve registered models, by way of an image of the service's name."""
        return deployment.by_image(
            workspace, name, models, image_config, deployment_config, deployment_target, overwrite
        )

    @staticmethod
    def deploy_from_image(
        workspace: Workspace,
        name: str,
        image: Image,
        deployment_config: WebserviceDeploymentConfiguration | None = None,
        deployment_target: ComputeTarget | str | None = None,
        overwrite: bool = False,
    ) -> Webservice:
        """As in 2019: serve what an image was made of."""
        return deployment.of_image(workspace, name, image, deployment_config, deployment_target, overwrite)

    @staticmethod
    def deploy_local_from_model(
        workspace: Workspace,
        name: str,
        models: Sequence[Model | str],
        image_config: ContainerImageConfig,
        deployment_config: WebserviceDeploymentConfiguration | None = None,
        wait: bool = False,
    ) -> Webservice:
        """As in 2019: serve registered models on a port of this machine."""
        from lapis.sdk.models.deployment_config import LocalWebserviceDeploymentConfiguration

        config = deployment_config or LocalWebserviceDeploymentConfiguration()
        service = deployment.deploy(workspace, name, models, image_config, config, overwrite=True)
        if wait:
            service.wait_for_deployment()
        return service

    @staticmethod
    def check_for_existing_webservice(
        workspace: Workspace, name: str, overwrite: bool = False, request_func: Any = None, check_func: Any = None
    ) -> bool:
        """Whether there is one of that name; if it must not be replaced, that is an error."""
        try:
            _fetch(workspace, name)
        except WebserviceException:
            return False
        if not overwrite:
            raise WebserviceException(
                f"A service named '{name}' is there already. Pass overwrite=True to replace it, or delete() it first."
            )
        return True

    # -- found

    @staticmethod
    def list(
        workspace: Workspace,
        compute_type: str | None = None,
        image_name: str | None = None,
        image_id: str | None = None,
        model_name: str | None = None,
        model_id: str | None = None,
        tags: Iterable[str | Sequence[str]] | None = None,
        properties: Iterable[str | Sequence[str]] | None = None,
        image_digest: str | None = None,
    ) -> list[Webservice]:
        """The services that fit. Tags and properties are given as 'key' or ['key', 'value']."""
        from lapis.sdk.models.model import fits

        views = workspace._client.call("GET", workspace._base + "/services")["services"]
        found = [made(kinds().get(view["kind"], Webservice), workspace, view) for view in views]
        return [
            each
            for each in found
            if compute_type in (None, each.compute_type)
            and image_id in (None, each.image_id)
            and (image_name is None or str(each.image_id).rpartition(":")[0] == image_name)
            and (model_name is None or model_name in [m.rpartition(":")[0] for m in each._view["models"]])
            and (model_id is None or model_id in each._view["models"])
            and fits("tags", each.tags, tags)
            and fits("properties", each.properties, properties)
        ]

    # -- waited for

    def wait_for_deployment(self, show_output: bool = False, timeout_sec: float | None = None) -> None:
        """Return once it answers. Raises WebserviceException, with the script's own traceback, if it cannot."""
        from lapis.sdk.models.service_waiting import wait_for_deployment

        wait_for_deployment(self, show_output, timeout_sec)

    def update_deployment_state(self) -> None:
        """Read it again, in place."""
        self._take(_fetch(self.workspace, self.name))

    # -- asked

    def run(self, input: Any) -> Any:
        """Send a request; the answer, parsed where it is JSON."""
        return service_requests.ask(self, input)

    @property
    def scoring_uri(self) -> str | None:
        """Where requests are posted."""
        return f"http://{self._view['address']}/score"

    @property
    def swagger_uri(self) -> str | None:
        """Where what it takes and gives is described."""
        return f"http://{self._view['address']}/swagger.json"

    # -- opened

    def get_keys(self) -> tuple[str, str]:
        """The primary and the secondary key. Both open it; of two, one can be replaced while the other is in use."""
        keys = self._call("GET", "/keys")
        return keys["primary"], keys["secondary"]

    def regen_key(self, key: str, set_key: str | None = None) -> None:
        """Replace the 'Primary' or the 'Secondary' key, by `set_key` or a random one. The old one opens nothing."""
        self._call("POST", "/keys", {"which": str(key), "key": set_key})

    def get_token(self) -> tuple[str, datetime]:
        """A token, and when it is to be replaced."""
        raise WebserviceException(f"Service '{self.name}' is opened by keys, not by tokens. Use get_keys().")

    # -- told

    def get_logs(self, num_lines: int = 5000, init: bool = False) -> str:
        """The last lines of what it printed; with `init` how its environment was built."""
        return self._logs(num_lines, init)

    def _logs(self, num_lines: int, init: bool = False) -> str:
        if isinstance(num_lines, bool) or not isinstance(num_lines, int) or num_lines < 1:
            raise WebserviceException(f"num_lines must be a whole number of 1 at least, not {num_lines!r}.")
        return str(self._call("GET", "/logs", query={"lines": num_lines, "init": bool(init)})["logs"])

    def serialize(self) -> dict[str, Any]:
        """What is known of it, under Azure's names."""
        return {
            "name": self.name,
            "description": self.description,
            "tags": self.tags,
            "properties": self.properties,
            "state": self.state,
            "createdTime": self.created_time,
            "updatedTime": self.updated_time,
            "error": self.error,
            "computeType": self.compute_type,
            "workspaceName": self.workspace.name,
            "imageId": self.image_id,
            "imageDigest": self.image_digest,
            "scoringUri": self.scoring_uri,
            "swaggerUri": self.swagger_uri,
            "authEnabled": self.auth_enabled,
            "aadAuthEnabled": self.token_auth_enabled,
            "createdBy": self.created_by,
            "modelIds": self._view["models"],
        }

    @classmethod
    def deserialize(cls, workspace: Workspace, webservice_payload: dict[str, Any]) -> Webservice:
        """The service that `serialize` described, as it is now."""
        return Webservice(workspace, webservice_payload["name"])

    # -- changed

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Each kind has its own."""
        raise WebserviceException(f"A {type(self).__name__} cannot be updated. Deploy it again with overwrite=True.")

    def delete(self) -> None:
        """End it for good. Its port is free, and no process of it is left, when this returns."""
        self._call("DELETE", "", timeout=90.0)
        self.state = "Deleting"

    def _add_tags(self, tags: Any) -> None:
        self._change({"add_tags": deployment.labels("tags", tags)})

    def _remove_tags(self, tags: Any) -> None:
        names = [tags] if isinstance(tags, str) else [str(tag) for tag in tags]
        self._change({"remove_tags": names})

    def _add_properties(self, properties: Any) -> None:
        self._change({"properties": deployment.labels("properties", properties)})

    def _change(self, change: dict[str, Any]) -> None:
        self._take(self._call("PATCH", "", change, timeout=deployment.LONGEST))

    def _call(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        try:
            return self.workspace._client.call(method, f"{_path(self.workspace, self.name)}{path}", body, **more)
        except NotFound as error:
            raise WebserviceException(error.message, status_code=404)

    def _take(self, view: dict[str, Any]) -> None:
        self._view = view
        self.name: str = view["name"]
        self.compute_type: str = view["kind"]
        self.state = view["state"]
        self.description: str | None = view["description"]
        self.tags: dict[str, str] = view["tags"]
        self.properties: dict[str, str] = view["properties"]
        self.created_time = display.when(view["created_at"])
        self.updated_time = display.when(view["updated_at"])
        self.created_by = {"userName": view["created_by"]} if view["created_by"] else None
        self.error = view["error"]
        self.auth_enabled: bool = view["auth_enabled"]
        self.token_auth_enabled: bool = view["token_auth_enabled"]
        main = view["versions"][view["default"]]
        self.image_id: str | None = main["image"]
        self.image_digest = None
        self._main = main

    @property
    def image(self) -> Image | None:
        """The image that it was deployed from, if it was one."""
        if self.image_id is None:
            return None
        from lapis.sdk.models.image import Image

        return Image(self.workspace, id=self.image_id)

    @property
    def models(self) -> builtins.list[Model]:
        """The models that it serves."""
        from lapis.sdk.models.model import Model

        return [Model(self.workspace, id=each) for each in self._view["models"]]

    @property
    def environment(self) -> Environment | None:
        """The environment that it runs in."""
        from lapis.sdk.environments.environment import Environment

        definition = self._main["environment"]
        return None if definition is None else Environment._from_dict(definition)

    def __repr__(self) -> str:
        facts = {"name": self.name, "image_id": self.image_id, "compute_type": self.compute_type, "state": self.state,
                 "scoring_uri": self.scoring_uri, "tags": self.tags, "properties": self.properties,
                 "created_by": self.created_by}  # fmt: skip
        shown = ", ".join(f"{name}={value}" for name, value in facts.items())
        return f"{type(self).__name__}(workspace={self.workspace!r}, {shown})"


def kinds() -> dict[str, type[Webservice]]:
    from lapis.sdk.models.aci_webservice import AciWebservice
    from lapis.sdk.models.aks_webservice import AksEndpoint, AksWebservice
    from lapis.sdk.models.local_webservice import LocalWebservice

    return {kind._kind: kind for kind in (AciWebservice, AksWebservice, AksEndpoint, LocalWebservice)}


def made(kind: type[Kind], workspace: Workspace, view: dict[str, Any]) -> Kind:
    service = object.__new__(kind)
    service.workspace = workspace
    service._take(view)
    return service


def _path(workspace: Workspace, name: str) -> str:
    return f"{workspace._base}/services/{quoted(name)}"


def _fetch(workspace: Workspace, name: Any) -> dict[str, Any]:
    if not isinstance(name, str) or not name or "/" in name:
        raise WebserviceException(f"A service has a name; {name!r} is none.")
    try:
        view: dict[str, Any] = workspace._client.call("GET", _path(workspace, name))
    except NotFound as error:
        raise WebserviceException(f"WebserviceNotFound: {error.message}", status_code=404)
    return view


def as_text(value: Any) -> str:
    """An error of the server's in words."""
    return value if isinstance(value, str) else json.dumps(value, indent=4)

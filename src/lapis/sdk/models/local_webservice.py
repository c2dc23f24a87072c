"""Services on a port of this machine, for trying things out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Sequence

from lapis.domain.service import FAILED, HEALTHY, TRANSITIONING, UNHEALTHY
from lapis.domain.service_content import Origin
from lapis.domain.service_settings import LOCAL
from lapis.errors import WebserviceException
from lapis.sdk.models import deployment
from lapis.sdk.models.deployment_config import LocalWebserviceDeploymentConfiguration
from lapis.sdk.models.webservice import Webservice

if TYPE_CHECKING:
    from lapis.sdk.compute.compute_target import ComputeTarget
    from lapis.sdk.models.deployment_config import WebserviceDeploymentConfiguration
    from lapis.sdk.models.image import ContainerImageConfig
    from lapis.sdk.models.inference_config import InferenceConfig
    from lapis.sdk.models.model import Model
    from lapis.sdk.workspace.workspace import Workspace

_STATES = {HEALTHY: "running", TRANSITIONING: "deploying", FAILED: "failed",
           UNHEALTHY: "unknown", "Deleting": "deleted"}  # fmt: skip


class LocalWebservice(Webservice):
    """Open to whoever is on this machine. Its state is one of the constants below."""

    _kind = LOCAL

    STATE_DEPLOYING = "deploying"
    STATE_RUNNING = "running"
    STATE_FAILED = "failed"
    STATE_DELETED = "deleted"
    STATE_UNKNOWN = "unknown"
    NETWORK_NAME = "azureml-local"
    # the rest belong to the containers that Azure starts, and are here for their names
    APP_ROOT_DIR = "/var/azureml-app"
    MODELS_DIR = "azureml-models"
    MODELS_DIR_TEMP_PREFIX = "azureml_models_"
    CONTAINER_LABEL_DEPLOYMENT_CONFIG = "amlDeploymentConfig"
    CONTAINER_LABEL_IMAGE_CONFIG = "amlImageConfig"
    CONTAINER_LABEL_IS_SERVICE = "amlIsService"
    CONTAINER_LABEL_MODELS_DIR = "amlModelsDir"
    CONTAINER_LABEL_MODELS_LOCAL = "amlModelsLocal"
    CONTAINER_LABEL_MODELS_REMOTE = "amlModelsRemote"
    CONTAINER_LABEL_SERVICE_NAME = "amlServiceName"

    def __new__(cls, workspace: Workspace, name: str, must_exist: bool = True) -> Any:
        try:
            return super().__new__(cls, workspace, name)
        except WebserviceException as error:
            if must_exist or error.status_code != 404:
                raise
            missing = object.__new__(cls)
            missing.workspace, missing.name, missing.state = workspace, name, cls.STATE_UNKNOWN
            return missing

    def __init__(self, workspace: Workspace, name: str, must_exist: bool = True) -> None:
        """Everything is read by `__new__`."""

    @staticmethod
    def deploy_configuration(port: int | None = None) -> LocalWebserviceDeploymentConfiguration:
        """On that port, or on any that is free."""
        return LocalWebserviceDeploymentConfiguration(port)

    @staticmethod
    def list(  # type: ignore[override]
        workspace: Workspace, model_name: str | None = None, model_id: str | None = None, all: Any = None
    ) -> list[Webservice]:
        return Webservice.list(workspace, LOCAL, model_name=model_name, model_id=model_id)

    @classmethod
    def deserialize(cls, workspace: Workspace, webservice_payload: dict[str, Any]) -> LocalWebservice:
        """The service that `serialize` described, as it is now."""
        return LocalWebservice(workspace, webservice_payload["name"])

    @property
    def port(self) -> int | None:
        return int(self._main["port"])

    @property
    def scoring_uri(self) -> str | None:
        return super().scoring_uri

    @property
    def swagger_uri(self) -> str | None:
        return super().swagger_uri

    def run(self, input_data: Any) -> Any:
        """Send a request; the answer, parsed where it is JSON."""
        return super().run(input_data)

    def wait_for_deployment(self, show_output: bool = False, timeout_sec: float | None = None) -> None:
        super().wait_for_deployment(show_output, timeout_sec)

    def update_deployment_state(self, must_exist: bool = False) -> None:
        """Read it again, in place; without `must_exist` one that is gone is 'deleted'."""
        try:
            super().update_deployment_state()
        except WebserviceException as error:
            if must_exist or error.status_code != 404:
                raise
            self.state = self.STATE_DELETED

    def update(
        self,
        models: Sequence[Model | str] | None = None,
        image_config: ContainerImageConfig | None = None,
        deployment_config: LocalWebserviceDeploymentConfiguration | None = None,
        wait: bool = False,
        inference_config: InferenceConfig | None = None,
    ) -> None:
        """Change what is given. New models or code are served once they are ready; until then the old ones are."""
        given = {"models": models, "inference_config": inference_config or image_config}
        port = getattr(deployment_config, "port", None)
        if port not in (None, self.port):
            raise WebserviceException(
                f"Service '{self.name}' listens on port {self.port}, and an update does not change that. Deploy it "
                f"anew to have it on port {port}."
            )
        if models is None and given["inference_config"] is None:
            self.reload(wait)
            return
        self._change(deployment.change(self.workspace, given, {}))
        if wait:
            self.wait_for_deployment()

    def reload(self, wait: bool = False) -> None:
        """Load models and script again, with what the script and the files beside it are now; it does so when this
        returns, with or without `wait`, as it does when Azure's container has been started anew."""
        from lapis.sdk.models.inference_config import sent_again

        origin = self._main["origin"]
        again = {"reload": True} if origin is None else {"code": sent_again(self.workspace, Origin.from_json(origin))}
        self._change(again)
        self.wait_for_deployment()

    def deploy_to_cloud(
        self,
        name: str | None = None,
        deployment_config: WebserviceDeploymentConfiguration | None = None,
        deployment_target: ComputeTarget | str | None = None,
    ) -> Webservice:
        """Deploy the same models and code again, as a service of another kind."""
        return deployment.again(self, name or self.name, deployment_config, deployment_target)

    def delete(self, delete_cache: bool = True, delete_image: bool = False, delete_volume: bool = True) -> None:
        """End it for good. Its port is free, and no process of it is left, when this returns."""
        super().delete()
        self.state = self.STATE_DELETED

    def get_logs(self, num_lines: int = 5000, raw: bool = False) -> str:
        """The last lines of what it printed."""
        return self._logs(num_lines)

    def get_keys(self) -> NoReturn:
        raise WebserviceException("A service of LocalWebservice is open to whoever is on this machine: it has no keys.")

    def regen_key(self, key: str, set_key: str | None = None) -> None:
        raise WebserviceException("A service of LocalWebservice is open to whoever is on this machine: it has no keys.")

    def get_token(self) -> NoReturn:
        raise WebserviceException(
            "A service of LocalWebservice is open to whoever is on this machine: no token needed."
        )

    def serialize(self) -> dict[str, Any]:
        return {**super().serialize(), "port": self.port}

    def _take(self, view: dict[str, Any]) -> None:
        super()._take(view)
        self.state = _STATES.get(view["state"], self.STATE_UNKNOWN)


LocalWebserviceDeploymentConfiguration.webservice_type = LocalWebservice

"""Images as SDK v1 had them in 2019: models with their scoring script and environment, kept to be deployed from."""

from __future__ import annotations

import builtins
import os
from typing import TYPE_CHECKING, Any, Iterable, NoReturn, Sequence

from lapis.client.http_client import quoted
from lapis.domain.service_content import Content
from lapis.errors import NotFound, WebserviceException
from lapis.sdk.base import display
from lapis.sdk.models import deployment
from lapis.sdk.models.inference_config import InferenceConfig

if TYPE_CHECKING:
    from lapis.sdk.environments.container_registry import ContainerRegistry
    from lapis.sdk.models.model import Model
    from lapis.sdk.workspace.workspace import Workspace

_RUNTIMES = ("python", "spark-py")


class Asset:
    """A file that is a part of an image."""

    def __init__(self, id: Any, mime_type: Any, unpack: Any, url: Any) -> None:
        self.id = id
        self.mime_type = mime_type
        self.unpack = unpack
        self.url = url

    def serialize(self) -> dict[str, Any]:
        return {"id": self.id, "mimeType": self.mime_type, "unpack": self.unpack, "url": self.url}

    @staticmethod
    def deserialize(payload_obj: dict[str, Any]) -> Asset:
        return Asset(*(payload_obj.get(name) for name in ("id", "mimeType", "unpack", "url")))


class TargetRuntime:
    """What an image runs with."""

    def __init__(self, properties: Any, runtime_type: Any, targetArchitecture: Any) -> None:  # noqa: N803
        self.properties = properties
        self.runtime_type = runtime_type
        self.targetArchitecture = targetArchitecture

    def serialize(self) -> dict[str, Any]:
        return {
            "properties": self.properties,
            "runtimeType": self.runtime_type,
            "targetArchitecture": self.targetArchitecture,
        }

    @staticmethod
    def deserialize(payload_obj: dict[str, Any]) -> TargetRuntime:
        return TargetRuntime(*(payload_obj.get(name) for name in ("properties", "runtimeType", "targetArchitecture")))


class ImageConfig:
    """What an image is made of."""

    def build_create_payload(self, workspace: Workspace, name: str, model_ids: Iterable[str] | None) -> dict[str, Any]:
        """What SDK v1 shows of it."""
        return {"name": name, "modelIds": list(model_ids or [])}

    def validate_configuration(self) -> None:
        """Raise WebserviceException if no image can be made of it."""


class ContainerImageConfig(ImageConfig):
    """A scoring script, the files that it needs, and a conda file."""

    def __init__(
        self,
        execution_script: str,
        runtime: str,
        conda_file: str | None = None,
        docker_file: str | None = None,
        schema_file: str | None = None,
        dependencies: Iterable[str] | None = None,
        enable_gpu: bool | None = None,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        description: str | None = None,
        base_image: str | None = None,
        base_image_registry: ContainerRegistry | None = None,
        allow_absolute_path: bool = False,
        cuda_version: str | None = None,
    ) -> None:
        self.execution_script = execution_script
        self.execution_script_path = os.path.abspath(execution_script)
        self.runtime = runtime
        self.conda_file = conda_file
        self.docker_file = docker_file
        self.schema_file = schema_file
        self.dependencies = dependencies
        self.enable_gpu = enable_gpu
        self.tags = tags
        self.properties = properties
        self.description = description
        self.base_image = base_image
        self.base_image_registry = base_image_registry
        self.allow_absolute_path = allow_absolute_path
        self.cuda_version = cuda_version
        self.validate_configuration()

    def build_create_payload(self, workspace: Workspace, name: str, model_ids: Iterable[str] | None) -> dict[str, Any]:
        return {**super().build_create_payload(workspace, name, model_ids), "driverProgram": self.execution_script,
                "targetRuntime": {"runtimeType": self.runtime}, "kvTags": self.tags,
                "properties": self.properties, "description": self.description}  # fmt: skip

    def create_local_debug_payload(self, workspace: Workspace, model_ids: Iterable[str] | None) -> dict[str, Any]:
        return self.build_create_payload(workspace, "debug", model_ids)

    def validate_configuration(self) -> None:
        if str(self.runtime).lower() not in _RUNTIMES:
            raise WebserviceException(f"runtime cannot be {self.runtime!r}. Known: {', '.join(_RUNTIMES)}.")
        named = {"docker_file": self.docker_file, "schema_file": self.schema_file, "conda_file": self.conda_file}
        for what, path in named.items():
            if path is not None and not os.path.isfile(path):
                raise WebserviceException(f"There is no file {os.path.abspath(path)}, which {what} names.")
        for path in self.dependencies or []:
            if not os.path.exists(path):
                raise WebserviceException(f"There is no file or folder {os.path.abspath(path)}, named in dependencies.")
        self._inference_config()

    def _inference_config(self) -> InferenceConfig:
        """The same in the words of later releases."""
        config = InferenceConfig(
            entry_script=self.execution_script,
            runtime=self.runtime,
            conda_file=self.conda_file,
            extra_docker_file_steps=self.docker_file,
            enable_gpu=self.enable_gpu,
            description=self.description,
            base_image=self.base_image,
            base_image_registry=self.base_image_registry,
            cuda_version=self.cuda_version,
        )
        config._beside = [*(self.dependencies or []), *([self.schema_file] if self.schema_file else [])]
        return config


class Image:
    """An image of a workspace. `Image(ws, name)` gives its newest version; `id` is name:version."""

    workspace: Workspace

    def __new__(
        cls,
        workspace: Workspace,
        name: str | None = None,
        id: str | None = None,
        tags: Iterable[str | Sequence[str]] | None = None,
        properties: Iterable[str | Sequence[str]] | None = None,
        version: int | None = None,
    ) -> Any:
        if id is not None:
            name, _, number = str(id).rpartition(":")
            if not name or not number.isdigit():
                raise WebserviceException(f"An image's id is name:version, and {id!r} is not.")
            version = int(number)
        if not name:
            raise WebserviceException("An image is found by its name, or by its id (name:version).")
        if tags is not None or properties is not None:
            found = [each for each in Image.list(workspace, name, tags=tags, properties=properties)
                     if version in (None, each.version)]  # fmt: skip
            if not found:
                raise WebserviceException(
                    f"No version of image '{name}' fits tags={tags!r}, properties={properties!r}."
                )
            return found[0]
        path = f"{workspace._base}/images/{quoted(name)}" + ("" if version is None else f"/{int(version)}")
        try:
            return _made(workspace, workspace._client.call("GET", path))
        except NotFound as error:
            raise WebserviceException(error.message, status_code=404)

    def __init__(
        self,
        workspace: Workspace,
        name: str | None = None,
        id: str | None = None,
        tags: Iterable[str | Sequence[str]] | None = None,
        properties: Iterable[str | Sequence[str]] | None = None,
        version: int | None = None,
    ) -> None:
        """Everything is read by `__new__`."""

    @staticmethod
    def image_configuration(*args: Any, **kwargs: Any) -> ImageConfig:
        """Each kind has its own: ContainerImage.image_configuration."""
        raise WebserviceException("Use ContainerImage.image_configuration(): an Image alone has none.")

    @staticmethod
    def create(
        workspace: Workspace, name: str, models: Sequence[Model | str], image_config: ContainerImageConfig
    ) -> ContainerImage:
        """Keep models, code and environment together, as the next version of that name."""
        if not hasattr(image_config, "validate_configuration"):
            raise WebserviceException(
                f"image_config comes from ContainerImage.image_configuration(); it cannot be {image_config!r}."
            )
        image_config.validate_configuration()
        body = {
            "name": name,
            "content": deployment.content(workspace, models, image_config),
            "description": image_config.description,
            "tags": deployment.labels("tags", image_config.tags or {}),
            "properties": deployment.labels("properties", image_config.properties or {}),
        }
        view = workspace._client.call("POST", workspace._base + "/images", body, timeout=deployment.LONGEST)
        print("Creating image")
        return _made(workspace, view)

    @staticmethod
    def list(
        workspace: Workspace,
        image_name: str | None = None,
        model_name: str | None = None,
        model_id: str | None = None,
        tags: Iterable[str | Sequence[str]] | None = None,
        properties: Iterable[str | Sequence[str]] | None = None,
    ) -> list[ContainerImage]:
        """The images that fit, of each name the newest version first."""
        from lapis.sdk.models.model import fits

        views = workspace._client.call("GET", workspace._base + "/images")["images"]
        return [
            _made(workspace, view)
            for view in views
            if image_name in (None, view["name"])
            and (model_name is None or model_name in [each.rpartition(":")[0] for each in view["models"]])
            and (model_id is None or model_id in view["models"])
            and fits("tags", view["tags"], tags)
            and fits("properties", view["properties"], properties)
        ]

    def wait_for_creation(self, show_output: bool = False) -> None:
        """Return at once: an image is there when it is made. Its environment is built when it is deployed."""
        self.update_creation_state()
        if show_output:
            print(
                f'{self.creation_state}\nImage creation operation finished for image {self.id}, operation "Succeeded"'
            )

    def update_creation_state(self) -> None:
        """Read it again, in place."""
        self._take(self._call("GET"))

    def update(self, tags: dict[str, Any]) -> None:
        """Replace the tags."""
        fresh = deployment.labels("tags", tags)
        self._change({"tags": fresh, "remove_tags": [key for key in self.tags if key not in fresh]})

    def add_tags(self, tags: dict[str, Any]) -> None:
        self._change({"tags": deployment.labels("tags", tags)})

    def remove_tags(self, tags: str | Iterable[str]) -> None:
        self._change({"remove_tags": [tags] if isinstance(tags, str) else [str(tag) for tag in tags]})

    def add_properties(self, properties: dict[str, Any]) -> None:
        """Properties that are set stay as they are."""
        self._change({"properties": deployment.labels("properties", properties)})

    def delete(self) -> None:
        """Remove this version. Services that were deployed from it go on."""
        self._call("DELETE")

    def serialize(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "version": self.version,
            "createdTime": self.created_time,
            "creationState": self.creation_state,
            "description": self.description,
            "imageType": self.image_type,
            "imageLocation": self.image_location,
            "modelIds": self.model_ids,
            "tags": self.tags,
            "properties": self.properties,
        }

    @classmethod
    def deserialize(cls, workspace: Workspace, image_payload: dict[str, Any]) -> Image:
        """The image that `serialize` described, as it is now."""
        return Image(workspace, id=image_payload["id"])

    @property
    def models(self) -> builtins.list[Model]:
        from lapis.sdk.models.model import Model

        return [Model(self.workspace, id=each) for each in self.model_ids]

    def _take(self, view: dict[str, Any]) -> None:
        self._view = view
        self.id: str = view["id"]
        self.name: str = view["name"]
        self.version: int = view["version"]
        self.description: str | None = view["description"]
        self.tags: dict[str, str] = view["tags"]
        self.properties: dict[str, str] = view["properties"]
        self.created_time = display.when(view["created_at"])
        self.creation_state = "Succeeded"
        self.image_type = "Docker"
        self.image_flavor = "WebApiContainer"
        self.image_location = f"lapis/{self.name}:{self.version}"
        self.image_build_log_uri = None
        self.generated_dockerfile_uri = None
        self.model_ids: builtins.list[str] = view["models"]

    def _change(self, changes: dict[str, Any]) -> None:
        self._take(self._call("PATCH", changes))

    def _call(self, method: str, body: Any = None) -> Any:
        path = f"{self.workspace._base}/images/{quoted(self.name)}/{self.version}"
        try:
            return self.workspace._client.call(method, path, body)
        except NotFound as error:
            raise WebserviceException(error.message, status_code=404)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(workspace={self.workspace!r}, name={self.name}, id={self.id}, tags={self.tags})"


class ContainerImage(Image):
    """The only kind that there is."""

    @staticmethod
    def image_configuration(
        execution_script: str,
        runtime: str,
        conda_file: str | None = None,
        docker_file: str | None = None,
        schema_file: str | None = None,
        dependencies: Iterable[str] | None = None,
        enable_gpu: bool | None = None,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        description: str | None = None,
        base_image: str | None = None,
        base_image_registry: ContainerRegistry | None = None,
        cuda_version: str | None = None,
    ) -> ContainerImageConfig:
        """What an image is made of. What only a container has is kept and not used."""
        return ContainerImageConfig(
            execution_script, runtime, conda_file, docker_file, schema_file, dependencies, enable_gpu, tags, properties,
            description, base_image, base_image_registry, cuda_version=cuda_version,
        )  # fmt: skip

    def run(self, input_data: Any) -> Any:
        """Serve it for one request on this machine; the answer."""
        from uuid import uuid4

        from lapis.sdk.models.deployment_config import LocalWebserviceDeploymentConfiguration

        config = LocalWebserviceDeploymentConfiguration()
        service = deployment.of_image(self.workspace, f"try-{uuid4().hex[:12]}", self, config)
        try:
            service.wait_for_deployment()
            return service.run(input_data)
        finally:
            service.delete()

    def serialize(self) -> dict[str, Any]:
        return {
            **super().serialize(),
            "driverProgram": self.driver_program,
            "targetRuntime": self.target_runtime.serialize(),
            "assets": [each.serialize() for each in self.assets],
        }

    def _take(self, view: dict[str, Any]) -> None:
        super()._take(view)
        content = Content.from_json(view["content"])
        self.driver_program = content.entry_script
        self.target_runtime = TargetRuntime({"python": content.python}, "Python", "Amd64")
        self.assets = [Asset(content.entry_script, "application/x-python", False, None)]


class UnknownImage(Image):
    """An image of a kind that this release does not know."""

    def run(self) -> NoReturn:
        """Only a ContainerImage can be asked."""
        raise WebserviceException(f"Image {self.id} is of a kind that cannot be run.")


def _made(workspace: Workspace, view: dict[str, Any]) -> ContainerImage:
    image = object.__new__(ContainerImage)
    image.workspace = workspace
    image._take(view)
    return image

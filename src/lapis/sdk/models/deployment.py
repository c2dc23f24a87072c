"""From models and configurations to a service: checked whole before anything is made."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Iterable, Sequence

from lapis.domain.service import check_service_name
from lapis.domain.service_settings import CLUSTER_KINDS, ENDPOINT, ServiceSettings
from lapis.errors import UserErrorException, WebserviceException

if TYPE_CHECKING:
    from lapis.sdk.compute.compute_target import ComputeTarget
    from lapis.sdk.models.deployment_config import WebserviceDeploymentConfiguration
    from lapis.sdk.models.image import ContainerImageConfig, Image
    from lapis.sdk.models.inference_config import InferenceConfig
    from lapis.sdk.models.model import Model
    from lapis.sdk.models.webservice import Webservice
    from lapis.sdk.workspace.workspace import Workspace

LONGEST = 900.0  # seconds: the server may have to find out which packages fit together


def deploy(
    workspace: Workspace,
    name: str,
    models: Sequence[Model | str],
    inference_config: InferenceConfig | ContainerImageConfig | None = None,
    deployment_config: WebserviceDeploymentConfiguration | None = None,
    deployment_target: ComputeTarget | str | None = None,
    overwrite: bool = False,
    show_output: bool = False,
) -> Webservice:
    """Start to serve models. Returns at once; `wait_for_deployment()` waits until they answer."""
    new = _new(workspace, name, deployment_config, deployment_target, overwrite)
    _check_name_is_free(workspace, name, overwrite)
    new["content"] = content(workspace, models, inference_config)
    return _sent(workspace, new, show_output)


def of_image(
    workspace: Workspace,
    name: str,
    image: Image,
    deployment_config: WebserviceDeploymentConfiguration | None = None,
    deployment_target: ComputeTarget | str | None = None,
    overwrite: bool = False,
) -> Webservice:
    from lapis.sdk.models.deployment_config import WebserviceDeploymentConfiguration

    WebserviceDeploymentConfiguration.validate_image(image)
    new = _new(workspace, name, deployment_config, deployment_target, overwrite)
    new["image"] = image.id
    return _sent(workspace, new, False)


def again(
    service: Webservice,
    name: str,
    deployment_config: WebserviceDeploymentConfiguration | None,
    deployment_target: ComputeTarget | str | None,
) -> Webservice:
    """What a service serves, as another service; under the same name it takes that one's place."""
    new = _new(service.workspace, name, deployment_config, deployment_target, name == service.name)
    return _sent(service.workspace, {**new, "like": service.name}, False)


def of_paths(
    workspace: Workspace,
    name: str,
    model_paths: str | Iterable[str] | None,
    image_config: ContainerImageConfig,
    deployment_config: WebserviceDeploymentConfiguration | None = None,
    deployment_target: ComputeTarget | str | None = None,
    overwrite: bool = False,
) -> Webservice:
    """Files become models under their own names, which are then served."""
    from lapis.sdk.models.model import Model

    paths = [model_paths] if isinstance(model_paths, str) else [*(model_paths or [])]
    missing = [path for path in paths if not os.path.exists(path)]
    if missing:
        raise WebserviceException(f"There is no file or folder '{missing[0]}' to serve. Nothing was registered.")
    _new(workspace, name, deployment_config, deployment_target, overwrite)
    _check_name_is_free(workspace, name, overwrite)
    models = [Model.register(workspace, path, os.path.basename(os.path.abspath(path))) for path in paths]
    return by_image(workspace, name, models, image_config, deployment_config, deployment_target, overwrite)


def by_image(
    workspace: Workspace,
    name: str,
    models: Sequence[Model | str],
    image_config: InferenceConfig | ContainerImageConfig,
    deployment_config: WebserviceDeploymentConfiguration | None = None,
    deployment_target: ComputeTarget | str | None = None,
    overwrite: bool = False,
) -> Webservice:
    """An image of the service's name, and the service. An InferenceConfig, of later releases, makes no image."""
    from lapis.sdk.models.image import ContainerImageConfig, Image

    where = (deployment_config, deployment_target, overwrite)
    if not isinstance(image_config, ContainerImageConfig):
        return deploy(workspace, name, models, image_config, *where)
    _new(workspace, name, *where)
    _check_name_is_free(workspace, name, overwrite)
    return of_image(workspace, name, Image.create(workspace, name, models, image_config), *where)


def content(workspace: Workspace, models: Any, inference_config: Any) -> dict[str, Any]:
    """What is to be served. The code is sent by this."""
    ids = model_ids(models)
    if inference_config is None:
        return {"models": ids}
    if hasattr(inference_config, "_inference_config"):  # of an image, as in 2019
        inference_config = inference_config._inference_config()
    if not hasattr(inference_config, "_content"):
        raise WebserviceException(f"inference_config must be an InferenceConfig, not {inference_config!r}.")
    found: dict[str, Any] = inference_config._content(workspace, ids)
    return found


def model_ids(models: Any) -> list[str]:
    """By object, or by id (name:version)."""
    given = [models] if isinstance(models, str) or hasattr(models, "id") else [*(models or [])]
    ids = []
    for each in given:
        found = each if isinstance(each, str) else getattr(each, "id", None)
        if not isinstance(found, str) or not found:
            raise WebserviceException(f"A model is given as a Model or by its id (name:version), not as {each!r}.")
        ids.append(found)
    return ids


def labels(what: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise WebserviceException(f"{what} must be a dict, not {given!r}.")
    return {str(key): None if value is None else str(value) for key, value in given.items()}


def _new(workspace: Workspace, name: str, config: Any, target: Any, overwrite: bool) -> dict[str, Any]:
    """What the server needs to know, but for what is served."""
    from lapis.sdk.models.deployment_config import AciServiceDeploymentConfiguration
    from lapis.sdk.runs.interactive import user_name

    check_service_name(name)
    if config is None:  # as in Azure: on a cluster if one is given, else alone
        config = _of_cluster() if target is not None else AciServiceDeploymentConfiguration()
    if not hasattr(config, "validate_configuration"):
        raise WebserviceException(
            "deployment_config comes from deploy_configuration() of AciWebservice, AksWebservice or LocalWebservice; "
            f"it cannot be {config!r}."
        )
    config.validate_configuration()
    chosen = _target(workspace, config, target)
    if getattr(config, "ssl_enabled", None):
        print("Lapis: ssl is not used: the service listens on this machine only.", file=sys.stderr)
    return {
        "name": name,
        "kind": config._kind,
        "settings": config._settings(),
        "keys": config._keys(),
        "description": config.description,
        "tags": labels("tags", config.tags or {}),
        "properties": labels("properties", config.properties or {}),
        "target": chosen,
        "version": (getattr(config, "version_name", None) or name) if config._kind == ENDPOINT else "",
        "overwrite": bool(overwrite),
        "created_by": user_name(),
    }


def _of_cluster() -> WebserviceDeploymentConfiguration:
    from lapis.sdk.models.aks_webservice import AksWebservice

    return AksWebservice.deploy_configuration()


def _target(workspace: Workspace, config: Any, target: Any) -> str | None:
    """The name of the compute target, if one is given; None: the server's own machine."""
    named = getattr(config, "compute_target_name", None)
    chosen = getattr(target, "name", target) if target is not None else named
    if chosen in (None, "local"):
        return None
    if not isinstance(chosen, str):
        raise WebserviceException(f"deployment_target is a compute target or its name, not {target!r}.")
    if config._kind not in CLUSTER_KINDS:
        raise WebserviceException(
            f"deployment_target '{chosen}' is for services of AksWebservice; a {config._kind} service has none."
        )
    from lapis.sdk.compute.compute_target import ComputeTarget

    return str(ComputeTarget(workspace, chosen).name)


def _check_name_is_free(workspace: Workspace, name: str, overwrite: bool) -> None:
    """Before the code is sent; the server looks again."""
    from lapis.sdk.models.webservice import Webservice

    Webservice.check_for_existing_webservice(workspace, name, True if overwrite else False)


def _sent(workspace: Workspace, new: dict[str, Any], show_output: bool) -> Webservice:
    from lapis.sdk.models.webservice import kinds, made

    view = workspace._client.call("POST", workspace._base + "/services", new, timeout=LONGEST)
    service = made(kinds()[view["kind"]], workspace, view)
    if show_output:
        service.wait_for_deployment(show_output=True)
    return service


def change(workspace: Workspace, given: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """What an update asks for: `given` as its caller has it, `settings` as the server keeps them."""
    asked: dict[str, Any] = {"settings": ServiceSettings.asked(settings).to_json()}
    image, models, inference_config = given.get("image"), given.get("models"), given.get("inference_config")
    if image is not None and (models is not None or inference_config is not None):
        raise WebserviceException("update() takes an image, or models and inference_config; not both.")
    if image is not None:
        asked["image"] = image.id
    if inference_config is not None:
        asked["content"] = content(workspace, models, inference_config)
    elif models is not None:
        asked["models"] = model_ids(models)
    if given.get("tags") is not None:
        asked["tags"] = labels("tags", given["tags"])
    if given.get("properties") is not None:
        asked["properties"] = labels("properties", given["properties"])
    if given.get("description") is not None:
        if not isinstance(given["description"], str):
            raise UserErrorException(f"description must be text, not {given['description']!r}.")
        asked["description"] = given["description"]
    if not asked["settings"] and len(asked) == 1:
        raise WebserviceException("update() was given nothing to change.")
    return asked


def print_configuration(models: Any, inference_config: Any, deployment_config: Any, deployment_target: Any) -> None:
    """What would be deployed, and how."""
    print(f"Models: {', '.join(model_ids(models)) or 'none'}")
    if inference_config is not None:
        if hasattr(inference_config, "_inference_config"):
            inference_config = inference_config._inference_config()
        environment = inference_config.environment
        print(f"Entry script: {inference_config.entry_script}")
        print(f"Source directory: {inference_config.source_directory}")
        print(f"Environment: {getattr(environment, 'name', None) or inference_config.conda_file}")
    else:
        print("Entry script: none, served as their framework serves them")
    if deployment_config is not None:
        print(f"Kind: {deployment_config._kind}")
        deployment_config.print_deploy_configuration()
    print(f"Deployment target: {getattr(deployment_target, 'name', deployment_target) or 'local'}")

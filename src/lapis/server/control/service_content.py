"""What a service serves: which models, with which code or runtime, in which environment. Checked before it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lapis.domain.run import check_labels
from lapis.domain.tree import Tree
from lapis.errors import NotFound, WebserviceException
from lapis.server.control.environment_builds import EnvironmentBuilds
from lapis.server.control.models import Models
from lapis.server.control.stores import Stores
from lapis.server.store.assets import IMAGE, Asset

_MODEL_FILES = (".onnx", ".h5", ".hdf5", ".keras", ".pkl", ".pickle", ".joblib", ".sav")
NO_CODE = ("TensorFlow", "TfKeras", "Onnx", "ScikitLearn")


@dataclass(frozen=True)
class NewContent:
    __pydantic_config__ = {"extra": "forbid"}

    models: list[str] = field(default_factory=list)  # name:version, or a name for its newest version
    snapshot_id: str | None = None
    entry_script: str | None = None  # its path in the snapshot; None: the server knows how to serve such a model
    folder: str | None = None  # what the source folder is called: scripts open paths that begin with it
    python: str | None = None
    environment: dict[str, Any] | None = None  # its lock, where packages are to be installed
    environment_variables: dict[str, str] = field(default_factory=dict)
    definition: dict[str, Any] | None = None  # of the environment, for showing
    notices: list[str] = field(default_factory=list)
    description: str | None = None
    origin: dict[str, Any] | None = None  # where the code was when it was sent


class Contents:
    def __init__(self, stores: Stores, models: Models, builds: EnvironmentBuilds) -> None:
        self._stores = stores
        self._models = models
        self._builds = builds

    def of_new(self, workspace_id: str, new: NewContent | None, image: str | None) -> dict[str, Any]:
        if image is not None:
            return dict(_of_image(self._stores, workspace_id, image), image=image)
        if new is None:
            raise WebserviceException("There is nothing to serve: give models, an inference_config, or both.")
        models = self._all_models(workspace_id, new.models)
        if new.entry_script is None:
            return self._without_code(workspace_id, models, new)
        self._check_script(new)
        if new.environment is not None:
            self._builds.lock(str(new.environment["lock"]))
        check_labels("environment_variables", new.environment_variables)
        given = {key: getattr(new, key) for key in ("snapshot_id", "entry_script", "folder", "python", "environment",
                                                    "environment_variables", "definition", "notices",
                                                    "description", "origin")}  # fmt: skip
        return {**given, "models": models, "no_code": None}

    def with_models(self, workspace_id: str, before: Mapping[str, Any], models: list[str]) -> dict[str, Any]:
        """The same code with other models; without code, whatever the new model needs."""
        found = self._all_models(workspace_id, models)
        if before["no_code"] is not None:
            return self._without_code(workspace_id, found, NewContent(description=before["description"]))
        return {**before, "models": found}

    def with_code(self, before: Mapping[str, Any], code: Mapping[str, Any]) -> dict[str, Any]:
        """The same models with other code."""
        if before["no_code"] is not None:
            raise WebserviceException("This service has no code of its own that could be loaded again.")
        given = {key: code.get(key) for key in ("snapshot_id", "entry_script", "folder")}
        self._check_script(NewContent(snapshot_id=given["snapshot_id"], entry_script=given["entry_script"]))
        return {**before, **given}

    def files_of(self, workspace_id: str, content: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The models with the list of their files, as an agent lays them out."""
        found = []
        for model in content["models"]:
            view = self._models.get(workspace_id, model["name"], model["version"])
            found.append({"name": model["name"], "version": model["version"], "files": view["files"]})
        return found

    def _all_models(self, workspace_id: str, ids: list[str]) -> list[dict[str, Any]]:
        found = [self._model(workspace_id, each) for each in ids]
        twice = {each["id"] for each in found if [other["id"] for other in found].count(each["id"]) > 1}
        if twice:
            raise WebserviceException(f"Model {', '.join(sorted(twice))} is named twice.")
        return found

    def _model(self, workspace_id: str, model_id: str) -> dict[str, Any]:
        name, _, version = model_id.rpartition(":")
        if name and version.isdigit():
            view = self._models.get(workspace_id, name, int(version))
        else:
            view = self._models.get(workspace_id, model_id)
        return {key: view[key] for key in ("id", "asset_id", "name", "version", "framework", "framework_version")}

    def _check_script(self, new: NewContent) -> None:
        if new.snapshot_id is None or not self._stores.snapshots.has(new.snapshot_id):
            raise WebserviceException(f"The code of the service (snapshot '{new.snapshot_id}') is not stored here.")
        paths = [entry.path for entry in self._stores.snapshots.get(new.snapshot_id)]
        if new.entry_script not in paths:
            near = ", ".join(path for path in paths if path.endswith(".py")) or "none"
            raise WebserviceException(f"There is no entry script '{new.entry_script}'. Python files there: {near}.")

    def _without_code(self, workspace_id: str, models: list[dict[str, Any]], new: NewContent) -> dict[str, Any]:
        if len(models) != 1:
            raise WebserviceException(
                f"Without an inference_config exactly one model is served, not {len(models)}. Pass "
                "inference_config=InferenceConfig(entry_script=..., environment=...) to serve several together."
            )
        model = models[0]
        if model["framework"] not in NO_CODE:
            raise WebserviceException(
                f"Model {model['id']} was registered with model_framework={model['framework']!r}, which cannot be "
                f"served without code. Register it with one of {', '.join(NO_CODE)}, or pass an inference_config."
            )
        files = self._stores.assets.get(workspace_id, model["asset_id"]).body["files"]
        runtime, definition = self._no_code(model, files)
        resolved = self._builds.resolve(definition, strict=False)
        empty = Tree([])
        self._stores.snapshots.add(empty, 0.0)
        return {
            "models": models,
            "snapshot_id": empty.id,
            "entry_script": None,
            "folder": None,
            "python": None,
            "environment": {
                "name": definition.get("name"),
                "lock": resolved.lock.hash,
                "said": list(resolved.said),
            },
            "environment_variables": {},
            "definition": definition,
            "notices": [*(str(each) for each in resolved.lock.substitutions), *resolved.lock.notices],
            "description": new.description,
            "no_code": {"runtime": runtime, "model": _served_part([str(file["path"]) for file in files])},
        }

    def _no_code(self, model: Mapping[str, Any], files: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
        """The runtime and the environment that serve these files."""
        from lapis.environments.no_code import no_code

        hashes = {str(file["path"]): str(file["hash"]) for file in files}

        def read(path: str) -> bytes:
            with self._stores.blobs.open(hashes[path]) as file:
                return file.read()

        return no_code(model["framework"], model["framework_version"], list(hashes), read)


def find_image(stores: Stores, workspace_id: str, name: str, version: int | None, kind: str = IMAGE) -> Asset:
    """The image or package of that name, the newest version if none is asked for."""
    there = [each for each in stores.assets.find(workspace_id, kind, name) if "gone" not in each.body]
    found = [each for each in there if version in (None, each.version)]
    if not found:
        known = sorted(
            f"{each.name}:{each.version}" for each in stores.assets.find(workspace_id, kind) if "gone" not in each.body
        )
        which = name if version is None else f"{name}:{version}"
        raise NotFound(f"There is no {kind} '{which}' in this workspace. Known: {', '.join(known) or 'none'}.")
    return found[0]


def _of_image(stores: Stores, workspace_id: str, image_id: str) -> dict[str, Any]:
    """What an image of 2019's kind holds."""
    name, _, version = image_id.rpartition(":")
    if not name or not version.isdigit():
        raise WebserviceException(f"An image's id is name:version, and {image_id!r} is not.")
    content: dict[str, Any] = find_image(stores, workspace_id, name, int(version)).body["content"]
    return content


def _served_part(paths: list[str]) -> str:
    """The folder of a SavedModel, else the file, else the folder that holds all: of several the runtime chooses."""
    saved = [path for path in paths if path.rsplit("/", 1)[-1] in ("saved_model.pb", "saved_model.pbtxt")]
    if len(saved) == 1:
        return saved[0].rpartition("/")[0]
    fitting = [path for path in paths if path.lower().endswith(_MODEL_FILES)]
    if len(paths) == 1 or len(fitting) == 1:
        return (fitting or paths)[0]
    return paths[0].split("/")[0]

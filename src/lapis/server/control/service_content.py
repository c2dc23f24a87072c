"""What a service serves: which models, with which code or runtime, in which environment. Checked before it is kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lapis.domain.deployment import NewCode, NewContent
from lapis.domain.job import NoCode, WantedEnvironment
from lapis.domain.run import check_labels
from lapis.domain.service_content import Content, ModelVersion
from lapis.domain.tree import Tree
from lapis.environments.environment_builds import EnvironmentBuilds
from lapis.errors import NotFound, WebserviceException
from lapis.server.control.models import Models
from lapis.server.control.sealing import Sealing
from lapis.server.control.stores import Stores
from lapis.server.store.assets import IMAGE, Asset

_MODEL_FILES = (".onnx", ".h5", ".hdf5", ".keras", ".pkl", ".pickle", ".joblib", ".sav")
NO_CODE = ("TensorFlow", "TfKeras", "Onnx", "ScikitLearn")


class Contents:
    def __init__(self, stores: Stores, models: Models, builds: EnvironmentBuilds, sealing: Sealing) -> None:
        self._stores = stores
        self._sealing = sealing
        self._models = models
        self._builds = builds

    def of_new(self, workspace_id: str, new: NewContent | None, image: str | None) -> Content:
        if image is not None:
            return replace(_of_image(self._stores, workspace_id, image), image=image)
        if new is None:
            raise WebserviceException("There is nothing to serve: give models, an inference_config, or both.")
        models = self._all_models(workspace_id, new.models)
        if new.entry_script is None:
            return self._without_code(workspace_id, models, new.description)
        self._check_script(workspace_id, new.snapshot_id, new.entry_script)
        if new.environment is not None:
            self._builds.lock(new.environment.lock)
        variables = check_labels("environment_variables", new.environment_variables)
        kept = self._sealing.sealed(workspace_id, {"environment_variables": variables, "definition": new.definition})
        return Content(
            models=models,
            snapshot_id=new.snapshot_id,
            entry_script=new.entry_script,
            folder=new.folder,
            python=new.python,
            environment=new.environment,
            **kept,
            notices=new.notices,
            description=new.description,
            origin=new.origin,
        )

    def with_models(self, workspace_id: str, before: Content, models: Sequence[str]) -> Content:
        """The same code with other models; without code, whatever the new model needs."""
        found = self._all_models(workspace_id, models)
        if before.no_code is not None:
            return self._without_code(workspace_id, found, before.description)
        return replace(before, models=found)

    def with_code(self, workspace_id: str, before: Content, code: NewCode) -> Content:
        """The same models with other code."""
        if before.no_code is not None:
            raise WebserviceException("This service has no code of its own that could be loaded again.")
        self._check_script(workspace_id, code.snapshot_id, code.entry_script)
        return replace(before, snapshot_id=code.snapshot_id, entry_script=code.entry_script, folder=code.folder)

    def files_of(self, workspace_id: str, content: Content) -> list[dict[str, Any]]:
        """The models with the list of their files, as an agent lays them out."""
        found = []
        for model in content.models:
            view = self._models.get(workspace_id, model.name, model.version)
            found.append({"name": model.name, "version": model.version, "files": view["files"]})
        return found

    def _all_models(self, workspace_id: str, ids: Sequence[str]) -> tuple[ModelVersion, ...]:
        found = tuple(self._model(workspace_id, each) for each in ids)
        named = [each.id for each in found]
        twice = {each for each in named if named.count(each) > 1}
        if twice:
            raise WebserviceException(f"Model {', '.join(sorted(twice))} is named twice.")
        return found

    def _model(self, workspace_id: str, model_id: str) -> ModelVersion:
        name, _, version = model_id.rpartition(":")
        if name and version.isdigit():
            view = self._models.get(workspace_id, name, int(version))
        else:
            view = self._models.get(workspace_id, model_id)
        return ModelVersion.from_json(view)

    def _check_script(self, workspace_id: str, snapshot_id: str | None, entry_script: str | None) -> None:
        if snapshot_id is None or not self._stores.snapshots.ask_for(workspace_id, snapshot_id, time.time()):
            raise WebserviceException(f"The code of the service (snapshot '{snapshot_id}') is not stored here.")
        paths = [entry.path for entry in self._stores.snapshots.get(snapshot_id)]
        if entry_script not in paths:
            near = ", ".join(path for path in paths if path.endswith(".py")) or "none"
            raise WebserviceException(f"There is no entry script '{entry_script}'. Python files there: {near}.")

    def _without_code(self, workspace_id: str, models: tuple[ModelVersion, ...], description: str | None) -> Content:
        if len(models) != 1:
            raise WebserviceException(
                f"Without an inference_config exactly one model is served, not {len(models)}. Pass "
                "inference_config=InferenceConfig(entry_script=..., environment=...) to serve several together."
            )
        model = models[0]
        if model.framework not in NO_CODE:
            raise WebserviceException(
                f"Model {model.id} was registered with model_framework={model.framework!r}, which cannot be "
                f"served without code. Register it with one of {', '.join(NO_CODE)}, or pass an inference_config."
            )
        files = self._stores.assets.get(workspace_id, model.asset_id).body["files"]
        runtime, definition = self._no_code(model.framework, model.framework_version, files)
        resolved = self._builds.resolve(definition, strict=False)
        empty = Tree([])
        if not self._stores.snapshots.ask_for(workspace_id, empty.id, time.time()):
            self._stores.snapshots.add(workspace_id, empty, time.time())
        return Content(
            models=models,
            snapshot_id=empty.id,
            environment=WantedEnvironment(resolved.lock.hash, definition.get("name"), resolved.said),
            definition=definition,
            notices=(*(str(each) for each in resolved.lock.substitutions), *resolved.lock.notices),
            description=description,
            no_code=NoCode(runtime, _served_part([str(file["path"]) for file in files])),
        )

    def _no_code(
        self, framework: str, framework_version: str | None, files: list[dict[str, Any]]
    ) -> tuple[str, dict[str, Any]]:
        """The runtime and the environment that serve these files."""
        from lapis.environments.no_code import no_code

        hashes = {str(file["path"]): str(file["hash"]) for file in files}
        blobs = self._stores.blobs
        return no_code(framework, framework_version, list(hashes), lambda path: blobs.open_unchecked(hashes[path]))


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


def _of_image(stores: Stores, workspace_id: str, image_id: str) -> Content:
    """What an image of 2019's kind holds."""
    name, _, version = image_id.rpartition(":")
    if not name or not version.isdigit():
        raise WebserviceException(f"An image's id is name:version, and {image_id!r} is not.")
    return Content.from_json(find_image(stores, workspace_id, name, int(version)).body["content"])


def _served_part(paths: list[str]) -> str:
    """The folder of a SavedModel, else the file, else the folder that holds all: of several the runtime chooses."""
    saved = [path for path in paths if path.rsplit("/", 1)[-1] in ("saved_model.pb", "saved_model.pbtxt")]
    if len(saved) == 1:
        return saved[0].rpartition("/")[0]
    fitting = [path for path in paths if path.lower().endswith(_MODEL_FILES)]
    if len(paths) == 1 or len(fitting) == 1:
        return (fitting or paths)[0]
    return paths[0].split("/")[0]

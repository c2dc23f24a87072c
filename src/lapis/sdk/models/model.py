"""Registered models: versions of files under a name, with where they came from."""

from __future__ import annotations

import builtins
import os

from lapis.client import fetching, http_client
from lapis.domain import run as run_rules
from lapis.domain import tree
from lapis.errors import ModelNotFoundException, UserErrorException, WebserviceException
from lapis.later import TYPE_CHECKING
from lapis.sdk.base import display
from lapis.sdk.models.resource_configuration import ResourceConfiguration
from lapis.sdk.runs import run_files

if TYPE_CHECKING:
    from typing import Any, Iterable, Sequence, overload

    from lapis.sdk.compute.compute_target import ComputeTarget
    from lapis.sdk.data.abstract_dataset import AbstractDataset
    from lapis.sdk.data.file_dataset import FileDataset
    from lapis.sdk.data.tabular_dataset import TabularDataset
    from lapis.sdk.models.deployment_config import WebserviceDeploymentConfiguration
    from lapis.sdk.models.inference_config import InferenceConfig
    from lapis.sdk.models.model_package import ModelPackage
    from lapis.sdk.models.model_profile import ModelProfile
    from lapis.sdk.models.webservice import Webservice
    from lapis.sdk.runs.run import Run
    from lapis.sdk.workspace.workspace import Workspace

_MODELS_FOLDER = "azureml-models"
_LARGE = 1 << 20


class Model:
    """A version of a model. `Model(ws, name)` gives the newest one; `id` is name:version."""

    class Framework:
        """What a model was made with."""

        CUSTOM = "Custom"
        TENSORFLOW = "TensorFlow"
        SCIKITLEARN = "ScikitLearn"
        ONNX = "Onnx"
        TFKERAS = "TfKeras"
        PYTORCH = "PyTorch"
        MULTI = "Multi"

    def __init__(
        self,
        workspace: Workspace,
        name: str | None = None,
        id: str | None = None,
        tags: Iterable[str | Sequence[str]] | None = None,
        properties: Iterable[str | Sequence[str]] | None = None,
        version: int | None = None,
        run_id: str | None = None,
        model_framework: str | None = None,
        expand: bool = True,
        **kwargs: Any,
    ) -> None:
        self.workspace = workspace
        if "_view" in kwargs:
            self._take(kwargs["_view"])
            return
        if id is not None:
            name, version = _parts(id)
        if name is None:
            raise UserErrorException("A model is found by its name, or by its id (name:version).")
        filters = (tags, properties, run_id, model_framework)
        if not any(each is not None for each in filters):
            path = f"{workspace._base}/models/{http_client.quoted(name)}"
            self._take(workspace._client.call("GET", path if version is None else f"{path}/{int(version)}"))
            return
        found = Model.list(workspace, name, tags, properties, run_id, model_framework=model_framework)
        found = [each for each in found if version in (None, each.version)]
        if not found:
            raise ModelNotFoundException(
                f"No version of model '{name}' fits tags={tags!r}, properties={properties!r}, version={version!r}, "
                f"run_id={run_id!r}, model_framework={model_framework!r}."
            )
        self._take(found[0]._view)

    # -- registered

    @staticmethod
    def register(
        workspace: Workspace,
        model_path: str,
        model_name: str,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        description: str | None = None,
        datasets: Iterable[tuple[str, AbstractDataset]] | None = None,
        model_framework: str | None = None,
        model_framework_version: str | None = None,
        child_paths: list[str] | None = None,
        sample_input_dataset: AbstractDataset | None = None,
        sample_output_dataset: AbstractDataset | None = None,
        resource_configuration: ResourceConfiguration | None = None,
    ) -> Model:
        """Store a file or a folder as the next version of `model_name`. Of a folder, only `child_paths` if given."""
        files = _local_files(model_path, child_paths)
        about = _about(
            model_name, tags, properties, description, datasets, model_framework, model_framework_version,
            sample_input_dataset, sample_output_dataset, resource_configuration,
        )  # fmt: skip
        print(f"Registering model {model_name}")
        body = {**about, "files": _store(workspace, files)}
        return Model(workspace, _view=workspace._client.call("POST", workspace._base + "/models", body))

    @staticmethod
    def list(
        workspace: Workspace,
        name: str | None = None,
        tags: Iterable[str | Sequence[str]] | None = None,
        properties: Iterable[str | Sequence[str]] | None = None,
        run_id: str | None = None,
        latest: bool = False,
        dataset_id: str | None = None,
        expand: bool = True,
        page_count: int = 255,
        model_framework: str | None = None,
    ) -> list[Model]:
        """The models that fit, the newest first. Tags and properties are given as 'key' or ['key', 'value']."""
        query = {"name": name, "latest": latest, "run_id": run_id, "framework": model_framework,
                 "dataset_id": dataset_id}  # fmt: skip
        views = workspace._client.call("GET", workspace._base + "/models", query=query)["models"]
        wanted = [*_labels("tags", tags)], [*_labels("properties", properties)]
        return [
            Model(workspace, _view=view)
            for view in views
            if _fits(view["tags"], wanted[0]) and _fits(view["properties"], wanted[1])
        ]

    def update(
        self,
        tags: dict[str, Any] | None = None,
        description: str | None = None,
        sample_input_dataset: AbstractDataset | None = None,
        sample_output_dataset: AbstractDataset | None = None,
        resource_configuration: ResourceConfiguration | None = None,
    ) -> None:
        """Replace the tags, the description and the samples that are given."""
        changes: dict[str, Any] = {}
        if tags is not None:
            changes.update(tags=_dict("tags", tags), remove_tags=[key for key in self.tags if key not in tags])
        if description is not None:
            changes["description"] = description
        if sample_input_dataset is not None:
            changes["sample_input"] = _dataset_id(self.workspace, sample_input_dataset)
        if sample_output_dataset is not None:
            changes["sample_output"] = _dataset_id(self.workspace, sample_output_dataset)
        if resource_configuration is not None:
            changes["resources"] = resource_configuration.serialize()
        self._change(changes)

    def add_tags(self, tags: dict[str, Any]) -> None:
        self._change({"tags": _dict("tags", tags)})

    def remove_tags(self, tags: str | Iterable[str]) -> None:
        self._change({"remove_tags": [*_names(tags)]})

    def add_properties(self, properties: dict[str, Any]) -> None:
        """Properties that are set stay as they are."""
        self._change({"properties": _dict("properties", properties)})

    def update_tags_properties(
        self,
        add_tags: dict[str, Any] | None = None,
        remove_tags: str | Iterable[str] | None = None,
        add_properties: dict[str, Any] | None = None,
    ) -> None:
        self._change(
            {
                "tags": _dict("add_tags", add_tags or {}),
                "remove_tags": [*_names(remove_tags or ())],
                "properties": _dict("add_properties", add_properties or {}),
            }
        )

    def add_dataset_references(self, datasets: Iterable[tuple[str, AbstractDataset]]) -> None:
        """Note which datasets the model was made with, as (purpose, dataset) pairs."""
        self._change({"datasets": _datasets(self.workspace, datasets)})

    def delete(self) -> None:
        """Remove this version for good. Refused while a service uses it; its number is never given again."""
        self.workspace._client.call("DELETE", self._path)

    # -- deployed

    @staticmethod
    def deploy(
        workspace: Workspace,
        name: str,
        models: Sequence[Model | str],
        inference_config: InferenceConfig | None = None,
        deployment_config: WebserviceDeploymentConfiguration | None = None,
        deployment_target: ComputeTarget | str | None = None,
        overwrite: bool = False,
        show_output: bool = False,
    ) -> Webservice:
        """Start to serve models, as code or, without an inference_config, as their framework serves them.

        Returns at once; `wait_for_deployment()` waits until they answer.
        """
        from lapis.sdk.models.deployment import deploy

        return deploy(
            workspace, name, models, inference_config, deployment_config, deployment_target, overwrite, show_output
        )

    @staticmethod
    def package(
        workspace: Workspace,
        models: Sequence[Model | str],
        inference_config: InferenceConfig | None = None,
        generate_dockerfile: bool = False,
        image_name: str | None = None,
        image_label: str | None = None,
    ) -> ModelPackage:
        """What a service would serve, to be saved as a folder that runs without Lapis."""
        from lapis.sdk.models.model_package import package

        return package(workspace, models, inference_config, generate_dockerfile, image_name, image_label)

    @staticmethod
    def profile(
        workspace: Workspace,
        profile_name: str,
        models: Sequence[Model | str],
        inference_config: InferenceConfig,
        input_dataset: AbstractDataset | None = None,
        cpu: float | None = None,
        memory_in_gb: float | None = None,
        description: str | None = None,
        input_data: str | None = None,
    ) -> ModelProfile:
        """Measure how long models take to answer the requests of a dataset, and what they use meanwhile."""
        from lapis.sdk.models.model_profile import profile

        return profile(
            workspace, profile_name, models, inference_config, input_dataset, cpu, memory_in_gb, description, input_data
        )

    @staticmethod
    def print_configuration(
        models: Sequence[Model | str],
        inference_config: InferenceConfig | None,
        deployment_config: WebserviceDeploymentConfiguration | None,
        deployment_target: ComputeTarget | str | None,
    ) -> None:
        """Print what would be deployed, and how."""
        from lapis.sdk.models.deployment import print_configuration

        print_configuration(models, inference_config, deployment_config, deployment_target)

    # -- its files

    def download(self, target_dir: str = ".", exist_ok: bool = False, exists_ok: bool | None = None) -> str:
        """Write the files below `target_dir`; the path of the one file, or of the folder."""
        overwrite = exist_ok if exists_ok is None else exists_ok
        place = os.path.join(target_dir, self._top)
        if os.path.exists(place) and not overwrite:
            raise WebserviceException(
                f"'{place}' is there already. Pass exist_ok=True to write over it, or another target_dir."
            )
        for file in self._view["files"]:
            path = tree.resolve_under(target_dir, file["path"])
            what = f"'{file['path']}' of model {self.id}"
            fetching.fetch(self.workspace._client, self._address_of(file), path, file["hash"], what)
        return place

    if TYPE_CHECKING:

        @overload
        def export_onnx(
            self,
            path: str | os.PathLike[str] | None = None,
            model_name: None = None,
            sample_input: Any = None,
            overwrite: bool = False,
            show_output: bool = False,
        ) -> str: ...

        @overload
        def export_onnx(
            self,
            path: str | os.PathLike[str] | None = None,
            *,
            model_name: str,
            sample_input: Any = None,
            overwrite: bool = False,
            show_output: bool = False,
        ) -> Model: ...

    def export_onnx(
        self,
        path: str | os.PathLike[str] | None = None,
        model_name: str | None = None,
        sample_input: Any = None,
        overwrite: bool = False,
        show_output: bool = False,
    ) -> str | Model:
        """Make an ONNX file of a TensorFlow or Keras model, if that answers as the model does. Not in SDK v1.

        Written to `path` (NAME.onnx by default), whose path is returned; or, with `model_name`, registered under that
        name, and the new model is returned. They are compared on `sample_input` (rows, or a request body), else on
        random numbers.
        """
        from lapis.sdk.models.model_export import export

        return export(self, path, model_name, sample_input, overwrite, show_output)

    @staticmethod
    def get_model_path(model_name: str, version: int | None = None, _workspace: Workspace | None = None) -> str:
        """Where a model lies: in a service or a job below azureml-models, else fetched from a workspace."""
        found = _below_models_folder(model_name, version)
        if found is not None:
            return found
        workspace = _workspace or _workspace_of_job()
        if workspace is None:
            where = os.path.abspath(_MODELS_FOLDER)
            raise ModelNotFoundException(
                f"Model '{model_name}' is not below {where}. Pass a workspace: Model(ws, name).download()."
            )
        model = Model(workspace, model_name, version=version)
        return model.download(os.path.join(_MODELS_FOLDER, model.name, str(model.version)), exist_ok=True)

    @staticmethod
    def _get_model_path_remote(model_name: str, version: int | None, workspace: Workspace) -> str:
        """Private in SDK v1, and used all the same."""
        return Model.get_model_path(model_name, version, workspace)

    def get_sas_urls(self) -> builtins.list[str]:
        """Addresses from which the files can be fetched; they need this workspace's token."""
        server = self.workspace._client.endpoint.url.rstrip("/")
        return [f"{server}/api/v1{self._address_of(file)}" for file in self._view["files"]]

    def _address_of(self, file: dict[str, Any]) -> str:
        return f"{self.workspace._base}/models/{self.name}/{self.version}/blobs/{file['hash']}"

    # -- told

    @property
    def url(self) -> str:
        return f"aml://asset/{self._view['asset_id']}"

    @property
    def run(self) -> Run | None:
        """The run that it was registered from."""
        from lapis.sdk.runs.run import Run

        return None if self.run_id is None else Run.get(self.workspace, self.run_id)

    @property
    def datasets(self) -> dict[str, builtins.list[FileDataset | TabularDataset]]:
        """The datasets that it was made with, by purpose."""
        from lapis.sdk.data.abstract_dataset import AbstractDataset

        found: dict[str, builtins.list[FileDataset | TabularDataset]] = {}
        for purpose, dataset_id in self._view["datasets"]:
            found.setdefault(purpose, []).append(AbstractDataset.get_by_id(self.workspace, dataset_id))
        return found

    def serialize(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "version": self.version,
            "createdTime": self.created_time,
            "description": self.description,
            "tags": self.tags,
            "properties": self.properties,
            "framework": self.model_framework,
            "frameworkVersion": self.model_framework_version,
            "runId": self.run_id,
            "experimentName": self.experiment_name,
            "url": self.url,
            "mimeType": self.mime_type,
            "unpack": self.unpack,
            "resourceRequirements": None if self.resource_configuration is None else self._view["resources"],
        }

    @staticmethod
    def deserialize(workspace: Workspace, model_payload: dict[str, Any]) -> Model:
        return Model(workspace, id=model_payload["id"])

    def _take(self, view: dict[str, Any]) -> None:
        self._view = view
        self.name: str = view["name"]
        self.version: int = view["version"]
        self.id: str = view["id"]
        self.description: str | None = view["description"]
        self.tags: dict[str, str] = view["tags"]
        self.properties: dict[str, str] = view["properties"]
        self.model_framework: str | None = view["framework"]
        self.model_framework_version: str | None = view["framework_version"]
        self.run_id: str | None = view["run_id"]
        self.experiment_name: str | None = view["experiment"]
        self.created_by = {"userName": view["created_by"]} if view["created_by"] else None
        self.created_time = display.when(view["created_at"])
        self.resource_configuration = ResourceConfiguration.deserialize(view["resources"])
        self.sample_input_dataset = view["sample_input"]
        self.sample_output_dataset = view["sample_output"]
        self.mime_type = "application/x-python"
        self.unpack = len(view["files"]) > 1
        self.parent_id = None
        self.derived_model_ids: builtins.list[str] = []

    @property
    def _top(self) -> str:
        """The name of the file, or of the folder."""
        return str(self._view["files"][0]["path"].split("/")[0])

    @property
    def _path(self) -> str:
        return f"{self.workspace._base}/models/{http_client.quoted(self.name)}/{self.version}"

    def _change(self, changes: dict[str, Any]) -> None:
        self._take(self.workspace._client.call("PATCH", self._path, changes))

    def __repr__(self) -> str:
        return (
            f"Model(workspace={self.workspace!r}, name={self.name}, id={self.id}, version={self.version}, "
            f"tags={self.tags}, properties={self.properties})"
        )


def register_from_run(run: Any, model_name: str, model_path: str | None, about: dict[str, Any]) -> Model:
    """Make files of a run the next version of a model; nothing is copied."""
    properties = {k: about.pop(k) for k in ("model_framework", "model_framework_version")}
    workspace = run.experiment.workspace
    body = _about(
        model_name, about.pop("tags"), about.pop("properties"), about.pop("description"), about.pop("datasets"),
        properties["model_framework"], properties["model_framework_version"], about.pop("sample_input_dataset"),
        about.pop("sample_output_dataset"), about.pop("resource_configuration"), workspace,
    )  # fmt: skip
    body.update(run_id=run.id, path=run_files.artifact_name((model_path or model_name).rstrip("/")))
    return Model(workspace, _view=workspace._client.call("POST", workspace._base + "/models", body))


def _about(
    name: Any,
    tags: Any,
    properties: Any,
    description: Any,
    datasets: Any,
    framework: Any,
    framework_version: Any,
    sample_input: Any,
    sample_output: Any,
    resources: Any,
    workspace: Any = None,
) -> dict[str, Any]:
    if framework is not None and not isinstance(framework, str):
        raise UserErrorException(f"model_framework is text, such as Model.Framework.PYTORCH, not {framework!r}.")
    if framework_version is not None and framework is None:
        raise UserErrorException("model_framework_version says nothing without model_framework.")
    if resources is not None and not isinstance(resources, ResourceConfiguration):
        raise UserErrorException(f"resource_configuration must be a ResourceConfiguration, not {resources!r}.")
    return {
        "name": name,
        "tags": _dict("tags", tags or {}),
        "properties": _dict("properties", properties or {}),
        "description": description,
        "framework": framework,
        "framework_version": None if framework_version is None else str(framework_version),
        "datasets": _datasets(workspace, datasets),
        "sample_input": _dataset_id(workspace, sample_input),
        "sample_output": _dataset_id(workspace, sample_output),
        "resources": None if resources is None else resources.serialize(),
    }


def _dict(what: str, labels: Any) -> dict[str, Any]:
    if not isinstance(labels, dict):
        raise UserErrorException(f"{what} must be a dict, not {labels!r}.")
    return {str(key): None if value is None else str(value) for key, value in labels.items()}


def _names(tags: Any) -> Iterable[str]:
    return [tags] if isinstance(tags, str) else [str(tag) for tag in tags]


def _labels(what: str, given: Any) -> Iterable[tuple[str, Any]]:
    for label in given or []:
        if isinstance(label, str):
            yield run_rules.parse_label(label) if "=" in label else (label, None)
        elif isinstance(label, (list, tuple)) and 1 <= len(label) <= 2:
            yield (str(label[0]), str(label[1]) if len(label) == 2 else None)
        else:
            raise UserErrorException(f"{what} are given as 'key' or ['key', 'value'], not {label!r}.")


def fits(what: str, labels: dict[str, Any], given: Any) -> bool:
    """Whether something that has these tags or properties is among those asked for."""
    return _fits(labels, [*_labels(what, given)])


def _fits(labels: dict[str, Any], wanted: Iterable[tuple[str, Any]]) -> bool:
    return all(key in labels and value in (None, labels[key]) for key, value in wanted)


def _datasets(workspace: Any, datasets: Any) -> list[list[str]]:
    pairs = []
    for pair in datasets or []:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise UserErrorException(f"datasets are given as (purpose, dataset) pairs, not {pair!r}.")
        pairs.append([str(getattr(pair[0], "value", pair[0])), _dataset_id(workspace, pair[1])])
    return pairs  # type: ignore[return-value]


def _dataset_id(workspace: Any, dataset: Any) -> str | None:
    if dataset is None:
        return None
    if not hasattr(dataset, "_saved_in"):
        raise UserErrorException(f"A dataset is needed, not {dataset!r}.")
    home = workspace or dataset._workspace
    if dataset.id is None and home is None:
        raise UserErrorException("Register the dataset first: which workspace it belongs to is not known.")
    return str(dataset._saved_in(home))


def _local_files(model_path: Any, child_paths: Any) -> dict[str, str]:
    """Path in the model -> path here."""
    path = os.path.abspath(os.fspath(model_path))
    base = os.path.basename(path)
    if os.path.isfile(path):
        return {base: path}
    if not os.path.isdir(path):
        raise WebserviceException(f"There is no file or folder '{model_path}' to register. Nothing was registered.")
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            full = os.path.join(folder, name)
            found[f"{base}/{os.path.relpath(full, path).replace(os.sep, '/')}"] = full
    if child_paths:
        kept = [f"{base}/{child.strip('/')}" for child in child_paths]
        missing = [k for k in kept if not any(f == k or f.startswith(k + "/") for f in found)]
        if missing:
            raise WebserviceException(f"'{missing[0][len(base) + 1 :]}' of child_paths is not in '{model_path}'.")
        found = {f: p for f, p in found.items() if any(f == k or f.startswith(k + "/") for k in kept)}
    if not found:
        raise WebserviceException(f"The folder '{model_path}' is empty: there is nothing to register.")
    return found


def _store(workspace: Workspace, files: dict[str, str]) -> dict[str, str]:
    """Send what the server lacks; the hash of each file."""
    from lapis.client.snapshot_sending import send_files

    return send_files(workspace, files)


def _below_models_folder(name: str, version: int | None) -> str | None:
    """Where a service lays models out: azureml-models/<name>/<version>/, one file or a folder."""
    for root in filter(None, (os.environ.get("AZUREML_MODEL_DIR"), _MODELS_FOLDER)):
        folder = os.path.join(root, name)
        if not os.path.isdir(folder):
            continue
        versions = sorted((int(each) for each in os.listdir(folder) if each.isdigit()), reverse=True)
        if version is not None and int(version) not in versions:
            raise ModelNotFoundException(
                f"Model '{name}' has no version {version} in {os.path.abspath(folder)}. There: {versions}."
            )
        if versions:
            place = os.path.join(folder, str(versions[0] if version is None else version))
            inside = os.listdir(place)
            return os.path.join(place, inside[0]) if len(inside) == 1 else place
    return None


def _workspace_of_job() -> Any:
    if not os.environ.get("AZUREML_RUN_ID"):
        return None
    from lapis.sdk.runs.run import Run

    return Run.get_context().experiment.workspace


def _parts(model_id: str) -> tuple[str, int]:
    name, _, version = str(model_id).rpartition(":")
    if not name or not version.isdigit():
        raise UserErrorException(f"A model's id is name:version, and {model_id!r} is not.")
    return name, int(version)

"""How data goes into a step and out of it: what is joined, under which name, and in which way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lapis.domain.data import check_output_name, check_path_on_compute, check_reference_name
from lapis.errors import InvalidPipeline
from lapis.sdk.data.abstract_dataset import AbstractDataset
from lapis.sdk.data.output_dataset_config import Origin

if TYPE_CHECKING:
    from lapis.sdk.data.abstract_datastore import AbstractDatastore
    from lapis.sdk.pipelines.output_datasets import PipelineOutputFileDataset

MOUNT, DOWNLOAD, UPLOAD, DIRECT = "mount", "download", "upload", "direct"


class TrainingOutput:
    """Which output of a HyperDriveStep or an AutoMLStep is meant: its metrics, or its best model."""

    def __init__(
        self, type: str, iteration: int | None = None, metric: str | None = None, model_file: str | None = None
    ) -> None:
        if type not in ("Metrics", "Model"):
            raise InvalidPipeline(f"A training output is 'Metrics' or 'Model', not {type!r}.")
        if model_file is not None and type != "Model":
            raise InvalidPipeline("model_file is for the training output 'Model'.")
        self._type, self._iteration, self._metric, self._model_file = type, iteration, metric, model_file

    @property
    def type(self) -> str:
        return self._type

    @property
    def iteration(self) -> int | None:
        return self._iteration

    @property
    def metric(self) -> str | None:
        return self._metric

    @property
    def model_file(self) -> str | None:
        return self._model_file


class InputPortBinding:
    """An input of a step under a name of its own."""

    def __init__(
        self,
        name: str,
        bind_object: Any = None,
        bind_mode: str = MOUNT,
        path_on_compute: str | None = None,
        overwrite: bool | None = None,
        is_resource: bool = False,
        additional_transformations: Any = None,
        **kwargs: Any,
    ) -> None:
        if bind_mode not in (MOUNT, DOWNLOAD, DIRECT):
            raise InvalidPipeline(f"Input '{name}' is mounted or downloaded, not {bind_mode!r}.")
        self._name = check_reference_name(name)
        self._bind_object, self._bind_mode = bind_object, bind_mode
        self._path_on_compute, self._overwrite = check_path_on_compute(path_on_compute), overwrite
        self._is_resource, self._additional_transformations = is_resource, additional_transformations

    @property
    def name(self) -> str:
        return self._name

    @property
    def bind_object(self) -> Any:
        return self._bind_object

    @property
    def bind_mode(self) -> str:
        return self._bind_mode

    @property
    def path_on_compute(self) -> str | None:
        return self._path_on_compute

    @property
    def overwrite(self) -> bool | None:
        return self._overwrite

    @property
    def is_resource(self) -> bool:
        return self._is_resource

    @property
    def additional_transformations(self) -> Any:
        return self._additional_transformations

    @property
    def data_reference_name(self) -> str:
        return self._name

    @property
    def data_type(self) -> str | None:
        return self.get_bind_object_data_type()

    def as_resource(self) -> InputPortBinding:
        self._is_resource = True
        return self

    def get_bind_object_name(self) -> str | None:
        found = self._bind_object
        return getattr(found, "name", None) or getattr(found, "data_reference_name", None)

    def get_bind_object_data_type(self) -> str | None:
        return getattr(self._bind_object, "data_type", None)

    def __str__(self) -> str:
        return f"$AZUREML_DATAREFERENCE_{self._name}"

    __repr__ = __str__


class OutputPortBinding:
    """An output of a step. A `PipelineData` in `outputs` comes to the same."""

    def __init__(
        self,
        name: str,
        datastore: AbstractDatastore | None = None,
        output_name: str | None = None,
        bind_mode: str = MOUNT,
        path_on_compute: str | None = None,
        is_directory: bool | None = None,
        overwrite: bool | None = None,
        data_type: str | None = None,
        pipeline_output_name: str | None = None,
        training_output: TrainingOutput | None = None,
        dataset_registration: Any = None,
        dataset_output: Any = None,
    ) -> None:
        if bind_mode not in (MOUNT, UPLOAD):
            raise InvalidPipeline(f"Output '{name}' is mounted or uploaded, not {bind_mode!r}.")
        self._name = check_output_name(name)
        self._output_name = check_output_name(output_name or name)
        self._datastore, self._bind_mode = datastore, bind_mode
        self._path_on_compute, self._is_directory = check_path_on_compute(path_on_compute), is_directory
        self._overwrite, self._data_type, self._pipeline_output_name = overwrite, data_type, pipeline_output_name
        self._training_output, self._dataset_registration = training_output, dataset_registration
        self._dataset_output = dataset_output
        self._origin = Origin()

    @property
    def name(self) -> str:
        return self._name

    @property
    def datastore(self) -> AbstractDatastore | None:
        return self._datastore

    @property
    def bind_mode(self) -> str:
        return self._bind_mode

    @property
    def path_on_compute(self) -> str | None:
        return self._path_on_compute

    @property
    def is_directory(self) -> bool | None:
        return self._is_directory

    @property
    def overwrite(self) -> bool | None:
        return self._overwrite

    @property
    def data_type(self) -> str | None:
        return self._data_type

    @property
    def pipeline_output_name(self) -> str | None:
        return self._pipeline_output_name

    @property
    def training_output(self) -> TrainingOutput | None:
        return self._training_output

    @property
    def dataset_registration(self) -> Any:
        return self._dataset_registration

    def __str__(self) -> str:
        return f"$AZUREML_DATAREFERENCE_{self._output_name}"

    __repr__ = __str__


class PipelineData:
    """What one step writes and others read: a file or a folder, which the script of the first makes at its path.

    It lies at `azureml/<run of the step>/<output name>` of `datastore`; without one, of the pipeline's default.
    """

    def __init__(
        self,
        name: str,
        datastore: AbstractDatastore | None = None,
        output_name: str | None = None,
        output_mode: str = MOUNT,
        output_path_on_compute: str | None = None,
        output_overwrite: bool | None = None,
        data_type: str | None = None,
        is_directory: bool | None = None,
        pipeline_output_name: str | None = None,
        training_output: TrainingOutput | None = None,
    ) -> None:
        if datastore is not None and not hasattr(datastore, "datastore_type"):
            raise InvalidPipeline(f"PipelineData '{name}' needs a datastore, not {type(datastore).__name__}.")
        self._binding = OutputPortBinding(
            name, datastore, output_name, output_mode, output_path_on_compute, is_directory, output_overwrite,
            data_type, pipeline_output_name, training_output,
        )  # fmt: skip

    @property
    def name(self) -> str:
        return self._binding.name

    @property
    def datastore(self) -> AbstractDatastore | None:
        return self._binding.datastore

    @property
    def data_type(self) -> str | None:
        return self._binding.data_type

    @property
    def _output_name(self) -> str:
        return self._binding._output_name

    @property
    def _pipeline_output_name(self) -> str | None:
        return self._binding.pipeline_output_name

    def as_input(self, input_name: str) -> InputPortBinding:
        return self.create_input_binding(input_name)

    def as_mount(self, input_name: str | None = None) -> InputPortBinding:
        return self.create_input_binding(input_name, MOUNT)

    def as_download(
        self, input_name: str | None = None, path_on_compute: str | None = None, overwrite: bool | None = None
    ) -> InputPortBinding:
        return self.create_input_binding(input_name, DOWNLOAD, path_on_compute, overwrite)

    def create_input_binding(
        self,
        input_name: str | None = None,
        mode: str | None = None,
        path_on_compute: str | None = None,
        overwrite: bool | None = None,
    ) -> InputPortBinding:
        return InputPortBinding(input_name or self.name, self, mode or MOUNT, path_on_compute, overwrite)

    def as_dataset(self) -> PipelineOutputFileDataset:
        """The same as a dataset of files, which can be parsed as a table, and registered."""
        from lapis.sdk.pipelines.output_datasets import PipelineOutputFileDataset

        return PipelineOutputFileDataset(self)

    def get_env_variable_name(self) -> str:
        return f"$AZUREML_DATAREFERENCE_{self.name}"

    def __deepcopy__(self, memo: Any) -> PipelineData:
        return self  # it is who it is: a copy would be another output

    def __str__(self) -> str:
        return f"$AZUREML_DATAREFERENCE_{self.name}"

    __repr__ = __str__


class PipelineDataset:
    """A dataset as an input of a step, with a name and a way to get it."""

    def __init__(
        self,
        dataset: Any = None,
        name: str | None = None,
        bind_mode: str = MOUNT,
        path_on_compute: str | None = None,
        overwrite: bool = False,
        parameter_name: str | None = None,
    ) -> None:
        self.validate_dataset(dataset)
        self._dataset, self._name = dataset, name or self.default_name(dataset)
        self._bind_mode, self._path_on_compute, self._overwrite = bind_mode, path_on_compute, overwrite
        self._parameter_name = parameter_name

    @staticmethod
    def create(dataset: Any, name: str | None = None, parameter_name: str | None = None) -> PipelineDataset:
        if isinstance(dataset, PipelineDataset):
            return dataset
        if hasattr(dataset, "dataset") and hasattr(dataset, "mode"):  # a DatasetConsumptionConfig
            return PipelineDataset(
                dataset.dataset, name or dataset.name, dataset.mode, dataset.path_on_compute,
                parameter_name=parameter_name,
            )  # fmt: skip
        return PipelineDataset(dataset, name, DIRECT, parameter_name=parameter_name)

    @staticmethod
    def default_name(dataset: Any) -> str:
        known = getattr(dataset, "name", None) or f"dataset_{id(dataset):x}"
        return "".join(each if each.isalnum() else "_" for each in str(known))

    @staticmethod
    def is_dataset(dset: Any) -> bool:
        return isinstance(dset, AbstractDataset) or isinstance(getattr(dset, "dataset", None), AbstractDataset)

    @staticmethod
    def validate_dataset(dset: Any) -> None:
        if not PipelineDataset.is_dataset(dset):
            raise InvalidPipeline(f"A dataset is needed, not {type(dset).__name__}.")

    @property
    def dataset(self) -> Any:
        return self._dataset

    @property
    def name(self) -> str:
        return self._name

    @property
    def bind_mode(self) -> str:
        return self._bind_mode

    @property
    def path_on_compute(self) -> str | None:
        return self._path_on_compute

    @property
    def overwrite(self) -> bool:
        return self._overwrite

    @property
    def parameter_name(self) -> str | None:
        return self._parameter_name

    @property
    def dataset_id(self) -> str | None:
        return getattr(self._dataset, "id", None)

    @property
    def dataset_version(self) -> Any:
        return getattr(self._dataset, "version", None)

    @property
    def saved_dataset_id(self) -> str | None:
        return self.dataset_id

    @property
    def workspace(self) -> Any:
        return getattr(self._dataset, "_workspace", None)

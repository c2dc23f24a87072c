"""A place in a datastore, and how a run wants to have it: mounted, downloaded, or filled for upload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lapis.domain.data import check_path_on_compute, check_reference_name
from lapis.domain.tree import without_dot
from lapis.errors import UserErrorException

if TYPE_CHECKING:
    from lapis.sdk.config.data_sections import DataReferenceConfiguration
    from lapis.sdk.data.abstract_datastore import AbstractDatastore

MODES = ("mount", "download", "upload")


class DataReference:
    def __init__(
        self,
        datastore: AbstractDatastore,
        data_reference_name: str | None = None,
        path_on_datastore: str | None = None,
        mode: str = "mount",
        path_on_compute: str | None = None,
        overwrite: bool = False,
    ) -> None:
        if mode not in MODES:
            raise UserErrorException(f"A data reference is mounted, downloaded or uploaded, not {mode!r}.")
        if not hasattr(datastore, "datastore_type"):
            raise UserErrorException(f"For a data reference a datastore is needed, not {type(datastore).__name__}.")
        if path_on_datastore is not None and not isinstance(path_on_datastore, str):
            raise UserErrorException(f"path_on_datastore must be text, not {path_on_datastore!r}.")
        if ".." in (path_on_datastore or "").split("/"):
            raise UserErrorException(f"The path {path_on_datastore!r} cannot be used: it leads out of its datastore.")
        self.datastore = datastore
        self.data_reference_name = check_reference_name(data_reference_name or datastore.name)
        self.path_on_datastore = None if path_on_datastore is None else without_dot(path_on_datastore)
        self.mode = mode
        self.path_on_compute = check_path_on_compute(path_on_compute)
        self.overwrite = overwrite

    def path(self, path: str | None = None, data_reference_name: str | None = None) -> DataReference:
        """A place below this one, under a name of its own."""
        if path is not None and not isinstance(path, str):
            raise UserErrorException(f"A path in datastore '{self.datastore.name}' must be text, not {path!r}.")
        joined = "/".join(part.strip("/") for part in (self.path_on_datastore, path) if part) or None
        name = data_reference_name or uuid4().hex
        return DataReference(self.datastore, name, joined, self.mode, self.path_on_compute, self.overwrite)

    def as_mount(self) -> DataReference:
        return self._as("mount", None, self.overwrite)

    def as_download(self, path_on_compute: str | None = None, overwrite: bool = False) -> DataReference:
        return self._as("download", path_on_compute, overwrite)

    def as_upload(self, path_on_compute: str | None = None, overwrite: bool = False) -> DataReference:
        return self._as("upload", path_on_compute, overwrite)

    def _as(self, mode: str, path_on_compute: str | None, overwrite: bool) -> DataReference:
        name, place = self.data_reference_name, self.path_on_datastore
        return DataReference(self.datastore, name, place, mode, path_on_compute, overwrite)

    @staticmethod
    def create(
        data_reference_name: str | None = None, datapath: Any = None, datapath_compute_binding: Any = None
    ) -> DataReference:
        made: DataReference = datapath.create_data_reference(data_reference_name, datapath_compute_binding)
        return made

    def to_config(self) -> DataReferenceConfiguration:
        from lapis.sdk.config.runconfig import DataReferenceConfiguration

        return DataReferenceConfiguration(
            datastore_name=self.datastore.name,
            mode=self.mode,
            path_on_datastore=self.path_on_datastore,
            path_on_compute=self.path_on_compute,
            overwrite=self.overwrite,
        )

    def __str__(self) -> str:
        return f"$AZUREML_DATAREFERENCE_{self.data_reference_name}"

    def __repr__(self) -> str:
        return self.__str__()


class DataPath:
    """A place in a datastore, without saying how it is wanted."""

    def __init__(
        self, datastore: AbstractDatastore | None = None, path_on_datastore: str | None = None, name: str | None = None
    ) -> None:
        self._datastore, self._path, self._name = datastore, path_on_datastore, name

    @property
    def datastore_name(self) -> str | None:
        return self._datastore.name if self._datastore is not None else None

    @property
    def path_on_datastore(self) -> str | None:
        return self._path

    @property
    def _store(self) -> AbstractDatastore:
        if self._datastore is None:
            raise UserErrorException(
                f"The path {self._path!r} lies in no datastore. DataPath(datastore, 'path') says which."
            )
        return self._datastore

    def create_data_reference(
        self, data_reference_name: str | None = None, datapath_compute_binding: DataPathComputeBinding | None = None
    ) -> DataReference:
        binding = datapath_compute_binding or DataPathComputeBinding()
        return DataReference(
            self._store, data_reference_name or self._name, self._path, binding.mode, binding.path_on_compute,
            binding.overwrite,
        )  # fmt: skip

    @staticmethod
    def create_from_data_reference(data_reference: DataReference) -> DataPath:
        return DataPath(data_reference.datastore, data_reference.path_on_datastore, data_reference.data_reference_name)


class RunOutputsPath(DataPath):
    """The outputs of a run, named as Azure's store of runs names them. `resume_from` takes it."""

    def __init__(self, datastore: Any, run_id: str) -> None:
        super().__init__(datastore, f"ExperimentRun/dcid.{run_id}/outputs")
        self.run_id = run_id

    def __repr__(self) -> str:
        return f"DataPath({self.datastore_name}/{self.path_on_datastore})"


class DataPathComputeBinding:
    """How a run wants to have a place."""

    def __init__(self, mode: str = "mount", path_on_compute: str | None = None, overwrite: bool = False) -> None:
        if mode not in MODES:
            raise UserErrorException(f"A place is mounted, downloaded or uploaded, not {mode!r}.")
        self.mode, self.path_on_compute, self.overwrite = mode, path_on_compute, overwrite

    def create_data_reference(self, data_reference_name: str | None = None, datapath: Any = None) -> DataReference:
        return datapath.create_data_reference(data_reference_name, self)  # type: ignore[no-any-return]

    @staticmethod
    def create_from_data_reference(data_reference: DataReference) -> DataPathComputeBinding:
        return DataPathComputeBinding(data_reference.mode, data_reference.path_on_compute, data_reference.overwrite)

"""The data of a run configuration: what a run reads, what it writes, and how both reach the compute."""

from __future__ import annotations

from typing import Any

from lapis.errors import NotThereYet, UserErrorException
from lapis.sdk.config.run_config_element import Field, RunConfigElement, one_of, section

SUPPORTED_DATAREF_MODES = ["mount", "download", "upload"]


class DataReferenceConfiguration(RunConfigElement):
    """A path on a datastore, and where it appears on the compute."""

    _fields = {
        "data_store_name": Field("dataStoreName"),
        "mode": Field("mode", check=one_of(SUPPORTED_DATAREF_MODES, default="mount")),
        "path_on_data_store": Field("pathOnDataStore"),
        "path_on_compute": Field("pathOnCompute"),
        "overwrite": Field("overwrite"),
    }

    def __init__(
        self,
        datastore_name: str | None = None,
        mode: str = "mount",
        path_on_datastore: str | None = None,
        path_on_compute: str | None = None,
        overwrite: bool = False,
    ) -> None:
        self.data_store_name = datastore_name
        self.mode = mode
        self.path_on_data_store = path_on_datastore
        self.path_on_compute = path_on_compute
        self.overwrite = overwrite


class Dataset(RunConfigElement):
    """A dataset by id, or by name and version."""

    _fields = {"id": Field("id"), "name": Field("name"), "version": Field("version")}

    def __init__(
        self,
        dataset_id: str | None = None,
        dataset_name: str | None = None,
        dataset_version: str | None = None,
    ) -> None:
        self.id = dataset_id
        self.name = dataset_name
        self.version = dataset_version


class DataPath(RunConfigElement):
    """A path on a datastore."""

    _fields = {"datastore_name": Field("datastoreName"), "relative_path": Field("relativePath")}

    def __init__(self, datastore_name: str | None = None, relative_path: str | None = None) -> None:
        self.datastore_name = datastore_name
        self.relative_path = relative_path


class Uri(RunConfigElement):
    """An address of a file or a folder."""

    _fields = {"path": Field("path"), "is_file": Field("isFile")}

    def __init__(self, path: str | None = None, is_file: bool = False) -> None:
        self.path = path
        self.is_file = is_file


class DataLocation(RunConfigElement):
    """Where data is: a dataset, a path on a datastore, or an address."""

    _fields = {
        "dataset": Field("dataset", read=section(Dataset)),
        "data_path": Field("dataPath", read=section(DataPath), also=("datapath",)),
        "uri": Field("uri", read=section(Uri)),
    }

    def __init__(
        self,
        dataset: Dataset | None = None,
        data_path: DataPath | None = None,
        uri: Uri | None = None,
        datapath: DataPath | None = None,
    ) -> None:
        self.dataset = dataset
        self.data_path = data_path if data_path is not None else datapath
        self.uri = uri

    @property
    def datapath(self) -> DataPath | None:
        """The older name of `data_path`."""
        return self.data_path

    @datapath.setter
    def datapath(self, value: DataPath | None) -> None:
        self.data_path = value


class Data(RunConfigElement):
    """An input of a run."""

    _fields = {
        "data_location": Field("dataLocation", read=section(DataLocation)),
        "create_output_directories": Field("createOutputDirectories"),
        "mechanism": Field(
            "mechanism", check=one_of(("direct", "mount", "download", "upload", "hdfs"), default="direct")
        ),
        "environment_variable_name": Field("environmentVariableName"),
        "path_on_compute": Field("pathOnCompute"),
        "overwrite": Field("overwrite"),
        "options": Field("options"),
    }

    def __init__(
        self,
        data_location: DataLocation | None = None,
        create_output_directories: bool | None = None,
        mechanism: str = "direct",
        environment_variable_name: str | None = None,
        path_on_compute: str | None = None,
        overwrite: bool = False,
        options: dict[str, str] | None = None,
    ) -> None:
        self.data_location = data_location
        self.create_output_directories = create_output_directories
        self.mechanism = mechanism
        self.environment_variable_name = environment_variable_name
        self.path_on_compute = path_on_compute
        self.overwrite = overwrite
        self.options = options

    @staticmethod
    def create(data: Any) -> Data:
        """Return the input that a dataset with a name and a mode stands for. An input stands for itself."""
        if isinstance(data, Data):
            return data
        if not all(hasattr(data, part) for part in ("name", "dataset", "mode")):
            raise UserErrorException(f"An input must be a dataset with a name and a mode, not {data!r}.")
        known = (getattr(data.dataset, attribute, None) for attribute in ("id", "name", "version"))
        return Data(
            data_location=DataLocation(dataset=Dataset(*known)),
            mechanism=data.mode,
            environment_variable_name=data.name,
            path_on_compute=getattr(data, "path_on_compute", None),
        )


class GlobsOptions(RunConfigElement):
    """Patterns of file names."""

    _fields = {"patterns": Field("globPatterns")}

    def __init__(self, patterns: list[str] | None = None) -> None:
        self.patterns = patterns


class UploadOptions(RunConfigElement):
    """Which files of an output are uploaded, and over what."""

    _fields = {
        "overwrite": Field("overwrite"),
        "source_globs": Field("sourceGlobs", read=section(GlobsOptions)),
    }

    def __init__(self, overwrite: bool = False, source_globs: GlobsOptions | None = None) -> None:
        self.overwrite = overwrite
        self.source_globs = source_globs


class MountOptions(RunConfigElement):
    """How an output is mounted."""

    _fields = {"disable_metadata_cache": Field("disableMetadataCache")}

    def __init__(self, disable_metadata_cache: bool = False) -> None:
        self.disable_metadata_cache = disable_metadata_cache


class DatasetRegistrationOptions(RunConfigElement):
    """What is done to an output before it is registered as a dataset."""

    _fields = {"additional_transformation": Field("additionalTransformation")}

    def __init__(self, additional_transformations: Any = None) -> None:
        self.additional_transformation = additional_transformations


class RegistrationOptions(RunConfigElement):
    """The dataset that an output is registered as."""

    _fields = {
        "name": Field("name"),
        "description": Field("description"),
        "tags": Field("tags"),
        "dataset_registration_options": Field("datasetRegistrationOptions", read=section(DatasetRegistrationOptions)),
    }

    def __init__(
        self,
        name: str | None = None,
        description: str | None = None,
        tags: dict[str, str] | None = None,
        dataset_registration_options: DatasetRegistrationOptions | None = None,
    ) -> None:
        self.name = name
        self.description = description
        self.tags = tags
        self.dataset_registration_options = dataset_registration_options


class OutputOptions(RunConfigElement):
    """How an output leaves the compute, and what becomes of it."""

    _fields = {
        "path_on_compute": Field("pathOnCompute"),
        "registration_options": Field("registrationOptions", read=section(RegistrationOptions)),
        "upload_options": Field("uploadOptions", read=section(UploadOptions)),
        "mount_options": Field("mountOptions", read=section(MountOptions)),
    }

    def __init__(
        self,
        path_on_compute: str | None = None,
        registration_options: RegistrationOptions | None = None,
        upload_options: UploadOptions | None = None,
        mount_options: MountOptions | None = None,
    ) -> None:
        self.path_on_compute = path_on_compute
        self.registration_options = registration_options
        self.upload_options = upload_options
        self.mount_options = mount_options


class OutputData(RunConfigElement):
    """An output of a run."""

    _fields = {
        "output_location": Field("outputLocation", read=section(DataLocation)),
        "mechanism": Field("mechanism", check=one_of(("mount", "upload", "link", "hdfs"), default="mount")),
        "additional_options": Field("additionalOptions", read=section(OutputOptions)),
    }

    def __init__(
        self,
        output_location: DataLocation | None = None,
        mechanism: str = "mount",
        additional_options: OutputOptions | None = None,
    ) -> None:
        self.output_location = output_location
        self.mechanism = mechanism
        self.additional_options = additional_options


class DatacacheConfiguration(RunConfigElement):
    """A cached copy of a dataset. Kept and handed on; Lapis caches by itself."""

    _fields = {
        "dataset_id": Field("datasetId"),
        "datacache_store": Field("datacacheStore"),
        "datacache_id": Field("datacacheId"),
        "mode": Field("mode"),
        "path_on_compute": Field("pathOnCompute"),
        "replica": Field("replica"),
        "failure_fallback": Field("failureFallback"),
    }

    def __init__(
        self,
        dataset_id: str | None = None,
        datacache_store: str | None = None,
        datacache_id: str | None = None,
        mode: str = "mount",
        path_on_compute: str | None = None,
        replica: Any = None,
        failure_fallback: bool = False,
    ) -> None:
        self.dataset_id = dataset_id
        self.datacache_store = datacache_store
        self.datacache_id = datacache_id
        self.mode = mode
        self.path_on_compute = path_on_compute
        self.replica = replica
        self.failure_fallback = failure_fallback

    @staticmethod
    def create(data: Any) -> DatacacheConfiguration:
        raise NotThereYet("DatacacheConfiguration.create")

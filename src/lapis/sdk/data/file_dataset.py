"""Datasets of files: on the web, in datastores, on this machine."""

from __future__ import annotations

import os

from lapis.domain import conditions, data
from lapis.errors import NotFound, NotThereYet, UserErrorException
from lapis.files import copying, layout, path_columns, sources
from lapis.later import TYPE_CHECKING
from lapis.sdk.data import abstract_datastore, data_reference, object_places
from lapis.sdk.data.abstract_dataset import AbstractDataset
from lapis.tables import cache, column_filter

if TYPE_CHECKING:
    from typing import Any, Iterable, NoReturn, Sequence, Tuple, Union

    from lapis.sdk.data.abstract_datastore import AbstractDatastore
    from lapis.sdk.data.consumption import DatasetConsumptionConfig
    from lapis.sdk.data.data_reference import DataPath, DataReference
    from lapis.sdk.workspace.workspace import Workspace
    from lapis.tables.column_filter import Column, Condition

    # Where files are: an address, a path of this machine, or a place in a datastore.
    Place = Union[str, os.PathLike[str], DataReference, DataPath, Tuple[AbstractDatastore, str]]
_CACHED = "Lapis keeps what a run fetched for the next one by itself: use as_mount()."


class FileDataset(AbstractDataset):
    _unit = "files"

    def __init__(self) -> None:
        raise UserErrorException("A FileDataset is made by Dataset.File.from_files(path).")

    def to_path(self) -> list[str]:
        """The names of its files, each with a leading slash."""
        return [file.path for file in self._files()]

    def download(
        self, target_path: str | os.PathLike[str] | None = None, overwrite: bool = False, ignore_not_found: bool = False
    ) -> list[str]:
        """Copy its files to a folder (a new temporary one without a name); the paths."""
        import tempfile

        try:
            files = self._files()
        except NotFound:
            if not ignore_not_found:
                raise
            files = []
        made = target_path is None
        target = os.path.abspath(_path("target_path", tempfile.mkdtemp() if made else target_path))
        there = [] if overwrite else [file.path for file in files if os.path.lexists(target + file.path)]
        if there:
            raise UserErrorException(
                f"{target}{there[0]} exists already. Pass overwrite=True to replace it. Nothing was downloaded."
            )
        try:
            return layout.lay_out_files(
                files,
                target,
                copy=True,
                ignore_not_found=ignore_not_found,
                bring=object_places.bringer(self._workspace),
            )
        except BaseException:
            if made:
                os.rmdir(target)
            raise

    def mount(self, mount_point: str | os.PathLike[str] | None = None, **kwargs: Any) -> DatasetContextManager:
        """Its files under one folder: `with dataset.mount() as context: context.mount_point`, or start() and stop()."""
        return DatasetContextManager(self, mount_point=mount_point)

    def as_mount(self, path_on_compute: str | None = None) -> DatasetConsumptionConfig:
        return self.as_named_input(_some_name()).as_mount(path_on_compute)

    def as_download(self, path_on_compute: str | None = None) -> DatasetConsumptionConfig:
        return self.as_named_input(_some_name()).as_download(path_on_compute)

    def as_hdfs(self) -> NoReturn:
        raise UserErrorException("as_hdfs() needs a Spark compute target, which Lapis does not have. Use as_mount().")

    def file_metadata(self, col: str) -> Column:
        """What a condition can ask of a file: Size, LastModifiedTime, CreationTime, Extension or CanSeek."""
        name = f"file:{'CreationTime' if col == 'CreatedTime' else col}"
        if name not in data.FILE_FACTS:
            known = ", ".join(each.partition(":")[2] for each in data.FILE_FACTS)
            raise UserErrorException(f"file_metadata() does not know {col!r}. Known: {known}.")
        return column_filter.Extension(name) if col == "Extension" else column_filter.Column(name)

    def filter(self, expression: Condition) -> FileDataset:
        """The files for which a condition holds: `ds.filter((ds.file_metadata('Size') > 10000) & (ds['day'] == '1'))`.

        A condition asks the metadata of a file, or the partition keys that its path gives.
        """
        condition = column_filter.parts_of(expression)
        strange = sorted(conditions.columns_of(condition) - set(data.FILE_FACTS) - set(self.partition_keys))
        if strange:
            known = ", ".join(self.partition_keys) or "none"
            raise UserErrorException(f"'{strange[0]}' is no partition key of this dataset. Partition keys: {known}.")
        return self._with_step(op="filter", condition=condition)

    def __getitem__(self, key: str) -> Column:
        """`ds['day']`: a partition key to make conditions of."""
        if not isinstance(key, str):
            raise UserErrorException(f"A dataset of files is asked for a partition key, not {key!r}.")
        return column_filter.Column(key)

    def as_cache(self, datacache_store: Any) -> NoReturn:
        raise NotThereYet("FileDataset.as_cache", _CACHED)

    def hydrate(self, datacache_store: Any, replica_count: Any = None) -> NoReturn:
        raise NotThereYet("FileDataset.hydrate", _CACHED)

    def _files(self) -> list[data.File]:
        return sources.resolve(self._definition, lambda name: _folder_of(self._workspace, name))

    def _recorded(self, workspace: Workspace) -> list[dict[str, Any]]:
        """What the definition stands for at this moment: sizes, and ETags or times."""
        self._belongs_to(workspace)
        files = layout.describe_all(self._files())
        for source in self._definition["sources"]:
            if source["kind"] == data.LOCAL:
                cache.table_cache().keep(source["path"])
        return [file.recorded() for file in files]


class DatasetContextManager:
    """The files of a dataset under one folder, until stop()."""

    def __init__(
        self,
        config: FileDataset,
        ignore_already_mounted_error: bool = False,
        force_mount_with_allow_other: bool = False,
        mount_point: str | os.PathLike[str] | None = None,
    ) -> None:
        self._dataset = config
        self.mount_point = _path("mount_point", mount_point) if mount_point is not None else None
        self._laid: list[str] | None = None
        self._stream: Any = None

    def start(self) -> DatasetContextManager:
        import tempfile

        if self._laid is not None:
            return self
        files = self._dataset._files()
        point = self.mount_point or tempfile.mkdtemp(prefix="lapis-mount-")
        if os.path.lexists(point) and (not os.path.isdir(point) or os.listdir(point)):
            raise UserErrorException(f"{point} is a file or holds files. Mount to a folder that is empty or new.")
        try:
            offered = object_places.stream_here(files, self._dataset._workspace)
            self._stream = offered.stream
            self._laid = layout.lay_out_files(
                offered.files, point, bring=object_places.bringer(self._dataset._workspace)
            )
        except BaseException:
            self._end_stream()
            if self.mount_point is None:
                os.rmdir(point)
            raise
        self.mount_point = point
        return self

    def stop(self) -> None:
        if self._laid is not None and self.mount_point is not None:
            layout.remove_laid(self._laid, self.mount_point)  # links only: what they lead to stays
            self._laid = None
            self._end_stream()

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def __enter__(self) -> DatasetContextManager:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class FileDatasetFactory:
    @staticmethod
    def from_files(
        path: Place | Sequence[Place], validate: bool = True, partition_format: str | None = None, is_file: bool = False
    ) -> FileDataset:
        """A dataset of files: web addresses, places in datastores, paths of this machine, or a list of them."""
        columns = path_columns.check_format(partition_format)
        found: list[dict[str, Any]] = []
        workspace = None
        for each in _places(path):
            source, home = _source(each)
            found.append(source)
            if workspace is not None and home is not None and home != workspace:
                raise UserErrorException(
                    f"A dataset lies in one workspace; its sources name '{workspace.name}' and '{home.name}'."
                )
            workspace = workspace or home
        if not found:
            raise UserErrorException("from_files() was given no path.")
        definition: dict[str, Any] = {"type": "file", "sources": found, "steps": []}
        if columns is not None:
            definition["partition_format"] = columns
        made = FileDataset._of(definition, workspace)
        if validate:
            layout.describe_all(made._files())  # that every source is there and can be read
            made.get_partition_key_values()  # and lies as the partition format says
        return made

    @staticmethod
    def upload_directory(
        src_dir: str | os.PathLike[str],
        target: Place,
        pattern: str | None = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> FileDataset:
        """Copy a folder to a place in a datastore; the dataset of what is there then."""
        source, workspace = _source(target)
        if source["kind"] != data.STORE or workspace is None:
            raise UserErrorException("upload_directory() copies to a place in a datastore: (datastore, 'path').")
        folder = _path("src_dir", src_dir)
        if not os.path.isdir(folder):
            raise UserErrorException(f"upload_directory(): there is no folder {os.path.abspath(folder)}.")
        from lapis.sdk.data.datastore import Datastore

        matches = data.glob_matcher(pattern).match if pattern else None
        files = []
        for path, name in copying.files_below(folder, other=copying.refuse_other):
            if matches is None or matches(name):
                files.append(path)
        if not files:
            where = os.path.abspath(folder)
            raise UserErrorException(f"upload_directory(): no file in {where} matches {pattern or '**'}.")
        store = Datastore.get(workspace, source["datastore"])
        store.upload_files(files, folder, source["path"] or None, overwrite, show_progress)
        return FileDatasetFactory.from_files((store, source["path"] or "/"))


AbstractDataset.File = FileDatasetFactory


def _places(path: Any) -> Iterable[Any]:
    """A tuple is one place, (datastore, path), unless its parts are places themselves."""
    if isinstance(path, tuple):
        return [path] if len(path) == 2 and isinstance(path[0], abstract_datastore.AbstractDatastore) else path
    return path if isinstance(path, (list, set)) else [path]


def _source(path: Any) -> tuple[dict[str, Any], Workspace | None]:
    if isinstance(path, tuple) and len(path) == 2 and isinstance(path[0], abstract_datastore.AbstractDatastore):
        return _in_store(path[0], path[1]), path[0].workspace
    if isinstance(path, data_reference.DataReference):
        return _in_store(path.datastore, path.path_on_datastore or ""), path.datastore.workspace
    if isinstance(path, data_reference.DataPath):
        return _in_store(path._store, path.path_on_datastore or ""), path._store.workspace
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    if not isinstance(path, str) or not path.strip():
        raise UserErrorException(
            f"from_files() takes web addresses, (datastore, 'path') and paths, not {type(path).__name__} ({path!r})."
        )
    if data.is_web(path):
        data.web_path(path)  # a name can be made of it
        if "*" in path.partition("?")[0]:
            raise UserErrorException(
                f"{data.shown_url(path)!r} has a wildcard, but the web cannot be searched. List the files."
            )
        return {"kind": data.WEB, "url": path}, None
    if "://" in path:
        raise UserErrorException(f"{path!r} cannot be read: this release knows http, https, datastores and paths.")
    return {"kind": data.LOCAL, "path": os.path.abspath(path)}, None


def _in_store(datastore: Any, path: Any) -> dict[str, Any]:
    if not isinstance(path, str):
        raise UserErrorException(f"The path in datastore '{datastore.name}' must be text, not {path!r}.")
    if ".." in path.split("/"):
        raise UserErrorException(f"The path {path!r} cannot be used: it leads out of datastore '{datastore.name}'.")
    return {"kind": data.STORE, "datastore": datastore.name, "path": path.strip("/")}


def _folder_of(workspace: Workspace | None, name: str) -> Any:
    from lapis.sdk.data.datastore import Datastore

    if workspace is None:
        raise UserErrorException(f"Which workspace datastore '{name}' belongs to is not known.")
    return Datastore.get(workspace, name)._where()


def _some_name() -> str:
    return f"input__{os.urandom(4).hex()}"


def _path(what: str, path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        raise UserErrorException(f"{what} must be a path, not {path!r}.")
    return str(os.fspath(path))

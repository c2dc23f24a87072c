"""Places of datastores on this machine, for as long as a `with` block lasts, as a run has its data references."""

from __future__ import annotations

import os
import shutil
from typing import Any, Mapping

from lapis.domain.tree import resolve_under
from lapis.errors import UserErrorException
from lapis.sdk.data.data_reference import DataReference


class DatastoreContextManager:
    """`config` is a data reference, or several in a list or a dictionary.

    In the block each is found by its variable, `$AZUREML_DATAREFERENCE_<name>`, and in `paths` by its name. What was
    written for upload is uploaded at the end of the block, unless an error ended it.
    """

    def __init__(self, config: Any) -> None:
        given = list(config.values()) if isinstance(config, Mapping) else config
        self._references = [given] if isinstance(given, DataReference) else list(given)
        for each in self._references:
            if not isinstance(each, DataReference):
                raise UserErrorException(f"A data reference is needed, such as datastore.path('x'), not {each!r}.")
        self.paths: dict[str, str] = {}
        self._made: list[str] = []
        self._before: dict[str, str | None] = {}

    def __enter__(self) -> DatastoreContextManager:
        try:
            for reference in self._references:
                self.paths[reference.data_reference_name] = path = self._laid(reference)
                variable = str(reference)[1:]
                self._before[variable] = os.environ.get(variable)
                os.environ[variable] = path
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            for reference in self._references:
                if reference.mode == "upload" and kind is None:
                    store: Any = reference.datastore
                    folder = self.paths[reference.data_reference_name]
                    store.upload(folder, reference.path_on_datastore, reference.overwrite, show_progress=False)
        finally:
            self._leave()

    def _laid(self, reference: DataReference) -> str:
        store: Any = reference.datastore
        place = (reference.path_on_datastore or "").strip("/")
        root = store._folder_or_none()
        if reference.mode == "mount" and root is not None:
            found = resolve_under(root, place) if place else root
            if not os.path.exists(found):
                os.makedirs(found)  # a place that is written to need not be there before
            return found
        folder = self._folder(reference)
        if reference.mode == "upload":
            return folder
        store.download(folder, place, reference.overwrite, show_progress=False)
        found = os.path.join(folder, *place.split("/"))
        if not os.path.exists(found):
            raise UserErrorException(f"There is nothing at '{place}' of datastore '{store.name}'.")
        return found

    def _folder(self, reference: DataReference) -> str:
        import tempfile

        if reference.path_on_compute:
            os.makedirs(reference.path_on_compute, exist_ok=True)
            return os.path.abspath(reference.path_on_compute)
        self._made.append(tempfile.mkdtemp(prefix="lapis-datastore-"))
        return self._made[-1]

    def _leave(self) -> None:
        for variable, value in self._before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value
        self._before.clear()
        for folder in self._made:
            shutil.rmtree(folder, ignore_errors=True)
        self._made.clear()

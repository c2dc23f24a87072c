"""How a run gets a dataset: under which name, and mounted, downloaded or as it is."""

from __future__ import annotations

from typing import Any

from lapis.domain.data import check_input_name, check_path_on_compute
from lapis.errors import UserErrorException

DIRECT, MOUNT, DOWNLOAD = "direct", "mount", "download"


class DatasetConsumptionConfig:
    """Put it into `arguments`: the script gets the path."""

    def __init__(self, name: str, dataset: Any, mode: str = DIRECT, path_on_compute: str | None = None) -> None:
        if mode not in (DIRECT, MOUNT, DOWNLOAD):
            raise UserErrorException(f"A dataset is consumed direct, by mount or by download, not {mode!r}.")
        self._name = check_input_name(name)
        self.dataset = dataset
        self.mode = mode
        self.path_on_compute = check_path_on_compute(path_on_compute)
        self.arg_val = f"DatasetConsumptionConfig:{name}"

    @property
    def name(self) -> str:
        return self._name

    def as_mount(self, path_on_compute: str | None = None) -> DatasetConsumptionConfig:
        return DatasetConsumptionConfig(self._name, self.dataset, MOUNT, path_on_compute)

    def as_download(self, path_on_compute: str | None = None) -> DatasetConsumptionConfig:
        return DatasetConsumptionConfig(self._name, self.dataset, DOWNLOAD, path_on_compute)

    def as_hdfs(self) -> DatasetConsumptionConfig:
        raise UserErrorException("as_hdfs() needs a Spark compute target, which Lapis does not have. Use as_mount().")

    def __deepcopy__(self, memo: Any) -> DatasetConsumptionConfig:
        return self  # it is never changed, and its dataset holds connections

    def __str__(self) -> str:
        return self.arg_val

    __repr__ = __str__

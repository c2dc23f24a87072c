"""`Dataset`: the door to datasets by name, and to the factories that make them."""

from __future__ import annotations

from typing import Any

from lapis.sdk.abstract_dataset import AbstractDataset
from lapis.sdk.file_dataset import FileDatasetFactory
from lapis.sdk.tabular_factory import TabularDatasetFactory
from lapis.sdk.workspace import Workspace


class Dataset:
    File = FileDatasetFactory
    Tabular = TabularDatasetFactory

    class Scenario:
        TRAINING = "training"
        VALIDATION = "validation"
        INFERENCING = "inferencing"

    @staticmethod
    def get_by_name(workspace: Workspace, name: str, version: Any = "latest", **kwargs: Any) -> Any:
        return AbstractDataset.get_by_name(workspace, name, version)

    @staticmethod
    def get_by_id(workspace: Workspace, id: str, **kwargs: Any) -> Any:
        return AbstractDataset.get_by_id(workspace, id)

    @staticmethod
    def get_all(workspace: Workspace) -> dict[str, Any]:
        return AbstractDataset.get_all(workspace)

"""The run of a script that was started by hand: it prints what it would have logged."""

from __future__ import annotations

from typing import Any
from uuid import uuid4


class _OfflineRun:
    def __init__(self, parent_logger: Any = None, run_id: str | None = None, **kwargs: Any) -> None:
        self._run_id = run_id or f"OfflineRun_{uuid4()}"
        self._tags: dict[str, Any] = {}
        self._properties: dict[str, Any] = {}

    @property
    def id(self) -> str:
        return self._run_id

    @property
    def identity(self) -> str:
        return self._run_id

    def log(self, name: str, value: Any, description: str = "", step: Any = None) -> None:
        print(f"Attempted to log scalar metric {name}:\n{value}")

    def log_list(self, name: str, value: Any, description: str = "") -> None:
        print(f"Attempted to log list metric {name}:\n{list(value)}")

    def log_row(self, name: str, description: Any = None, **kwargs: Any) -> None:
        columns = ", ".join(f"{key}: {value}" for key, value in kwargs.items())
        print(f"Attempted to log row metric {name}:\n{columns}")

    def log_table(self, name: str, value: Any, description: str = "") -> None:
        print(f"Attempted to log table metric {name}:\n{value}")

    def log_image(self, name: str, path: Any = None, plot: Any = None, description: str = "") -> None:
        print(f"Attempted to log image metric {name}:\n{path if path is not None else plot}")

    def log_confusion_matrix(self, name: str, value: Any, description: Any = None) -> None:
        print(f"Attempted to log confusion matrix metric {name}:\n{value}")

    def log_accuracy_table(self, name: str, value: Any, description: Any = None) -> None:
        print(f"Attempted to log accuracy table metric {name}:\n{value}")

    def log_predictions(self, name: str, value: Any, description: Any = None) -> None:
        print(f"Attempted to log predictions metric {name}:\n{value}")

    def log_residuals(self, name: str, value: Any, description: Any = None) -> None:
        print(f"Attempted to log residuals metric {name}:\n{value}")

    def upload_file(self, name: str, path_or_stream: Any, datastore_name: Any = None) -> None:
        print(f"Attempted to upload file {name}:\n{path_or_stream}")

    def upload_files(
        self,
        name: Any = None,
        paths: Any = None,
        return_artifacts: bool = False,
        timeout_seconds: Any = None,
        datastore_name: Any = None,
        names: Any = None,  # what Run.upload_files calls `name` here
    ) -> None:
        for each, path in zip(name or names or (), paths or ()):
            print(f"Attempted to upload file {each}:\n{path}")

    def upload_folder(self, name: str, path: Any, datastore_name: Any = None) -> None:
        print(f"Attempted to upload folder {name}:\n{path}")

    def tag(self, name: str, value: Any = None) -> None:
        self._tags[name] = value

    def set_tags(self, tags: Any) -> None:
        self._tags.update(tags)

    def add_properties(self, properties: Any) -> None:
        self._properties.update(properties)

    def child_run(self, name: Any = None, run_id: Any = None, outputs: Any = None) -> _OfflineRun:
        return _OfflineRun(run_id=run_id)

    def flush(self, timeout_seconds: Any = None) -> None:
        """Nothing waits to be sent."""

    def complete(self, _set_status: bool = True) -> None:
        """There is no record to complete."""

    def fail(self, error_details: Any = None, error_code: Any = None, _set_status: bool = True) -> None:
        print(f"Run failed: {error_details}" if error_details is not None else "Run failed.")

    def cancel(self) -> None:
        """There is no record to cancel."""

    def __enter__(self) -> _OfflineRun:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        """An exception goes on as it would without us."""

    def __repr__(self) -> str:
        return f"_OfflineRun(Id: {self._run_id})"

"""The `log*` calls of a run, and reading metrics back."""

from __future__ import annotations

import os
import time

from lapis.domain import metric_stream
from lapis.domain import metrics as rules
from lapis.errors import UserErrorException
from lapis.later import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Callable

    from lapis.client.recording import Recorder


class RunMetrics:
    """Logging is an append to a file: it never waits for the server, and never fails for the server's sake."""

    _run_id: str

    def _recording(self) -> tuple[Recorder, str]:
        """The recorder, and this run's id if the recorder is an ancestor's."""
        raise NotImplementedError

    def _download(self, suffix: str, write: Callable[[bytes], Any], query: dict[str, Any]) -> None:
        raise NotImplementedError

    def log(self, name: str, value: Any, description: str = "", step: int | None = None) -> None:
        """Log one value. Logging to the same name again makes a series."""
        name = rules.check_name(name)
        if step is not None:
            step = rules.check_step(name, step)
        recorder, run_id = self._recording()
        recorder.record(rules.SCALAR, name, rules.check_scalar(name, value), step, run_id)

    def log_list(self, name: str, value: Any, description: str = "") -> None:
        name = rules.check_name(name)
        self._log(rules.LIST, name, rules.check_list(name, value))

    def log_row(self, name: str, description: Any = None, **kwargs: Any) -> None:
        """Log one row; its columns are the keyword arguments."""
        name = rules.check_name(name)
        self._log(rules.ROW, name, rules.check_row(name, kwargs))

    def log_table(self, name: str, value: Any, description: str = "") -> None:
        """Log a dictionary of columns."""
        name = rules.check_name(name)
        self._log(rules.TABLE, name, rules.check_table(name, value))

    def log_image(self, name: str, path: Any = None, plot: Any = None, description: str = "") -> None:
        """Log an image file, or a matplotlib plot (the module or a figure)."""
        name = rules.check_name(name)
        if (path is None) == (plot is None):
            raise UserErrorException(f"log_image('{name}') needs either path= or plot=, and not both.")
        if path is not None:
            if not isinstance(path, (str, os.PathLike)) or not os.path.isfile(path):
                raise UserErrorException(f"log_image('{name}'): there is no file {path}.")
            source = str(os.fspath(path))
            extension = os.path.splitext(source)[1] or ".png"
            with open(source, "rb") as file:
                self._keep(name, extension, file.read())
            return
        if not hasattr(plot, "savefig"):
            raise UserErrorException(
                f"log_image('{name}'): plot must be matplotlib.pyplot or a figure, not {type(plot).__name__}."
            )
        import io

        drawn = io.BytesIO()  # and not into a file: a disk without room fails no script
        plot.savefig(drawn, format="png")
        self._keep(name, ".png", drawn.getvalue())

    def log_confusion_matrix(self, name: str, value: Any, description: str = "") -> None:
        self._log_plot("confusion_matrix", name, value)

    def log_accuracy_table(self, name: str, value: Any, description: str = "") -> None:
        self._log_plot("accuracy_table", name, value)

    def log_predictions(self, name: str, value: Any, description: str = "") -> None:
        self._log_plot("predictions", name, value)

    def log_residuals(self, name: str, value: Any, description: str = "") -> None:
        self._log_plot("residuals", name, value)

    def get_metrics(
        self, name: str | None = None, recursive: bool = False, run_type: Any = None, populate: bool = False
    ) -> dict[str, Any]:
        """All that was logged: one value or a list of them, rows as columns. With `recursive`, by run id."""
        self.flush()
        wanted = getattr(run_type, "RUN_TYPE", run_type)
        values = metric_stream.Reader()
        self._download("/values", values.feed, {"name": name, "recursive": recursive, "type": wanted})
        found = values.metrics()
        if populate:
            found = {run_id: {k: self._populated(v) for k, v in values.items()} for run_id, values in found.items()}
        return found if recursive else found.get(self._run_id, {})

    def flush(self, timeout_seconds: float = 300) -> None:
        """Wait until the server has all that this process logged to the run."""
        raise NotImplementedError

    def _log(self, kind: str, name: str, value: Any) -> None:
        recorder, run_id = self._recording()
        recorder.record(kind, name, value, None, run_id)

    def _log_plot(self, plot: str, name: str, value: Any) -> None:
        import json

        name = rules.check_name(name)
        document = json.dumps(rules.check_plot(name, plot, value))
        self._keep(name, ".json", document.encode("utf-8", "surrogatepass"))

    def _keep(self, name: str, extension: str, content: bytes) -> None:
        """Spool a file for the run and log a reference to it."""
        import re

        stem = re.sub(r"[^\w.-]+", "_", name[:50]).strip("._") or "metric"
        stored = f"{stem}_{time.time_ns()}" + re.sub(r"[^\w.]", "_", extension)
        self._recording()[0].spool(self._run_id, stored, content)
        self._log(rules.REFERENCE, name, f"{rules.ARTIFACT_PREFIX}{self._run_id}/{stored}")

    def _populated(self, value: Any) -> Any:
        """What a reference stands for, where that is JSON."""
        if isinstance(value, list):
            return [self._populated(each) for each in value]
        if not isinstance(value, str) or not value.startswith(rules.ARTIFACT_PREFIX) or not value.endswith(".json"):
            return value
        run_id, name = value[len(rules.ARTIFACT_PREFIX) :].split("/", 1)
        pieces: list[bytes] = []
        self._read_file(name, pieces.append, run_id)
        import json

        return json.loads(b"".join(pieces))

    def _read_file(self, name: str, write: Any, run_id: str | None = None) -> None:
        raise NotImplementedError

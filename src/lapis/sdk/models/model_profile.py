"""How a model answers sample requests: how long it takes, and what it uses meanwhile."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from lapis.client.http_client import quoted
from lapis.domain.service import check_service_name
from lapis.domain.service_settings import ServiceSettings
from lapis.domain.terminal_escapes import plain
from lapis.errors import NotFound, WebserviceException
from lapis.sdk.base import display
from lapis.sdk.models import deployment

if TYPE_CHECKING:
    from lapis.sdk.workspace.workspace import Workspace

_MOST_SAMPLES = 1000


def profile(
    workspace: Workspace,
    name: str,
    models: Any,
    inference_config: Any,
    input_dataset: Any,
    cpu: Any = None,
    memory_in_gb: Any = None,
    description: str | None = None,
    input_data: Any = None,
) -> ModelProfile:
    """Begin to measure. Returns at once; `wait_for_completion()` waits for what was found."""
    check_service_name(name)
    ServiceSettings.asked({"cpu_cores": cpu, "memory_gb": memory_in_gb})
    samples = _samples(input_dataset, input_data)
    body = {
        "name": name,
        "content": deployment.content(workspace, models, inference_config),
        "samples": samples,
        "cpu": cpu,
        "memory_gb": memory_in_gb,
        "description": description,
        "dataset_id": getattr(input_dataset, "id", None),
    }
    workspace._client.call("POST", workspace._base + "/profiles", body, timeout=deployment.LONGEST)
    return ModelProfile(workspace, name)


class ModelProfile:
    """What was found out about a model. Times are in milliseconds, memory is in GB."""

    def __init__(
        self,
        workspace: Workspace,
        name: str,
        image_id: Any = None,
        description: Any = None,
        input_data: Any = None,
        tags: Any = None,
        properties: Any = None,
        recommended_memory: Any = None,
        recommended_cpu: Any = None,
        recommended_memory_latency: Any = None,
        recommended_cpu_latency: Any = None,
        profile_result_url: Any = None,
        error: Any = None,
        error_logs: Any = None,
    ) -> None:
        self.workspace = workspace
        self.name = name
        self._take(self._fetch())

    def wait_for_completion(self, show_output: bool = False) -> None:
        """Return once it is measured. Raises WebserviceException if it could not be."""
        told = None
        while self._view["state"] == "Running":
            stage = self._view.get("stage")
            if show_output and stage and stage != told:
                told = stage
                print(plain(f"Running: {stage}"), flush=True)
            time.sleep(0.2)
            self._take(self._fetch())
        if self.state == "Failed":
            raise WebserviceException(plain(f"Profile '{self.name}' failed: {self.error['message']}"))
        if show_output:
            half = f"half of them within {self.latency_percentile_50_in_ms:.1f} ms, {self.max_utilized_memory:.2f} GB"
            print(f"{self.state}\nModel profile '{self.name}': {self.total_queries} requests, {half}", flush=True)

    def wait_for_profiling(self, show_output: bool = False) -> None:
        """As releases before 1.2 call it."""
        self.wait_for_completion(show_output)

    def update_creation_state(self) -> None:
        """Read it again, in place."""
        self._take(self._fetch())

    def get_details(self) -> dict[str, Any]:
        """All that was found; empty while it is measured."""
        self._take(self._fetch())
        if self.state == "Failed":
            return {"name": self.name, "state": self.state, "error": self.error}
        return {key: value for key, value in self._details().items() if value is not None}

    def get_results(self) -> dict[str, Any]:
        """As releases before 1.2 call it."""
        return self.get_details()

    def serialize(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "state": self.state,
            "description": self.description,
            "createdTime": self.created_time,
            "modelIds": self.model_ids,
            "inputDatasetId": self.input_dataset_id,
            "requestedCpu": self.requested_cpu,
            "requestedMemoryInGB": self.requested_memory_in_gb,
            "error": self.error,
            **self._details(),
        }

    def _details(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "state": self.state,
            "recommendedCpu": self.recommended_cpu,
            "recommendedMemoryInGB": self.recommended_memory,
            "maxUtilizedCpu": self.max_utilized_cpu,
            "maxUtilizedMemoryInGB": self.max_utilized_memory,
            "requestedQueriesPerSecond": self.requested_queries_per_second,
            "measuredQueriesPerSecond": self.measured_queries_per_second,
            "averageLatencyInMs": self.average_latency_in_ms,
            "latencyPercentile50InMs": self.latency_percentile_50_in_ms,
            "latencyPercentile90InMs": self.latency_percentile_90_in_ms,
            "latencyPercentile95InMs": self.latency_percentile_95_in_ms,
            "latencyPercentile99InMs": self.latency_percentile_99_in_ms,
            "latencyPercentile999InMs": self.latency_percentile_999_in_ms,
            "totalQueries": self.total_queries,
            "successQueries": self.success_queries,
            "successRate": self.success_rate,
        }

    def _fetch(self) -> dict[str, Any]:
        try:
            path = f"{self.workspace._base}/profiles/{quoted(self.name)}"
            view: dict[str, Any] = self.workspace._client.call("GET", path)
        except NotFound as error:
            raise WebserviceException(error.message, status_code=404)
        return view

    def _take(self, view: dict[str, Any]) -> None:
        self._view = view
        found = view["result"] or {}
        self.id = view["id"]
        self.state = view["state"]
        self.error = view["error"]
        self.error_logs = self.error_logs_url = None
        self.description = view["description"]
        self.created_time = display.when(view["created_at"])
        self.model_ids = view["models"]
        self.environment = view["environment"]
        self.input_dataset_id = view["dataset_id"]
        self.requested_cpu = view["cpu"]
        self.requested_memory_in_gb = view["memory_gb"]
        self.requested_queries_per_second = None
        self.create_operation_id = self.parent_request_id = self.id
        self.average_latency_in_ms = found.get("average")
        self.latency_percentile_50_in_ms = found.get("p50")
        self.latency_percentile_90_in_ms = found.get("p90")
        self.latency_percentile_95_in_ms = found.get("p95")
        self.latency_percentile_99_in_ms = found.get("p99")
        self.latency_percentile_999_in_ms = found.get("p999")
        self.max_utilized_cpu = found.get("cpu")
        self.max_utilized_memory = found.get("memory_gb")
        self.total_queries = found.get("total")
        self.success_queries = found.get("success")
        self.success_rate = 100.0 * found["success"] / found["total"] if found else None
        self.measured_queries_per_second = found["success"] / found["seconds"] if found else None
        self.recommended_cpu = max(0.1, round(found["cpu"], 1)) if found else None
        self.recommended_memory = max(0.5, round(found["memory_gb"] * 1.25, 1)) if found else None
        self.recommended_cpu_latency = self.recommended_memory_latency = self.latency_percentile_50_in_ms
        self.recommendation_latency = self.latency_percentile_50_in_ms
        self.image_id = self.imageId = None
        self.input_data = self.profile_result_url = None
        self.tags: dict[str, Any] = {}
        self.properties: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"ModelProfile(workspace={self.workspace!r}, name={self.name!r}, state={self.state!r})"


def _samples(dataset: Any, text: Any) -> list[str]:
    """Bodies of requests: the rows of a table with one column, the files of a file dataset, or one text."""
    if dataset is None and text is None:
        raise WebserviceException(
            "A profile needs requests to send: give input_dataset, a table with one column of them."
        )
    if dataset is None:
        return [text if isinstance(text, str) else str(text)]
    if hasattr(dataset, "to_pandas_dataframe"):
        frame = dataset.take(_MOST_SAMPLES).to_pandas_dataframe()
        if len(frame.columns) != 1:
            raise WebserviceException(
                f"input_dataset has columns {', '.join(map(str, frame.columns))}; one is needed, whose rows are the "
                "bodies of requests."
            )
        return [str(value) for value in frame.iloc[:, 0]]
    if hasattr(dataset, "download"):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            found = []
            for path in dataset.download(folder, overwrite=True)[:_MOST_SAMPLES]:
                with open(path, encoding="utf-8") as file:
                    found.append(file.read())
            return found
    raise WebserviceException(f"input_dataset must be a dataset, not {type(dataset).__name__}.")

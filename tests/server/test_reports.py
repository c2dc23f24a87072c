"""A report is one change: all of it counts, once, or none of it."""

from __future__ import annotations

from typing import Any

import pytest

from azureml.core import Experiment, Run
from lapis.domain import frames
from lapis.domain.metrics import SCALAR, Point, to_line
from lapis.errors import UserErrorException

LINES = b"".join(to_line(Point(SCALAR, 1.0, "loss", value)) for value in (0.5, 0.25))


def report(run: Any, data: bytes, state: str | None = None) -> dict[str, Any]:
    """Tell what a journal has at its beginning, and with `state` how the run ended, as complete() does."""
    header = {"verdict": {"state": state, "reason": "told"}} if state else {}
    body = frames.encode({**header, "parts": [{"kind": "journal", "stream": "told", "offset": 0}]}, [data])
    workspace = run.experiment.workspace
    answer: dict[str, Any] = workspace._client.call("POST", f"{workspace._base}/runs/{run.id}/report", data=body)
    return answer


def test_a_report_whose_verdict_cannot_be_read_leaves_no_points_behind(experiment: Experiment) -> None:
    run = experiment.start_logging()
    with pytest.raises(UserErrorException, match="cannot be read"):
        report(run, LINES, "Finished")
    assert run.get_metrics() == {}
    assert run.get_status() == "Running"
    run.complete()


def test_a_report_told_twice_counts_once(experiment: Experiment) -> None:
    run = experiment.start_logging()
    first, again = report(run, LINES, "Completed"), report(run, LINES, "Failed")
    assert first == again == {"positions": {"journal:told": len(LINES)}, "cancel": False, "state": "Completed"}
    assert Run.get(experiment.workspace, run.id).get_metrics() == {"loss": [0.5, 0.25]}
    run.complete()


def test_of_a_report_that_was_taken_in_part_the_rest_is_taken(experiment: Experiment) -> None:
    """The server died before it could answer the first one, so the last one begins where that began."""
    run = experiment.start_logging()
    report(run, LINES[: LINES.index(b"\n") + 1])
    assert report(run, LINES, "Completed")["positions"] == {"journal:told": len(LINES)}
    assert Run.get(experiment.workspace, run.id).get_metrics() == {"loss": [0.5, 0.25]}
    run.complete()

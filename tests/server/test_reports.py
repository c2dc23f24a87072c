"""A report is one change: all of it counts, once, or none of it."""

from __future__ import annotations

from typing import Any

import pytest

from azureml.core import Experiment, Run
from lapis.domain import frames
from lapis.domain.metrics import SCALAR, Point, to_line
from lapis.errors import UserErrorException

LINES = b"".join(to_line(Point(SCALAR, 1.0, "loss", value)) for value in (0.5, 0.25))


def report(run: Any, state: str) -> dict[str, Any]:
    """Tell the points and how the run ended, as complete() does."""
    header = {"verdict": {"state": state, "reason": "told"}, "parts": [_JOURNAL]}
    workspace = run.experiment.workspace
    answer: dict[str, Any] = workspace._client.call(
        "POST", f"{workspace._base}/runs/{run.id}/report", data=frames.encode(header, [LINES])
    )
    return answer


_JOURNAL = {"kind": "journal", "stream": "told", "offset": 0}


def test_a_report_whose_verdict_cannot_be_read_leaves_no_points_behind(experiment: Experiment) -> None:
    run = experiment.start_logging()
    with pytest.raises(UserErrorException, match="cannot be read"):
        report(run, "Finished")
    assert run.get_metrics() == {}
    assert run.get_status() == "Running"
    run.complete()


def test_a_report_told_twice_counts_once(experiment: Experiment) -> None:
    run = experiment.start_logging()
    first, again = report(run, "Completed"), report(run, "Failed")
    assert first == again == {"positions": {"journal:told": len(LINES)}, "cancel": False, "state": "Completed"}
    assert Run.get(experiment.workspace, run.id).get_metrics() == {"loss": [0.5, 0.25]}
    run.complete()

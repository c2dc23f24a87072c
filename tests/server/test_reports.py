"""A report is one change: all of it counts, once, or none of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from azureml.core import Experiment, Run
from lapis.domain import frames
from lapis.domain.metrics import SCALAR, Point, to_line
from lapis.errors import Conflict, UserErrorException

LINES = b"".join(to_line(Point(SCALAR, 1.0, "loss", value)) for value in (0.5, 0.25))


def report(run: Any, data: bytes, state: str | None = None, end: int | None = None) -> dict[str, Any]:
    """Tell what a journal has at its beginning, and with `state` how the run ended, as complete() does."""
    ends = {"journal:told": len(data) if end is None else end}
    header = {"verdict": {"state": state, "reason": "told"}, "ends": ends} if state else {}
    return tell(run, {**header, "parts": [{"kind": "journal", "stream": "told", "offset": 0}]}, [data])


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


def test_a_verdict_is_refused_until_all_that_it_states_is_there(experiment: Experiment) -> None:
    run, first = experiment.start_logging(), LINES[: LINES.index(b"\n") + 1]
    with pytest.raises(Conflict, match=f"of journal 'told' {len(first)} of {len(LINES)} bytes have arrived") as refusal:
        report(run, first, "Completed", end=len(LINES))
    assert refusal.value.details == {"positions": {"journal:told": len(first)}}, "what it came with is kept"
    assert run.get_status() == "Running" and run.get_metrics() == {"loss": 0.5}
    assert report(run, LINES, "Completed")["state"] == "Completed"
    assert Run.get(experiment.workspace, run.id).get_metrics() == {"loss": [0.5, 0.25]}
    run.complete()


def test_a_verdict_waits_for_logs_that_it_states_and_does_not_bring(experiment: Experiment) -> None:
    run = experiment.start_logging()
    tell(run, {"parts": [{"kind": "log", "name": "logs/a.txt", "offset": 0}]}, [b"four"])
    verdict = {"verdict": {"state": "Failed", "reason": "told"}}
    with pytest.raises(Conflict, match="of log 'logs/a.txt' 4 of 5 bytes.*of log 'logs/b.txt' 0 of 1 bytes"):
        tell(run, {**verdict, "ends": {"log:logs/a.txt": 5, "log:logs/b.txt": 1}})
    assert tell(run, {**verdict, "ends": {"log:logs/a.txt": 4, "journal:other": 0}})["state"] == "Failed"
    assert tell(run, {**verdict, "ends": {"log:logs/a.txt": 99}})["state"] == "Failed", (
        "it has ended: nothing is asked for"
    )
    run.complete()


def test_a_run_is_not_completed_before_all_its_nodes_have_delivered(experiment: Experiment) -> None:
    run = experiment.start_logging()
    tell(run, {"node": {"index": 1, "state": "done", "delivered": True}})
    verdict = {"verdict": {"state": "Completed", "reason": "told"}, "ends": {}}
    with pytest.raises(Conflict, match="node 0 has not delivered"):
        tell(run, verdict)
    tell(run, {"node": {"index": 0, "state": "done", "delivered": True}})
    assert tell(run, verdict)["state"] == "Completed"
    run.complete()


def tell(run: Any, header: dict[str, Any], parts: Sequence[bytes] = ()) -> dict[str, Any]:
    workspace = run.experiment.workspace
    path = f"{workspace._base}/runs/{run.id}/report"
    answer: dict[str, Any] = workspace._client.call("POST", path, data=frames.encode(header, parts))
    return answer

"""Routes of runs: made, found, changed, ended, watched, and reported on."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Annotated, Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from lapis.domain import frames, strict_json
from lapis.domain.changes import RunChange, checked_as
from lapis.domain.limits import MESSAGE, PAGE
from lapis.domain.report import check_report
from lapis.domain.run import parse_label
from lapis.domain.run_filter import MAXIMIZE, MINIMIZE, RunFilter, parse_bound
from lapis.domain.values import Value, at_most
from lapis.errors import UserErrorException
from lapis.server.api.repeats import whole
from lapis.server.api.request import Asked, Response, TheControl, answer
from lapis.server.api.routing import Routes
from lapis.server.control.bounds import Bounds, Filters, Name, Number, Offset, Seconds
from lapis.server.control.guard import Guarded
from lapis.server.control.runs import NewRun

router = Routes("/workspaces/{workspace_id}/runs")
LONGEST_WATCH = 30.0


@dataclass(frozen=True)
class NewRuns(Value):
    runs: tuple[NewRun, ...]


@dataclass(frozen=True)
class Failure(Value):
    error_details: str | None = field(default=None, metadata=at_most(MESSAGE))
    error_code: str | None = field(default=None, metadata=at_most(MESSAGE))


def create_from(control: Guarded, workspace_id: str, body: bytes) -> bytes:
    """Make the runs that a JSON body describes. Called by express.py."""
    wanted = NewRuns.checked(strict_json.decode(body), "request").runs
    if not wanted:
        raise UserErrorException("No run was described.")
    made = control.runs.create(workspace_id, list(wanted))
    return json.dumps({"runs": [control.run_views.of(run) for run in made]}, separators=(",", ":")).encode()


@router.get("")
def find(
    control: TheControl,
    workspace_id: str,
    experiment: str | None = None,
    parent: str | None = None,
    children: bool = False,
    type: str | None = None,
    target: str | None = None,
    status: Filters | None = None,
    tag: Filters | None = None,
    property: Filters | None = None,
    archived: bool | None = False,
    oldest_first: bool = False,
    maximize: str | None = None,
    minimize: str | None = None,
    where: Filters | None = None,
    limit: Annotated[int, Bounds(1, PAGE)] = 100,
    cursor: Name | None = None,
) -> Response:
    by = (maximize, MAXIMIZE) if maximize else (minimize, MINIMIZE) if minimize else None
    wanted = RunFilter(
        workspace_id=workspace_id,
        experiment=experiment,
        parent_id=parent,
        roots_only=parent is None and not children,
        type=type,
        target=target,
        states=tuple(status or ()),
        tags=tuple(parse_label(text) for text in tag or ()),
        properties=tuple(parse_label(text) for text in property or ()),
        archived=archived,
        oldest_first=oldest_first,
        bounds=tuple(parse_bound(text) for text in where or ()),
        best_by=by,
    )
    found, more = control.runs.find(wanted, limit, cursor)
    reply: dict[str, Any] = {"runs": [control.run_views.of(run) for run in found], "cursor": more}
    if wanted.best_by is not None:  # what each was ranked by, in the same order
        best = control.metrics.best_of(workspace_id, [run.id for run in found], *wanted.best_by)
        reply["values"] = [best.get(run.id) for run in found]
    return answer(reply)


@router.get("/{run_id}")
def get(control: TheControl, workspace_id: str, run_id: str) -> Response:
    return answer(control.run_views.of(control.runs.get(workspace_id, run_id)))


@router.get("/{run_id}/descendants")
def descendants(control: TheControl, workspace_id: str, run_id: str) -> Response:
    found = control.runs.descendants(workspace_id, run_id)
    return answer({"runs": [control.run_views.of(run) for run in found]})


@router.patch("/{run_id}")
@whole
def change(
    control: TheControl,
    workspace_id: str,
    run_id: str,
    changes: Asked,
) -> Response:
    changed = control.runs.change(workspace_id, run_id, checked_as(RunChange, changes))
    return answer(control.run_views.of(changed))


@router.delete("/{run_id}")
@whole
def delete(control: TheControl, workspace_id: str, run_id: str) -> Response:
    control.runs.delete(workspace_id, run_id)
    return answer({})


@router.post("/{run_id}/start")
@whole
def start(control: TheControl, workspace_id: str, run_id: str) -> Response:
    return answer(control.run_views.of(control.runs.start(workspace_id, run_id)))


@router.post("/{run_id}/complete")
@whole
def complete(control: TheControl, workspace_id: str, run_id: str) -> Response:
    return answer(control.run_views.of(control.runs.complete(workspace_id, run_id)))


@router.post("/{run_id}/fail")
@whole
def fail(
    control: TheControl,
    workspace_id: str,
    run_id: str,
    failure: Failure,
) -> Response:
    return answer(
        control.run_views.of(control.runs.fail(workspace_id, run_id, failure.error_details, failure.error_code))
    )


@router.post("/{run_id}/cancel")
@whole
def cancel(control: TheControl, workspace_id: str, run_id: str) -> Response:
    return answer(control.run_views.of(control.runs.cancel(workspace_id, run_id)))


@router.get("/{run_id}/metrics")
def metrics(
    control: TheControl,
    workspace_id: str,
    run_id: str,
    name: str | None = None,
    recursive: bool = False,
    type: str | None = None,
) -> Response:
    return answer({"metrics": control.runs.metrics(workspace_id, run_id, name, recursive, type)})


@router.get("/{run_id}/values")
def values(
    control: TheControl,
    workspace_id: str,
    run_id: str,
    name: str | None = None,
    recursive: bool = False,
    type: str | None = None,
) -> Response:
    """The same as it is stored, which goes out as it is read: however much it is, little of it is in memory."""
    pieces = control.runs.values(workspace_id, run_id, name, recursive, type)
    return StreamingResponse(pieces, media_type="application/octet-stream")


@router.get("/{run_id}/trials")
def trials(control: TheControl, workspace_id: str, run_id: str) -> Response:
    """The runs of a hyperparameter search, each with its parameters and its best."""
    return answer(control.sweeps.trials(workspace_id, run_id))


@router.get("/{run_id}/steps")
def steps(control: TheControl, workspace_id: str, run_id: str) -> Response:
    """The steps of a pipeline, each with its run and what it writes."""
    return answer(control.pipelines.steps(workspace_id, run_id))


@router.get("/{run_id}/summaries")
def summaries(control: TheControl, workspace_id: str, run_id: str) -> Response:
    return answer({"metrics": control.metrics.summaries(workspace_id, run_id)})


@router.get("/{run_id}/curve")
def curve(
    control: TheControl,
    workspace_id: str,
    run_id: str,
    name: str,
    most: Annotated[int, Bounds(4, 100_000)] = 1000,
) -> Response:
    """Points of one series as (time, step, number), thinned on the server to what a chart can show."""
    return answer({"points": control.metrics.curve(workspace_id, run_id, name, most)})


def report_from(control: Guarded, workspace_id: str, run_id: str, body: bytes) -> bytes:
    """Take up what an agent or an owner tells, as frames. Called by express.py."""
    header, parts = frames.decode(body)
    check_report(header, len(parts))
    reply = control.runs.report(workspace_id, run_id, header, parts)
    return json.dumps(reply, separators=(",", ":")).encode()


@router.get("/{run_id}/watch")
async def watch(
    control: TheControl,
    workspace_id: str,
    run_id: str,
    revision: Number = -1,
    log: str | None = None,
    offset: Offset = 0,
    wait: Seconds = 0.0,
) -> Response:
    """Answer as soon as the run has changed since `revision` or `log` is longer than `offset`, or after `wait` s."""
    deadline = time.monotonic() + min(wait, LONGEST_WATCH)
    with control.runs.follow(workspace_id, run_id) as run:
        while True:
            view, length = await run_in_threadpool(_look, control, workspace_id, run_id, log)
            left = deadline - time.monotonic()
            if view["revision"] != revision or length > offset or left <= 0 or control.lifetime.is_stopping():
                return answer(dict(run=view, length=length))
            await run.news(min(left, 5.0))  # look now and then all the same: what an observer sees changes too


def _look(control: Guarded, workspace_id: str, run_id: str, log: str | None) -> tuple[dict[str, Any], int]:
    view = control.run_views.of(control.runs.get(workspace_id, run_id))
    return view, control.runs.log_length(workspace_id, run_id, log) if log else 0

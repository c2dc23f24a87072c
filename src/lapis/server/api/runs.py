"""Routes of runs: made, found, changed, ended, watched, and reported on."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter, ValidationError

from lapis.domain import frames
from lapis.domain.run import parse_label
from lapis.errors import UserErrorException
from lapis.server.api.system import System, TheActor, TheSystem, answer, run_view
from lapis.server.control.access import Actor
from lapis.server.control.runs import NewRun
from lapis.server.store.runs import RunFilter

router = APIRouter(prefix="/workspaces/{workspace_id}/runs")
LONGEST_WATCH = 30.0
_NEW_RUNS = TypeAdapter(dict[Literal["runs"], list[NewRun]])


def create_from(system: System, actor: Actor, workspace_id: str, body: bytes) -> bytes:
    """Make the runs that a JSON body describes. Called by express.py."""
    try:
        wanted = _NEW_RUNS.validate_json(body)["runs"]
    except (ValidationError, KeyError) as error:
        raise UserErrorException(f"The request cannot be read: {error}") from error
    if not wanted:
        raise UserErrorException("No run was described.")
    made = system.runs.create(actor, workspace_id, wanted)
    return json.dumps({"runs": [run_view(system, run) for run in made]}, separators=(",", ":")).encode()


@router.get("")
def find(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    experiment: str | None = None,
    parent: str | None = None,
    children: bool = False,
    type: str | None = None,
    target: str | None = None,
    status: Annotated[list[str] | None, Query()] = None,
    tag: Annotated[list[str] | None, Query()] = None,
    property: Annotated[list[str] | None, Query()] = None,
    archived: bool | None = False,
    oldest_first: bool = False,
    maximize: str | None = None,
    minimize: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: int | None = None,
) -> Response:
    best = ("maximize", maximize) if maximize else ("minimize", minimize) if minimize else None
    where = RunFilter(
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
        best_by=(best[1], best[0]) if best and best[1] else None,
    )
    found, more = system.runs.find(actor, where, limit, cursor)
    return answer({"runs": [run_view(system, run) for run in found], "cursor": more})


@router.get("/{run_id}")
def get(system: TheSystem, actor: TheActor, workspace_id: str, run_id: str) -> Response:
    return answer(run_view(system, system.runs.get(actor, workspace_id, run_id)))


@router.get("/{run_id}/descendants")
def descendants(system: TheSystem, actor: TheActor, workspace_id: str, run_id: str) -> Response:
    found = system.runs.descendants(actor, workspace_id, run_id)
    return answer({"runs": [run_view(system, run) for run in found]})


@router.patch("/{run_id}")
def change(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    run_id: str,
    changes: dict[str, Any] = Body(),  # noqa: B008
) -> Response:
    return answer(run_view(system, system.runs.change(actor, workspace_id, run_id, changes)))


@router.delete("/{run_id}")
def delete(system: TheSystem, actor: TheActor, workspace_id: str, run_id: str) -> Response:
    system.runs.delete(actor, workspace_id, run_id)
    return answer({})


@router.post("/{run_id}/start")
def start(system: TheSystem, actor: TheActor, workspace_id: str, run_id: str) -> Response:
    return answer(run_view(system, system.runs.start(actor, workspace_id, run_id)))


@router.post("/{run_id}/complete")
def complete(system: TheSystem, actor: TheActor, workspace_id: str, run_id: str) -> Response:
    return answer(run_view(system, system.runs.complete(actor, workspace_id, run_id)))


@router.post("/{run_id}/fail")
def fail(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    run_id: str,
    error_details: str | None = Body(default=None),
    error_code: str | None = Body(default=None),
) -> Response:
    return answer(run_view(system, system.runs.fail(actor, workspace_id, run_id, error_details, error_code)))


@router.post("/{run_id}/cancel")
def cancel(system: TheSystem, actor: TheActor, workspace_id: str, run_id: str) -> Response:
    return answer(run_view(system, system.runs.cancel(actor, workspace_id, run_id)))


@router.get("/{run_id}/metrics")
def metrics(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    run_id: str,
    name: str | None = None,
    recursive: bool = False,
    type: str | None = None,
) -> Response:
    return answer({"metrics": system.runs.metrics(actor, workspace_id, run_id, name, recursive, type)})


@router.get("/{run_id}/trials")
def trials(system: TheSystem, actor: TheActor, workspace_id: str, run_id: str) -> Response:
    """The runs of a hyperparameter search, each with its parameters and its best."""
    return answer(system.sweeps.trials(actor, workspace_id, run_id))


@router.get("/{run_id}/summaries")
def summaries(system: TheSystem, actor: TheActor, workspace_id: str, run_id: str) -> Response:
    system.runs.get(actor, workspace_id, run_id)
    return answer({"metrics": system.stores.metrics.summaries(workspace_id, [run_id])[run_id]})


@router.get("/{run_id}/curve")
def curve(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    run_id: str,
    name: str,
    most: Annotated[int, Query(ge=4, le=100_000)] = 1000,
) -> Response:
    """Points of one series as (time, step, number), thinned on the server to what a chart can show."""
    system.runs.get(actor, workspace_id, run_id)
    return answer({"points": system.stores.metrics.curve(workspace_id, run_id, name, most)})


def report_from(system: System, actor: Actor, workspace_id: str, run_id: str, body: bytes) -> bytes:
    """Take up what an agent or an owner tells, as frames. Called by express.py."""
    header, parts = frames.decode(body)
    try:
        reply = system.runs.report(actor, workspace_id, run_id, header, parts)
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise UserErrorException(f"The report of run {run_id} cannot be read: {fault!r}.") from fault
    return json.dumps(reply, separators=(",", ":")).encode()


@router.get("/{run_id}/watch")
async def watch(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    run_id: str,
    revision: int = -1,
    log: str | None = None,
    offset: int = 0,
    wait: float = 0.0,
) -> Response:
    """Answer as soon as the run has changed since `revision` or `log` is longer than `offset`, or after `wait` s."""
    deadline = time.monotonic() + min(max(wait, 0.0), LONGEST_WATCH)
    with system.bulletin.watch(run_id) as bulletin:
        while True:
            view, length = await run_in_threadpool(_look, system, actor, workspace_id, run_id, log)
            left = deadline - time.monotonic()
            if view["revision"] != revision or length > offset or left <= 0 or system.stopping.is_set():
                return answer(dict(run=view, length=length))
            await bulletin.news(min(left, 5.0))  # look now and then all the same: what an observer sees changes too


def _look(system: System, actor: Actor, workspace_id: str, run_id: str, log: str | None) -> tuple[dict[str, Any], int]:
    view = run_view(system, system.runs.get(actor, workspace_id, run_id))
    return view, system.runs.log_length(workspace_id, run_id, log) if log else 0

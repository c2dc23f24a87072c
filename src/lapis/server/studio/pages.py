"""Routes of the pages. All of them only look: the cookie that opens them opens nothing else."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, RedirectResponse, StreamingResponse

from lapis.errors import AzureMLException, NotFound, WorkspaceException, to_wire
from lapis.server.api.request import Request, Response, TheControl
from lapis.server.api.routing import Routes
from lapis.server.control.bounds import DisplayName, Name, Offset, Seconds
from lapis.server.control.guard import Guarded
from lapis.server.studio import exhibits, rendering, run_list, views

LONGEST_WAIT = 20.0
_PER_PAGE = 50
_MOST_EXPERIMENTS = 200  # to choose from; others can be named in the address
# the blocks of run.html that change while a run runs
_LIVE = ("heading", "facts", "stages", "logs", "metrics", "exhibits", "children", "files")


async def _guarded(request: Request, answered: Callable[[], Awaitable[Response]]) -> Response:
    """Every answer carries the same headers, and an error is a page that a person can read."""
    try:
        response = await answered()
    except AzureMLException as error:
        response = _refusal(request, error)
    for name, value in rendering.HEADERS.items():
        response.headers.setdefault(name, value)
    return response


router = Routes(around=_guarded)


@router.get("/")
def workspaces(control: TheControl) -> Response:
    found = control.workspaces.find()
    if len(found) == 1:
        return RedirectResponse(f"/studio/{found[0]['id']}/runs", 303)
    return rendering.page("workspaces.html", workspaces=found)


@router.get("/static/{name:path}")
def static(name: str) -> Response:
    file = rendering.STATIC.get(name)
    if file is None:
        raise NotFound(f"There is no static file '{name}'.")
    return Response(file.content, media_type=file.media_type, headers={"Cache-Control": "private, max-age=31536000"})


@router.get("/{workspace_id}/runs")
def runs(
    control: TheControl,
    workspace_id: str,
    experiment: Name = "",
    status: Name = "",
    tag: DisplayName = "",
    where: DisplayName = "",
    sort: DisplayName = "",
    cursor: Name | None = None,
) -> Response:
    """The address says all that the list is: it can be kept, and sent to somebody."""
    workspace = control.workspaces.get(workspace_id)
    asked = run_list.Asked(experiment, status, tag, where, sort)
    found, more = control.runs.find(asked.filter(workspace_id), _PER_PAGE, cursor)
    names = control.workspaces.newest_experiments(workspace_id, _MOST_EXPERIMENTS)
    return rendering.page(
        "runs.html",
        workspace=workspace,
        runs=[control.run_views.of(run) for run in found],
        columns=run_list.columns(control, workspace_id, [run.id for run in found], asked),
        live=any(not run.ended for run in found),
        experiments=sorted({*names, *filter(None, [experiment])}),
        statuses=run_list.STATUSES,
        asked=asked,
        paged=cursor is not None,
        more=more,
        now=control.lifetime.now(),
    )


@router.get("/{workspace_id}/runs/{run_id}")
def run(control: TheControl, workspace_id: str, run_id: str, log: str = "") -> Response:
    workspace = control.workspaces.get(workspace_id)
    state = views.run_state(control, workspace_id, run_id)
    name = views.chosen_log(state, log)
    piece = views.log_piece(control, workspace_id, run_id, name, None) if name else None
    return rendering.page("run.html", **_run_values(control, workspace, state, name), piece=piece, mark=state["mark"])


@router.get("/{workspace_id}/runs/{run_id}/state.json")
async def run_state(
    control: TheControl,
    workspace_id: str,
    run_id: str,
    seen: str = "",
    wait: Seconds = 0.0,
    log: str = "",
) -> Response:
    """The run and the parts of its page, as soon as its mark is not the one `seen`, or after `wait` seconds."""
    deadline = time.monotonic() + min(max(wait, 0.0), LONGEST_WAIT)
    with control.runs.follow(workspace_id, run_id) as followed:
        while True:
            state = await run_in_threadpool(views.run_state, control, workspace_id, run_id)
            left = deadline - time.monotonic()
            if state["mark"] != seen or left <= 0 or control.lifetime.is_stopping():
                break
            await followed.news(min(left, 2.0))  # look now and then all the same: children tell only of themselves
    return await run_in_threadpool(_state_answer, control, state, seen, log)


@router.get("/{workspace_id}/runs/{run_id}/log.json")
def log(
    control: TheControl,
    workspace_id: str,
    run_id: str,
    name: str,
    offset: Offset | None = None,
) -> Response:
    return rendering.data(views.log_piece(control, workspace_id, run_id, name, offset))


@router.get("/{workspace_id}/runs/{run_id}/curve.json")
def curve(control: TheControl, workspace_id: str, run_id: str, name: str) -> Response:
    return rendering.data(views.curve(control, workspace_id, run_id, name))


@router.get("/{workspace_id}/runs/{run_id}/file/{name:path}")
def file(control: TheControl, workspace_id: str, run_id: str, name: str) -> Response:
    """The file's bytes, as a picture or as something to save, never as a page or a script of this origin."""
    found = control.files.get(workspace_id, run_id, name)
    kind = exhibits.image_type(name)
    headers = {"Content-Security-Policy": "default-src 'none'; sandbox"}
    if kind is None:
        headers["Content-Disposition"] = "attachment; filename*=UTF-8''" + quote(name.rpartition("/")[2])
    if found.hash is not None:  # it does not grow any more
        headers["Content-Length"] = str(found.size)
    chunks = control.files.read(workspace_id, run_id, found)
    return StreamingResponse(chunks, media_type=kind or "application/octet-stream", headers=headers)


@router.get("/{rest:path}")
def nothing(rest: str) -> Response:
    raise NotFound(f"There is no page /studio/{rest}.")


def _state_answer(control: Guarded, state: dict[str, Any], seen: str, log: str) -> Response:
    sections = {}
    if state["mark"] != seen:
        workspace = control.workspaces.get(state["run"]["workspace_id"])
        values = _run_values(control, workspace, state, views.chosen_log(state, log))
        sections = rendering.blocks("run.html", _LIVE, values)
    return rendering.data(dict(state, sections=sections))


def _run_values(control: Guarded, workspace: dict[str, Any], state: dict[str, Any], log: str) -> dict[str, Any]:
    run = state["run"]
    shown = exhibits.exhibits(control, workspace["id"], run["id"], state["metrics"])
    values = {name: value for name, value in state.items() if name not in ("metrics", "mark")}
    return dict(
        values,
        workspace=workspace,
        base=f"/studio/{workspace['id']}/runs",
        here=f"/studio/{workspace['id']}/runs/{run['id']}",
        exhibits=shown,
        log=log,
    )


def _refusal(request: Request, error: AzureMLException) -> Response:
    if request.url.path.endswith(".json"):
        return JSONResponse(to_wire(error), error.status)
    workspace_id = request.path_params.get("workspace_id", "")
    known = workspace_id and not isinstance(error, WorkspaceException)
    back = f"/studio/{quote(workspace_id)}/runs" if known else "/studio/"
    title = "Not found" if error.status == 404 else "That did not work"
    return rendering.page("error.html", error.status, title=title, message=error.message, back=back)

"""What the pages of runs show, as plain values: the state of a run, a curve, a piece of a log."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from typing import Any

from lapis.domain.log_names import STD_LOG
from lapis.domain.metrics import LIST, SCALAR, number_of
from lapis.domain.run import RunRecord
from lapis.domain.run_file import RunFile
from lapis.domain.run_filter import RunFilter
from lapis.domain.sweeps import HYPERPARAMETERS, STOPPED_BY
from lapis.errors import NotFound
from lapis.server.control.guard import Guarded
from lapis.server.studio import log_text

_MOST_FILES = 1000
_MOST_CHILDREN = 500
_MOST_LOGS = 100
_MOST_CURVE_POINTS = 2000
_TAIL = 64 << 10
_LOG_FOLDERS = ("user_logs/", "logs/", "azureml-logs/", "system_logs/")
_CHILD_FIELDS = ("id", "number", "display_name", "type", "status", "created_at", "started_at", "ended_at")


def run_state(control: Guarded, workspace_id: str, run_id: str) -> dict[str, Any]:
    """All that changes while a run runs; `mark` is another one as soon as any of it is."""
    record = control.runs.get(workspace_id, run_id)
    run = control.run_views.of(record)
    below = RunFilter(workspace_id=workspace_id, parent_id=run_id, archived=None, oldest_first=True)
    children, more_children = control.runs.find(below, _MOST_CHILDREN, None)
    files = control.files.of_run(workspace_id, run_id)
    metrics = control.metrics.summaries(workspace_id, run_id)
    state = {
        "run": run,
        "now": control.lifetime.now(),
        "ended": record.ended,
        "metrics": [dict(metric, curve=_has_curve(metric)) for metric in metrics],
        "files": [{"name": f.name, "size": f.size, "created_at": f.created_at} for f in files[:_MOST_FILES]],
        "file_count": len(files),
        "logs": _logs(files),
        "children": [brief(control, child) for child in children],
        "trials": _trials(control, record, children),
        "more_children": more_children is not None,
    }
    return dict(state, mark=_mark(state))


def _trials(control: Guarded, search: RunRecord, children: list[RunRecord]) -> dict[str, dict[str, Any]]:
    """Of the runs of a hyperparameter search, by id: what each tried, how well it did, and why it was stopped."""
    if search.sweep is None:
        return {}
    spec, ids = search.sweep.spec, [child.id for child in children]
    best = "max" if spec["goal"] == "maximize" else "min"
    series = control.metrics.of_runs(search.workspace_id, ids, spec["metric"])
    return {
        child.id: {
            "parameters": json.loads(child.tags.get(HYPERPARAMETERS) or "{}"),
            "best": next((each[best] for each in series[child.id]), None),
            "stopped_by": child.properties.get(STOPPED_BY, ""),
        }
        for child in children
    }


def brief(control: Guarded, run: Any) -> dict[str, Any]:
    view = control.run_views.of(run)
    return {name: view[name] for name in _CHILD_FIELDS}


def chosen_log(state: dict[str, Any], wanted: str) -> str:
    """The log to show: the one asked for, else the script's own output, else any; empty while there is none."""
    logs: dict[str, int] = state["logs"]
    return wanted if wanted in logs else next(iter(logs), "")


def log_piece(control: Guarded, workspace_id: str, run_id: str, name: str, offset: int | None) -> dict[str, Any]:
    """The log's text from `offset` on, or its last lines when no offset is given."""
    file = control.files.get(workspace_id, run_id, name)
    start = min(offset, file.size) if offset is not None else max(0, file.size - _TAIL)
    content = read(control, workspace_id, run_id, file, start, log_text.PIECE)
    if offset is None and start > 0:
        skipped = log_text.tail_start(content)
        start, content = start + skipped, content[skipped:]
    piece = log_text.piece(content, start)
    return {"name": name, "start": start, "size": file.size, **piece.__dict__}


def read(control: Guarded, workspace_id: str, run_id: str, file: RunFile, start: int, most: int) -> bytes:
    chunks = control.files.read(workspace_id, run_id, file, start)
    held = b""
    with closing(chunks):  # type: ignore[type-var]
        for chunk in chunks:
            held += chunk
            if len(held) >= most:
                break
    return held[:most]


def curve(control: Guarded, workspace_id: str, run_id: str, name: str) -> dict[str, Any]:
    """A series to draw, in ascending order of x; `x_is` says what x counts."""
    found = next(iter(control.metrics.of_runs(workspace_id, [run_id], name)[run_id]), None)
    if found is None:
        raise NotFound(f"Run {run_id} has no metric named '{name}'.")
    if found["kind"] == LIST:
        return _list_curve(control, workspace_id, run_id, name)
    points = control.metrics.curve(workspace_id, run_id, name, _MOST_CURVE_POINTS)
    if points and all(step is not None for _, step, _ in points):
        return _curve("step", [(float(step or 0), number) for _, step, number in points])
    if found["count"] <= _MOST_CURVE_POINTS:
        return _curve("number", [(float(i), number) for i, (_, _, number) in enumerate(points, start=1)])
    begun = points[0][0]
    return _curve("seconds", [(at - begun, number) for at, _, number in points])


def _list_curve(control: Guarded, workspace_id: str, run_id: str, name: str) -> dict[str, Any]:
    points = control.metrics.points(workspace_id, run_id, name)
    values = [item for point in points if isinstance(point.value, list) for item in point.value]
    numbers = [(float(i), number_of(value)) for i, value in enumerate(values, start=1)]
    known = [(i, number) for i, number in numbers if number is not None]
    stride = -(-len(known) // _MOST_CURVE_POINTS) or 1
    return _curve("number", known[::stride])


def _curve(x_is: str, points: list[tuple[float, float]]) -> dict[str, Any]:
    ordered = sorted(points, key=lambda point: point[0])
    return {"x_is": x_is, "x": [x for x, _ in ordered], "y": [y for _, y in ordered]}


def _has_curve(metric: dict[str, Any]) -> bool:
    return metric["kind"] == LIST or (metric["kind"] == SCALAR and metric["count"] > 1 and metric["last"] is not None)


def _logs(files: list[RunFile]) -> dict[str, int]:
    """Names and sizes, the script's own output first; an older name for the same log is left out."""
    logs = [file for file in files if file.name.startswith(_LOG_FOLDERS) and file.alias_of is None]
    logs.sort(key=lambda file: (file.name != STD_LOG, file.name))
    return {file.name: file.size for file in logs[:_MOST_LOGS]}


def _mark(state: dict[str, Any]) -> str:
    """Leaves out what passes by itself, such as the seconds of the stage a run is in."""
    run = dict(state["run"], last_heard=None)
    run["stages"] = [dict(stage, seconds=None) for stage in run["stages"]]
    text = json.dumps(dict(state, run=run, now=None), sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

"""What was logged beside plain numbers, made ready to be shown: texts and lists, tables, images, confusion matrices."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from lapis.domain.metrics import ARTIFACT_PREFIX, LIST, REFERENCE, Point, assemble
from lapis.errors import NotFound, UserErrorException
from lapis.server.control.guard import Guarded
from lapis.server.studio import views

_IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}

_MOST_POINTS = 2000  # of one metric; more are not read for a page
_MOST_ROWS = 100
_MOST_COLUMNS = 50
_MOST_FILES = 24
_MOST_CLASSES = 30
_LARGEST_DOCUMENT = 256 << 10


def exhibits(control: Guarded, workspace_id: str, run_id: str, metrics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each metric its line in the table (`latest` where the last value is no number) and what is shown of it."""
    shown = []
    for metric in metrics:
        exhibit = dict(metric, latest=None, columns=None, files=[], matrices=[])
        if metric["last"] is None and metric["count"] <= _MOST_POINTS:
            points = control.metrics.points(workspace_id, run_id, metric["name"])
            exhibit.update(_exhibit(control, workspace_id, run_id, points))
        shown.append(exhibit)
    return shown


def image_type(name: str) -> str | None:
    """The media type of a picture that can hold no script, else None."""
    return _IMAGES.get(_extension(name))


def _exhibit(control: Guarded, workspace_id: str, run_id: str, points: list[Point]) -> dict[str, Any]:
    if not points:
        return {}
    references = [_file_name(point.value, run_id) for point in points if point.kind == REFERENCE]
    if references:
        names = [name for name in references if name is not None]
        return _files(control, workspace_id, run_id, names[-_MOST_FILES:])
    try:
        logged = assemble(points)[points[0].name]
    except (AttributeError, TypeError, ValueError):  # a row that is no row: a journal can hold anything
        return {"latest": points[-1].value}
    if isinstance(logged, dict):
        return _table(logged)
    return {"latest": logged if points[-1].kind == LIST else points[-1].value}


def _table(logged: dict[str, Any]) -> dict[str, Any]:
    shown = list(logged)[:_MOST_COLUMNS]
    columns = {name: logged[name] if isinstance(logged[name], list) else [logged[name]] for name in shown}
    height = max((len(cells) for cells in columns.values()), default=0)
    first = max(0, height - _MOST_ROWS)
    rows = [[cells[i] if i < len(cells) else None for cells in columns.values()] for i in range(first, height)]
    return {"columns": shown, "width": len(logged), "rows": rows, "first": first, "height": height}


def _file_name(reference: Any, run_id: str) -> str | None:
    """The file of this run that a reference stands for."""
    prefix = f"{ARTIFACT_PREFIX}{run_id}/"
    return reference[len(prefix) :] if isinstance(reference, str) and reference.startswith(prefix) else None


def _files(control: Guarded, workspace_id: str, run_id: str, names: list[str]) -> dict[str, Any]:
    files, matrices = [], []
    for name in names:
        matrix = _matrix(control, workspace_id, run_id, name) if _extension(name) == ".json" else None
        if matrix is not None:
            matrices.append(matrix)
        else:
            files.append({"name": name, "path": quote(name, errors="replace"), "image": image_type(name) is not None})
    return {"files": files, "matrices": matrices[-3:]}


def _matrix(control: Guarded, workspace_id: str, run_id: str, name: str) -> dict[str, Any] | None:
    """A confusion matrix with the warmth (0 to 9) of each of its cells, or None where the file holds something else."""
    try:
        file = control.files.get(workspace_id, run_id, name)
        content = views.read(control, workspace_id, run_id, file, 0, _LARGEST_DOCUMENT)
        document = json.loads(content)
        labels, rows = document["data"]["class_labels"], document["data"]["matrix"]
        highest = max(max(float(cell) for cell in row) for row in rows) or 1.0
        cells = [[(cell, min(9, max(0, int(9 * float(cell) / highest)))) for cell in row] for row in rows]
    except (NotFound, UserErrorException, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None  # not there yet, too large, or another kind of document: a link will do
    if document.get("schema_type") != "confusion_matrix" or not isinstance(labels, list):
        return None
    if len(labels) > _MOST_CLASSES or [len(row) for row in cells] != [len(labels)] * len(labels):
        return None
    return {"labels": labels, "rows": list(zip(labels, cells, strict=True))}


def _extension(name: str) -> str:
    return "." + name.rpartition(".")[2].lower()

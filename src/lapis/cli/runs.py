"""Commands that look at runs and change them: list, show, metrics, cancel, delete, archive."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lapis.cli import choice, screen
from lapis.cli.options import Json, RunId, RunIds, WorkspaceName, labels
from lapis.cli.workspaces import tags_text
from lapis.domain import in_words
from lapis.domain.run import ENDED, RunState
from lapis.domain.run_filter import parse_bound, parse_order
from lapis.domain.terminal_escapes import plain

if TYPE_CHECKING:
    from lapis.sdk.workspace.workspace import Workspace

_LIVE = tuple(state.value for state in RunState if state not in ENDED)
_STATUSES = (*_LIVE, "CancelRequested", "NotResponding", *(state.value for state in RunState if state in ENDED))
_PAGE = 100
_METRIC = "Metric "


def list_runs(
    experiment: Annotated[
        str | None, typer.Option("--experiment", "-e", metavar="NAME", help="Only of this one.")
    ] = None,
    status: Annotated[
        list[str] | None, typer.Option(metavar="STATUS", help="Only such as are Running, Failed, ... Repeat it.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="KEY[=VALUE]", help="Only with this tag. Repeat it.")] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="METRIC>=NUMBER", help="Only with such values: >, >=, <, <=. Repeat it.")
    ] = None,
    sort: Annotated[
        str, typer.Option(metavar="ORDER", help="created, metric:NAME (the greatest first) or metric:NAME:asc.")
    ] = "created",
    limit: Annotated[int, typer.Option("--limit", "--top", "-n", min=1, help="At most so many.")] = 20,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Children of runs and archived runs too.")] = False,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """List runs, the newest first, or the best by a metric."""
    words = [_status_word(word) for word in status or []]
    labels(tag, "--tag")
    order, bounds = parse_order(sort), [str(parse_bound(bound)) for bound in where or []]
    ws = choice.workspace(workspace)
    query = {"experiment": experiment, "tag": tag, "children": everything, "where": bounds, **order.query()}
    found = _find(ws, query, words, limit + 1, archived=False)
    if everything:  # the server lists the two kinds apart
        found += _find(ws, query, words, limit + 1, archived=True)
        by = "created_at" if order.metric is None else "value"
        found.sort(key=lambda view: float(view[by]), reverse=not order.ascending)
    if not found and experiment is not None:
        _check_experiment(ws, experiment)
    views, more = found[:limit], len(found) > limit
    shown_by = [] if order.metric is None else [order.metric]

    def show() -> None:
        if not views:
            screen.notice(f"No such runs in workspace '{ws.name}'.")
            return
        screen.table(
            ["RUN", *(name.upper() for name in shown_by), "EXPERIMENT", "STATUS", "NAME", "CREATED", "TIME", "TAGS"],
            [
                (
                    view["id"],
                    *(_number(view["value"]) for _ in shown_by),
                    view["experiment"],
                    view["status"],
                    view["display_name"] or "",
                    screen.ago(view["created_at"]),
                    screen.duration(seconds_of(view)),
                    tags_text(view["tags"], view["archived_at"]),
                )
                for view in views
            ],
        )
        if more:
            which = "first" if order.metric or order.ascending else "newest"
            screen.notice(f"There are more: these are the {which} {limit}. --limit shows others.")

    values = [{"value": view["value"]} if shown_by else {} for view in views]
    document = [{**summary(view), **value} for view, value in zip(views, values, strict=True)]
    screen.answer({"runs": document, "more": more}, show)


def show(run_id: RunId, workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """Show all about a run: where its time went, what it waits for, how it ended, what it logged and wrote."""
    from lapis.sdk.base.display import when

    run = choice.run(run_id, workspace)
    view = run._facts()
    metrics = run._call("GET", "/summaries")["metrics"]
    files = run._files()
    page = run.get_portal_url()
    last = view["stages"][-1] if view["stages"] else None
    waits = last if last is not None and view["status"] not in ("Running", *ENDED) else None
    stages = [{**stage, "at": when(stage["at"])} for stage in view["stages"]]
    document = {
        **summary(view),
        "description": view["description"],
        "stages": stages,
        "waiting": waits and {"reason": waits["reason"], "until": waits["until"], "seconds": waits["seconds"]},
        "error": view["error"],
        "warnings": view["warnings"],
        "properties": view["properties"],
        "snapshot_id": view["snapshot_id"],
        "metrics": metrics,
        "files": [{"name": file["name"], "size": file["size"]} for file in files],
        "portal_url": page,
    }
    screen.answer(document, lambda: _show(view, metrics, files, page, waits))


def metrics(
    run_id: RunId,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Only this one, with all its values.")] = None,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Show what a run logged."""
    from lapis.errors import NotFound

    run = choice.run(run_id, workspace)
    found = run.get_metrics(name)
    if name is not None and not found:
        known = ", ".join(sorted(run.get_metrics())) or "none"
        raise NotFound(f"Run {run.id} has logged no metric named '{name}'. It has: {known}.")

    def show() -> None:
        if name is not None:
            _show_values(found[name])
        elif found:
            screen.table(["METRIC", "VALUE"], [(key, _short(value)) for key, value in found.items()])
        else:
            screen.notice(f"Run {run.id} has logged no metrics.")

    screen.answer({"id": run.id, "metrics": found}, show)


def compare(run_ids: RunIds, workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """Show runs side by side: what they logged, and what else differs between them."""
    runs = _all_of(run_ids, workspace)
    columns = [_compared(run) for run in runs]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = [(name, *(column.get(name, "") for column in columns)) for name in names]
    shown = [row for row in rows if row[0].startswith(_METRIC) or len(set(row[1:])) > 1 or len(runs) == 1]
    documents = [{**summary(run._facts()), "metrics": run.get_metrics()} for run in runs]
    screen.answer({"runs": documents}, lambda: screen.table(["", *(run.id for run in runs)], shown))


def cancel(run_ids: RunIds, workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """Stop runs, with every process they started. One that has ended stays as it ended."""
    runs = _all_of(run_ids, workspace)
    for run in runs:
        run.cancel()
    _tell_statuses(runs)


def delete(run_ids: RunIds, workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """Remove ended runs and their children, for good."""
    from lapis.errors import Conflict

    runs = _all_of(run_ids, workspace)
    for run in runs:
        if run._facts()["status"] not in ENDED:
            raise Conflict(f"Run {run.id} has not ended and cannot be deleted. `lapis run cancel {run.id}` stops it.")
    for run in runs:
        run.delete()

    def show() -> None:
        for run in runs:
            print(f"Deleted run {run.id}.")

    screen.answer({"deleted": [run.id for run in runs]}, show)


def archive(
    run_ids: RunIds,
    undo: Annotated[bool, typer.Option("--undo", help="Show them in lists again.")] = False,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Hide runs from lists. They keep all they have, and `lapis run list --all` shows them."""
    runs = _all_of(run_ids, workspace)
    for run in runs:
        run.unarchive() if undo else run.archive()

    def show() -> None:
        for run in runs:
            print(f"Run {run.id} is {'in lists again' if undo else 'archived'}.")

    screen.answer({"runs": [summary(run._facts()) for run in runs]}, show)


def summary(view: dict[str, Any]) -> dict[str, Any]:
    """A run in a list, as JSON."""
    from lapis.sdk.base.display import when

    kept = ("id", "experiment", "number", "status", "type", "target", "parent_id", "created_by", "tags")
    return {
        **{key: view[key] for key in kept},
        "name": view["display_name"],
        "created_at": when(view["created_at"]),
        "started_at": when(view["started_at"]),
        "ended_at": when(view["ended_at"]),
        "seconds": seconds_of(view),
        "archived": view["archived_at"] is not None,
    }


def seconds_of(view: dict[str, Any]) -> float | None:
    """How long the run ran, until now if it still does; None if it never began."""
    if view["started_at"] is None:
        return None
    until: float = view["ended_at"] or time.time()
    return round(max(0.0, until - float(view["started_at"])), 3)


def _status_word(word: str) -> str:
    for known in _STATUSES:
        if word.lower() == known.lower():
            return known
    raise typer.BadParameter(f"{word!r} is no status of a run. Known: {', '.join(_STATUSES)}", param_hint="--status")


def _find(
    workspace: Workspace, query: dict[str, Any], words: list[str], most: int, archived: bool
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        asked = {**query, "status": words or None, "archived": archived, "limit": min(most, _PAGE), "cursor": cursor}
        page = workspace._client.call("GET", workspace._base + "/runs", query=asked)
        values = page.get("values") or [None] * len(page["runs"])
        found += [{**view, "value": value} for view, value in zip(page["runs"], values, strict=True)]
        cursor = page["cursor"]
        if cursor is None or len(found) >= most:
            return found[:most]


def _check_experiment(workspace: Workspace, name: str) -> None:
    from lapis.errors import NotFound
    from lapis.sdk.runs.experiment import Experiment, ViewType

    known = [experiment.name for experiment in Experiment.list(workspace, view_type=ViewType.All)]
    if name not in known:
        raise NotFound(
            f"No experiment named '{name}' in workspace '{workspace.name}'. Known: {', '.join(known) or 'none'}."
        )


def _all_of(run_ids: list[str], workspace: str | None) -> list[Any]:
    """The runs, all of them found before anything is done to the first."""
    ws = choice.workspace(workspace)
    return [choice.run_of(ws, run_id) for run_id in dict.fromkeys(run_ids)]


def _tell_statuses(runs: list[Any]) -> None:
    def show() -> None:
        for run in runs:
            print(f"Run {run.id} is {run._facts()['status']}.")

    screen.answer({"runs": [summary(run._facts()) for run in runs]}, show)


def _show(
    view: dict[str, Any], metrics: list[dict[str, Any]], files: list[dict[str, Any]], page: str, waits: Any
) -> None:
    last = view["stages"][-1] if view["stages"] else {}
    screen.facts(
        [
            ("Run", view["id"]),
            ("Name", view["display_name"] or ""),
            ("Description", view["description"] or ""),
            ("Experiment", f"{view['experiment']} (run {view['number']})"),
            ("Status", view["status"] + (f": {last['reason']}" if last.get("reason") else "")),
            ("Ends the wait", waits["until"] if waits else ""),
            ("Parent", view["parent_id"] or ""),
            ("Target", view["target"] or ""),
            ("Created", f"{screen.moment(view['created_at'])} by {view['created_by'] or 'unknown'}"),
            ("Took", screen.duration(seconds_of(view))),
            ("Archived", screen.moment(view["archived_at"])),
            ("Tags", tags_text(view["tags"])),
            ("Page", page),
        ]
    )
    if view["stages"]:
        print()
        screen.table(
            ["STAGE", "TIME", "WHAT"],
            [(stage["state"], screen.duration(stage["seconds"]), stage["reason"]) for stage in view["stages"]],
            right=["TIME"],
        )
    if view["error"]:
        print(f"\nError: {plain(str(view['error'].get('message', '')))}")
    for warning in view["warnings"]:
        print(f"\nWarning: {plain(warning)}")
    if view["properties"]:
        print()
        screen.table(["PROPERTY", "VALUE"], view["properties"].items())
    if metrics:
        print()
        screen.table(
            ["METRIC", "VALUES", "LAST", "LEAST", "GREATEST"],
            [(m["name"], *(_number(m[key]) for key in ("count", "last", "min", "max"))) for m in metrics],
            right=["VALUES", "LAST", "LEAST", "GREATEST"],
        )
    if files:
        print()
        screen.table(["FILE", "SIZE"], [(file["name"], in_words.size(file["size"])) for file in files], right=["SIZE"])


def _compared(run: Any) -> dict[str, str]:
    view = run._facts()
    definition = view["definition"] or {}
    facts = {
        "Name": view["display_name"] or "",
        "Experiment": view["experiment"],
        "Status": view["status"],
        "Target": view["target"] or "",
        "Took": screen.duration(seconds_of(view)),
        "Script": definition.get("script") or "",
        "Arguments": " ".join(definition.get("arguments") or []),
        "Snapshot": (view["snapshot_id"] or "")[:12],
        "Commit": (view["properties"].get("azureml.git.commit") or "")[:12],
        "Tags": tags_text(view["tags"]),
    }
    facts.update((_METRIC + name, _short(value)) for name, value in sorted(run.get_metrics().items()))
    return facts


def _number(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _short(value: Any) -> str:
    """A value of any kind in a few words."""
    if isinstance(value, list):
        return f"{_number(value[-1])} (the last of {len(value)})" if value else "(empty)"
    if isinstance(value, dict):
        rows = max((len(column) if isinstance(column, list) else 1 for column in value.values()), default=0)
        return f"{rows} {'row' if rows == 1 else 'rows'} of {', '.join(map(str, value))}"
    return _number(value)


def _show_values(value: Any) -> None:
    if isinstance(value, dict):
        columns = [column if isinstance(column, list) else [column] for column in value.values()]
        height = max((len(column) for column in columns), default=0)
        rows = [[str(column[row]) if row < len(column) else "" for column in columns] for row in range(height)]
        screen.table([str(key) for key in value], rows)
        return
    for each in value if isinstance(value, list) else [value]:
        print(plain(str(each)))

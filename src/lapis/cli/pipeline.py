"""`lapis pipeline`: lists pipelines, and shows how the steps of one do as a tree that lives."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from lapis.cli import choice, live, logs, runs, screen
from lapis.cli.options import Json, RunId, WorkspaceName
from lapis.domain.run import PIPELINE_RUN
from lapis.domain.terminal_escapes import one_line


def list_pipelines(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 20,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """List the runs of pipelines, the newest first."""
    home = choice.workspace(workspace)
    query = {"type": PIPELINE_RUN, "limit": limit}
    views = home._client.call("GET", home._base + "/runs", query=query)["runs"]

    def show() -> None:
        if not views:
            screen.notice(f"No pipeline was run in workspace '{home.name}' yet.")
        rows = [
            (view["id"], view["experiment"], view["status"], screen.ago(view["created_at"]),
             screen.duration(runs.seconds_of(view)), view["stages"][-1]["reason"])
            for view in views
        ]  # fmt: skip
        screen.table(["RUN", "EXPERIMENT", "STATUS", "CREATED", "TIME", "WHY"], rows)

    screen.answer({"runs": [runs.summary(view) for view in views]}, show)


def show(
    run_id: RunId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the pipeline ends.")] = False,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Show the steps of a pipeline: how each does, and why it runs or was reused."""
    run = _pipeline(run_id, workspace)
    if follow and sys.stdout.isatty() and not screen.wants_json():
        view = _live(run)
    elif follow:
        view = logs.follow(run, run._own_log, quiet=screen.wants_json())
    else:
        view = dict(run._facts())
    rows = run._steps()["steps"]

    def draw() -> None:
        if not follow:
            print("\n".join(_tree(view, rows)))

    screen.answer({**runs.summary(view), "steps": rows}, draw)
    if follow and view["status"] != "Completed":
        screen.notice(f"Pipeline {run.id} {view['status'].lower()}: {view['stages'][-1]['reason']}.")
        raise typer.Exit(1)


def show_logs(
    run_id: RunId,
    step: Annotated[
        str | None, typer.Argument(metavar="STEP", help="A step by its name; none: the pipeline's.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until it ends.")] = False,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Print the log of a pipeline, which says why each step runs, or of one of its steps."""
    run = _pipeline(run_id, workspace)
    if step is None:
        logs.logs(run.id, follow, None, workspace, as_json)
        return
    found = run.find_step_run(step)
    if not found:
        screen.notice(f"Step '{step}' has not started yet: `lapis pipeline show {run.id}` says what it waits for.")
        return
    for each in found:
        logs.logs(each.id, follow, None, workspace, as_json)


def graph(run_id: RunId, workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """Print the steps and what flows between them, in the language of Graphviz (`dot -Tsvg`)."""
    run = _pipeline(run_id, workspace)
    rows = run._steps()["steps"]

    def draw() -> None:
        print("digraph pipeline {")
        for row in rows:
            print(f"  n{row['number']} [label={json.dumps(one_line(row['name']))}];")
        for row in rows:
            read = {each["step"]: each["output"] for each in row["inputs"]}
            for number in row["needs"]:
                label = f" [label={json.dumps(read[number])}]" if number in read else " [style=dashed]"
                print(f"  n{number} -> n{row['number']}{label};")
        print("}")

    steps = [{key: row[key] for key in ("number", "name", "type", "needs", "inputs", "outputs")} for row in rows]
    screen.answer({"id": run.id, "steps": steps}, draw)


def _pipeline(run_id: str, workspace: str | None) -> Any:
    from lapis.errors import UserErrorException
    from lapis.sdk.pipelines.pipeline_run import PipelineRun

    run = choice.run(run_id, workspace)
    if not isinstance(run, PipelineRun):
        raise UserErrorException(f"Run {run_id} is no pipeline. `lapis run show {run_id}` shows it.")
    return run


def _live(run: Any) -> dict[str, Any]:
    from rich.text import Text

    return live.drawn_until_it_ends(run, lambda view: Text("\n".join(_tree(view, run._steps()["steps"]))))


def _tree(view: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """A line for each step, below the deepest of those that it waits for."""
    depth: list[int] = []
    for row in rows:  # each comes after what it waits for
        depth.append(1 + max((depth[need] for need in row["needs"]), default=-1))
    width = max(2 * at + len(row["name"]) for at, row in zip(depth, rows, strict=True))
    lines = [one_line(f"{view['id']} is {view['status']}: {view['stages'][-1]['reason']}")]
    for at, row in zip(depth, rows, strict=True):
        name = "  " * at + row["name"]
        ended, began = row["ended_at"], row["started_at"]
        took = screen.duration(ended - began) if ended and began and not row["reused_run_id"] else ""
        waits = ", ".join(rows[need]["name"] for need in row["needs"] if rows[need]["status"] != "Completed")
        said = row["reason"] if row["status"] else f"waits for {waits}" if waits else "was not begun"
        lines.append(f"{name:<{width}}  {row['status'] or '-':<10} {took:>8}  {said}".rstrip())
    return lines

"""`lapis sweep`: searches for hyperparameters, and shows how a search does as a table that lives."""

from __future__ import annotations

import ast
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lapis.cli import choice, live, logs, progress, runs, screen, submit
from lapis.cli.options import Json, RunId, WorkspaceName, labels
from lapis.domain.run import ENDED
from lapis.domain.terminal_escapes import one_line

if TYPE_CHECKING:
    from rich.table import Table

_SAMPLINGS = {
    "random": "RandomParameterSampling",
    "grid": "GridParameterSampling",
    "bayesian": "BayesianParameterSampling",
}
_POLICIES = {
    "bandit": "BanditPolicy",
    "median": "MedianStoppingPolicy",
    "truncation": "TruncationSelectionPolicy",
    "asha": "AshaPolicy",
}


def begin(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="The script, as it is called inside the folder.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="Handed to every run of the script as they are.")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUES", help="'lr=loguniform(-7, -2)', 'batch-size=16,32,64'. Repeat it."),
    ] = None,
    metric: Annotated[str, typer.Option(metavar="NAME", help="What the script logs and the search looks at.")] = "",
    goal: Annotated[str, typer.Option(metavar="maximize|minimize", help="What to do with it.")] = "maximize",
    sampling: Annotated[str, typer.Option(metavar="|".join(_SAMPLINGS), help="How to choose.")] = "random",
    total: Annotated[int, typer.Option("--total", "-n", min=1, metavar="N", help="At most so many runs.")] = 20,
    concurrent: Annotated[int | None, typer.Option(min=1, metavar="N", help="So many at once; all by default.")] = None,
    minutes: Annotated[float | None, typer.Option(metavar="N", help="Stop the search after so long.")] = None,
    policy: Annotated[
        str | None, typer.Option(metavar="POLICY", help="'bandit(slack_factor=0.1)', 'median', 'asha', ...")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="The same one gives the same search.")] = None,
    experiment: Annotated[
        str | None, typer.Option("--experiment", "-e", metavar="NAME", help="The folder's name by default.")
    ] = None,
    source: Annotated[str, typer.Option("--source", "-s", metavar="DIR", help="The folder to send.")] = ".",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show how it does until it ends.")] = False,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Put a tag on the search. Repeat it.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="What the search is called in lists.")] = None,
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The Python to run it with; the one of lapis by default.")
    ] = None,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Run a script again and again, each time with other arguments, to find the best ones.

    Options of lapis stand before SCRIPT; all that follows it is the script's.
    """
    if not metric:
        raise typer.BadParameter("say which metric the search is about", param_hint="--metric")
    tags = labels(tag, "--tag")
    space = _space(param or [])
    from lapis.sdk.runs.experiment import Experiment
    from lapis.sdk.training import sampling as samplings
    from lapis.sdk.training import stopping_policies
    from lapis.sdk.training.sweep_config import MAX_DURATION_MINUTES, HyperDriveConfig

    cls = getattr(samplings, _one_of(sampling, _SAMPLINGS, "--sampling"))
    config = HyperDriveConfig(
        cls(space, None if seed is None else {"seed": seed}),
        primary_metric_name=metric,
        primary_metric_goal=goal,
        max_total_runs=total,
        max_concurrent_runs=None if concurrent is None else min(concurrent, total),
        max_duration_minutes=minutes or MAX_DURATION_MINUTES,
        policy=None if policy is None else _policy(policy, stopping_policies),
        run_config=submit.script_config(source, script, arguments or [], python),
    )
    chosen = experiment if experiment is not None else submit.name_of(source)
    home = Experiment(choice.workspace(workspace), chosen, _create_in_cloud=False)
    with progress.of_uploads():
        run = home.submit(config, tags=tags, display_name=name)
    page = run.get_portal_url()
    if follow:
        screen.notice(f"Submitted search {run.id} of experiment '{chosen}'.\nPage: {page}")
        _follow(run)
        return

    def tell() -> None:
        print(f"Submitted search {run.id} of experiment '{chosen}'.")
        print(f"Page:    {page}")
        print(f"Follow:  lapis sweep show -f {run.id}")

    screen.answer({**runs.summary(run._facts()), "portal_url": page}, tell)


def show(
    run_id: RunId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the search ends.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many runs.")] = 20,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Show the runs of a search: those that go on, then the best ones."""
    from lapis.errors import UserErrorException
    from lapis.sdk.training.sweep_run import HyperDriveRun

    run = choice.run(run_id, workspace)
    if not isinstance(run, HyperDriveRun):
        raise UserErrorException(f"Run {run_id} is no search. `lapis run show {run_id}` shows it.")
    if follow:
        _follow(run, limit)
        return
    view, trials = dict(run._facts()), run._trials()["trials"]

    def draw() -> None:
        print(one_line(_heading(view)))
        rows = _ordered(view, trials)
        screen.table(_columns(view, trials), [_row(view, trials, trial) for trial in rows[:limit]])
        if len(rows) > limit:
            screen.notice(f"There are {len(rows) - limit} more. --limit shows others.")

    screen.answer({**runs.summary(view), "sweep": view["sweep"], "trials": trials}, draw)


def _follow(run: Any, limit: int = 20) -> None:
    """Until the end: a table that lives on a terminal, the search's own log elsewhere."""
    if sys.stdout.isatty() and not screen.wants_json():
        view = live.drawn_until_it_ends(run, lambda view: _table(view, run._trials()["trials"], limit))
    else:
        view = logs.follow(run, run._own_log, quiet=screen.wants_json())
    screen.answer({**runs.summary(view), "sweep": view["sweep"], "trials": run._trials()["trials"]}, lambda: None)
    screen.notice(f"Search {run.id} {view['status'].lower()}: {view['stages'][-1]['reason']}.")
    # completed without anything to compare: it has found nothing, and a script must not go on as if it had
    if view["status"] != "Completed" or "best_child_run_id" not in view["properties"]:
        raise typer.Exit(1)


def _table(view: dict[str, Any], trials: list[dict[str, Any]], limit: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, title=Text(one_line(_heading(view))), title_justify="left", header_style="bold")
    for heading in _columns(view, trials):
        grid.add_column(Text(heading), no_wrap=heading != "WHY", overflow="ellipsis")
    for trial in _ordered(view, trials)[:limit]:
        cells = [Text(one_line(cell)) for cell in _row(view, trials, trial)]
        cells[1].stylize(screen.status_colour(trial["status"]))
        grid.add_row(*cells)
    return grid


def _heading(view: dict[str, Any]) -> str:
    reason = view["stages"][-1]["reason"] if view["stages"] else ""
    return f"{view['id']} is {view['status']}: {reason}"


def _columns(view: dict[str, Any], trials: list[dict[str, Any]]) -> list[str]:
    return ["RUN", "STATUS", *_names(trials), view["sweep"]["metric"].upper(), "LAST", "POINTS", "TIME", "WHY"]


def _names(trials: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for trial in trials for name in trial["parameters"]))


def _row(view: dict[str, Any], trials: list[dict[str, Any]], trial: dict[str, Any]) -> list[str]:
    began, ended = trial["started_at"], trial["ended_at"]
    seconds = None if began is None else (ended or time.time()) - began
    why = trial["stopped_by"] or (trial["reason"] if trial["status"] in ("Failed", "Canceled") else "")
    return [
        trial["run_id"][len(view["id"]) :].lstrip("_"),
        trial["status"],
        *(_short(trial["parameters"].get(name)) for name in _names(trials)),
        _short(trial["best"]),
        _short(trial["last"]),
        str(trial["points"]),
        screen.duration(seconds),
        why,
    ]


def _ordered(view: dict[str, Any], trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that go on, then the best."""
    sign = -1 if view["sweep"]["goal"] == "maximize" else 1

    def place(trial: dict[str, Any]) -> tuple[bool, bool, float]:
        return trial["status"] in ENDED, trial["best"] is None, sign * (trial["best"] or 0.0)

    return sorted(trials, key=place)


def _short(value: Any) -> str:
    return "" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)


def _space(params: Iterable[str]) -> dict[str, Any]:
    from lapis.domain.spaces import KINDS
    from lapis.sdk.training import parameter_expressions

    space = {}
    for text in params:
        name, sign, values = text.partition("=")
        if not name or not sign or not values:
            raise typer.BadParameter(f"{text!r} is not of the form NAME=VALUES", param_hint="--param")
        called, given, named = _call(values, "--param")
        if called is None:
            space[name] = parameter_expressions.choice(*(_literal(each) for each in values.split(",")))
            continue
        function = getattr(parameter_expressions, _one_of(called, {kind: kind for kind in KINDS}, "--param"))
        try:
            space[name] = function(*given, **named)
        except TypeError as error:
            raise typer.BadParameter(f"{text!r}: {error}", param_hint="--param") from None
    return space


def _policy(text: str, policies: Any) -> Any:
    called, given, named = _call(text if "(" in text else f"{text}()", "--policy")
    policy = getattr(policies, _one_of(called or text, _POLICIES, "--policy"))
    try:
        return policy(*given, **named)
    except TypeError as error:
        raise typer.BadParameter(f"{text!r}: {error}", param_hint="--policy") from None


def _call(text: str, option: str) -> tuple[str | None, list[Any], dict[str, Any]]:
    """`uniform(0, 1)` as a name and plain values; no name if it is no call."""
    if "(" not in text:
        return None, [], {}
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
        return call.func.id, [ast.literal_eval(each) for each in call.args], named
    except (ValueError, SyntaxError):
        raise typer.BadParameter(f"{text!r} cannot be read: write it as uniform(0.1, 1)", param_hint=option) from None


def _literal(text: str) -> Any:
    """A number as one; anything else is text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text.strip()


def _one_of(word: str, known: dict[str, str], option: str) -> str:
    if word not in known:
        raise typer.BadParameter(f"{word!r} is not known. Known: {', '.join(known)}", param_hint=option)
    return known[word]

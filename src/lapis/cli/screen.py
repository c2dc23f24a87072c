"""What commands print: lines and tables for people, one JSON document for programs, remarks and errors on stderr."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lapis.domain.terminal_escapes import one_line, plain

_STATUS_COLOURS = {
    "Completed": "green",
    "Failed": "red",
    "Canceled": "yellow",
    "CancelRequested": "yellow",
    "NotResponding": "yellow",
    "Running": "cyan",
    "Finalizing": "cyan",
}
_as_json = False


def begin() -> None:
    """Before a command: people read until one asks for JSON, and no character of theirs can stop us."""
    global _as_json
    _as_json = False
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def use_json(wanted: bool) -> bool:
    global _as_json
    _as_json = wanted
    return wanted


def wants_json() -> bool:
    return _as_json


def answer(document: Any, show: Callable[[], None]) -> None:
    """The one answer of a command: the document with --json, else what `show` prints."""
    if not _as_json:
        show()
        return
    import json

    print(json.dumps(_strict(document), indent=2, allow_nan=False), flush=True)


def said(text: str) -> None:
    """What a job, a build or a service said: on a terminal only its text and colours, elsewhere as it is."""
    from lapis.domain.terminal_escapes import Colours

    colours = Colours()
    print(colours.feed(text) + colours.end() if sys.stdout.isatty() else text, end="" if text.endswith("\n") else "\n")


def notice(text: str) -> None:
    print(plain(text), file=sys.stderr, flush=True)


def fail(code: str, message: str, status: int = 1, as_json: bool = False) -> int:
    """Say what went wrong: one line on stderr, and with --json a document on stdout. The exit status."""
    if _as_json or as_json:
        use_json(True)
        answer({"error": {"code": code, "message": message}}, lambda: None)
    notice(f"Error: {one_line(message)}")
    return status


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Names with what is to be said of them, below each other."""
    shown = [(name, text) for name, text in pairs if text]
    width = max((len(name) for name, _ in shown), default=0)
    for name, text in shown:
        print(f"{name:<{width}}  {one_line(text)}")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Columns as wide as what they hold, so that nothing is cut: a narrow terminal breaks the lines itself.

    Those named in `right` hold numbers. One without any entry is left out.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[Text(one_line(cell), status_colour(cell)) for cell in row] for row in rows]
    widths = [max((row[at].cell_len for row in cells), default=0) for at in range(len(headings))]
    kept = [at for at, width in enumerate(widths) if width]
    if not kept:
        return
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for at in kept:
        grid.add_column(headings[at], justify="right" if headings[at] in right else "left", no_wrap=True)
    for row in cells:
        grid.add_row(*(row[at] for at in kept))
    console = Console(width=sum(max(widths[at], len(headings[at])) + 2 for at in kept))
    with console.capture() as drawn:
        console.print(grid)
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def status_colour(word: str) -> str:
    return _STATUS_COLOURS.get(word, "")


def duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def ago(at: float | None) -> str:
    if at is None:
        return ""
    past = max(0.0, time.time() - at)
    for limit, length, unit in ((60, 1, "s"), (3600, 60, "min"), (172800, 3600, "h")):
        if past < limit:
            return f"{int(past / length)} {unit} ago"
    return f"{int(past / 86400)} days ago"


def moment(at: float | None) -> str:
    """A time as the user's clock shows it."""
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _strict(value: Any) -> Any:
    """JSON has no word for NaN and the infinities: they become text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): _strict(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(each) for each in value]
    return value

"""What a terminal shows of a run that starts others: drawn anew once a second, and whenever there is news of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lapis.domain.run import ENDED

if TYPE_CHECKING:
    from rich.console import RenderableType

_LOOK_SECONDS = 1.0  # between looks at what the runs below it do


def drawn_until_it_ends(run: Any, draw: Callable[[dict[str, Any]], RenderableType]) -> dict[str, Any]:
    """The last view of the run."""
    from rich.live import Live

    with Live(auto_refresh=False) as live:
        revision, length = -1, 0
        while True:
            query = {"revision": revision, "wait": _LOOK_SECONDS, "log": run._own_log, "offset": length}
            seen = run._call("GET", "/watch", query=query)
            view, revision, length = seen["run"], seen["run"]["revision"], seen["length"]
            live.update(draw(view), refresh=True)
            if view["status"] in ENDED:
                return dict(view)

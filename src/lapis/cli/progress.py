"""How far a long transfer has come: a bar on a terminal, a line now and then elsewhere, always on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lapis.cli import screen
from lapis.domain import in_words

_WORTH_A_BAR = 1_000_000
_WORTH_LINES = 32_000_000


class Progress:
    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done, self._told = what, total, 0, 0
        self._bar = _bar(what, total) if total >= _WORTH_A_BAR and sys.stderr.isatty() else None

    def add(self, size: int) -> None:
        self._done += size
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=min(self._done, self._total))
            return
        tenth = 10 * self._done // max(1, self._total)
        if self._total >= _WORTH_LINES and tenth > self._told and not sys.stderr.isatty():
            self._told = tenth
            screen.notice(f"{self._what}: {in_words.size(self._done)} of {in_words.size(self._total)}")

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def shown(what: str, total: int) -> Iterator[Progress]:
    progress = Progress(what, total)
    try:
        yield progress
    finally:
        progress.end()


@contextmanager
def of_uploads() -> Iterator[None]:
    """Within it, the SDK shows how far a snapshot has come as we do."""
    from lapis.client import snapshot_sending

    begun: list[Progress] = []

    def begin(what: str, total: int) -> Progress:
        begun.append(Progress(what, total))
        return begun[-1]

    usual = snapshot_sending.show_progress
    snapshot_sending.show_progress = begin
    try:
        yield
    finally:
        snapshot_sending.show_progress = usual
        for progress in begun:
            progress.end()  # a bar that is left standing keeps the terminal's cursor


@contextmanager
def of_builds() -> Iterator[Callable[[str], None]]:
    """Takes the lines of a build. On a terminal a bar adds up the packages that are being downloaded."""
    from lapis.environments.progress import download

    sizes: dict[str, int] = {}
    done: set[str] = set()
    bar = _bar("Downloading", 0) if sys.stderr.isatty() else None

    def tell(line: str) -> None:
        name, size = download(line)
        if bar is not None and (name or line.startswith("Downloaded ")):
            sizes[name] = size
            done.add(line.removeprefix("Downloaded "))
            finished = sum(size for name, size in sizes.items() if name in done)
            bar.update(bar.task_ids[0], total=sum(sizes.values()), completed=finished)
        elif bar is not None:
            bar.console.print(line, markup=False, highlight=False)
        else:
            screen.notice(line)

    try:
        yield tell
    finally:
        if bar is not None:
            bar.stop()


def _bar(what: str, total: int) -> Any:
    from rich import progress
    from rich.console import Console

    bar = progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task(what, total=total)
    bar.start()
    return bar

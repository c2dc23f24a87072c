"""Work that several threads do at once, and that fails as a whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable


def do_all(at_once: int, work: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> None:
    """Call `work` with each, `at_once` at a time. The first failure is raised, and what has not begun is not done."""
    with ThreadPoolExecutor(at_once) as threads:
        under_way = [threads.submit(work, *each) for each in arguments]
        try:
            for each in under_way:
                each.result()
        except BaseException:
            for each in under_way:
                each.cancel()
            raise

"""Pieces of remote files: whole or not there, checked, fetched once, and cleared away without hurting who reads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lapis.files import pieces
from lapis.files.web_cache import WebCache

CONTENT = bytes(range(256)) * 400


@pytest.fixture
def whole(tmp_path: Path) -> str:
    return str(tmp_path / "cache" / "key")


def kept(whole: str) -> list[str]:
    return sorted(path.name for path in Path(whole).parent.iterdir())


def test_a_piece_is_fetched_once_and_then_found(whole: str) -> None:
    asked = []

    def fetch() -> list[bytes]:
        asked.append(1)
        return [CONTENT[:1000], CONTENT[1000:]]

    for _ in range(3):
        assert pieces.obtain(whole, 8, len(CONTENT), fetch).content(len(CONTENT)) == CONTENT
    assert len(asked) == 1 and kept(whole) == ["key.8.piece"]


def test_who_comes_while_a_piece_is_fetched_waits_for_it(whole: str) -> None:
    asked, fetching, go_on = [], threading.Event(), threading.Event()

    def fetch() -> Iterator[bytes]:
        asked.append(1)
        fetching.set()
        assert go_on.wait(20)
        yield CONTENT

    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(pieces.obtain, whole, 0, len(CONTENT), fetch)
        assert fetching.wait(20)
        others = [threads.submit(pieces.obtain, whole, 0, len(CONTENT), fetch) for _ in "ab"]
        assert not any(each.done() for each in others)
        go_on.set()
        assert all(each.result().content(len(CONTENT)) == CONTENT for each in [first, *others])
    assert len(asked) == 1 and kept(whole) == ["key.0.piece"]


@pytest.mark.parametrize("damage", [b"", CONTENT, CONTENT + b"\0\0\0\0", b"\1" + CONTENT[1:] + b"1234", CONTENT * 2])
def test_a_damaged_piece_is_not_used_and_fetched_again(whole: str, damage: bytes) -> None:
    pieces.obtain(whole, 0, len(CONTENT), lambda: [CONTENT])
    Path(pieces.path_of(whole, 0)).write_bytes(damage)
    assert pieces.find(whole, 0, len(CONTENT)) is None
    assert pieces.obtain(whole, 0, len(CONTENT), lambda: [CONTENT]).content(len(CONTENT)) == CONTENT
    assert pieces.find(whole, 0, len(CONTENT)) is not None


def test_nothing_is_kept_of_a_piece_that_did_not_come_whole(whole: str) -> None:
    def broken() -> Iterator[bytes]:
        yield CONTENT[:100]
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        pieces.obtain(whole, 0, len(CONTENT), broken)
    with pytest.raises(EOFError, match="102400 bytes were asked for, and 7 came"):
        pieces.obtain(whole, 0, len(CONTENT), lambda: [CONTENT[:7]])
    assert kept(whole) == []


def test_what_a_killed_process_left_is_taken_over(whole: str) -> None:
    os.makedirs(os.path.dirname(whole))
    Path(pieces.path_of(whole, 0) + ".part").write_bytes(CONTENT * 3)
    assert pieces.obtain(whole, 0, len(CONTENT), lambda: [CONTENT]).content(len(CONTENT)) == CONTENT
    assert kept(whole) == ["key.0.piece"]


def test_the_cache_lets_go_of_what_was_used_longest_ago_and_who_reads_it_reads_on(whole: str) -> None:
    found = [pieces.obtain(whole, number, len(CONTENT), lambda: [CONTENT]) for number in range(4)]
    for number in range(4):
        os.utime(pieces.path_of(whole, number), (number, number))
    pieces.find(whole, 0, len(CONTENT))  # used once more
    WebCache(os.path.dirname(whole), limit=len(CONTENT) * 2 + 100).clear()
    assert kept(whole) == ["key.0.piece", "key.3.piece"]
    assert all(piece.content(len(CONTENT)) == CONTENT for piece in found)


def test_a_piece_that_is_being_written_is_not_cleared_away(whole: str) -> None:
    def fetch() -> Iterator[bytes]:
        assert not pieces.remove(pieces.path_of(whole, 0) + ".part")
        yield CONTENT

    assert pieces.obtain(whole, 0, len(CONTENT), fetch).content(len(CONTENT)) == CONTENT

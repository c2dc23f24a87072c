"""Parsers of bytes that come from outside: whatever is fed to them, they read it or say why not."""

from __future__ import annotations

import io
import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lapis.domain import frames, packs, yaml_text
from lapis.domain.ignore import IgnoreRules
from lapis.domain.metrics import Point, assemble, parse_lines, to_line
from lapis.domain.tree import Tree
from lapis.errors import AzureMLException

KEPT = (
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.recursive(
    KEPT | st.integers() | st.floats() | st.text(),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=8), below, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode() + b"\n"))
@example(b"[" * 100_000 + b"\n")
@example(b'{"sizes": [1e999]}\n')
@example(b'{"sizes": ["\\ud800"]}\n')
def test_frames_are_read_or_refused(body: bytes) -> None:
    try:
        header, parts = frames.decode(body)
    except AzureMLException:
        return
    assert sum(len(part) for part in parts) <= len(body) and isinstance(header, dict)


@settings(deadline=None)
@given(st.dictionaries(st.text(), KEPT | st.lists(KEPT), max_size=4), st.lists(st.binary(), max_size=5))
def test_frames_come_back_as_they_were_sent(header: dict[str, Any], parts: list[bytes]) -> None:
    plain = json.loads(json.dumps(header))
    told, came = frames.decode(frames.encode(plain, parts))
    assert [bytes(part) for part in came] == parts
    assert json.dumps({**told, "sizes": 0}) == json.dumps({**plain, "sizes": 0}) or "sizes" in plain


@settings(deadline=None)
@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode() + b"\n"))
@example(b'{"hashes": 5, "sizes": [0]}\n')
@example(b'{"hashes": [], "sizes": "abc"}\n')
def test_packs_are_read_or_refused(body: bytes) -> None:
    try:
        assert isinstance(packs.read_places(io.BytesIO(body)), dict)
    except ValueError:
        pass


@settings(deadline=None)
@given(st.lists(st.binary() | JSON.map(lambda value: json.dumps(value).encode())))
@example([b"[" * 100_000])
@example([b'["scalar", 1e999, "a", 1, 10000000000000000000000, ""]'])
def test_a_journal_with_anything_in_it_is_read(lines: list[bytes]) -> None:
    points, bad = parse_lines(b"\n".join(lines) + b"\n")
    assert bad >= 0
    assemble(points)


@settings(deadline=None)
@given(st.lists(st.tuples(st.from_regex(r"[a-zA-Z_ ]{1,20}", fullmatch=True), KEPT | st.text())))
def test_a_journal_gives_back_what_was_logged(logged: list[tuple[str, Any]]) -> None:
    text = b"".join(to_line(Point("scalar", 1.0, name, value)) for name, value in logged)
    points, bad = parse_lines(text)
    assert bad == 0 and [(point.name, point.value) for point in points] == logged


@settings(deadline=None)
@given(st.text() | st.text(alphabet="abc:-[]{}&*!|>'\"#%@,? \n\t0123.~"))
@example("a: &a [*a, *a]")
@example("[" * 50_000)
@example("- " * 50_000)
@example("a: " * 50_000)
def test_yaml_is_read_or_refused(text: str) -> None:
    try:
        yaml_text.loads(text)
    except yaml_text.YamlError:
        pass


@settings(deadline=None)
@given(st.lists(st.text(alphabet="ab/*?[]!\\-. #")), st.text(alphabet="ab/.-", min_size=1))
@example(["*a" * 30 + "b"], "a" * 60)
@example(["**/" * 20 + "x"], "a/" * 40)
def test_ignore_files_are_read_or_refused(lines: list[str], path: str) -> None:
    try:
        rules = IgnoreRules.parse("\n".join(lines))
    except AzureMLException:
        return
    rules.ignores(path, False)


@settings(deadline=None)
@given(JSON)
def test_the_list_of_a_snapshots_files_is_read_or_refused(value: Any) -> None:
    try:
        Tree.from_json(value)
    except AzureMLException:
        pass

"""A tree is the same whatever the order of its files, and no name leads out of its folder."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lapis.domain.tree import MAX_PATH_LENGTH, Tree, TreeEntry, check_path, resolve_under
from lapis.errors import UserErrorException

HASH = hashlib.sha256(b"").hexdigest()

REFUSED = [
    "",
    "/",
    "/etc/passwd",
    "//host/share",
    "..",
    "../x",
    "a/../b",
    "a/..",
    ".",
    "./a",
    "a/.",
    "a//b",
    "a/",
    "C:",
    "C:/x",
    "c:x",
    "C:\\x",
    "..\\x",
    "a\\b",
    "\\\\host\\share",
    "a\0b",
    "a\nb",
    "a\rb",
    "a\x1b[2Jb",
    "a\x7f",
    "a\x85b",
    "\udcff",
    "a/\ud800",
    "x" * (MAX_PATH_LENGTH + 1),
    "a/" * 600 + "b",
]

ACCEPTED = [
    "a",
    "a/b/c.txt",
    "...",
    "..a",
    "a..",
    ".hidden/.x",
    "%2e%2e/%2e%2e/etc/passwd",
    "..%2f..%2fetc",
    "%00",
    "a%5cb",
    "\u2025/\u2025/etc",
    "\uff0e\uff0e/x",
    "\u2024\u2024/x",
    "a\u2215b",
    "\u202ecod.exe",
    "~/x",
    "~root",
    "$HOME/x",
    "-rf",
    "a b ",
    "été/日本語.txt",
    "ab:c",
    "d/C:",
    "x" * MAX_PATH_LENGTH,
]


@pytest.mark.parametrize("path", REFUSED)
def test_a_name_that_could_mean_another_place_is_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(UserErrorException) as refused:
        check_path(path)
    assert refused.value.message.isprintable()
    with pytest.raises(UserErrorException):
        resolve_under(tmp_path, path)
    with pytest.raises(UserErrorException):
        Tree([TreeEntry(path, HASH, 0)])


@pytest.mark.parametrize("path", [None, 1, b"a", ["a"], {"a" * 300: 1}, Path("a")])
def test_a_name_that_is_not_text_is_refused(path: Any) -> None:
    with pytest.raises(UserErrorException):
        check_path(path)


@pytest.mark.parametrize("path", ACCEPTED)
def test_an_odd_but_harmless_name_stays_itself_below_its_folder(path: str, tmp_path: Path) -> None:
    assert check_path(path) == path
    assert resolve_under(tmp_path, path) == f"{tmp_path.resolve()}/{path}"


hostile = st.lists(
    st.sampled_from(
        ["..", ".", "/", "\\", "a", "%2e", "%2f", "\u2025", "C:", "\0", "\n", "~", " ", "link", "out", "//"]
    )
    | st.text(max_size=3),
    max_size=8,
).map("".join)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(path=hostile)
@example("out/x")
@example("link/out/x")
def test_no_name_ever_resolves_outside_its_folder(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    for name, target in (("out", tmp_path), ("link", root)):
        if not (root / name).is_symlink():
            (root / name).symlink_to(target)
    try:
        resolved = resolve_under(root, path)
    except UserErrorException:
        return
    assert os.path.realpath(resolved) == resolved
    assert resolved.startswith(f"{root.resolve()}/")
    assert ".." not in resolved.split("/")


def test_a_link_inside_the_folder_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    assert resolve_under(tmp_path, "alias/x") == str(tmp_path.resolve() / "real" / "x")


@pytest.mark.parametrize("target", ["..", "/", "/etc", "../root-beside", "missing/../../x", "."])
def test_a_link_that_leads_outside_the_folder_is_refused(tmp_path: Path, target: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "root-beside").mkdir()
    (root / "link").symlink_to(target)
    with pytest.raises(UserErrorException, match="link"):
        resolve_under(root, "link")


def test_a_folder_beside_the_root_with_the_same_beginning_is_outside(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root").joinpath("link").symlink_to(tmp_path / "rootkit")
    with pytest.raises(UserErrorException):
        resolve_under(tmp_path / "root", "link/x")


def test_everything_is_below_the_root_of_the_disk() -> None:
    assert resolve_under("/", "nowhere/x") == "/nowhere/x"


ENTRIES = [
    TreeEntry("b/run.sh", "a" * 64, 10, True),
    TreeEntry("b.txt", "b" * 64, 0),
    TreeEntry("é", "c" * 64, 5),
]


def test_the_id_does_not_depend_on_the_order_of_the_files() -> None:
    assert Tree(ENTRIES).id == Tree(ENTRIES[::-1]).id
    assert Tree(ENTRIES) == Tree(ENTRIES[::-1])
    assert Tree(ENTRIES).total_size == 15


def test_the_id_never_changes_between_releases() -> None:
    text = f"{'b' * 64} 0 - b.txt\n{'a' * 64} 10 x b/run.sh\n{'c' * 64} 5 - é\n"
    assert Tree(ENTRIES).id == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("change", [{"path": "c"}, {"hash": "d" * 64}, {"size": 11}, {"executable": False}])
def test_any_difference_changes_the_id(change: dict[str, Any]) -> None:
    assert Tree([ENTRIES[0]._replace(**change), *ENTRIES[1:]]).id != Tree(ENTRIES).id


def test_a_tree_survives_json() -> None:
    rows = json.loads(json.dumps(Tree(ENTRIES).to_json()))
    assert rows[0] == ["b.txt", "b" * 64, 0, False]
    assert Tree.from_json(rows) == Tree(ENTRIES)
    assert Tree.from_json([]) == Tree([])


@pytest.mark.parametrize(
    "rows",
    [
        None,
        {},
        "text",
        [None],
        [[]],
        [["a", HASH, 1]],
        [["a", HASH, 1, False, 0]],
        [[1, HASH, 1, False], ["a", HASH, 1, False]],
        [["../a", HASH, 1, False]],
        [["a", HASH.upper(), 1, False]],
        [["a", HASH + "\n", 1, False]],
        [["a", HASH[1:], 1, False]],
        [["a", None, 1, False]],
        [["a", HASH, -1, False]],
        [["a", HASH, 1.0, False]],
        [["a", HASH, 10**5000, False]],
        [["a", HASH, True, False]],
        [["a", HASH, 1, 1]],
        [["a", HASH, 1, None]],
        [["a", HASH, 1, False], ["a", HASH, 1, False]],
        [["a", HASH, 1, False], ["a-b", HASH, 1, False], ["a/b/c", HASH, 1, False]],
    ],
)
def test_a_malformed_tree_is_refused(rows: Any) -> None:
    with pytest.raises(UserErrorException):
        Tree.from_json(rows)

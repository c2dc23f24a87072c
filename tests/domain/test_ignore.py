"""Ignore rules decide as git's do, checked against git itself; clutter is skipped by default."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lapis.domain.ignore import DEFAULT_SKIPS, IgnoreRules, default_skip
from tests.needs import need


@pytest.fixture(scope="module")
def git() -> None:
    """git itself, the reference."""
    need("git", "git")


def ignored(text: str, *paths: str) -> list[str]:
    """Those of `paths` that an ignore file with this text leaves out; a path that ends in `/` is a folder."""
    rules = IgnoreRules.parse(text)
    return [path for path in paths if rules.ignores(path.rstrip("/"), path.endswith("/"))]


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("data", ["data", "data/", "a/data", "data/x/y"], ["data2", "a/mydata"]),
        ("data/", ["data/", "a/data/x"], ["data", "a/data"]),
        ("/data", ["data", "data/x"], ["a/data"]),
        ("a/b", ["a/b", "a/b/c"], ["x/a/b"]),
        ("*.pt", ["x.pt", "a/b/x.pt", ".pt"], ["x.pth", "pt"]),
        ("a/*.pt", ["a/x.pt"], ["a/b/x.pt", "x.pt"]),
        ("a/**", ["a/b", "a/b/c"], ["a/", "b"]),
        ("**/b", ["b", "a/b", "a/c/b"], ["ab"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb"]),
        ("x?z", ["xyz"], ["xz", "xyyz"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "-x"]),
        ("[!a-c]x", ["dx"], ["ax"]),
        ("[]-]x", ["]x", "-x"], ["ax"]),
        ("[[:digit:]]x", ["3x"], ["dx"]),
        ("[ax", [], ["[ax", "ax", "a"]),
        ("# note\n\\#x\n\\!y", ["#x", "!y"], ["# note", "x", "y"]),
        ("end  \nkept\\ \n", ["end", "kept "], ["end  ", "kept"]),
        ("windows\r\nlines\r\n", ["windows", "lines"], ["windows\r"]),
        ("\ufeffmarked", ["marked"], ["\ufeffmarked"]),
        ("*\n!*/\n!*.py", ["x.txt", "a/x.txt"], ["x.py", "a/", "a/x.py"]),
        ("a/\n!a/keep", ["a/keep", "a/"], ["keep"]),
        ("a/*\n!a/keep", ["a/drop"], ["a/keep"]),
        ("été/", ["été/", "été/x"], ["ete/"]),
        ("!\n/\n//\n\n  \n", [], ["a", "a/", "!"]),
    ],
)
def test_patterns_mean_what_gitignore_says(text: str, yes: list[str], no: list[str]) -> None:
    assert ignored(text, *yes, *no) == yes


@pytest.mark.parametrize("path", ["a/.git/", "__pycache__/", "x/y.pyc", ".DS_Store", "web/node_modules/"])
def test_clutter_is_skipped_by_default(path: str) -> None:
    assert default_skip(path.rstrip("/"), path.endswith("/")) in DEFAULT_SKIPS


@pytest.mark.parametrize("path", ["train.py", ".github", "git", "a.pyc.txt"])
def test_other_names_are_not_skipped_by_default(path: str) -> None:
    assert default_skip(path, False) is None


@pytest.mark.parametrize(
    ("rule", "explicit"),
    [("!.git", True), ("!lib/*.pyc", True), ("!*", False), ("!*/", False), ("!src/**", False)],
)
def test_only_a_negation_that_names_something_is_explicit(rule: str, explicit: bool) -> None:
    assert IgnoreRules.parse(rule).rules[0].names_something is explicit


# What follows compares with git: every file and folder of one small tree, under invented ignore files.

NAMES = [*r"a|b|ab|a b|b |a.b|-|]|[a|!a|#a|a*|\a|é|aé|A|1".split("|"), "\t"]
FOLDERS = ["", "a/", "b/", "ab/", "a/a/", "a/b/", "a/b/a/", "b/a b/", "b/é/", "ab/a/", "ab/a/b/"]
FILES = [f"{folder}{name}" for folder in FOLDERS for name in NAMES if f"{folder}{name}/" not in FOLDERS]

_PLAIN = r"a|b|ab|é|A|1|*|**|?|/|/|**/|/**|\| |-|!|#|.|[|]|\*|\ |\["
_CLASSES = r"[a|[!a]|[^b]|[a-c]|[]a]|[b-a]|[\]a]|[a\-c]|[--a]|[\a-\c]|[a/b]|[é]"
_NAMED = "[[:alpha:]]|[[:punct:][:space:]]|[[:xdigit:]-a]|[[:nope:]]|[[:a]|[[:]"
pieces = st.sampled_from(["\t", "\r", *"|".join([_PLAIN, _CLASSES, _NAMED]).split("|")])
lines = st.builds(
    lambda start, body, end: start + "".join(body) + end,
    st.sampled_from(["", "", "", "!", "/", "!/", "#", "\\!", "\\#"]),
    st.lists(pieces, min_size=1, max_size=6),
    st.sampled_from(["", "", "", "/", " ", "\\ ", "  ", "/**", "\r"]),
)
texts = st.lists(lines, min_size=1, max_size=6).map("\n".join)


@pytest.fixture(scope="module")
def git_ignored(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], set[str]]:
    root = tmp_path_factory.mktemp("repository")
    own_settings_only = {"HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    environment = {**os.environ, **own_settings_only}
    subprocess.run(["git", "init", "-q", str(root)], check=True, env=environment)
    for folder in FOLDERS:
        (root / folder).mkdir(exist_ok=True)
    for file in FILES:
        (root / file).touch()
    asked = "\0".join(everything()).encode()

    def ask(text: str) -> set[str]:
        (root / ".gitignore").write_bytes(text.encode())
        command = ["git", "check-ignore", "--no-index", "--stdin", "-z"]
        answer = subprocess.run(command, cwd=root, env=environment, input=asked, capture_output=True)
        assert answer.returncode in (0, 1), answer.stderr
        return set(answer.stdout.decode().split("\0")) - {""}

    return ask


def everything() -> list[str]:
    return [folder.rstrip("/") for folder in FOLDERS if folder] + FILES


@pytest.mark.usefixtures("git")
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=texts)
@example("a**/b")
@example("/a**/**b")
@example("a/b/\n!a/b/a")
@example("*\n!*/\n!*.b\na/b")
@example("a\\")
@example("**\\/a")
def test_the_same_paths_are_ignored_as_by_git(git_ignored: Callable[[str], set[str]], text: str) -> None:
    rules = IgnoreRules.parse(text)
    ours = {path for path in everything() if rules.ignores(path, f"{path}/" in FOLDERS)}
    assert ours == git_ignored(text)

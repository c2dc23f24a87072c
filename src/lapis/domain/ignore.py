"""Which paths of a folder an ignore file leaves out, in git's pattern syntax."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count, groupby

DEFAULT_SKIPS = (
    ".git",
    ".hg",
    ".svn",
    "__pycache__",
    "*.pyc",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
    "node_modules",
    ".DS_Store",
)
"""Left out unless the ignore file re-includes it by name. So is a folder that holds `ENVIRONMENT_MARK`."""

ENVIRONMENT_MARK = "pyvenv.cfg"  # every virtual environment has this file at its top


class Rule:
    """One line of an ignore file.

    `negated`: the line starts with `!` and re-includes what it matches.
    `names_something`: its last segment is more than stars. The idiom `*`, `!*/`, `!*.py` re-includes every
    folder only to look into it and does not mean `.git`: what names nothing leaves default skips alone.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        pattern = _one_character_per_byte(text)
        self.negated = pattern.startswith("!")
        if self.negated:
            pattern = pattern[1:]
        self.only_folders = pattern.endswith("/")
        if self.only_folders:
            pattern = pattern[:-1]
        self.names_something = bool(pattern.rpartition("/")[2].strip("*"))
        self.by_name = "/" not in pattern
        if pattern.startswith("/"):
            pattern = pattern[1:]

        self.literal: str | None = None
        self.suffix: str | None = None
        self.regex: str | None = None
        self.matches: Callable[[str], object]
        if not _SPECIAL.search(pattern):
            self.literal = pattern
            self.matches = pattern.__eq__
        elif self.by_name and pattern[0] == "*" and not _SPECIAL.search(pattern, 1):
            self.suffix = suffix = pattern[1:]
            self.matches = lambda name: name.endswith(suffix)
        else:
            self.regex = _to_regex(pattern)
            self.matches = re.compile(self.regex, re.DOTALL).fullmatch


class IgnoreRules:
    """The rules of one ignore file at the root of a folder. Paths are relative to that folder, with `/`."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._last_first = self.rules[::-1]
        # Most paths match nothing, which these answer without asking each rule.
        self._names = frozenset(r.literal for r in self.rules if r.by_name and r.literal is not None)
        self._paths = frozenset(r.literal for r in self.rules if not r.by_name and r.literal is not None)
        self._suffixes = tuple(r.suffix for r in self.rules if r.suffix is not None)
        self._any_name = _any_of(r.regex for r in self.rules if r.by_name and r.regex is not None)
        self._any_path = _any_of(r.regex for r in self.rules if not r.by_name and r.regex is not None)

    @classmethod
    def parse(cls, text: str) -> IgnoreRules:
        """The rules of this text. As in git, a line that makes no sense matches nothing."""
        if text.startswith("\ufeff"):
            text = text[1:]
        lines = (line[:-1] if line.endswith("\r") else line for line in text.split("\n"))
        return cls(Rule(_without_trailing_spaces(line)) for line in lines if line and line[0] != "#")

    def ignores(self, path: str, is_dir: bool) -> bool:
        """Whether git would ignore `path`. Nothing below an ignored folder can be re-included."""
        end = path.find("/")
        while end >= 0:
            if self._leaves_out(path[:end], True):
                return True
            end = path.find("/", end + 1)
        return self._leaves_out(path, is_dir)

    def decide(self, path: str, is_dir: bool) -> Rule | None:
        """The rule that has the last word on `path` itself, for a walk that stays out of ignored folders."""
        if not self.rules:
            return None
        path = _one_character_per_byte(path)
        name = path[path.rfind("/") + 1 :]
        if not (
            name in self._names
            or name.endswith(self._suffixes)
            or path in self._paths
            or (self._any_name is not None and self._any_name(name))
            or (self._any_path is not None and self._any_path(path))
        ):
            return None
        for rule in self._last_first:
            if (is_dir or not rule.only_folders) and rule.matches(name if rule.by_name else path):
                return rule
        return None

    def _leaves_out(self, path: str, is_dir: bool) -> bool:
        rule = self.decide(path, is_dir)
        return rule is not None and not rule.negated


def default_skip(path: str, is_dir: bool) -> str | None:
    """The pattern of `DEFAULT_SKIPS` that `path` itself matches."""
    name = path[path.rfind("/") + 1 :]
    if name not in _DEFAULT_NAMES and not name.endswith(_DEFAULT_SUFFIXES):
        return None
    rule = _DEFAULTS.decide(path, is_dir)
    return None if rule is None else rule.text


_SPECIAL = re.compile(r"[*?\[\\]")
_NEVER = r"(?!)"


def _one_character_per_byte(text: str) -> str:
    # git matches bytes: `?` is one byte of a name in UTF-8, and so is each member of a [class].
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def _without_trailing_spaces(line: str) -> str:
    bare = line.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    # An odd backslash at the end quotes the first of the spaces.
    return line[: len(bare) + 1] if backslashes % 2 else bare


def _any_of(regexes: Iterable[str]) -> Callable[[str], object] | None:
    parts = [f"(?:{_numbered(regex, at)})" for at, regex in enumerate(regexes)]
    return re.compile("|".join(parts), re.DOTALL).fullmatch if parts else None


def _numbered(regex: str, number: int) -> str:
    """With names of groups that no other regex has: each of them begins with g0."""
    return _GROUP.sub(rf"\g<0>r{number}_", regex)


_STAR, _DEEP = "[^/]*", "(?:.*/)?"  # `*` within a name, and `**/` over folders
_GROUP = re.compile(r"\(\?P[<=](?=g)")


def _to_regex(pattern: str) -> str:
    # As in git, the text before the first special character is compared as it is, and what follows counts as
    # the start of the pattern: that is why the `**` of `a**/b` crosses folders with no `/` before it.
    special = _SPECIAL.search(pattern)
    at = start = special.start() if special else len(pattern)
    parts = [re.escape(character) for character in pattern[:at]]
    while at < len(pattern):
        character = pattern[at]
        if character == "?":
            parts.append("[^/]")
            at += 1
        elif character == "*":
            at, part = _stars(pattern, at, at == start or pattern[at - 1] == "/")
            parts.append(part)
        elif character == "[":
            at, part = _class(pattern, at)
            parts.append(part)
        elif character == "\\":
            if at + 1 == len(pattern):
                return _NEVER
            parts.append(re.escape(pattern[at + 1]))
            at += 2
        else:
            parts.append(re.escape(character))
            at += 1
    return _without_retries(parts)


def _without_retries(parts: list[str]) -> str:
    """The parts as one regex that never tries a star anew once what follows it was found.

    What stands between two stars is best found as early as it can be, so only the last star of a name, and the last of
    folders, may have to give way: `*a*a*a*b` would else be tried in every way there is.
    """
    if ".*" in parts:  # of any length: early need not be best
        return "".join(parts)
    groups = count()
    return _each_kept(parts, _DEEP, lambda some: _each_name(some, groups), groups)


def _each_name(parts: list[str], groups: Iterator[int]) -> str:
    names = (list(name) for _, name in groupby(parts, lambda part: part == "/"))
    return "".join(_each_kept(name, _STAR, "".join, groups) for name in names)


def _each_kept(parts: list[str], star: str, join: Callable[[list[str]], str], groups: Iterator[int]) -> str:
    """Every star but the last in a group that, once matched, stays as it is: `(?=(?P<g>...))(?P=g)` says so."""
    stars = [at for at, part in enumerate(parts) if part == star]
    if not stars:
        return join(parts)
    lazy = "[^/]*?" if star == _STAR else "(?:.*?/)??"
    told = [join(parts[: stars[0]])]
    for begin, end in zip(stars, stars[1:]):
        name = f"g{next(groups)}"
        told.append(f"(?=(?P<{name}>{lazy}{join(parts[begin + 1 : end])}))(?P={name})")
    return "".join([*told, star, join(parts[stars[-1] + 1 :])])


def _stars(pattern: str, at: int, opens_segment: bool) -> tuple[int, str]:
    end = at
    while pattern[end : end + 1] == "*":
        end += 1
    if end - at == 1 or not opens_segment:
        return end, _STAR
    if end == len(pattern) or pattern.startswith("\\/", end):
        return end, ".*"
    if pattern[end] == "/":
        return end + 1, _DEEP
    return end, _STAR


def _class(pattern: str, at: int) -> tuple[int, str]:
    """Read the [class] that starts at `at`. One without an end or with an unknown [:name:] never matches."""
    broken = len(pattern), _NEVER
    at += 1
    negated = pattern[at : at + 1] in ("!", "^")
    if negated:
        at += 1
    members: set[int] = set()
    previous: str | None = None  # what a following `-` would start a range from
    first = True
    while first or pattern[at : at + 1] != "]":
        first = False
        character = pattern[at : at + 1]
        following = pattern[at + 1 : at + 2]
        if not character:
            return broken
        if character == "\\":
            if not following:
                return broken
            members.add(ord(following))
            previous = following
            at += 2
        elif character == "-" and previous and following not in ("", "]"):
            at += 1
            if following == "\\":
                at += 1
                following = pattern[at : at + 1]
                if not following:
                    return broken
            members.update(range(ord(previous), ord(following) + 1))
            previous = None
            at += 1
        elif character == "[" and following == ":":
            close = pattern.find("]", at + 2)
            if close < 0:
                return broken
            if close == at + 2 or pattern[close - 1] != ":":
                members.add(ord("["))
                previous = "["
                at += 1
                continue
            named = _NAMED_CLASSES.get(pattern[at + 2 : close - 1])
            if named is None:
                return broken
            members.update(named)
            previous = None
            at = close + 1
        else:
            members.add(ord(character))
            previous = character
            at += 1
    members.discard(ord("/"))  # no class matches a slash
    listed = "".join(f"\\x{member:02x}" for member in sorted(members))
    if negated:
        return at + 1, f"[^/{listed}]"
    return at + 1, f"[{listed}]" if listed else _NEVER


def _codes(*ranges: str) -> frozenset[int]:
    return frozenset(code for ends in ranges for code in range(ord(ends[0]), ord(ends[1]) + 1))


_NAMED_CLASSES = {
    "alnum": _codes("az", "AZ", "09"),
    "alpha": _codes("az", "AZ"),
    "blank": _codes("  ", "\t\t"),
    "cntrl": _codes("\x00\x1f", "\x7f\x7f"),
    "digit": _codes("09"),
    "graph": _codes("!~"),
    "lower": _codes("az"),
    "print": _codes(" ~"),
    "punct": _codes("!/", ":@", "[`", "{~"),
    "space": _codes("  ", "\t\n", "\r\r"),
    "upper": _codes("AZ"),
    "xdigit": _codes("09", "af", "AF"),
}
_DEFAULTS = IgnoreRules.parse("\n".join(DEFAULT_SKIPS))
_DEFAULT_NAMES = frozenset(DEFAULT_SKIPS)
_DEFAULT_SUFFIXES = tuple(skip[1:] for skip in DEFAULT_SKIPS if skip.startswith("*"))

"""What an agent or an owner tells of a run, checked at the door: the header of a report, which frames carry.

Only what this release asks of it is looked at, so that an agent of another one may tell more.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping

from lapis.domain import limits
from lapis.domain.run import RunState
from lapis.domain.tree import MAX_PATH_LENGTH
from lapis.errors import UserErrorException

_STATES = {state.value for state in RunState}
_ENDED = {"Completed", "Failed", "Canceled"}

_Check = Callable[[Any], bool]


def check_report(header: Mapping[str, Any], count: int) -> None:
    """Raise a UserErrorException that names the field if `header`, told with `count` parts, makes no sense."""
    parts = header.get("parts", [])
    _demand(isinstance(parts, list) and len(parts) == count, "parts", "one entry for each part")
    for number, part in enumerate(parts):
        _check_part(f"parts[{number}]", part)
    _fields("", header, {"ends": _optional(_is_ends), "steps": _optional(_is(list))})
    for name, most in (("ends", limits.FILES_AT_ONCE), ("steps", limits.ITEMS)):
        limits.check_count(name, header.get(name) or (), most)
    for number, step in enumerate(header.get("steps") or ()):
        _fields(f"steps[{number}]", step, _STEP)
    for name, fields in (("node", _NODE), ("verdict", _VERDICT), ("service", _SERVICE)):
        if header.get(name):
            _fields(name, header[name], fields)
    if len(repr(header.get("node"))) > limits.NODE_WORDS:
        raise UserErrorException(f"What a node tells of itself can be at most {limits.NODE_WORDS} characters long.")
    front = (header.get("service") or {}).get("front")
    if front:
        _fields("service.front", front, _FRONT)


def _check_part(where: str, part: Any) -> None:
    kind = part.get("kind") if isinstance(part, dict) else None
    if kind == "file":
        _demand(isinstance(part.get("name"), str), f"{where}.name", "text")
        return
    if kind not in ("log", "journal"):
        raise UserErrorException(f"A report cannot hold a part of kind {str(kind)[:80]!r}.")
    name, most = ("name", MAX_PATH_LENGTH) if kind == "log" else ("stream", limits.NAME)
    named = part.get(name)
    _demand(isinstance(named, str) and 0 < len(named) <= most, f"{where}.{name}", f"text of 1 to {most} characters")
    _demand(_within(0, limits.WHOLE)(part.get("offset")), f"{where}.offset", "a number of bytes")


def _fields(where: str, value: Any, checks: Mapping[str, _Check]) -> None:
    _demand(isinstance(value, dict), where, "a dictionary")
    for name, check in checks.items():
        _demand(check(value.get(name)), f"{where}.{name}" if where else name, _WORDS.get(name, "of another kind"))


def _demand(holds: bool, where: str, what: str) -> None:
    if not holds:
        raise UserErrorException(f"The report cannot be read: {where} must be {what}.")


# -- what a field may be


def _is(*kinds: type) -> _Check:
    return lambda value: isinstance(value, kinds)


def _optional(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _within(least: int, most: int) -> _Check:
    return lambda value: type(value) is int and least <= value <= most


def _is_moment(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= limits.MOMENT


def _is_ends(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_within(0, limits.WHOLE), value.values()))


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("message", ""), str)


def _is_replicas(value: Any) -> bool:
    fits = isinstance(value, list) and len(value) <= limits.ITEMS
    return fits and all(isinstance(each, dict) and isinstance(each.get("state"), str) for each in value)


_STEP: Mapping[str, _Check] = {
    "state": lambda value: value in (None, "") or (isinstance(value, str) and value in _STATES),
    "reason": _is(str),
    "at": _is_moment,
    "until": _optional(_is(str)),
}
_VERDICT: Mapping[str, _Check] = {
    "state": lambda value: isinstance(value, str) and value in _ENDED,
    "reason": _is(str),
    "at": _optional(_is_moment),
    "error": _optional(_is_error),
    "notices": _optional(_is(list)),
}
_NODE: Mapping[str, _Check] = {
    "index": _within(0, limits.NODES - 1),
    "state": _optional(_is(str)),
    "verdict": _optional(_is(dict)),
    "at": _optional(_is_moment),
    "lost": _optional(_is(list)),
    "notices": _optional(_is(list)),
}
_SERVICE: Mapping[str, _Check] = {
    "front": _optional(_is(dict)),
    "live": _optional(_is(str)),
    "host": _optional(_is(str)),
}
_FRONT: Mapping[str, _Check] = {
    "state": _optional(_is(str)),
    "port": _optional(_within(0, 65535)),
    "error": _optional(_is_error),
    "replicas": _optional(_is_replicas),
}
_WORDS = {
    "ends": "how many bytes each stream has",
    "steps": "a list of steps",
    "state": "a state that it can have",
    "reason": "text",
    "until": "text",
    "at": "seconds since 1970",
    "error": "a code and a message",
    "notices": "a list of texts",
    "lost": "a list of texts",
    "index": f"a number from 0 to {limits.NODES - 1}",
    "verdict": "a verdict",
    "front": "what the front says",
    "live": "text",
    "host": "text",
    "port": "a number from 0 to 65535",
    "replicas": "a list of replicas, each with its state",
}

"""Frozen dataclasses that travel and are kept as JSON. What a class declares of a field is all there is to say of it.

A field is read by the type it is declared with, so a new one is one line in its class. The types are `str`, `int`,
`float`, `bool`, `Any`, `None`, `tuple[X, ...]`, `Mapping[str, X]`, the classes of the same module, classes that read
and write themselves (`from_json`, `to_json`), and unions of these as far as JSON tells them apart. Classes in a union
are told apart by their `TAG`, a key and its value that stand beside their fields.

There are two ways to read. `checked` is for what comes in from outside: a field that nobody knows, a wrong type, a
number or a length beyond its bounds is an error that names the field. `from_json` is for what we wrote ourselves, an
earlier release perhaps: what it does not know it leaves out, and bounds that were drawn since do not count.

Nothing is written of a field that has its default, and null is read as if nothing were written. So a default stays
what it is for good: what lies in databases relies on it.
"""

from __future__ import annotations

import math
import sys
from dataclasses import MISSING, fields, replace
from typing import Any, Callable, Mapping, NamedTuple, TypeVar

from lapis.domain.limits import ITEMS, WHOLE, WORD
from lapis.domain.limits import shown as _shown
from lapis.errors import UserErrorException

V = TypeVar("V", bound="Value")
_Read = Callable[[Any, bool], Any]  # from JSON; whether bounds count and what is unknown is an error


def within(least: float, most: float) -> Mapping[str, Any]:
    """Of a number: what it may be. As the `metadata` of a field, as are the next ones."""
    return {"least": least, "most": most}


def at_most(count: int) -> Mapping[str, Any]:
    """Of a text, a tuple or a mapping: how long it may be."""
    return {"most": count}


def one_of(*known: str) -> Mapping[str, Any]:
    return {"known": known}


def passing(check: Callable[[Any], Any]) -> Mapping[str, Any]:
    """What `check` does not raise a UserErrorException for."""
    return {"check": check}


SET_BY_SERVER: Mapping[str, Any] = {"set_by_server": True}  # from outside, it is refused


class Value:
    """The base of such a dataclass."""

    TAG: Any = None  # (key, value): which of several classes it is

    def to_json(self) -> dict[str, Any]:
        shape, own = _shape(type(self)), self.__dict__
        made: dict[str, Any] = dict(shape.tag)
        for name, default in shape.defaults.items():
            value = own[name]
            if value is not default and value != default:
                made[name] = _written(value)
        return made

    @classmethod
    def from_json(cls: type[V], value: Any, what: str = "") -> V:
        """What `to_json` of this or an earlier release wrote."""
        return _read_whole(cls, value, what, strict=False)

    @classmethod
    def checked(cls: type[V], value: Any, what: str = "") -> V:
        """What somebody else wrote. `what` is what they call it; errors begin with it."""
        return _read_whole(cls, value, what, strict=True)

    def fault(self) -> str:
        """What is wrong with the whole, where each of its fields is right; empty if nothing is. Asked at the door."""
        return ""

    @classmethod
    def _read(cls: type[V], value: Any, strict: bool) -> V:
        read = _read_fields(cls, value, strict, None)
        fault = read.fault() if strict else ""
        if fault:
            raise _Wrong(fault)
        return read


class Kept(Value):
    """A value that lies in a database. It can be read whatever is written there.

    A field that is wrong has its default, and `wrong` says what it was: whoever needs the value whole looks there.
    """

    wrong: tuple[str, ...]

    @classmethod
    def _read(cls, value: Any, strict: bool) -> Any:
        if strict:
            return super()._read(value, strict)
        faults: list[_Wrong] = []
        try:
            read = _read_fields(cls, value, strict, faults)
        except _Wrong as fault:
            faults, read = [fault], cls()
        if not faults:
            return read
        name = cls.__name__.lower()
        return replace(read, wrong=(*read.wrong, *(fault.sentence(name) for fault in faults)))  # type: ignore[type-var]


class _Wrong(Exception):
    """What is wrong, and with which field: the path grows on the way out."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said, self.path = said, ""

    def sentence(self, what: str) -> str:
        return f"{what}{self.path} {self.said}"


class _Shape(NamedTuple):
    readers: Mapping[str, _Read]
    defaults: Mapping[str, Any]  # MISSING: it has none
    required: tuple[str, ...]
    tag: tuple[tuple[str, str], ...]


_SHAPES: dict[type, _Shape] = {}


def _shape(cls: type) -> _Shape:
    """What is to be known of a class, worked out once."""
    if cls not in _SHAPES:
        readers, defaults = {}, {}
        for each in fields(cls):
            module = sys.modules[cls.__module__].__dict__
            readers[each.name] = _with_bounds(_reader(str(each.type), module, each.metadata), each.metadata)
            made = each.default_factory
            defaults[each.name] = each.default if made is MISSING else made()
        required = tuple(name for name, default in defaults.items() if default is MISSING)
        tag = getattr(cls, "TAG", None)
        _SHAPES[cls] = _Shape(readers, defaults, required, (tag,) if tag else ())
    return _SHAPES[cls]


def _written(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_written(item) for item in value]
    if isinstance(value, dict):
        return {name: _written(item) for name, item in value.items()}
    return value.to_json() if hasattr(value, "to_json") else value


def _read_whole(cls: type[V], value: Any, what: str, strict: bool) -> V:
    try:
        return cls._read(value, strict)
    except _Wrong as wrong:
        raise UserErrorException(wrong.sentence(what or cls.__name__.lower())) from None


def _read_fields(cls: type[V], value: Any, strict: bool, faults: list[_Wrong] | None) -> V:
    """With `faults`, a wrong field goes there and has its default."""
    if not isinstance(value, dict):
        raise _Wrong(f"must be a dictionary, not {_shown(value)}.")
    shape, made = _shape(cls), {}
    for name, found in value.items():
        reader = shape.readers.get(name)
        try:
            if reader is None:
                _check_extra(cls, shape, name, found, strict)
            elif found is not None:
                made[name] = reader(found, strict)
        except _Wrong as wrong:
            if reader is not None:
                wrong.path = f".{name}{wrong.path}"
            if faults is None:
                raise
            faults.append(wrong)
    for name in shape.required:
        if name not in made:
            raise _Wrong(f"lacks the field '{name}'.")
    return cls(**made)


def _check_extra(cls: type, shape: _Shape, name: str, found: Any, strict: bool) -> None:
    if shape.tag and name == shape.tag[0][0]:
        if found != shape.tag[0][1]:
            raise _Wrong(f"must have the {name} {shape.tag[0][1]!r}, not {_shown(found)}.")
    elif strict:
        known = [each.name for each in fields(cls) if not each.metadata.get("set_by_server")]
        raise _Wrong(f"has no field {_shown(name)}. Known: {', '.join(known)}.")


# -- types


def _reader(declared: str, module: Mapping[str, Any], bounds: Mapping[str, Any]) -> _Read:
    """How a field that is declared so is read."""
    parts = [part for part in _split(declared, " | ") if part != "None"]
    if len(parts) == 1:
        return _reader_of_one(parts[0], module, bounds)
    readers = [(part, _reader_of_one(part, module, bounds)) for part in parts]
    classes = {part: module[part] for part in parts if part in module}
    words = " or ".join(sorted({_word_for(part) for part in parts}))

    def read(value: Any, strict: bool) -> Any:
        if isinstance(value, dict) and len(classes) > 1:
            return _by_tag(list(classes.values()), value, strict)
        for part, reader in readers:
            if isinstance(value, _JSON_TYPES.get(part.split("[")[0], dict)):
                return reader(value, strict)
        raise _Wrong(f"must be {words}, not {_shown(value)}.")

    return read


_JSON_TYPES: Mapping[str, Any] = {"str": str, "int": int, "float": (int, float), "bool": bool, "tuple": (list, tuple)}
_WORDS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "tuple": "a list"}


def _word_for(part: str) -> str:
    return _WORDS.get(part.split("[")[0], "a dictionary")


def _split(text: str, mark: str) -> list[str]:
    """At the marks that stand outside of brackets."""
    parts, depth = [""], 0
    for at, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if not depth and text.startswith(mark, at):
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip(mark + " ") for part in parts]


def _reader_of_one(declared: str, module: Mapping[str, Any], bounds: Mapping[str, Any]) -> _Read:
    if declared in _PLAIN:
        return _PLAIN[declared]
    if declared == "Any":
        return lambda value, strict: value
    if declared.startswith("tuple[") and declared.endswith(", ...]"):
        return _tuple_of(_reader(declared[len("tuple[") : -len(", ...]")], module, {}), int(bounds.get("most", 0)))
    if declared.startswith("Mapping[str, "):
        return _mapping_of(_reader_or_null(declared[len("Mapping[str, ") : -1], module), int(bounds.get("most", 0)))
    return _of_class(module[declared])


def _reader_or_null(declared: str, module: Mapping[str, Any]) -> _Read:
    read = _reader(declared, module, {})
    if "None" not in _split(declared, " | "):
        return read
    return lambda value, strict: None if value is None else read(value, strict)


def _of_class(cls: Any) -> _Read:
    if issubclass(cls, Value):
        return cls._read  # type: ignore[no-any-return]
    return lambda value, strict: cls.from_json(value)


def _by_tag(classes: list[Any], value: dict[str, Any], strict: bool) -> Any:
    key = classes[0].TAG[0]
    for cls in classes:
        if value.get(key) == cls.TAG[1]:
            return cls._read(value, strict)
    wrong = _Wrong(f"must be one of {', '.join(cls.TAG[1] for cls in classes)}, not {_shown(value.get(key))}.")
    wrong.path = f".{key}"
    raise wrong


def _text(value: Any, strict: bool) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"must be text, not {_shown(value)}.")
    if strict and len(value) > WORD:
        raise _Wrong(f"can be at most {WORD} characters long, not {len(value)}.")
    if strict and "\0" in value:
        raise _Wrong("cannot hold a null character.")
    return value


def _whole(value: Any, strict: bool) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Wrong(f"must be a whole number, not {_shown(value)}.")
    if strict and abs(value) > WHOLE:
        raise _Wrong(f"must be between -{WHOLE} and {WHOLE}, not {_shown(value)}.")
    return value


def _number(value: Any, strict: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _is_finite(value):
        raise _Wrong(f"must be a number, not {_shown(value)}.")
    return value


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number with hundreds of digits
        return False


def _truth(value: Any, strict: bool) -> bool:
    if not isinstance(value, bool):
        raise _Wrong(f"must be true or false, not {_shown(value)}.")
    return value


_PLAIN: Mapping[str, _Read] = {"str": _text, "int": _whole, "float": _number, "bool": _truth}


def _tuple_of(item: _Read, most: int) -> _Read:
    most = most or ITEMS

    def read(value: Any, strict: bool) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise _Wrong(f"must be a list, not {_shown(value)}.")
        if strict and len(value) > most:
            raise _Wrong(f"can hold at most {most} items, not {len(value)}.")
        made = []
        try:
            for each in value:
                made.append(item(each, strict))
        except _Wrong as wrong:
            wrong.path = f"[{len(made)}]{wrong.path}"
            raise
        return tuple(made)

    return read


def _mapping_of(item: _Read, most: int) -> _Read:
    most = most or ITEMS

    def read(value: Any, strict: bool) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _Wrong(f"must be a dictionary, not {_shown(value)}.")
        if strict and len(value) > most:
            raise _Wrong(f"can hold at most {most} entries, not {len(value)}.")
        made = {}
        for name, found in value.items():
            try:
                made[name] = item(found, strict)
            except _Wrong as wrong:
                wrong.path = f"[{_shown(name)}]{wrong.path}"
                raise
        return made

    return read


# -- bounds


def _with_bounds(read: _Read, bounds: Mapping[str, Any]) -> _Read:
    if not bounds:
        return read

    def checked(value: Any, strict: bool) -> Any:
        if strict and "set_by_server" in bounds:
            raise _Wrong("is set by the server.")
        made = read(value, strict)
        if strict:
            _check(made, bounds)
        return made

    return checked


def _check(value: Any, bounds: Mapping[str, Any]) -> None:
    if "known" in bounds and value not in bounds["known"]:
        raise _Wrong(f"must be one of {', '.join(bounds['known'])}, not {_shown(value)}.")
    if "least" in bounds and not bounds["least"] <= value <= bounds["most"]:
        raise _Wrong(f"must be between {bounds['least']:g} and {bounds['most']:.12g}, not {_shown(value)}.")
    if "least" not in bounds and isinstance(value, str) and len(value) > bounds.get("most", WORD):
        raise _Wrong(f"can be at most {bounds['most']} characters long, not {len(value)}.")
    if "check" in bounds:
        try:
            bounds["check"](value)
        except UserErrorException as error:
            raise _Wrong(f"cannot be used: {error.message}") from None

"""What every configuration object is: named settings, written as a map with camelCase keys and read back."""

from __future__ import annotations

import html
import warnings
from typing import Any, Callable, Iterable, NamedTuple

from lapis.errors import RunConfigurationException


def plain(value: Any) -> Any:
    """Return `value` as JSON and YAML can hold it. What they have no word for appears as its text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, RunConfigElement):
        return value._to_dict()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)


def as_it_is(value: Any) -> Any:
    return value


class Field(NamedTuple):
    """A setting: its key when written, how it is written and read, and what may be assigned to it."""

    key: str
    read: Callable[[Any], Any] = as_it_is
    write: Callable[[Any], Any] = plain
    check: Callable[[str, Any], Any] | None = None  # (name, value) to the value that is kept, or raises
    also: tuple[str, ...] = ()  # the key in files of older releases
    secret: bool = False


class RunConfigElement:
    """A configuration object. Its settings are the rows of `_fields`; no other can be set by mistake."""

    _fields: dict[str, Field] = {}  # by attribute, in the order of writing; those with an underscore are ours
    _obsolete_keys: tuple[str, ...] = ()  # keys of older releases that mean nothing any more

    def __setattr__(self, name: str, value: Any) -> None:
        field = self._fields.get(name)
        if field is not None and field.check is not None:
            value = field.check(f"{type(self).__name__}.{name}", value)
        elif field is None and not name.startswith("_") and not hasattr(type(self), name):
            raise AttributeError(
                f"{type(self).__name__} has no setting '{name}'. {_suggest(name, self._public_names())}"
            )
        object.__setattr__(self, name, value)

    def _to_dict(self) -> dict[str, Any]:
        return {field.key: field.write(getattr(self, name)) for name, field in self._fields.items()}

    @classmethod
    def _from_dict(cls, data: Any) -> Any:
        """The object that `data` was written from. A key that is missing leaves the default."""
        element = cls._blank()
        element._update(data)
        return element

    @classmethod
    def _blank(cls) -> Any:
        return cls()

    def _update(self, data: Any) -> None:
        if not isinstance(data, dict):
            raise RunConfigurationException(f"{type(self).__name__} is written as a map of settings, not as {data!r}.")
        names = {key: name for name, field in self._fields.items() for key in (field.key, *field.also)}
        for key, value in data.items():
            if key in names:
                self._read_setting(names[key], value)
            elif key not in self._obsolete_keys:
                known = [field.key for field in self._fields.values()]
                warnings.warn(
                    f"{type(self).__name__} does not know '{key}' and leaves it out. {_suggest(key, known)}",
                    stacklevel=4,
                )

    def _read_setting(self, name: str, value: Any) -> None:
        field = self._fields[name]
        if value is None and field.read is not as_it_is:
            return  # an empty section says nothing
        setattr(self, name, field.read(value))

    @classmethod
    def _public_names(cls) -> list[str]:
        return [name for name in cls._fields if not name.startswith("_")]

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, type(self)) and not isinstance(self, type(other)):
            return NotImplemented
        return bool(self._to_dict() == other._to_dict())

    __hash__ = object.__hash__  # a handle may be a key of a dict, as in SDK v1; two equal ones are two keys

    def _to_dict_without_secrets(self) -> dict[str, Any]:
        return {
            field.key: "***" if field.secret and getattr(self, name) else _without_secrets(self, name)
            for name, field in self._fields.items()
        }

    def _shown(self) -> dict[str, Any]:
        """The settings as people may see them."""
        return {
            name: "***" if self._fields[name].secret and getattr(self, name) else getattr(self, name)
            for name in self._public_names()
        }

    def __repr__(self) -> str:
        default = self._blank()
        changed = (
            f"{name}={value!r}"
            for name, value in self._shown().items()
            if getattr(self, name) != getattr(default, name)
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{_html(value)}</td></tr>" for name, value in self._shown().items()
        )
        return f"<table><tr><th colspan='2'>{type(self).__name__}</th></tr>{rows}</table>"


def section(cls: type[RunConfigElement]) -> Callable[[Any], Any]:
    """Reads a map as one `cls`."""
    return lambda data: data if isinstance(data, cls) else cls._from_dict(data)


def sections_by_name(cls: type[RunConfigElement]) -> Callable[[Any], Any]:
    """Reads a map of names to maps as a dict of names to `cls`."""
    read = section(cls)

    def read_all(data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise RunConfigurationException(f"Expected a map of names to {cls.__name__}, not {data!r}.")
        return {str(name): read(item) for name, item in data.items()}

    return read_all


def list_of_sections(cls: type[RunConfigElement]) -> Callable[[Any], Any]:
    """Reads a list of maps as a list of `cls`."""
    return lambda data: [section(cls)(item) for item in data]


def one_of(words: Iterable[str], default: str | None = None) -> Callable[[str, Any], Any]:
    """Checks for one of `words`, in any case, and keeps it as spelt in `words`. None stands for `default`."""
    spelt = {word.lower(): word for word in words}

    def check(name: str, value: Any) -> Any:
        if value is None:
            return default
        if str(value).lower() not in spelt:
            raise RunConfigurationException(f"{name} cannot be {value!r}. Valid: {', '.join(spelt.values())}.")
        return spelt[str(value).lower()]

    return check


def whole_number(at_least: int, optional: bool = False) -> Callable[[str, Any], Any]:
    """Checks for a whole number, of any integer type."""

    def check(name: str, value: Any) -> Any:
        if value is None and optional:
            return None
        try:
            number = None if isinstance(value, bool) else value.__index__()
        except AttributeError:
            number = None
        if number is None or number < at_least:
            raise RunConfigurationException(f"{name} must be a whole number, {at_least} or more, not {value!r}.")
        return number

    return check


def _without_secrets(element: RunConfigElement, name: str) -> Any:
    value = getattr(element, name)
    if isinstance(value, RunConfigElement):
        return value._to_dict_without_secrets()
    if isinstance(value, list) and all(isinstance(item, RunConfigElement) for item in value):
        return [item._to_dict_without_secrets() for item in value]
    return element._fields[name].write(value)


def _suggest(name: Any, known: list[str]) -> str:
    import difflib  # only a mistake needs it

    near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.6)
    if near:
        return "Did you mean " + " or ".join(f"'{match}'" for match in near) + "?"
    return f"Known: {', '.join(sorted(known))}."


def _html(value: Any) -> str:
    if isinstance(value, RunConfigElement):
        return value._repr_html_()
    if isinstance(value, dict) and any(isinstance(item, RunConfigElement) for item in value.values()):
        return "".join(f"{html.escape(str(key))}: {_html(item)}" for key, item in value.items())
    return html.escape(str(value))

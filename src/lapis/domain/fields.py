"""Reads what came over the network, field by field: what is wrong is named, and nothing is passed over in silence.

    with Fields(body, "A service") as fields:
        name, models = fields.text("name"), fields.texts("models")

A field that nobody read is refused, with those that were: what is known is what the block reads.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence, TypeVar

from lapis.errors import UserErrorException

MOST = 1000  # entries of a list or of labels, unless a field says otherwise
LONGEST = 1 << 16  # characters of a text
T = TypeVar("T")


class Fields:
    def __init__(self, body: Any, what: str) -> None:
        if not isinstance(body, Mapping):
            raise UserErrorException(f"{what} must be an object with fields, not {_with_type(body)}.")
        self._body = body
        self._what = what
        self._known: dict[str, None] = {}  # in the order in which they were read

    def __enter__(self) -> Fields:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        unknown = [str(name) for name in self._body if name not in self._known]
        if unknown and kind is None:
            named = ", ".join(f"'{_shortened(name)}'" for name in unknown[:5])
            raise UserErrorException(f"{self._what} has no field {named}. Known: {', '.join(self._known)}.")

    def given(self, name: str) -> Any:
        """As it came; None if it did not, which is the same as null."""
        self._known[name] = None
        return self._body.get(name)

    def text(self, name: str, longest: int = LONGEST) -> str:
        found = self.text_or_none(name, longest)
        if found is None:
            raise UserErrorException(f"{self._what} needs a field '{name}': text.")
        return found

    def text_or_none(self, name: str, longest: int = LONGEST) -> str | None:
        value = self.given(name)
        return None if value is None else self._text(name, value, longest)

    def one_of(self, name: str, known: Sequence[str]) -> str:
        value = self.text(name)
        if value not in known:
            raise self._wrong(name, f"one of {', '.join(known)}", value)
        return value

    def flag(self, name: str) -> bool:
        return bool(self.flag_or_none(name))

    def flag_or_none(self, name: str) -> bool | None:
        value = self.given(name)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def texts(self, name: str, most: int = MOST, longest: int = LONGEST) -> tuple[str, ...]:
        return self.texts_or_none(name, most, longest) or ()

    def texts_or_none(self, name: str, most: int = MOST, longest: int = LONGEST) -> tuple[str, ...] | None:
        value = self.given(name)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)):
            raise self._wrong(name, "a list of texts", value)
        self._check_count(name, len(value), most)
        return tuple(self._text(f"{name}[{index}]", each, longest) for index, each in enumerate(value))

    def labels(self, name: str) -> dict[str, str | None]:
        """Text by text; a label may stand without one."""
        return {
            key: None if value is None else self._text(f"{name}.{key}", value, LONGEST)
            for key, value in self._entries(name).items()
        }

    def labels_or_none(self, name: str) -> dict[str, str | None] | None:
        return None if self.given(name) is None else self.labels(name)

    def texts_by_name(self, name: str) -> dict[str, str]:
        return {key: self._text(f"{name}.{key}", value, LONGEST) for key, value in self._entries(name).items()}

    def part(self, name: str, read: Callable[[Any], T]) -> T | None:
        """A field with fields of its own, which `read` reads."""
        value = self.given(name)
        return None if value is None else read(value)

    def document(self, name: str) -> dict[str, Any] | None:
        """An object that is kept as it is."""
        value = self.given(name)
        if value is not None and not isinstance(value, Mapping):
            raise self._wrong(name, "an object", value)
        return None if value is None else dict(value)

    def _entries(self, name: str) -> dict[str, Any]:
        found = self.document(name) or {}
        self._check_count(name, len(found), MOST)
        for key in found:
            if not isinstance(key, str) or not key or len(key) > LONGEST:
                raise UserErrorException(f"A key of '{name}' must be text that is not empty, not {_with_type(key)}.")
        return found

    def _text(self, name: str, value: Any, longest: int) -> str:
        if not isinstance(value, str):
            raise self._wrong(name, "text", value)
        if len(value) > longest:
            raise self._wrong(name, f"text of {longest} characters at most", value)
        return value

    def _check_count(self, name: str, count: int, most: int) -> None:
        if count > most:
            raise UserErrorException(f"Field '{name}' has {count} entries; {most} are the most that it can have.")

    def _wrong(self, name: str, allowed: str, value: Any) -> UserErrorException:
        return UserErrorException(f"Field '{_shortened(name)}' must be {allowed}, not {_with_type(value)}.")


def shown(value: Any) -> str:
    """For a message: what somebody sent, which may be long."""
    return _shortened(repr(value))


def _with_type(value: Any) -> str:
    return f"{shown(value)} ({type(value).__name__})"


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."

"""Conditions on the columns of a table, as plain values: `(ds['age'] > 30) & (ds['town'] == 'Ghent')`."""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any

from lapis.errors import UserErrorException


class Column:
    """`ds['age']`: compare it, and give the comparison to `ds.filter()` or `ds[...]`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return self._compare("eq", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return self._compare("ne", other)

    def __lt__(self, other: Any) -> Condition:
        return self._compare("lt", other)

    def __le__(self, other: Any) -> Condition:
        return self._compare("le", other)

    def __gt__(self, other: Any) -> Condition:
        return self._compare("gt", other)

    def __ge__(self, other: Any) -> Condition:
        return self._compare("ge", other)

    def is_null(self) -> Condition:
        return Condition(["null", self._name])

    def starts_with(self, value: str) -> Condition:
        if not isinstance(value, str):
            raise UserErrorException(f"starts_with() takes text, not {value!r}.")
        return self._compare("starts_with", value)

    def _compare(self, how: str, other: Any) -> Condition:
        return Condition([how, self._name, operand(other)])

    def __bool__(self) -> bool:
        raise UserErrorException(f"Column '{self._name}' alone is no condition. Compare it, such as ds['x'] == True.")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Column({self._name!r})"


class Extension(Column):
    """That of a file, given with or without its dot."""

    def _compare(self, how: str, other: Any) -> Condition:
        return super()._compare(how, other.lstrip(".") if isinstance(other, str) else other)


class Condition:
    """True or false for each row. Where a value is missing every comparison is false, and `!=` true, as in pandas."""

    def __init__(self, parts: list[Any]) -> None:
        self._parts = parts

    def __and__(self, other: Any) -> Condition:
        return Condition(["and", self._parts, parts_of(other)])

    def __or__(self, other: Any) -> Condition:
        return Condition(["or", self._parts, parts_of(other)])

    def __invert__(self) -> Condition:
        return Condition(["not", self._parts])

    def __bool__(self) -> bool:
        raise UserErrorException(
            "A condition on columns has no value of its own. Combine conditions with & | ~ and parentheses, not with "
            "`and`, `or`, `not`."
        )

    def __repr__(self) -> str:
        return f"Condition({self._parts!r})"


def parts_of(condition: Any) -> list[Any]:
    if not isinstance(condition, Condition):
        raise UserErrorException(
            f"A condition is made of columns, such as ds['x'] > 3; {type(condition).__name__} ({condition!r}) is none."
        )
    return condition._parts


def operand(value: Any) -> dict[str, Any]:
    """What a column is compared with, as a plain value."""
    if isinstance(value, Column):
        return {"column": value._name}
    if hasattr(value, "to_pydatetime"):  # pandas
        value = value.to_pydatetime()
    elif hasattr(value, "item") and getattr(value, "shape", None) == ():  # NumPy
        value = value.item()
    if isinstance(value, datetime):
        return {"datetime": utc(value).isoformat()}
    if isinstance(value, date):
        return {"datetime": datetime(value.year, value.month, value.day).isoformat()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    raise UserErrorException(
        f"A column is compared with a number, text, a date or another column, not {type(value).__name__} ({value!r})."
    )


def utc(moment: datetime) -> datetime:
    """Tables hold times without a zone; they are UTC."""
    return moment if moment.tzinfo is None else moment.astimezone(timezone.utc).replace(tzinfo=None)

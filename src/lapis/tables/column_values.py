"""Types of the columns of a table: which one holds two others, and how text becomes another type.

A column is text, a number, true or false, or a time. Times are kept without a zone and are UTC.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Callable, Mapping

from lapis.errors import DatasetExecutionError
from lapis.tables.arrow import pa, pc
from lapis.tables.column_filter import utc
from lapis.tables.types import BOOL, DATETIME, FLOAT, LONG, STRING

NULL, FAIL = "null", "fail"  # what becomes of a value that is none of its type
MISSING = {"", "#N/A", "#NA", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"}  # no value, where text is not asked for
_DATES = ["%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y/%m/%d", "%Y/%m/%d %H:%M:%S", "%m/%d/%Y", "%m/%d/%Y %H:%M:%S",
          "%m/%d/%Y %H:%M", "%m/%d/%Y %I:%M:%S %p", "%d-%b-%Y", "%d %b %Y", "%Y%m%d"]  # fmt: skip
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_PLAIN_FORMAT = re.compile(r"(?:%[YmdHMS]|[^%])*\Z")  # what Arrow parses as Python does


def arrow_type(kind: str) -> Any:
    return {
        STRING: pa.string(),
        BOOL: pa.bool_(),
        LONG: pa.int64(),
        FLOAT: pa.float64(),
        DATETIME: pa.timestamp("us"),
    }[kind]


def settled(inferred: Any) -> Any:
    """The type that a column is read as when Arrow sees `inferred` in some of its text."""
    if pa.types.is_date(inferred):
        return pa.timestamp("us")
    if pa.types.is_timestamp(inferred):
        return pa.timestamp("ns" if inferred.unit == "ns" else "us", tz="UTC" if inferred.tz else None)
    if pa.types.is_time(inferred):
        return pa.string()
    return inferred


def wider(one: Any, other: Any) -> Any:
    """The narrowest type that holds both; text holds everything."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if _is_number(one) and _is_number(other):
        whole = pa.types.is_integer(one) and pa.types.is_integer(other)
        return pa.int64() if whole else pa.float64()
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other) and bool(one.tz) == bool(other.tz):
        return pa.timestamp("ns" if "ns" in (one.unit, other.unit) else "us", tz="UTC" if one.tz else None)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return _wider_struct(one, other)
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(wider(one.value_type, other.value_type))
    return pa.string()


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _wider_struct(one: Any, other: Any) -> Any:
    fields = {field.name: field.type for field in one}
    for field in other:
        fields[field.name] = wider(fields[field.name], field.type) if field.name in fields else field.type
    return pa.struct(list(fields.items()))


def shown(kind: Any) -> Any:
    """The type that users get for a column that was read as `kind`."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_date(kind):
        return pa.timestamp("us")
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns" if kind.unit == "ns" else "us")
    return kind


def as_shown(values: Any) -> Any:
    target = shown(values.type)
    return values if values.type == target else pc.cast(values, target)


def without_empty_text(values: Any) -> Any:
    """Text that is empty is no value."""
    shortest = pc.min(pc.binary_length(values)).as_py()
    if shortest != 0:
        return values
    return pc.if_else(pc.equal(values, ""), pa.scalar(None, values.type), values)


def declared(values: Any, kind: Mapping[str, Any], column: str, on_error: str) -> Any:
    """`values` as the type that the user asked for; what does not fit is missing, or an error."""
    target = arrow_type(kind["type"])
    if values.type == target:
        return values
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return _parsed(values, kind, target, column, on_error)
    try:
        return pc.cast(as_shown(values), target)
    except pa.ArrowNotImplementedError:
        raise DatasetExecutionError(
            f"Column '{column}' is {values.type}, which cannot be read as {kind['type']}."
        ) from None
    except pa.ArrowInvalid:
        return _one_by_one(values, _PARSERS.get(kind["type"]), target, kind["type"], column, on_error)


def _parsed(values: Any, kind: Mapping[str, Any], target: Any, column: str, on_error: str) -> Any:
    name = kind["type"]
    if name == STRING:
        return pc.cast(values, target)
    trimmed = pc.utf8_trim_whitespace(values)
    trimmed = pc.if_else(pc.is_in(trimmed, value_set=pa.array(sorted(MISSING))), pa.scalar(None, trimmed.type), trimmed)
    if name == DATETIME:
        return _times(trimmed, kind.get("formats") or [], target, column, on_error)
    if name == FLOAT and kind.get("decimal_mark") == ",":
        trimmed = pc.replace_substring(trimmed, ",", ".")
    if name == BOOL:
        return _one_by_one(trimmed, _truth, target, name, column, on_error)
    try:
        return pc.cast(trimmed, target)
    except pa.ArrowInvalid:
        return _one_by_one(trimmed, _whole if name == LONG else float, target, name, column, on_error)


def _times(text: Any, formats: list[str], target: Any, column: str, on_error: str) -> Any:
    if not formats:
        try:
            return pc.cast(text, target)
        except pa.ArrowInvalid:
            return _one_by_one(text, _any_time, target, DATETIME, column, on_error)
    if all(_PLAIN_FORMAT.match(each) for each in formats):
        found = [pc.strptime(text, format=each, unit="us", error_is_null=True) for each in formats]
        values = found[0] if len(found) == 1 else pc.coalesce(*found)
        if on_error != FAIL or values.null_count == text.null_count:
            return values

    def parse(each: str) -> datetime:
        return _first_format(each, formats)

    return _one_by_one(text, parse, target, DATETIME, column, on_error)


def _one_by_one(
    values: Any, parse: Callable[[Any], Any] | None, target: Any, kind: str, column: str, on_error: str
) -> Any:
    """Slow and patient: every distinct value on its own."""
    known: dict[Any, Any] = {None: None}
    for value in pc.unique(values).to_pylist():
        if value is None:
            continue
        try:
            known[value] = pa.scalar(parse(value) if parse else value, target).as_py()
        except (ValueError, OverflowError, TypeError, pa.ArrowException):
            if on_error == FAIL:
                raise DatasetExecutionError(
                    f"Column '{column}' holds {value!r}, which is no {kind}. on_error='null' reads it as missing."
                ) from None
            known[value] = None
    return pa.chunked_array([pa.array([known[value] for value in values.to_pylist()], target)])


def _whole(value: Any) -> int:
    number = float(value)
    if number != int(number):
        raise ValueError(value)
    return int(value) if isinstance(value, str) and re.match(r"[+-]?\d+\Z", value) else int(number)


def _truth(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(text)


def _any_time(text: str) -> datetime:
    try:
        return utc(datetime.fromisoformat(text.replace("Z", "+00:00")))
    except ValueError:
        return _first_format(text, _DATES)


def _first_format(text: str, formats: list[str]) -> datetime:
    for each in formats:
        try:
            return utc(datetime.strptime(text, each))
        except ValueError:
            continue
    raise ValueError(text)


_PARSERS: dict[str, Callable[[Any], Any]] = {LONG: _whole, FLOAT: float, BOOL: bool, STRING: str}

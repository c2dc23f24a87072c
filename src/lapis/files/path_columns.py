"""Columns that come from the path of a file: the path itself, and parts that a partition format names."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from lapis.domain.data import File
from lapis.errors import DatasetExecutionError, UserErrorException

PATH = "Path"
_FIELD = re.compile(r"\{([^{}:]+)(?::([^{}]*))?\}|(\*+)")
_TIME_PARTS = {
    "yyyy": ("year", r"\d{4}"),
    "MM": ("month", r"\d{2}"),
    "dd": ("day", r"\d{2}"),
    "HH": ("hour", r"\d{2}"),
    "mm": ("minute", r"\d{2}"),
    "ss": ("second", r"\d{2}"),
}
_TIME_PART = re.compile("|".join(_TIME_PARTS))


def check_format(partition_format: Any) -> str | None:
    """`/{department}/{day:yyyy/MM/dd}/*.csv`: from the first part that varies to the end of the path."""
    if partition_format is None:
        return None
    if not isinstance(partition_format, str) or not _FIELD.search(partition_format):
        raise UserErrorException(
            f"partition_format looks like '/{{department}}/{{day:yyyy/MM/dd}}/data.csv', not {partition_format!r}."
        )
    _compiled(partition_format)
    return partition_format


def keys(partition_format: str | None) -> list[str]:
    """The columns that a format names, in order."""
    return [name for name, _ in _compiled(partition_format)[1]] if partition_format else []


def values(file: File, include_path: bool, partition_format: str | None) -> dict[str, Any]:
    """What the path of `file` says."""
    found: dict[str, Any] = {PATH: file.path} if include_path else {}
    if partition_format is None:
        return found
    pattern, fields = _compiled(partition_format)
    match = pattern.search(file.place) or pattern.search(file.path)
    if match is None:
        raise DatasetExecutionError(f"The path {file.place} does not fit the partition format {partition_format!r}.")
    taken = iter(match.groups())
    for name, time_parts in fields:
        if not time_parts:
            found[name] = next(taken)
            continue
        moment = {"year": 1900, "month": 1, "day": 1}
        moment.update((part, int(next(taken))) for part in time_parts)
        try:
            found[name] = datetime(**moment)  # type: ignore[arg-type]
        except ValueError as error:
            raise DatasetExecutionError(f"The path {file.place} holds no date for '{name}': {error}.") from None
    return found


def _compiled(partition_format: str) -> tuple[Any, list[tuple[str, list[str]]]]:
    """A pattern for the end of a path, and the columns that its groups make."""
    fields: list[tuple[str, list[str]]] = []
    pattern, at = "", 0
    for found in _FIELD.finditer(partition_format):
        pattern += re.escape(partition_format[at : found.start()])
        at = found.end()
        name, time_format, stars = found.groups()
        if stars:
            pattern += ".*" if len(stars) > 1 else "[^/]*"
        elif time_format is None:
            pattern += "([^/]+)"
            fields.append((name, []))
        else:
            parts, text = _time_pattern(name, time_format)
            pattern += text
            fields.append((name, parts))
    return re.compile(pattern + re.escape(partition_format[at:]) + r"\Z"), fields


def _time_pattern(name: str, time_format: str) -> tuple[list[str], str]:
    parts, text, at = [], "", 0
    for found in _TIME_PART.finditer(time_format):
        part, pattern = _TIME_PARTS[found.group()]
        text += re.escape(time_format[at : found.start()]) + f"({pattern})"
        parts.append(part)
        at = found.end()
    if not parts:
        raise UserErrorException(f"'{time_format}' says nothing of a time. Known parts: {', '.join(_TIME_PARTS)}.")
    return parts, text + re.escape(time_format[at:])

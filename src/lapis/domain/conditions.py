"""Whether a condition holds for plain values. A condition is a list: `["not", ["gt", "age", {"value": 30}]]`."""

from __future__ import annotations

import operator
from datetime import datetime
from typing import Any, Callable, Mapping, Sequence

from lapis.errors import UserErrorException

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "starts_with": str.startswith,
}


def holds(condition: Sequence[Any], values: Mapping[str, Any]) -> bool:
    """Where a value is missing every comparison is false, and `ne` true, as it is for the rows of a table."""
    op = condition[0]
    if op == "and":
        return holds(condition[1], values) and holds(condition[2], values)
    if op == "or":
        return holds(condition[1], values) or holds(condition[2], values)
    if op == "not":
        return not holds(condition[1], values)
    value = values[condition[1]]
    if op == "null":
        return value is None
    if op == "ne":
        return not holds(["eq", *condition[1:]], values)
    other = _other(condition[2], value, values)
    if value is None or other is None:
        return op == "eq" and value is other
    try:
        return bool(_COMPARE[op](value, other))
    except TypeError:
        raise UserErrorException(
            f"'{condition[1]}' is {type(value).__name__} ({value}) and cannot be compared with {other!r}."
        ) from None


def columns_of(condition: Sequence[Any]) -> set[str]:
    """The names that a condition looks at."""
    if condition[0] in ("and", "or", "not"):
        return set().union(*(columns_of(part) for part in condition[1:]))
    found = {condition[1]}
    if len(condition) > 2 and "column" in condition[2]:
        found.add(condition[2]["column"])
    return found


def _other(operand: Mapping[str, Any], value: Any, values: Mapping[str, Any]) -> Any:
    """What `value` is compared with; text is a time where the value is one."""
    if "column" in operand:
        return values[operand["column"]]
    text = operand.get("datetime")
    other = operand["value"] if text is None else datetime.fromisoformat(text)
    if isinstance(value, datetime) and isinstance(other, str):
        try:
            return datetime.fromisoformat(other)
        except ValueError:
            return other  # and the comparison says what is wrong
    return other

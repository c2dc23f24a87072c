"""Conditions on plain values: what they compare, and what becomes of a value that is missing."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from lapis.domain.conditions import columns_of, holds
from lapis.errors import UserErrorException
from lapis.tables.column_filter import Column, Condition

SIZE, NAME, TIME, NONE = Column("size"), Column("name"), Column("time"), Column("none")
VALUES = {"size": 5, "name": "north", "time": datetime(2020, 5, 1), "none": None, "limit": 7}


@pytest.mark.parametrize(
    ("condition", "true"),
    [
        (SIZE == 5, True),
        (SIZE != 5, False),
        (SIZE < 5, False),
        (SIZE <= 5, True),
        (SIZE > 4.5, True),
        (SIZE >= 6, False),
        (SIZE < Column("limit"), True),
        (NAME.starts_with("no"), True),
        (NAME.starts_with("so"), False),
        (TIME < datetime(2020, 5, 2), True),
        (TIME > "2020-04-30", True),
        ((SIZE > 4) & (NAME == "south"), False),
        ((SIZE > 4) | (NAME == "south"), True),
        (~(SIZE > 4), False),
        (NONE.is_null(), True),
        (NONE == None, True),  # noqa: E711
        (NONE == 5, False),
        (NONE != 5, True),
        (NONE < 5, False),
        (SIZE == None, False),  # noqa: E711
    ],
)
def test_a_condition_holds_or_does_not(condition: Condition, true: bool) -> None:
    assert holds(condition._parts, VALUES) is true


@pytest.mark.parametrize("condition", [SIZE < "x", NAME > 5, TIME < 5, TIME < "soon", SIZE.starts_with("5")])
def test_what_cannot_be_compared_is_told(condition: Any) -> None:
    with pytest.raises(UserErrorException, match="cannot be compared with"):
        holds(condition._parts, VALUES)


def test_a_condition_says_which_names_it_looks_at() -> None:
    assert columns_of((~(SIZE > 4) & (NAME == Column("limit")))._parts) == {"size", "name", "limit"}

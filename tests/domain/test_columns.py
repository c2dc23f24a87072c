"""A column comes back as it was packed, whatever stands in it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lapis.domain.columns import EVEN, FLOATS, JSON, NOTHING, WHOLES, pack, unpack

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()


@given(
    st.lists(st.floats())
    | st.lists(st.integers(-(2**63), 2**63 - 1))
    | st.lists(st.none())
    | st.lists(SCALARS | st.lists(SCALARS) | st.dictionaries(st.text(), SCALARS))
)
@example([-(2**63), 0, 2**63])
@example(["\ud800", float("inf"), float("-inf")])
@example([-(2**63), -1, 2**63 - 2])
def test_what_is_packed_comes_back(values: list[Any]) -> None:
    back = unpack(pack(values), len(values))
    assert [type(value) for value in back] == [type(value) for value in values]
    assert repr(list(back)) == repr(values)  # NaN and -0.0 too


@pytest.mark.parametrize(
    ("values", "form", "size"),
    [
        ([0.5] * 100, FLOATS, 800),
        ([math.nan, 1.0], FLOATS, 16),
        ([3, 1, 4, 1], WHOLES, 32),
        (list(range(10, 1000, 5)), EVEN, 16),
        ([7] * 100, EVEN, 16),
        ([None] * 100, NOTHING, 0),
        ([1, 2.0], JSON, 7),
        ([True], JSON, 6),
        ([2**63], JSON, 21),
    ],
)
def test_each_takes_the_form_that_is_smallest_for_it(values: list[Any], form: bytes, size: int) -> None:
    packed = pack(values)
    assert packed[:1] == form and len(packed) == size + 1


@pytest.mark.parametrize(("data", "count"), [(b"", 1), (b"x", 1), (FLOATS + b"1234567", 1), (JSON + b"[1]", 2)])
def test_what_was_cut_or_is_no_column_is_refused(data: bytes, count: int) -> None:
    with pytest.raises(ValueError):
        unpack(data, count)

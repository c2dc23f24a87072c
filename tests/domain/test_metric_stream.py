"""What runs logged arrives whole, in whatever pieces it comes, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapis.domain.columns import pack
from lapis.domain.metric_stream import Reader, opening, stretch
from lapis.errors import Unavailable

SENT = b"".join(
    [
        opening(["a", "b"]),
        stretch("a", "loss", "scalar", 3, pack([0.5, 0.25, float("inf")])),
        stretch("a", "loss", "scalar", 2, pack([1, 2])),
        stretch("a", "näme\n", "scalar", 1, pack(["line\nbreak"])),
        stretch("a", "sizes", "list", 2, pack([[1, 2], [3]])),
        stretch("a", "row", "row", 1, pack([{"x": 1}])),
        stretch("a", "rows", "row", 2, pack([{"x": 1}, {"y": 2}])),
        opening(["c"]),
        stretch("c", "epoch", "scalar", 300, pack(list(range(300)))),
    ]
)
MEANT = {
    "a": {
        "loss": [0.5, 0.25, float("inf"), 1, 2],
        "näme\n": "line\nbreak",
        "sizes": [1, 2, 3],
        "row": {"x": 1},
        "rows": {"x": [1, None], "y": [None, 2]},
    },
    "b": {},
    "c": {"epoch": list(range(300))},
}


@given(st.lists(st.integers(0, len(SENT))))
def test_it_is_the_same_however_it_is_cut(cuts: list[int]) -> None:
    reader, start = Reader(), 0
    for end in [*sorted(cuts), len(SENT)]:
        reader.feed(SENT[start:end])
        start = end
    assert reader.metrics() == MEANT


@pytest.mark.parametrize("end", [5, len(SENT) - 1])
def test_what_was_cut_short_is_an_error_and_no_shorter_series(end: int) -> None:
    reader = Reader()
    reader.feed(SENT[:end])
    with pytest.raises(Unavailable, match="Try again"):
        reader.metrics()

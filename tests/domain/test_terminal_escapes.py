"""Text of a job on the user's terminal: colours pass, orders do not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapis.domain.terminal_escapes import Colours, one_line, plain

ORDERS = {
    "title": "\x1b]0;root@host\x07",
    "title ended otherwise": "\x1b]2;root@host\x1b\\",
    "clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "link": "\x1b]8;;http://evil.example\x1b\\",
    "clear": "\x1b[2J",
    "cursor": "\x1b[10;10H",
    "answerback": "\x1b[c\x1b[6n\x05",
    "alternate screen": "\x1b[?1049h",
    "device string": "\x1bP+q544e\x1b\\",
    "reset": "\x1bc",
    "character set": "\x1b(0",
    "one-character forms": "\x9b2J\x9d0;x\x9c",
    "backspace and bell": "\x08\x07\x00\x7f",
    "colour that is none": "\x1b[>4;2m\x1b[?1m",
}


def clean(*pieces: str) -> str:
    colours = Colours()
    return "".join(colours.feed(piece) for piece in pieces) + colours.end()


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_orders_to_the_terminal_are_left_out(order: str) -> None:
    for text in (clean(f"before {order}after"), plain(f"before {order}after")):
        assert text.startswith("before ") and text.endswith("after")
        assert not re.search(r"[\x00-\x1f\x7f-\x9f]", text)


def test_colours_pass_and_are_ended() -> None:
    assert clean("\x1b[1;31mred\x1b[38:5:3m") == "\x1b[1;31mred\x1b[38:5:3m\x1b[0m"
    assert plain("\x1b[1;31mred\x1b[0m") == "red"


def test_lines_tabs_and_returns_stay() -> None:
    assert clean("50%\r100%\n\tdone\n") == "50%\r100%\n\tdone\n"


def test_an_order_without_an_end_does_not_swallow_the_lines_after_it() -> None:
    assert clean("\x1b]0;for ever\nnext line\n") == "\nnext line\n"


def test_what_is_held_back_comes_at_the_end() -> None:
    assert clean("text \x1b") == "text "


def test_one_line_is_one_line() -> None:
    assert one_line(" a\n\x1b[31mb\x1b[0m\r\n  c ") == "a b c"


@given(
    st.lists(st.sampled_from([*ORDERS.values(), "\x1b", "[", "]", "3", "1", ";", "m", "\\", "\x07", "a", "\n", "é"]))
)
def test_it_does_not_matter_how_a_log_is_cut_into_pieces(pieces: list[str]) -> None:
    text = "".join(pieces)
    whole = clean(text)
    assert clean(*text) == whole == clean(*pieces)
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", re.sub(r"\x1b\[[0-9;:]*m", "", whole))

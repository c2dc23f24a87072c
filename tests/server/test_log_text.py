"""How a log is made readable."""

from __future__ import annotations

import pytest

from lapis.server.studio.log_text import PIECE, clean, piece, tail_start


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[1;32mgreen\x1b[0m\n", "green\n"),
        ("\x1b]8;;http://elsewhere.example\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x1b\\after", "after"),
        ("cut short \x1b[3", "cut short "),
        ("never closed \x1b]0;title\nnext line", "never closed \nnext line"),
        ("bell\x07 and back\x08space \x9b31m\x00", "bell and backspace 31m"),
        ("a\tb\r\nc\r\n", "a\tb\nc\n"),
        ("  0%|   |\r 50%|#  |\r100%|###|\ndone", "100%|###|\ndone"),
        (" 50%|#  |\r", " 50%|#  |"),
        ("\rdrawn\r     \rgone", "gone"),
        ("<b>ünïcode</b> 漢字 🎉", "<b>ünïcode</b> 漢字 🎉"),
    ],
)
def test_escape_sequences_and_painted_over_text_are_gone(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_a_line_still_being_written_comes_again_with_the_next_piece() -> None:
    log = b"one\ntwo\nthr"
    first = piece(log, 100)
    assert (first.text, first.open, first.next) == ("one\ntwo\n", "thr", 108)
    assert piece(b"three\n", 108).text == "three\n"


def test_a_progress_bar_without_line_feeds_is_read_once_and_not_from_its_beginning_each_time() -> None:
    bar = b"".join(b"\r%3d%%" % number for number in range(100))
    shown = piece(bar, 0)
    assert (shown.text, shown.open) == ("", " 99%")
    assert shown.next == len(bar) - len(b" 99%")


def test_a_bar_that_ends_in_a_return_stays_visible() -> None:
    shown = piece(b" 50%\r 51%\r", 0)
    assert (shown.open, shown.next) == (" 51%", 5)


def test_a_line_longer_than_a_piece_is_cut_between_two_characters() -> None:
    log = ("x" + "é" * PIECE).encode()
    text, start, shown = "", 0, piece(log[:PIECE], 0)
    while shown.next > start:
        text, start = text + shown.text, shown.next
        shown = piece(log[start : start + PIECE], start)
    assert text + shown.open == log.decode()


def test_pieces_read_one_after_the_other_give_the_whole_log() -> None:
    log = "".join(f"line {number} é漢🎉\n" for number in range(300)).encode() + b"last"
    for width in (7, 64, 1000, len(log)):
        text, start, end = "", 0, 0
        while end < len(log):  # the log grows by `width` bytes at a time
            end = min(len(log), end + width)
            shown = piece(log[start:end], start)
            text, start = text + shown.text, shown.next
        assert text + shown.open == log.decode()


def test_the_end_of_a_log_begins_with_a_whole_line() -> None:
    assert b"half a line\nwhole\n"[tail_start(b"half a line\nwhole\n") :] == b"whole\n"
    assert tail_start(b"no line at all") == 0

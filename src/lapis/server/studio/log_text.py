"""How a log looks on a page: no escape sequences, and of a progress bar that redraws itself only the newest state."""

from __future__ import annotations

import re
from dataclasses import dataclass

PIECE = 256 << 10  # most bytes of a log in one answer

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*(?:[@-~]|$)"  # colours, cursor moves; perhaps cut short
    r"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\|$)"  # window titles, links and the like, with all they hold
    r"|[ -/]*[0-~]|)"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]",  # other control characters, but for tab, line feed and return
    re.MULTILINE,
)


@dataclass(frozen=True)
class Piece:
    """`text` stands; `open` is the line still being written, which the piece that begins at `next` replaces."""

    text: str
    open: str
    next: int


def clean(text: str) -> str:
    lines = _ESCAPES.sub("", text).split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def piece(data: bytes, start: int) -> Piece:
    """What to show of `data`, the bytes of a log from `start` on, cut so that no line is ever shown by halves twice."""
    end = data.rfind(b"\n") + 1
    rest = data[end:]
    redrawn = rest.rstrip(b"\r").rfind(b"\r") + 1  # what stands before it has been painted over
    if not end and not redrawn and len(data) >= PIECE:  # one line longer than a piece: cut it anywhere
        whole = data[: _character_end(data)]
        return Piece(clean(whole.decode("utf-8", "replace")), "", start + len(whole))
    return Piece(
        clean(data[:end].decode("utf-8", "replace")),
        clean(rest[redrawn:].decode("utf-8", "replace")),
        start + end + redrawn,
    )


def tail_start(data: bytes) -> int:
    """Where the first whole line begins in bytes that were cut from the middle of a log."""
    return data.find(b"\n") + 1


def _character_end(data: bytes) -> int:
    """The length of `data` without a last character that is cut in two."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:  # not a continuation: a character begins here
            width = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) if width <= back else len(data) - back
    return len(data)

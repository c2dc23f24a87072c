"""Takes out of a text what would command the terminal it is printed on: a job's words are data, never orders."""

from __future__ import annotations

import re

_ORDERS = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor moves, modes
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, clipboard, with all they hold
    r"|\x1b[ -/]*[0-~]?"  # resets, character sets, and an escape alone
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"  # control characters, but for tab, line feed and return
)
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c\n]*\x1b?|[ -/]*)\Z")
_LONGEST = 4096  # what has not become a sequence by then is none


def plain(text: str) -> str:
    """The text alone, on as many lines as it had."""
    return _ORDERS.sub("", text)


def one_line(text: str) -> str:
    return " ".join(plain(text).split())


class Colours:
    """A stream of text without any order to the terminal but colours, however it is cut into pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._coloured = False

    def feed(self, text: str) -> str:
        """What may be printed now. A sequence that has only begun waits for its end."""
        text = self._held + text
        begun = _BEGUN.search(text)
        cut = begun.start() if begun is not None and len(begun[0]) < _LONGEST else len(text)
        self._held = text[cut:]
        return _ORDERS.sub(self._keep_colour, text[:cut])

    def end(self) -> str:
        """What is left, and the terminal's own colour again."""
        rest = plain(self._held)
        self._held = ""
        return rest + ("\x1b[0m" if self._coloured else "")

    def _keep_colour(self, found: re.Match[str]) -> str:
        if not _COLOUR.fullmatch(found[0]):
            return ""
        self._coloured = True
        return found[0]

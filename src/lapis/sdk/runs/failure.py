"""A failed run in SDK v1's words: the `error` of its details, and the exception that waiting for it raises."""

from __future__ import annotations

import json
import re
from typing import Any, Mapping

from lapis.domain.terminal_escapes import plain
from lapis.errors import ActivityFailedException
from lapis.sdk.base import display

_BY_THE_PROGRAM = ("ExitCode", "OutOfMemory", "Signal")  # how a program ends by itself
_LAST_LINES = re.compile(r"Last lines of (\S+):.*", re.DOTALL)
_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*(?P<cls>[A-Za-z_]\w*)(?:: (?P<text>.*))?")
_USUAL = re.compile(r"[\w.]*(?:Error|Exception|Interrupt|Exit|Warning)(?:: .*)?")


def as_details(view: Mapping[str, Any]) -> dict[str, Any]:
    """What `get_details()["error"]` is. What Lapis knows beyond that stands beside the keys of SDK v1."""
    known = dict(view["error"])
    code, message = known.pop("code", "UserError"), known.pop("message", "")
    if code in _BY_THE_PROGRAM:
        message = _with_headline(known, message)
    error = {
        "code": "UserError" if code in _BY_THE_PROGRAM else code,
        "message": message,
        "messageParameters": {},
        "details": [],
        "innerError": {"code": code},
        **known,
    }
    return {"error": error, "time": display.when(view.get("ended_at"))}


def exception_of(view: Mapping[str, Any]) -> ActivityFailedException:
    """First, and plain, what the program itself said; then SDK v1's JSON."""
    details = as_details(view)
    said = plain(_traceback(str(details["error"].pop("lastLines", "") or "")))
    message = details["error"]["message"] = plain(str(details["error"]["message"]))
    if said and said in message:  # it stands above
        details["error"]["message"] = _LAST_LINES.sub(r"Its log is \1.", message)
    text = json.dumps(details, indent=4)
    error = ActivityFailedException(text)
    error.summary = details["error"]["message"]
    error.message = f"{said}\n\nActivity Failed:\n{text}" if said else f"Activity Failed:\n{text}"
    return error


def _with_headline(error: Mapping[str, Any], message: str) -> str:
    """`User program failed with ValueError: no such column`, then how it ended and the last lines."""
    raised = _raised(str(error.get("lastLines") or ""))
    if raised:
        return f"User program failed with {raised}\n{message}"
    ended = "Ended with exit code"
    return message.replace(ended, "User program failed with exit code", 1) if message.startswith(ended) else message


def _raised(said: str) -> str:
    lines = _traceback(said).splitlines()
    if lines and lines[0] == _TRACEBACK:
        lines = [line for line in lines[1:] if line and not line[0].isspace()]
        found = _RAISED.fullmatch(lines[0]) if lines else None
    else:  # its beginning may have been too long ago
        found = _RAISED.fullmatch(lines[-1]) if lines and _USUAL.fullmatch(lines[-1]) else None
    if found is None:
        return ""
    return found["cls"] + (f": {found['text']}" if found["text"] else "")


def _traceback(said: str) -> str:
    """The last traceback and what follows it; all of the last lines where there is none."""
    at = said.rfind(_TRACEBACK)
    return said[at:] if at >= 0 else said

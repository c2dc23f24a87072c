"""The Python that submits: scripts run in it when nothing else is said, and its versions count where none is named.

That is this one, except in the command `lapis` of an environment that lacks what the command needs: there another
Python speaks for it (`client/command_line.py`).
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class SubmittingPython:
    path: str
    version: str  # whole: 3.8.18
    search_path: list[str]


_instead: SubmittingPython | None = None


def submitting_python() -> SubmittingPython:
    return _instead or SubmittingPython(sys.executable, ".".join(map(str, sys.version_info[:3])), list(sys.path))


def speak_for(described: str) -> None:
    """From now on this process submits in the name of the Python that `describe` described."""
    global _instead
    _instead = SubmittingPython(**json.loads(described))


def describe() -> str:
    return json.dumps(asdict(submitting_python()))

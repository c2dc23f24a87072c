"""What an agent says of itself: lines of agent.log, for whoever wonders. Its run never depends on them."""

from __future__ import annotations

import contextlib
import time


def say(line: str) -> None:
    """A disk without room keeps it out of the log, and no more than that."""
    with contextlib.suppress(OSError):
        print(f"{time.strftime('%F %T')} {line}", flush=True)


def tell_user(log: str, line: str) -> None:
    """The same for what the user should know, in the log that the user reads."""
    with contextlib.suppress(OSError), open(log, "a") as file:
        file.write(f"Lapis: {line}\n")

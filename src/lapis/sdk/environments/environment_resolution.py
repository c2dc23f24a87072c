"""Asks the server what an environment comes to, before anything else is sent."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from lapis.domain import settings
from lapis.domain.environment import called

if TYPE_CHECKING:
    from lapis.sdk.workspace.workspace import Workspace

_LONGEST = 900.0  # seconds; a large environment over a slow line
_QUIET = 1.0  # seconds before somebody would wonder
_AGAIN = 15.0
_INSTALLED = ".dist-info"


def resolve(workspace: Workspace, environment: Any, mpi: bool = False, horovod_in: str = "") -> dict[str, Any]:
    """The lock, and what was substituted on the way to it. Quick for a definition that was resolved before.

    A job that MPI starts (`mpi`) may get more than others: Horovod, and unasked if its script imports it: `horovod_in`.
    """
    body = {**wish(environment), "mpi": mpi, "horovod_in": horovod_in}
    done = threading.Event()
    threading.Thread(target=_say_what_takes_so_long, args=(environment.name, done), daemon=True).start()
    try:
        reply = workspace._client.call("POST", workspace._base + "/environments/resolve", body, timeout=_LONGEST)
    finally:
        done.set()
    return dict(reply)


def wish(environment: Any) -> dict[str, Any]:
    """What the server has to know to resolve an environment: also who asks, for what the definition leaves open."""
    chosen = settings.load()
    return {
        "definition": environment._to_dict(),
        "strict": chosen.strict,
        "container": chosen.environments == "container",
        "submitter": {"python": ".".join(map(str, sys.version_info[:3])), "packages": _installed()},
    }


def _installed() -> dict[str, str]:
    """The packages of this interpreter, by the names of their folders: importlib.metadata would read every one."""
    found: dict[str, str] = {}
    for folder in sys.path:
        try:
            entries = os.listdir(folder or ".")
        except OSError:
            continue
        for entry in entries:
            name, _, number = entry[: -len(_INSTALLED)].partition("-") if entry.endswith(_INSTALLED) else ("", "", "")
            if name and number.replace(".", "").isdigit():
                found.setdefault(name.lower().replace("_", "-"), number)
    return found


def _say_what_takes_so_long(name: str | None, done: threading.Event) -> None:
    seconds = 0.0
    pause = _QUIET
    while not done.wait(pause):
        seconds += pause
        print(
            f"Lapis: resolving {called(name)}: asking the package index which versions fit together ({seconds:.0f} s)",
            file=sys.stderr,
            flush=True,
        )
        pause = _AGAIN

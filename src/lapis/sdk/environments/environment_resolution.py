"""Asks the server what an environment comes to, before anything else is sent."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from lapis.client.submitting_python import submitting_python
from lapis.domain import settings
from lapis.domain.environment import called
from lapis.machine.installed_packages import installed_versions

if TYPE_CHECKING:
    from lapis.sdk.workspace.workspace import Workspace

_LONGEST = 900.0  # seconds; a large environment over a slow line
_QUIET = 1.0  # seconds before somebody would wonder
_AGAIN = 15.0


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
        "submitter": _submitter(),
    }


def _submitter() -> dict[str, Any]:
    python = submitting_python()
    installed = installed_versions(python.search_path).items()
    released = {name: number for name, number in installed if number.replace(".", "").isdigit()}
    return {"python": python.version, "packages": released}


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

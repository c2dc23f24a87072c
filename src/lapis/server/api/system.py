"""What every route needs: the parts of the running system, who asks, and how an answer is written."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from fastapi import Depends, Request, Response

from lapis.domain import run as rules
from lapis.domain.run import RunRecord
from lapis.server.control.access import Access, Actor
from lapis.server.control.bulletin import Bulletin
from lapis.server.control.computes import Computes
from lapis.server.control.data import Data
from lapis.server.control.environments import Environments
from lapis.server.control.images import Images
from lapis.server.control.models import Models
from lapis.server.control.profiles import Profiles
from lapis.server.control.reconciler import Reconciler
from lapis.server.control.runs import Runs
from lapis.server.control.services import Services
from lapis.server.control.shelf import Shelf
from lapis.server.control.sweeps import Sweeps
from lapis.server.control.workspaces import Workspaces


@dataclass
class System:
    home: str
    shelf: Shelf
    access: Access
    workspaces: Workspaces
    runs: Runs
    sweeps: Sweeps
    computes: Computes
    data: Data
    models: Models
    services: Services
    images: Images
    profiles: Profiles
    environments: Environments
    reconciler: Reconciler
    bulletin: Bulletin
    stop: Callable[[], None]
    now: Callable[[], float] = time.time
    started_at: float = field(default_factory=time.time)
    last_request: float = field(default_factory=time.monotonic)
    pid: int = field(default_factory=os.getpid)
    stopping: threading.Event = field(default_factory=threading.Event)


# async, although they wait for nothing: FastAPI would hand a plain function to a thread, for each request
async def _system(request: Request) -> System:
    return cast(System, request.app.state.system)


async def _actor(request: Request) -> Actor:
    return cast(Actor, request.scope["lapis_actor"])  # the gate has put it there


TheSystem = Annotated[System, Depends(_system)]
TheActor = Annotated[Actor, Depends(_actor)]


def answer(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value, separators=(",", ":")), status, media_type="application/json")


def run_view(system: System, run: RunRecord) -> dict[str, Any]:
    """A run as clients see it: with its status and stages worked out, without what is ours alone."""
    body = run._replace(job=None, sweep=None).to_json()
    for ours in ("nonce", "handle", "job", "launches", "made_by"):
        body.pop(ours)
    body["sweep"] = None if run.sweep is None else run.sweep.spec
    now = system.now()
    body["status"] = rules.status(run, now)
    body["started_at"] = run.started_at
    body["ended_at"] = run.ended_at
    body["stages"] = rules.stages(run, now)
    body.pop("history")
    waiting = system.reconciler.waiting(run) or system.sweeps.progress(run)
    if waiting is not None and body["stages"]:
        body["stages"][-1].update(reason=waiting[0], until=waiting[1])
    return body

"""A server that nobody needs just now sleeps, and whatever begins wakes it."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from lapis.domain import settings
from lapis.domain.launch import Owner
from lapis.machine import processes
from lapis.server.app import make_system
from lapis.server.control.computes import NewCompute
from lapis.server.control.runs import NewRun
from lapis.server.rest import Server
from lapis.server.system import System


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    made = make_system(replace(settings.load(), home=str(tmp_path)), "http://127.0.0.1:1", time.time, lambda: None)
    yield made
    made.reconciler._fleet.close()
    made.stores.database.close()


def interactive(system: System) -> NewRun:
    me = Owner(pid=os.getpid(), started=processes.started(os.getpid()), host=socket.gethostname())
    return NewRun(experiment="e", run_id="r", nonce="n", owner=me, started=True)


def test_with_nothing_under_way_there_is_no_next_pass(system: System) -> None:
    assert not system.reconciler.one_pass()


def test_a_run_of_a_process_here_is_looked_after_though_nobody_asks(system: System) -> None:
    workspace = system.control.workspaces.ensure_default()["id"]
    system.reconciler._wake.clear()
    system.control.runs.create(workspace, [interactive(system)])
    assert system.reconciler._wake.is_set()
    assert system.reconciler.one_pass()
    system.control.runs.complete(workspace, "r")
    system.reconciler._owned_seen = 0.0
    assert not system.reconciler.one_pass()


def test_a_cluster_rests_with_no_nodes_and_not_with_some(system: System) -> None:
    workspace = system.control.workspaces.ensure_default()["id"]
    system.control.computes.create(workspace, NewCompute(name="cpu", type="AmlCompute"))
    assert not system.reconciler.one_pass()
    system.control.computes.update(workspace, "cpu", {"min_nodes": 1})
    assert system.reconciler.one_pass()


@pytest.mark.parametrize("told", ["before it began", "while it sleeps"])
def test_a_server_leaves_as_soon_as_it_is_told(told: str) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("nobody asks")

    server = Server(uvicorn.Config(app, lifespan="off", log_config=None))
    listener = socket.create_server(("127.0.0.1", 0))
    if told == "before it began":
        server.leave()
    serving = threading.Thread(target=lambda: asyncio.run(server._serve([listener])))
    serving.start()
    while told == "while it sleeps" and not server.started:
        time.sleep(0.01)
    server.leave()
    serving.join(10)
    assert not serving.is_alive()

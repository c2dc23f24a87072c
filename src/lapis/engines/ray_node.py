"""What runs on a node of a Ray cluster: an actor that starts a run's agent there and stays as long as it does.

It travels to the node by value, as Lapis need not be installed there: only the standard library and Ray may be imported
here. Lapis' own sources come with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import socket
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
import zipfile
from dataclasses import replace
from typing import Any

LOOK_EVERY = 0.2  # seconds between looks at whether the agent is alive
HEAD_WITHIN = 120.0  # seconds that the first node has to come up: Ray places all of a run at once


def note_key(namespace: str, name: str) -> str:
    """Where in Ray's own store the actor of that name keeps what is known of it."""
    return f"lapis/{namespace}/{name}"


class RayNode:
    """The actor. Its note outlives it, and says on which node it was and how its agent ended."""

    def __init__(self, spec: str, *sources: bytes) -> None:
        self._spec: dict[str, Any] = json.loads(spec)
        self._sources = b"".join(sources)
        self._engine: Any = None
        self._agent: dict[str, Any] | None = None
        self._folder = ""
        self._starting = threading.Lock()
        self._stopping = False
        self._note = {"host": socket.gethostname(), **_where_ray_put_us()}
        self._tell()
        threading.Thread(target=self._live, daemon=True).start()

    def stop(self, hard: bool) -> None:
        """Ask the agent to end, or end it and all that it started."""
        with self._starting:  # not half way: an agent that nobody knows of could not be stopped
            self._stopping = True
            if self._agent is not None:
                self._engine.stop({"job": self._spec["job"], "agents": [self._agent]}, hard=hard)
            if hard and self._folder:
                shutil.rmtree(self._folder, ignore_errors=True)  # nobody takes over after this

    def _live(self) -> None:
        try:
            said = self._follow()
        except BaseException:
            said = traceback.format_exc(limit=-3)
        self._tell(ended=time.time(), said=said[-2000:])
        os._exit(0)  # Ray has no other way for an actor to leave from a thread

    def _follow(self) -> str:
        home = os.path.abspath(os.path.expanduser(os.environ.get("LAPIS_HOME") or "~/.lapis"))
        sys.path.insert(0, _unpacked(self._sources, os.path.join(home, "ray", "sources")))
        from lapis.domain.launch import Assignment, Place, Work
        from lapis.engines.base import JobState
        from lapis.engines.local import LocalEngine

        index = self._spec["index"]
        top = os.path.join(home, "ray", "runs", self._spec["folder"])
        folder = top if index == 0 else os.path.join(top, "nodes", str(index))
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._folder = folder
        head = self._meet_head(folder)
        for name in [each for each in os.environ if each.startswith("RAY_")]:
            del os.environ[name]  # a script that uses Ray itself is not a part of this actor
        self._engine = LocalEngine(os.path.join(home, "ray", "runs"))
        place = Place(index, self._spec["count"], head, self._note["host"], self._note["address"])
        assignment = replace(Assignment.from_json(self._spec["assignment"]), place=place)
        if isinstance(assignment.work, Work):  # environments are this node's: built here when they are not there
            launch = replace(assignment.work.launch, environments=os.path.join(home, "environments"))
            assignment = replace(assignment, work=replace(assignment.work, launch=launch))
        with self._starting:
            if self._stopping:
                return "It was asked to stop before its agent had started."
            self._agent = self._engine.launch_one(folder, assignment)
        handle = {"job": self._spec["job"], "agents": [self._agent]}
        while self._engine.poll([handle]) == [JobState.ALIVE]:
            time.sleep(LOOK_EVERY)
        said: str = self._engine.explain(handle)
        return said

    def _meet_head(self, folder: str) -> str | None:
        """The head's folder, where this node sees it too; None where they have no file system in common."""
        mark = f"head-{self._spec['nonce']}"
        if self._spec["index"] == 0:
            with open(os.path.join(folder, mark), "w"):
                pass
            self._tell(folder=folder, mark=mark)
            return folder
        deadline = time.monotonic() + HEAD_WITHIN
        while time.monotonic() < deadline:
            head = read_note(self._spec["namespace"], self._spec["head"])
            if head.get("folder"):
                return str(head["folder"]) if os.path.exists(os.path.join(head["folder"], head["mark"])) else None
            time.sleep(LOOK_EVERY)
        raise TimeoutError(f"The first node of the run did not come up within {HEAD_WITHIN:.0f} s.")

    def _tell(self, **more: Any) -> None:
        self._note.update(more)
        write_note(self._spec["namespace"], self._spec["name"], self._note)


def read_note(namespace: str, name: str) -> dict[str, Any]:
    from ray.experimental.internal_kv import _internal_kv_get

    found = _internal_kv_get(note_key(namespace, name))
    note: dict[str, Any] = json.loads(found) if found else {}
    return note


def write_note(namespace: str, name: str, note: dict[str, Any]) -> None:
    from ray.experimental.internal_kv import _internal_kv_put

    _internal_kv_put(note_key(namespace, name), json.dumps(note).encode(), True)


def reach(url: str) -> str:
    """Why a Lapis server is not reached from here; empty if it is."""
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        opener.open(f"{url}/api/v1/about", timeout=5.0).close()
    except urllib.error.HTTPError:
        return ""  # it wants a token: it is there
    except OSError as error:
        return str(getattr(error, "reason", None) or error)
    return ""


def _where_ray_put_us() -> dict[str, Any]:
    import ray

    context = ray.get_runtime_context()
    return {"node_id": context.get_node_id(), "address": ray.util.get_node_ip_address(), "since": time.time()}


def _unpacked(sources: bytes, below: str) -> str:
    """The folder with Lapis' sources, made once for each release of them."""
    folder = os.path.join(below, hashlib.sha256(sources).hexdigest()[:16])
    if os.path.isdir(folder):
        return folder
    temporary = f"{folder}.{socket.gethostname()}.{os.getpid()}"
    os.makedirs(temporary, mode=0o700)
    with zipfile.ZipFile(io.BytesIO(sources)) as archive:
        archive.extractall(temporary)
    with contextlib.suppress(OSError):  # another actor of this node was quicker
        os.rename(temporary, folder)
    return folder

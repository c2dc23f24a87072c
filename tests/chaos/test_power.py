"""A power cut after an answer takes nothing of what the answer promised: checked by replaying the write log."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lapis.client import local_server
from lapis.client.http_client import Client, Endpoint
from lapis.domain import frames, packs
from lapis.domain.metrics import SCALAR, Point, to_line
from lapis.domain.tree import Tree, TreeEntry
from lapis.errors import NotFound
from lapis.server.control.stores import Stores, open_stores
from lapis.testing import Home, until
from tests import power_cut
from tests.needs import need

Check = Callable[[Stores], None]
CUTS = 6  # of each moment: what is sure alone, and more by chance


class Session:
    """Requests to a recorded server, each with what it promised once it was answered."""

    def __init__(self, home: Home) -> None:
        self._client = Client(Endpoint(home.address, (home.path / "token").read_text().strip()))
        self.workspace = str(self._client.call("GET", "/workspaces")["workspaces"][0]["id"])
        self.promised: list[tuple[str, Check]] = []

    def ask(self, method: str, path: str, body: Any = None, data: bytes | None = None) -> Any:
        return self._client.call(method, f"/workspaces/{self.workspace}{path}", body, data=data)

    def upload(self, *contents: bytes) -> None:
        self._client.call("POST", "/blobs", data=packs.encode([(digest(each), each) for each in contents]))

    def promise(self, name: str, check: Check) -> None:
        self.promised.append((name, check))
        with pytest.raises(NotFound):
            self._client.call("GET", f"/blobs/{digest(name.encode())}")  # a mark in the log


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def recorded(home: Home, tmp_path: Path) -> Iterator[tuple[Home, Path]]:
    """A server whose writes are recorded, until the test ends it."""
    need("strace", "strace")
    log = tmp_path / "writes.strace"
    command = [*power_cut.STRACE, "-o", str(log), sys.executable, "-m", "lapis.server"]
    tracer = subprocess.Popen(command, env={**os.environ, "LAPIS_HOME": str(home.path)})
    until(lambda: local_server.running(home.settings) is not None, seconds=60)
    yield home, log
    tracer.kill()
    tracer.wait()


def content(stores: Stores, hash: str) -> bytes:
    return stores.blobs.read_whole(hash)


def whole_session(session: Session) -> None:
    ws = session.workspace
    session.ask("POST", "/experiments", {"name": "kept"})
    session.promise("experiment", lambda stores: _has(stores.workspaces.experiments(ws, "kept")))

    code = [f"print({number})\n".encode() for number in range(30)]  # a pack
    tree = Tree(TreeEntry(f"{number}.py", digest(each), len(each)) for number, each in enumerate(code))
    body = frames.encode({"files": tree.to_json(), "hashes": [digest(each) for each in code]}, code)
    session.ask("POST", "/snapshots", data=body)
    new = {"experiment": "e", "run_id": "first", "nonce": "n", "started": True, "snapshot_id": tree.id}
    session.ask("POST", "/runs", {"runs": [new]})
    session.upload(b"output, large")
    session.ask("POST", "/runs/first/files", {"files": {"outputs/named": digest(b"output, large")}})

    def files(stores: Stores) -> None:
        assert content(stores, str(stores.files.get(ws, "first", "outputs/named").hash)) == b"output, large"
        for entry, each in zip(stores.snapshots.get(tree.id), sorted(code), strict=True):
            assert content(stores, entry.hash) in code, each

    session.promise("files", files)

    lines = b"".join(to_line(Point(SCALAR, 1.0, "loss", float(number))) for number in range(500))
    said = b"".join(f"line {number}\n".encode() for number in range(2000))
    parts = [{"kind": "journal", "stream": "main", "offset": 0}, {"kind": "log", "name": "logs/a.txt", "offset": 0},
             {"kind": "file", "name": "outputs/small"}]  # fmt: skip
    session.ask("POST", "/runs/first/report", data=frames.encode({"parts": parts[:2]}, [lines[:900], said[:900]]))
    parts[0]["offset"], parts[1]["offset"] = lines[:900].rindex(b"\n") + 1, 900
    header = {
        "parts": parts,
        "ends": {"journal:main": len(lines), "log:logs/a.txt": len(said)},
        "verdict": {"state": "Completed", "reason": "exit code 0", "at": 2.0},
    }
    rest = [lines[parts[0]["offset"] :], said[900:], b"small output"]
    session.ask("POST", "/runs/first/report", data=frames.encode(header, rest))

    def ended(stores: Stores) -> None:
        assert stores.runs.get(ws, "first").state.value == "Completed"
        found = stores.files.get(ws, "first", "logs/a.txt")
        assert b"".join(stores.files.read(ws, "first", found)) == said
        assert content(stores, str(stores.files.get(ws, "first", "outputs/small").hash)) == b"small output"
        points = stores.metrics.points(ws, ["first"], None)["first"]
        assert [point.value for point in points] == [float(number) for number in range(500)]

    session.promise("ended", ended)

    session.upload(b"weights")
    session.ask("POST", "/models", {"name": "m", "files": {"w": digest(b"weights")}})

    def registered(stores: Stores) -> None:
        (model,) = stores.assets.find(ws, "model", "m")
        assert content(stores, model.body["files"][0]["hash"]) == b"weights"

    session.promise("model", registered)
    session.ask("PATCH", "/runs/first", {"tags": {"seen": "yes"}})
    session.promise("tag", lambda stores: _has(stores.runs.get(ws, "first").tags.get("seen")))
    new = {"experiment": "e", "run_id": "second", "nonce": "o", "started": True}
    session.ask("POST", "/runs", {"runs": [new]})
    session.ask("POST", "/runs/second/complete", {})
    session.promise("completed", lambda stores: _has(stores.runs.get(ws, "second").ended))


def _has(found: object) -> None:
    assert found


@pytest.mark.full
def test_what_was_answered_is_there_whenever_the_power_is_cut(recorded: tuple[Home, Path], tmp_path: Path) -> None:
    home, log = recorded
    session = Session(home)
    whole_session(session)
    pid = home.server_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: home.server_pid is None)
    checks = dict(session.promised)
    seed = random.randrange(1 << 32)
    seen: list[str] = []
    marks = {digest(name.encode())[2:]: name for name in checks}
    for found, disk in power_cut.replayed(log, str(home.path), marks):
        mark = marks[found]
        if mark in seen:
            continue
        seen.append(mark)
        for cut in range(CUTS):
            left = tmp_path / f"left-{mark}-{cut}"
            disk.leave(left, None if cut == 0 else random.Random(f"{seed} {mark} {cut}"))
            for each in left.glob("lapis.db-shm"):
                each.unlink()  # memory, not disk
            stores = open_stores(str(left))
            try:
                for name in seen:
                    checks[name](stores)
            except Exception as error:
                pytest.fail(f"seed {seed}: cut {cut} after '{mark}' took '{name}': {type(error).__name__}: {error}")
            finally:
                stores.database.close()
    assert seen == ["experiment", "files", "ended", "model", "tag", "completed"]

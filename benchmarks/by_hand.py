"""What is written by hand although a library does it: CPU of an operation beside that of the library."""

from __future__ import annotations

import http.client
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa
from measure import Clock, Figure, Options, Reading, alone
from servers import answers, cpu_of, free_port, port_of, ready_port, running

from lapis.client.wire import Wire
from lapis.server.store.prepared import Prepared

ROUNDS = 7
CALLS = 3000
IMPORTS = 10
BODY = json.dumps({"lines": "x" * 300}).encode()
ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"next": 1}'
SOURCE = Path(__file__).resolve().parents[1] / "src"
BARE = """
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"7")]})
    await send({"type": "http.response.body", "body": b"Healthy"})
"""
SCORE = "def init(): ...\ndef run(data): return data\n"


def measure(options: Options) -> list[Figure]:
    return [_calls(), _imports(), _statements(), _requests()]


def _calls() -> Figure:
    """A POST of 300 bytes and a short answer on a connection that is kept, to a server that does nothing."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = os.fork()
    if server == 0:
        for _ in range(3):
            threading.Thread(target=_answer, args=(listener.accept()[0],)).start()
        os._exit(_wait_for_threads())
    port = listener.getsockname()[1]
    wire, plain = Wire(f"http://127.0.0.1:{port}"), http.client.HTTPConnection("127.0.0.1", port)
    bare = socket.create_connection(("127.0.0.1", port))
    headers = {"Authorization": "Bearer " + "t" * 40, "Content-Type": "application/json"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    request = f"POST /report HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY

    def by_wire() -> None:
        assert wire.ask("POST", "/report", lines, BODY, len(BODY), 10.0).read()

    def by_library() -> None:
        plain.request("POST", "/report", BODY, headers)
        assert plain.getresponse().read()

    def by_socket() -> None:
        bare.sendall(request)
        assert bare.recv(65536)

    found = _in_turn({"Lapis": by_wire, "bare: send and recv": by_socket, "http.client": by_library})
    for each in (wire, plain, bare):
        each.close()
    os.waitpid(server, 0)
    return Figure("a call to the server, CPU of the client", "s", found)


def _answer(connection: socket.socket) -> None:
    held = b""
    while True:
        data = connection.recv(65536)
        if not data:
            return
        held += data
        if held.endswith(BODY):
            connection.sendall(ANSWER)
            held = b""


def _wait_for_threads() -> int:
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()
    return 0


def _imports() -> Figure:
    names = {"Lapis": "import socket, lapis.client.wire", "bare: import socket": "import socket"}
    names["http.client"] = "import http.client"
    samples: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(IMPORTS):
        for name, code in names.items():
            with Clock() as clock:
                subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(SOURCE)})
            samples[name].append(clock.cpu)
    readings = [Reading(name, found, bare=name.startswith("bare")) for name, found in samples.items()]
    return Figure("importing what speaks HTTP, fresh process, CPU", "s", readings)


def _statements() -> Figure:
    """One row of six columns found by its key, in SQLite."""
    table = sa.Table("runs", sa.MetaData(), sa.Column("id", sa.String, primary_key=True),
                     *(sa.Column(name, sa.String) for name in ("a", "b", "c", "d", "e")))  # fmt: skip
    path = os.path.join(tempfile.mkdtemp(), "bench.db")
    engine = sa.create_engine(f"sqlite:///{path}", paramstyle="named")
    table.create(engine)
    with engine.begin() as connection:
        connection.execute(table.insert(), [{"id": f"run-{n}", **dict.fromkeys("abcde", "text")} for n in range(1000)])
    wanted = sa.select(table).where(table.c.id == sa.bindparam("run"))
    prepared, bare = Prepared(wanted), sqlite3.connect(path)
    with engine.connect() as connection:
        found = _in_turn({
            "Lapis": lambda: prepared.first(connection, {"run": "run-500"}),
            "bare: sqlite3": lambda: bare.execute("SELECT * FROM runs WHERE id = ?", ("run-500",)).fetchone(),
            "SQLAlchemy": lambda: connection.execute(wanted, {"run": "run-500"}).first(),
        })  # fmt: skip
    return Figure("a row by its key, CPU", "s", found)


def _requests() -> Figure:
    """GET / on a connection that is kept: answered by the front itself, no worker takes part."""
    folder = Path(tempfile.mkdtemp())
    (folder / "bare.py").write_text(BARE)
    (folder / "score.py").write_text(SCORE)
    described = {
        "service": {"id": "bench", "name": "bench", "revision": 1},
        "worker": {"argv": [sys.executable, "-m", "lapis.scoring.worker"], "cwd": str(folder),
                   "environ": {"PYTHONPATH": str(SOURCE)}},
        "load": {"script": str(folder / "score.py")},
        "report": {"file": str(folder / "state.json")},
    }  # fmt: skip
    (folder / "service.json").write_text(json.dumps(described))
    port = free_port()
    uvicorn = ["-m", "uvicorn", "bare:app", "--port", str(port), "--no-access-log", "--log-level", "warning"]
    with (
        running([sys.executable, "-m", "lapis.serving", str(folder / "service.json")], folder, {}) as front,
        running([sys.executable, *uvicorn], folder, {}) as other,
    ):
        ports = {
            "Lapis": (front, port_of(front, lambda: ready_port(folder / "state.json"))),
            "uvicorn": (other, port_of(other, lambda: answers(port))),
        }
        samples: dict[str, list[float]] = {name: [] for name in ports}
        for _ in range(ROUNDS):
            for name, (process, at) in ports.items():
                before = cpu_of(process)
                _get(at, 4 * CALLS)
                samples[name].append((cpu_of(process) - before) / (4 * CALLS))
    readings = [
        Reading("Lapis", samples["Lapis"]),
        Reading("uvicorn, an app of two lines", samples["uvicorn"], bare=True),
    ]
    return Figure("GET / of a service, CPU of the server", "s", readings)


def _get(port: int, count: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for _ in range(count):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            heard = b""
            while not heard.endswith(b"Healthy"):
                heard += connection.recv(65536)


def _in_turn(systems: dict[str, Callable[[], object]]) -> list[Reading]:
    """CPU of one call of each, by rounds, so that none has the better moment."""
    samples: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(ROUNDS):
        for name, call in systems.items():
            began = time.process_time()
            for _ in range(CALLS):
                call()
            samples[name].append((time.process_time() - began) / CALLS)
    return [Reading(name, found, bare=name.startswith("bare")) for name, found in samples.items()]


if __name__ == "__main__":
    alone(measure)

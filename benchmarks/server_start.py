"""The local server: from nothing to its first answer, in a new home and in a used one; what it takes at rest."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import peers
from home import Home
from measure import Asked, Clock, Figure, Options, Reading, alone, family_cpu
from servers import free_port

from lapis.client import local_server

ROUNDS = 5
IDLE_SECONDS = 60.0
# A client's first call with no server there: what a user waits for.
_ASK = "from lapis.client import local_server; local_server.client().call('GET', '/workspaces')"
_HELLO = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
app = Starlette(routes=[Route("/", lambda request: PlainTextResponse("hello"))])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
"""


def measure(options: Options) -> list[Figure]:
    cold: list[Clock] = []
    warm: list[Clock] = []
    hello: list[Clock] = []
    with Home() as home:
        _ask()  # byte code and page cache are warm from here on
    for _ in range(ROUNDS):
        with Home() as home:
            for clocks in (cold, warm):
                with Clock(family_cpu) as clock:
                    _ask()
                clocks.append(clock)
                home.stop()
            hello.append(_until_it_listens([sys.executable, "-c", _HELLO], home.work))
    readings = [
        Reading("Lapis, new home", [c.wall for c in cold], [c.cpu for c in cold]),
        Reading("Lapis, home used before", [c.wall for c in warm], [c.cpu for c in warm]),
        Reading(
            "bare: Starlette, until it listens",
            [c.wall for c in hello],
            [c.cpu for c in hello],
            bare=True,
        ),
    ]
    if options.peers and options.slow:
        with Home() as home:
            peers.empty_store(str(home.work))
            command = [options.peers, "-m", "mlflow", "server", "--workers", "1", "--port"]
            mlflow = _until_it_listens(command, home.work, peers.environment(str(home.work)))
        readings.append(Reading("MLflow server, home used before", [mlflow.wall], [mlflow.cpu]))
    started = Figure("from no server to a client's first answer", "s", readings, Asked(most=0.6))
    return [started, *_at_rest()]


def _ask() -> None:
    subprocess.run([sys.executable, "-c", _ASK], check=True)


def _at_rest() -> list[Figure]:
    with Home() as home:
        home.start()
        about = local_server.running(home.settings)
        assert about is not None
        pid = int(about["pid"])
        time.sleep(5.0)  # what it does after its start is done
        before = _cpu_of(pid)
        time.sleep(IDLE_SECONDS)
        used, memory = (_cpu_of(pid) - before) * 60 / IDLE_SECONDS, _memory_of(pid)
    return [
        Figure("CPU of a server at rest, a minute", "s", [Reading("Lapis", [used])], Asked(most=0.0005 * 60)),
        Figure("memory of a server at rest", "MB", [Reading("Lapis", [memory])], Asked(most=80)),
    ]


def _cpu_of(pid: int) -> float:
    """Seconds, to the nanosecond: the ticks of /proc/<pid>/stat are too coarse for so little."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def _memory_of(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1e3


def _until_it_listens(command: list[str], folder: Path, env: dict[str, str] | None = None) -> Clock:
    """Start `command` with a free port as its last argument; the time until somebody may connect."""
    port = free_port()
    with open(folder / "log.txt", "w") as log:
        with Clock(family_cpu) as clock:
            process = subprocess.Popen([*command, str(port)], cwd=folder, env=env, stdout=log, stderr=log)
            deadline = time.monotonic() + 120
            while not _listens(port):
                assert process.poll() is None and time.monotonic() < deadline, Path(log.name).read_text()
                time.sleep(0.02)
        process.terminate()
        process.wait()
    return clock


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5.0).close()
        return True
    except OSError:
        return False


if __name__ == "__main__":
    alone(measure)

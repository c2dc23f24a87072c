"""Starting the local server: in a new home, which makes the database, and in one that was used before."""

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

ROUNDS = 5
_HELLO = """
import sys, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/")
def hello() -> str:
    return "hello"
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
"""


def measure(options: Options) -> list[Figure]:
    cold: list[Clock] = []
    warm: list[Clock] = []
    hello: list[Clock] = []
    with Home() as home:
        home.start()  # byte code and page cache are warm from here on
    for _ in range(ROUNDS):
        with Home() as home:
            for clocks in (cold, warm):
                with Clock(family_cpu) as clock:
                    home.start()
                clocks.append(clock)
                home.stop()
            hello.append(_until_it_listens([sys.executable, "-c", _HELLO], home.work))
    readings = [
        Reading("Lapis, new home", [c.wall for c in cold], [c.cpu for c in cold]),
        Reading("Lapis, home used before", [c.wall for c in warm], [c.cpu for c in warm]),
        Reading("bare: FastAPI with one route", [c.wall for c in hello], [c.cpu for c in hello], bare=True),
    ]
    if options.peers and options.slow:
        with Home() as home:
            peers.empty_store(str(home.work))
            command = [options.peers, "-m", "mlflow", "server", "--workers", "1", "--port"]
            mlflow = _until_it_listens(command, home.work, peers.environment(str(home.work)))
        readings.append(Reading("MLflow server, home used before", [mlflow.wall], [mlflow.cpu]))
    return [Figure("start of the local server", "s", readings, Asked(most=1.5))]


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

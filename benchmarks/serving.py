"""A service: requests for a small ONNX model, one row each, over connections that stay open."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import model_servers
import peers
import psutil
from http_load import load
from measure import Asked, Figure, Options, Reading, alone
from servers import cpu_of

ROUNDS = 9
SECONDS = 1.0
MANY = 32
OTHERS = (3, 6)  # processes that take all of the machine that they can get
_TITLES = {
    "no-code": "Lapis, no code",
    "score.py": "Lapis, score.py",
    "bare": "bare: uvicorn, Starlette, orjson, onnxruntime in one process",
    "azure": "azureml-inference-server-http, score.py",
}
_SERVERS: dict[str, Callable[..., model_servers.Server]] = {
    "no-code": model_servers.no_code,
    "score.py": model_servers.score_script,
    "bare": model_servers.bare,
    "azure": model_servers.azure,
}


def measure(options: Options) -> list[Figure]:
    azure = peers.serving_interpreter() if options.peers else None
    python = azure or sys.executable  # which has what the bare server needs, for the tests
    folder = model_servers.made_app(python)
    with ExitStack() as stack:
        starts = {name: start for name, start in _SERVERS.items() if name != "azure" or azure is not None}
        up = {name: stack.enter_context(start(python, folder)) for name, start in starts.items()}
        for port, _ in up.values():
            load(port, 8, SECONDS)
        figures = _figures(_in_turn(up, ROUNDS))
        for others in OTHERS if azure is not None else ():
            with _busy(others):
                found = _in_turn({name: up[name] for name in ("score.py", "azure")}, ROUNDS // 2)
            figures.append(_beside_azure(f"with score.py, beside {others} busy processes", "score.py", found, 4))
    return figures


@dataclass
class _Measured:
    rate: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)  # of the server, for each request
    median: list[float] = field(default_factory=list)

    def look(self, port: int, process: psutil.Process) -> None:
        before = cpu_of(process)
        times, took = load(port, MANY, SECONDS)
        self.cpu.append((cpu_of(process) - before) / len(times))
        self.rate.append(len(times) / took)
        times, _ = load(port, 1, SECONDS / 2)
        self.median.append(sorted(times)[len(times) // 2])


def _in_turn(up: dict[str, tuple[int, psutil.Process]], rounds: int) -> dict[str, _Measured]:
    """Briefly each: what disturbs the machine disturbs them alike."""
    found = {name: _Measured() for name in up}
    for _ in range(rounds):
        for name, (port, process) in up.items():
            found[name].look(port, process)
    return found


def _figures(found: dict[str, _Measured]) -> list[Figure]:
    many = f"requests for an ONNX model, {MANY} connections"
    medians = [Reading(_TITLES[name], each.median, bare=name == "bare") for name, each in found.items()]
    figures = [
        Figure(many, "/s", _rates(found, list(found)), Asked(times_bare=0.5)),
        Figure("one request for an ONNX model, 1 connection", "s", medians, Asked(times_bare=1.3)),
    ]
    if "azure" in found:
        figures.append(_beside_azure(f"{many}, beside Azure's server", "no-code", found, 5))
        figures.append(_beside_azure("the same with score.py", "score.py", found, 4))
    return figures


def _beside_azure(what: str, name: str, found: dict[str, _Measured], times: float) -> Figure:
    return Figure(what, "/s", _rates(found, [name, "azure"]), Asked(times_last=times))


def _rates(found: dict[str, _Measured], names: Sequence[str]) -> list[Reading]:
    return [Reading(_TITLES[name], found[name].rate, found[name].cpu, bare=name == "bare") for name in names]


@contextmanager
def _busy(processes: int) -> Iterator[None]:
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


if __name__ == "__main__":
    alone(measure)

"""A service: requests for a small ONNX model (784-300-100-10), one row each, over connections that stay open."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import peers
import psutil
import uvloop
from measure import Asked, Figure, Options, Reading, alone
from servers import answers, cpu_of, free_port, port_of, ready_port, running

ROUNDS = 9
SECONDS = 1.0
MANY = 32
_Server = AbstractContextManager[tuple[int, psutil.Process]]
SOURCE = Path(__file__).resolve().parent.parent / "src"

_MODEL = """
import os, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(os.environ["MODEL"], options, providers=["CPUExecutionProvider"])
def predict(rows):
    return session.run(None, {"x": numpy.asarray(rows, dtype=numpy.float32)})[0]
"""
_BARE = """
import orjson
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from model import predict
async def score(request):
    answer = {"result": predict(orjson.loads(await request.body())["data"])}
    return Response(orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")
app = Starlette(routes=[Route("/score", score, methods=["POST"]), Route("/", lambda r: PlainTextResponse("ok"))])
"""
_SCORE = """
import json
def init():
    global predict
    from model import predict
def run(raw_data):
    return {"result": predict(json.loads(raw_data)["data"]).tolist()}
"""
MAKE_MODEL = """
import sys, numpy
from onnx import TensorProto, helper, numpy_helper, save
chance, sizes, nodes, weights, last = numpy.random.default_rng(1), (784, 300, 100, 10), [], [], "x"
for n, (a, b) in enumerate(zip(sizes, sizes[1:])):
    weights.append(numpy_helper.from_array(chance.normal(0, a ** -0.5, (a, b)).astype("float32"), f"w{n}"))
    weights.append(numpy_helper.from_array(numpy.zeros(b, "float32"), f"b{n}"))
    nodes.append(helper.make_node("Gemm", [last, f"w{n}", f"b{n}"], [f"h{n}"]))
    last = f"h{n}"
    if b != sizes[-1]:
        nodes.append(helper.make_node("Relu", [last], [f"r{n}"]))
        last = f"r{n}"
nodes.append(helper.make_node("Softmax", [last], ["y"], axis=1))
value = helper.make_tensor_value_info
graph = helper.make_graph(nodes, "mlp", [value("x", TensorProto.FLOAT, ["n", 784])],
                          [value("y", TensorProto.FLOAT, ["n", 10])], weights)
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), sys.argv[1])
"""


def measure(options: Options) -> list[Figure]:
    azure = peers.serving_interpreter() if options.peers else None
    python = azure or sys.executable  # which has what the bare server needs, for the tests
    folder = Path(tempfile.mkdtemp(prefix="serving-"))
    for name, content in (("model.py", _MODEL), ("bare.py", _BARE), ("score.py", _SCORE), ("make.py", MAKE_MODEL)):
        (folder / name).write_text(content)
    subprocess.run([python, "make.py", "mlp.onnx"], cwd=folder, check=True)
    found = {name: _Measured() for name in ("no-code", "score.py", "bare", "azure")}
    with ExitStack() as stack:
        starts = {name: start for name, start in _SERVERS.items() if name != "azure" or azure is not None}
        up = {name: stack.enter_context(start(python, folder)) for name, start in starts.items()}
        for port, _ in up.values():
            _load(port, 8, SECONDS)
        for _ in range(ROUNDS):  # in turn, and briefly: what disturbs the machine disturbs them alike
            for name, (port, process) in up.items():
                found[name].look(port, process)
    return _figures(found, azure is not None)


def _figures(found: dict[str, _Measured], with_azure: bool) -> list[Figure]:
    titles = {
        "no-code": "Lapis, no code",
        "score.py": "Lapis, score.py",
        "bare": "bare: uvicorn, Starlette, orjson, onnxruntime in one process",
        "azure": "azureml-inference-server-http, score.py",
    }

    def readings(first: str, *others: str, of: Callable[[_Measured], list[float]], cpu: bool = True) -> list[Reading]:
        names = [name for name in (first, *others) if name != "azure" or with_azure]
        return [
            Reading(titles[name], of(found[name]), found[name].cpu if cpu else (), bare=name == "bare")
            for name in names
        ]

    def rate(each: _Measured) -> list[float]:
        return each.rate

    def median(each: _Measured) -> list[float]:
        return each.median

    many = f"requests for an ONNX model, {MANY} connections"
    figures = [
        Figure(many, "/s", readings("no-code", "score.py", "bare", "azure", of=rate), Asked(times_bare=0.5)),
        Figure(
            "one request for an ONNX model, 1 connection",
            "s",
            readings("no-code", "score.py", "bare", "azure", of=median, cpu=False),
            Asked(times_bare=1.3),
        ),
    ]
    if with_azure:
        figures += [
            Figure(f"{many}, beside Azure's server", "/s", readings("no-code", "azure", of=rate), Asked(times_last=5)),
            Figure("the same with score.py", "/s", readings("score.py", "azure", of=rate), Asked(times_last=4)),
        ]
    return figures


@dataclass
class _Measured:
    rate: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)  # of the server, for each request
    median: list[float] = field(default_factory=list)

    def look(self, port: int, process: psutil.Process) -> None:
        before = cpu_of(process)
        times, took = _load(port, MANY, SECONDS)
        self.cpu.append((cpu_of(process) - before) / len(times))
        self.rate.append(len(times) / took)
        times, _ = _load(port, 1, SECONDS / 2)
        self.median.append(sorted(times)[len(times) // 2])


@contextmanager
def _lapis(python: str, folder: Path, load: dict[str, str]) -> Iterator[tuple[int, psutil.Process]]:
    home = Path(tempfile.mkdtemp(prefix="service-"))
    environ = {"PYTHONPATH": f"{folder}{os.pathsep}{SOURCE}", "MODEL": str(folder / "mlp.onnx"), "OMP_NUM_THREADS": "1"}
    described = {
        "service": {"id": "bench", "name": "bench", "revision": 1},
        "worker": {"argv": [python, "-m", "lapis.scoring.worker"], "cwd": str(folder), "environ": environ},
        "load": load,
        "report": {"file": str(home / "state.json")},
    }
    (home / "service.json").write_text(json.dumps(described))
    command = [sys.executable, "-m", "lapis.serving", str(home / "service.json")]
    with running(command, home, {"PYTHONPATH": str(SOURCE)}) as process:
        yield port_of(process, lambda: ready_port(home / "state.json")), process


def _no_code(python: str, folder: Path) -> _Server:
    return _lapis(python, folder, {"runtime": "onnx", "model": str(folder / "mlp.onnx")})


def _score_script(python: str, folder: Path) -> _Server:
    return _lapis(python, folder, {"script": str(folder / "score.py")})


@contextmanager
def _bare(python: str, folder: Path) -> Iterator[tuple[int, psutil.Process]]:
    port = free_port()
    command = [python, "-m", "uvicorn", "bare:app", "--port", str(port), "--no-access-log", "--log-level", "warning"]
    with running(command, folder, {"MODEL": str(folder / "mlp.onnx")}) as process:
        yield port_of(process, lambda: answers(port)), process


@contextmanager
def _azure(python: str, folder: Path) -> Iterator[tuple[int, psutil.Process]]:
    port = free_port()
    command = [str(Path(python).parent / "azmlinfsrv"), "--entry_script", str(folder / "score.py"), "--port", str(port)]
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    more = {"MODEL": str(folder / "mlp.onnx"), "WORKER_COUNT": "1", "PATH": path, "PYTHONPATH": str(folder)}
    with running(command, folder, more) as process:
        yield port_of(process, lambda: answers(port)), process


_SERVERS: dict[str, Callable[[str, Path], _Server]] = {
    "no-code": _no_code,
    "score.py": _score_script,
    "bare": _bare,
    "azure": _azure,
}


def _load(port: int, connections: int, seconds: float) -> tuple[list[float], float]:
    """The seconds of each request, and of all together. In a process of its own, like a client."""
    command = [sys.executable, __file__, "--load", str(port), str(connections), str(seconds)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    said = json.loads(done.stdout)
    return said["times"], said["took"]


class _Client(asyncio.Protocol):
    """Sends the same request again as soon as its answer is there; connects anew where the server closes."""

    def __init__(self, port: int, request: bytes, times: list[float], end: float) -> None:
        self._port, self._request, self._times, self._end = port, request, times, end
        self._loop = asyncio.get_running_loop()
        self.done = self._loop.create_future()
        self.open()

    def open(self) -> None:
        self._data, self._wanted, self._last = b"", 0, False
        self._began = time.perf_counter()
        self._task = self._loop.create_task(self._loop.create_connection(lambda: self, "127.0.0.1", self._port))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._wanted:
            head, found, _ = self._data.partition(b"\r\n\r\n")
            if not found:
                return
            lines = head.lower().split(b"\r\n")
            if b" 200 " not in lines[0]:
                self.done.set_exception(RuntimeError(repr(self._data[:500])))
                return
            size = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
            self._wanted = len(head) + 4 + size
            self._last = b"connection: close" in lines
        if len(self._data) < self._wanted:
            return
        now = time.perf_counter()
        self._times.append(now - self._began)
        if now >= self._end:
            self._last = True
            self._transport.close()
            self.done.set_result(None)
        elif self._last:
            self._transport.close()
            self.open()
            self._last = True
        else:
            self._data, self._wanted, self._began = b"", 0, now
            self._transport.write(self._request)  # type: ignore[attr-defined]

    def connection_lost(self, error: Exception | None) -> None:
        if not self._last and not self.done.done():
            self.done.set_exception(error or ConnectionError("closed without an answer"))


async def _be_clients(port: int, connections: int, seconds: float) -> None:
    body = json.dumps({"data": [[round(n % 256 / 255, 4) for n in range(784)]]}).encode()
    head = f"POST /score HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    times: list[float] = []
    began = time.perf_counter()
    clients = [_Client(port, request, times, began + seconds) for _ in range(connections)]
    await asyncio.wait_for(asyncio.gather(*(client.done for client in clients)), seconds + 60)
    print(json.dumps({"times": times, "took": time.perf_counter() - began}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        uvloop.run(_be_clients(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
    else:
        alone(measure)

"""What answers for a small ONNX model (784-300-100-10): Lapis without code and with score.py, a bare server, Azure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil
from servers import answers, free_port, port_of, ready_port, running

Server = AbstractContextManager[tuple[int, psutil.Process]]  # its port, and the process that has all others
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


def made_app(python: str) -> Path:
    """A folder with the model and the code that serves it."""
    folder = Path(tempfile.mkdtemp(prefix="serving-"))
    for name, content in (("model.py", _MODEL), ("bare.py", _BARE), ("score.py", _SCORE), ("make.py", MAKE_MODEL)):
        (folder / name).write_text(content)
    subprocess.run([python, "make.py", "mlp.onnx"], cwd=folder, check=True)
    return folder


def no_code(python: str, folder: Path) -> Server:
    return _lapis(python, folder, {"runtime": "onnx", "model": str(folder / "mlp.onnx")}, {})


def score_script(python: str, folder: Path, **replicas: float) -> Server:
    return _lapis(python, folder, {"script": str(folder / "score.py")}, replicas)


@contextmanager
def bare(python: str, folder: Path) -> Iterator[tuple[int, psutil.Process]]:
    port = free_port()
    command = [python, "-m", "uvicorn", "bare:app", "--port", str(port), "--no-access-log", "--log-level", "warning"]
    with running(command, folder, {"MODEL": str(folder / "mlp.onnx")}) as process:
        yield port_of(process, lambda: answers(port)), process


@contextmanager
def azure(python: str, folder: Path) -> Iterator[tuple[int, psutil.Process]]:
    port = free_port()
    command = [str(Path(python).parent / "azmlinfsrv"), "--entry_script", str(folder / "score.py"), "--port", str(port)]
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    more = {"MODEL": str(folder / "mlp.onnx"), "WORKER_COUNT": "1", "PATH": path, "PYTHONPATH": str(folder)}
    with running(command, folder, more) as process:
        yield port_of(process, lambda: answers(port)), process


@contextmanager
def _lapis(
    python: str, folder: Path, load: dict[str, str], replicas: dict[str, float]
) -> Iterator[tuple[int, psutil.Process]]:
    home = Path(tempfile.mkdtemp(prefix="service-"))
    environ = {"PYTHONPATH": f"{folder}{os.pathsep}{SOURCE}", "MODEL": str(folder / "mlp.onnx"), "OMP_NUM_THREADS": "1"}
    described = {
        "service": {"id": "bench", "name": "bench", "revision": 1},
        "worker": {"argv": [python, "-m", "lapis.scoring.worker"], "cwd": str(folder), "environ": environ},
        "load": load,
        "replicas": replicas,
        "report": {"file": str(home / "state.json")},
    }
    (home / "service.json").write_text(json.dumps(described))
    command = [sys.executable, "-m", "lapis.serving", str(home / "service.json")]
    with running(command, home, {"PYTHONPATH": str(SOURCE)}) as process:
        yield port_of(process, lambda: ready_port(home / "state.json")), process

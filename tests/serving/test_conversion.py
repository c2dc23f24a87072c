"""Models of TensorFlow old and new become ONNX files that answer the same. Heavy: the frameworks are installed."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lapis
from lapis.environments import conversion
from lapis.environments.build import build
from lapis.environments.no_code import no_code
from lapis.environments.recipe import recipe
from lapis.environments.resolve import resolve
from lapis.environments.values import Lock
from lapis.machine.interpreters import interpreters

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("frameworks")]  # one after the other: each needs gigabytes

SOURCES = os.path.dirname(os.path.dirname(os.path.abspath(lapis.__file__)))

# Makes, in the folder it is given: a SavedModel, a Keras file, and a SavedModel that takes text. As people of then did.
MAKE = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
folder, old = sys.argv[1], tf.__version__.startswith("1.")
layers = tf.keras.layers
convolution = layers.Conv2D(4, 3, activation="relu", input_shape=(28, 28, 1))
dense = layers.Dense(10, activation="softmax")
model = tf.keras.Sequential([convolution, layers.Flatten(), layers.Dropout(0.5), dense])
model.save(folder + "/model.h5")
if old:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None, 784], name="X")
        weights = tf.compat.v1.get_variable("weights", [784, 10])
        session.run(tf.compat.v1.global_variables_initializer())
        outputs = {"digits": tf.nn.softmax(tf.matmul(x, weights))}
        tf.compat.v1.saved_model.simple_save(session, folder + "/saved", {"pixels": x}, outputs)
        text = tf.compat.v1.placeholder(tf.string, [None], name="text")
        tf.compat.v1.saved_model.simple_save(session, folder + "/text", {"text": text}, {"n": tf.strings.length(text)})
else:
    getattr(model, "export", model.save)(folder + "/saved")
    module = tf.Module()
    module.f = tf.function(lambda text: {"n": tf.strings.length(text)}, [tf.TensorSpec([None], tf.string, name="text")])
    tf.saved_model.save(module, folder + "/text", signatures=module.f)
    for name, times in (("double", 2.0), ("triple", 3.0)):
        call = lambda x, times=times: {"y": x * times}
        setattr(module, name, tf.function(call, [tf.TensorSpec([None], tf.float32, name="x")], autograph=False))
    both = {"double": module.double, "triple": module.triple}
    tf.saved_model.save(module, folder + "/several", signatures=both)
"""
# Prints what a runtime answers to a body.
ASK = """
import importlib, sys
from lapis.scoring import request_formats
runtime = importlib.import_module("lapis.scoring.runtimes." + sys.argv[1]).load(sys.argv[2])
request = request_formats.parse(open(sys.argv[3], "rb").read(), request_formats.JSON, runtime)
print(request_formats.render(request, runtime.run(request.signature, request.inputs)).decode())
"""


@pytest.fixture(scope="session")
def root() -> str:
    """Where environments stay from one session to the next."""
    folder = Path(tempfile.gettempdir(), f"lapis-models-{os.getuid()}", "environments")
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def lock_of(definition: dict[str, Any], root: str) -> Lock:
    machine = interpreters()
    plan = recipe(definition, pythons=[each.version for each in machine], gpu=False, strict=False)
    return resolve(plan, next(each for each in machine if each.version == plan.python), print, root=root)


class Shop:
    """Models of one TensorFlow, and its environment."""

    def __init__(self, version: str | None, root: str, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.lock = lock_of(no_code("TensorFlow", version, ["saved_model.pb"])[1], root)
        self.python = os.path.join(build(self.lock, None, root, print), "bin", "python")
        run(self.python, MAKE, str(folder))

    def ready(self, runtime: str, name: str, told: list[str], into: str | None = None) -> conversion.Ready:
        model = str(self.folder / name)
        return conversion.ready_to_serve(runtime, model, self.lock, self.root, told.append, into=into)


def run(python: str, code: str, *arguments: str, given: str = "") -> str:
    environment = {**os.environ, "PYTHONPATH": SOURCES, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [python, "-c", code, *arguments], env=environment, input=given, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=["1.15", "2.15", None], ids=lambda version: f"TensorFlow {version or 'newest'}")
def shop(request: Any, root: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    yield Shop(request.param, root, tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("runtime, name", [("tensorflow", "saved"), ("keras", "model.h5")])
def test_a_model_becomes_an_onnx_file_that_answers_the_same(
    shop: Shop, runtime: str, name: str, tmp_path: Path
) -> None:
    told: list[str] = []
    ready = shop.ready(runtime, name, told)
    assert ready.runtime == "onnx", told
    assert ready.report is not None and ready.report["largest_difference"] < 1e-5
    assert "The largest difference to the original is" in told[-1] and "serves it" in told[-1]

    wide = 784 if (name, shop.lock.python[:3]) == ("saved", "3.7") else 0
    row = [0.5] * 784 if wide else [[[0.25]] * 28] * 28
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"instances": [row, row]}))
    original = json.loads(run(shop.python, ASK, runtime, str(shop.folder / name), str(body)))
    found = json.loads(run(ready.python, ASK, "onnx", ready.model, str(body)))
    assert found["predictions"][1] == pytest.approx(original["predictions"][1], abs=1e-5)

    began = time.monotonic()
    again = shop.ready(runtime, name, told, into=str(tmp_path))
    assert "Converted to ONNX before" in told[-1] and time.monotonic() - began < 2.0
    assert again.model == str(tmp_path / "model.onnx") and os.path.samefile(again.model, ready.model)


def test_signatures_that_differ_stay_with_tensorflow(shop: Shop, tmp_path: Path) -> None:
    if not (shop.folder / "several").exists():
        pytest.skip("TensorFlow 1 saves one")
    told: list[str] = []
    ready = shop.ready("tensorflow", "several", told)
    assert ready.runtime == "tensorflow" and "the signatures double, triple, and an ONNX file holds one" in told[-1]
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"instances": [1, 2], "signature_name": "triple"}))
    assert json.loads(run(ready.python, ASK, "tensorflow", ready.model, str(body))) == {"predictions": [3.0, 6.0]}


def test_what_cannot_be_converted_is_served_by_tensorflow_and_said_so(shop: Shop, tmp_path: Path) -> None:
    told: list[str] = []
    for _ in range(2):
        ready = shop.ready("tensorflow", "text", told)
        assert (ready.runtime, ready.python) == ("tensorflow", shop.python)
        assert told[-1] == (
            "Not converted to ONNX: it takes or gives text, which ONNX files of TensorFlow do not. "
            "TensorFlow itself serves the model."
        )
    assert sum("Converting" in line for line in told) == 1, "the second time it is known"
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"instances": ["four", ""]}))
    assert json.loads(run(ready.python, ASK, "tensorflow", ready.model, str(body))) == {"predictions": [4, 0]}

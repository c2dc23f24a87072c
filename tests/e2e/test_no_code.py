"""Models that a TensorFlow run left are deployed without code and asked over HTTP. Heavy: TensorFlow is installed."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from azureml.core import Environment, Experiment, Model, ScriptRunConfig, Workspace
from azureml.core.conda_dependencies import CondaDependencies
from azureml.exceptions import WebserviceException
from tests.kept import kept_home

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("frameworks")]

TRAIN = """
import tensorflow as tf
for version in (1, 2, 10):
    model = tf.keras.Sequential([tf.keras.layers.Input((2,), name="x"), tf.keras.layers.Dense(1, use_bias=False)])
    model.layers[-1].set_weights([tf.constant([[version], [0.0]]).numpy()])
    model.export(f"outputs/served/{version}", verbose=False)
module = tf.Module()
module.f = tf.function(lambda text: {"n": tf.strings.length(text)}, [tf.TensorSpec([None], tf.string, name="text")])
tf.saved_model.save(module, "outputs/text", signatures=module.f)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with kept_home() as home, pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("no-code")
        patch.setenv("LAPIS_HOME", str(home.path))
        patch.chdir(folder)
        (folder / "train.py").write_text(TRAIN)
        environment = Environment("tf")
        environment.python.conda_dependencies = CondaDependencies.create(pip_packages=["tensorflow-cpu==2.21.0"])
        workspace = Workspace.create("no-code-" + os.urandom(4).hex(), show_output=False)
        config = ScriptRunConfig(str(folder), script="train.py", environment=environment)
        trained = Experiment(workspace, "train").submit(config)
        trained.wait_for_completion()
        yield trained
        for service in workspace.webservices.values():
            service.delete()


def deploy(run: Any, name: str, path: str) -> Any:
    model = run.register_model(name, path, model_framework=Model.Framework.TENSORFLOW)
    service = Model.deploy(run.experiment.workspace, name, [model])
    service.wait_for_deployment()
    return service


def post(address: str, body: bytes, **headers: str) -> bytes:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with urllib.request.urlopen(urllib.request.Request(address, body, sent), timeout=30) as answer:
        return bytes(answer.read())


def test_the_newest_of_numbered_models_answers_in_every_protocol(run: Any, tmp_path: Path) -> None:
    service = deploy(run, "numbers", "outputs/served")
    assert "ONNX Runtime" in service.get_logs()
    assert service.run(json.dumps({"instances": [[1, 5]]})) == {"predictions": [[10.0]]}
    with pytest.raises(
        WebserviceException, match=r"has shape \[1, 1\]. Expected input: 'x' \(float32, shape \[any, 2\]\)"
    ):
        service.run(json.dumps({"data": [[1]]}))

    address = service.scoring_uri[: -len("/score")]
    rows = json.dumps({"instances": [[2, 0], [3, 0]]}).encode()
    assert json.loads(post(f"{address}/v1/models/numbers:predict", rows)) == {"predictions": [[20.0], [30.0]]}
    raw = numpy.array([[4, 0]], "<f4").tobytes()
    given = {"name": "x", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": len(raw)}}
    head = json.dumps({"inputs": [given], "parameters": {"binary_data_output": True}}).encode()
    url = f"{address}/v2/models/numbers/infer"
    answer = post(url, head + raw, Inference_Header_Content_Length=str(len(head)))
    assert answer.endswith(numpy.array([40], "<f4").tobytes()) and b'"model_name":"numbers"' in answer


def test_a_model_that_onnx_cannot_hold_is_served_by_tensorflow(run: Any) -> None:
    service = deploy(run, "lengths", "outputs/text")
    assert "Not converted to ONNX: it takes or gives text" in service.get_logs()
    assert service.run(json.dumps({"instances": ["four", ""]})) == {"predictions": [4, 0]}

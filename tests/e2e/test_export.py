"""A registered model of TensorFlow or Keras is exported to ONNX, or it is said why not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from azureml.core import Environment, Experiment, Model, ScriptRunConfig, Workspace
from azureml.core.conda_dependencies import CondaDependencies
from azureml.exceptions import UserErrorException
from lapis.scoring import request_formats
from lapis.scoring.runtimes import onnx as onnx_runtime
from tests.kept import kept_home
from tests.serving import models

WEIGHTS = numpy.ones((4, 3), "float32")


def refused(model: Any, **how: Any) -> str:
    with pytest.raises(UserErrorException) as error:
        model.export_onnx(**how)
    return str(error.value.message)


def test_what_cannot_become_onnx_is_told_before_anything_runs(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "weights.txt").write_text("1")
    unknown = Model.register(workspace, "weights.txt", "unknown")
    assert refused(unknown).startswith(
        "Model unknown:1 has model_framework None, and what can become ONNX is TensorFlow"
    )
    sklearn = Model.register(workspace, "weights.txt", "sk", model_framework=Model.Framework.SCIKITLEARN)
    assert "has model_framework 'ScikitLearn'" in refused(sklearn)
    other = Model.register(workspace, "weights.txt", "other", model_framework=Model.Framework.TENSORFLOW)
    assert refused(other).startswith("Model other:1 cannot become ONNX: it is neither a SavedModel")
    assert refused(other, path="weights.txt").startswith("'weights.txt' is there already. Pass overwrite=True")
    assert refused(other, path="nowhere/model.onnx").startswith("There is no folder ")
    assert not list(Experiment.list(workspace))


def test_an_onnx_model_is_exported_as_it_is(workspace: Workspace, tmp_path: Path) -> None:
    path = models.linear(tmp_path / "digits.onnx", WEIGHTS)
    model = Model.register(workspace, str(path), "ready", model_framework=Model.Framework.ONNX)
    written = model.export_onnx()
    assert written == "ready.onnx" and Path(written).read_bytes() == path.read_bytes()
    assert "is an ONNX model already" in refused(model, model_name="again")


TRAIN = """
import tensorflow as tf
from azureml.core import Run
model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3, activation="softmax")])
model.save("outputs/model.keras")
Run.get_context().log_list("answer", model(tf.ones((1, 4))).numpy()[0].tolist())
"""


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.chdir(tmp_path)
    with kept_home() as home:
        monkeypatch.setenv("LAPIS_HOME", str(home.path))
        yield _train(tmp_path)


def _train(tmp_path: Path) -> Any:
    workspace = Workspace.create("export-" + os.urandom(4).hex(), show_output=False)
    workspace.write_config()
    (tmp_path / "train.py").write_text(TRAIN)
    environment = Environment("tf")
    environment.python.conda_dependencies = CondaDependencies.create(pip_packages=["tensorflow-cpu==2.21.0"])
    config = ScriptRunConfig(".", script="train.py", environment=environment)
    run = Experiment(workspace, "train").submit(config)
    run.wait_for_completion()
    return run


@pytest.mark.full
@pytest.mark.xdist_group("frameworks")
def test_a_trained_model_is_registered_and_written_as_onnx(trained: Any, tmp_path: Path) -> None:
    model = trained.register_model("digits", "outputs/model.keras", model_framework="TfKeras")
    exported = model.export_onnx(model_name="digits-onnx", sample_input=[[1, 1, 1, 1]])
    assert exported.id == "digits-onnx:1" and exported.model_framework == "Onnx"
    assert exported.properties == {"converted_from": "digits:1"}
    assert exported.run.get_metrics()["largest_difference"] < 1e-5

    command = [sys.executable, "-m", "lapis.cli", "model", "export", "digits:1", "--output", "d.onnx", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["size"] == os.path.getsize(tmp_path / "d.onnx")
    runtime = onnx_runtime.load("d.onnx")
    request = request_formats.parse(b'{"instances": [[1, 1, 1, 1]]}', None, runtime)
    (found,) = runtime.run(request.signature, request.inputs).values()
    assert found[0].tolist() == pytest.approx(trained.get_metrics()["answer"], abs=1e-5)

"""ONNX files are served as they are, and requests that wait together are one call of the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from lapis.errors import ModelNotFoundException
from lapis.scoring.request_formats import Request, parse
from lapis.scoring.runtimes import onnx as onnx_runtime
from lapis.scoring.runtimes import ready
from lapis.scoring.tensors import SIGNATURES, Arrays, BadRequest, Runtime, Tensor, run_together
from tests.serving import models

WEIGHTS = numpy.random.default_rng(2).normal(size=(4, 3)).astype("float32")


def test_an_onnx_file_tells_what_goes_in_and_what_comes_out(tmp_path: Path) -> None:
    models.linear(tmp_path / "digits.onnx", WEIGHTS)
    runtime = onnx_runtime.load(str(tmp_path))
    assert runtime.inputs == [Tensor("pixels", "float32", (None, 4))]
    assert runtime.outputs == [Tensor("digits", "float32", (None, 3))]
    assert runtime.together == 64 and list(runtime.signatures) == ["serving_default"]


def test_a_converted_file_knows_every_name_of_its_signature(tmp_path: Path) -> None:
    import onnx

    path = str(models.linear(tmp_path / "digits.onnx", WEIGHTS))
    model = onnx.load(path)
    onnx.helper.set_model_props(model, {SIGNATURES: "predict,serve"})
    onnx.save(model, path)
    runtime = onnx_runtime.load(path)
    assert list(runtime.signatures) == ["predict", "serve"] and runtime.default == "predict"
    asked = parse(b'{"signature_name": "serve", "instances": [[1, 2, 3, 4]]}', None, runtime)
    assert runtime.run(asked.signature, asked.inputs)["digits"].shape == (1, 3)


def test_a_folder_without_one_onnx_file_is_told_with_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "model.pb").touch()
    with pytest.raises(ModelNotFoundException, match=r"An ONNX model is one file \(.onnx\). In .*: model.pb"):
        onnx_runtime.load(str(tmp_path))


def test_a_sample_is_run_at_once_and_has_to_fit(tmp_path: Path) -> None:
    model = models.linear(tmp_path / "digits.onnx", WEIGHTS)
    sample = tmp_path / "sample.json"
    sample.write_text(json.dumps({"data": [[1, 2, 3, 4]]}))
    onnx_runtime.load(str(model), str(sample))
    sample.write_text(json.dumps({"data": [[1, 2]]}))
    with pytest.raises(BadRequest, match="has shape"):
        onnx_runtime.load(str(model), str(sample))


class Counted(Runtime):
    """Passes calls on and counts them."""

    def __init__(self, inner: Runtime) -> None:
        super().__init__(inner.signatures, inner.default)
        self.inner, self.calls, self.together = inner, 0, inner.together

    def run(self, signature: str, inputs: Arrays) -> Arrays:
        self.calls += 1
        return self.inner.run(signature, inputs)


def rows(runtime: Runtime, *values: list[float]) -> Request:
    return parse(json.dumps({"instances": values}).encode(), None, runtime)


def test_requests_that_wait_together_are_one_call(tmp_path: Path) -> None:
    runtime = Counted(onnx_runtime.load(str(models.linear(tmp_path / "digits.onnx", WEIGHTS))))
    requests = [rows(runtime, *numpy.random.default_rng(n).random((n, 4)).tolist()) for n in (1, 3, 2)]
    alone = [runtime.inner.run(each.signature, each.inputs)["digits"] for each in requests]
    together = run_together(runtime, requests)
    assert runtime.calls == 1
    for one, all_at_once in zip(alone, together, strict=True):
        assert one.tobytes() == all_at_once["digits"].tobytes(), "who else asks changes no bit of an answer"


def test_a_call_has_not_more_rows_than_are_known_to_be_the_same_together(tmp_path: Path) -> None:
    runtime = Counted(onnx_runtime.load(str(models.linear(tmp_path / "digits.onnx", WEIGHTS))))
    runtime.together = 4
    found = run_together(runtime, [rows(runtime, *[[1, 2, 3, float(n)]] * n) for n in (1, 3, 2, 9, 2)])
    assert runtime.calls == 3 and [len(each["digits"]) for each in found] == [1, 3, 2, 9, 2]


def test_rows_that_look_at_each_other_are_never_joined(tmp_path: Path) -> None:
    runtime = Counted(onnx_runtime.load(str(models.scaled(tmp_path / "scaled.onnx"))))
    assert runtime.together == 1
    asked = [rows(runtime, [1, 2, 3]), rows(runtime, [4, 5, 6])]
    assert [each["y"].tolist() for each in run_together(runtime, asked)] == [[[0, 0, 0]], [[0, 0, 0]]]
    assert runtime.calls == 2


def test_a_model_of_a_fixed_number_of_rows_is_called_for_each(tmp_path: Path) -> None:
    runtime = Counted(onnx_runtime.load(str(models.linear(tmp_path / "one.onnx", WEIGHTS, rows=1))))
    found = run_together(runtime, [rows(runtime, [1, 2, 3, 4]), rows(runtime, [4, 3, 2, 1])])
    assert runtime.calls == 2 and [each["digits"].shape for each in found] == [(1, 3), (1, 3)]


class Pictures(Runtime):
    """Adds up each picture, and notes how many came at once."""

    def __init__(self) -> None:
        large = Tensor("x", "float32", (None, 512, 512, 3))
        super().__init__({"serving_default": ([large], [Tensor("y", "float32", (None,))])}, "serving_default")
        self.calls: list[int] = []

    def run(self, signature: str, inputs: Arrays) -> Arrays:
        self.calls.append(len(inputs["x"]))
        return {"y": inputs["x"].reshape(len(inputs["x"]), -1).sum(axis=1)}


def test_large_rows_are_tried_together_only_as_far_as_they_are_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    ready.make_ready(runtime := Pictures(), None)
    assert runtime.together == 2 and runtime.calls == [1, 1, 2]
    monkeypatch.setattr(ready, "_SECONDS", 0.0)
    ready.make_ready(slow := Pictures(), None)
    assert slow.together == 1 and slow.calls == [1], "who takes long for one is not asked for more"


class Moody(Runtime):
    """Fails where it meets a negative number, as a model may that looks up what it gets."""

    def __init__(self) -> None:
        super().__init__(
            {"serving_default": ([Tensor("x", "any", None)], [Tensor("y", "any", None)])}, "serving_default"
        )
        self.together = 64

    def run(self, signature: str, inputs: Arrays) -> Arrays:
        if (inputs["x"] < 0).any():
            raise ValueError("negative")
        return {"y": numpy.sqrt(inputs["x"])}


def test_no_request_fails_for_the_fault_of_another() -> None:
    runtime: Any = Moody()
    good, bad, other = run_together(runtime, [rows(runtime, [4.0]), rows(runtime, [-1.0]), rows(runtime, [9.0, 1.0])])
    assert good["y"].tolist() == [[2.0]] and other["y"].tolist() == [[3.0, 1.0]]
    assert isinstance(bad, ValueError)

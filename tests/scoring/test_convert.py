"""A converted file counts only if it answers as the original did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from lapis.scoring import convert
from lapis.scoring.convert import CANNOT, _write_answers, main
from tests.serving import models

WEIGHTS = numpy.random.default_rng(3).normal(size=(4, 3)).astype("float32")
ABOUT = {"tensorflow": "2.15.1", "tf2onnx": "1.17.0", "opset": 15, "examples": "random numbers"}


@pytest.fixture
def answers(tmp_path: Path) -> Any:
    """What an original said, changed by as much as is asked for."""

    def write(change: Any = 0.0) -> str:
        inputs = numpy.random.default_rng(4).random((5, 4)).astype("float32")
        powers = numpy.exp(inputs @ WEIGHTS)
        outputs = (powers / powers.sum(axis=1, keepdims=True)).astype("float32")
        path = str(tmp_path / "answers.npz")
        changed = change(outputs) if callable(change) else outputs + numpy.float32(change)
        _write_answers(path, [({"pixels": inputs}, {"digits": changed})], ABOUT)
        return path

    return write


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(models.linear(tmp_path / "model.onnx", WEIGHTS))


def test_the_largest_difference_is_reported(model: str, answers: Any, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert main(["compare", model, answers(5e-5), str(report)]) == 0
    told = json.loads(report.read_text())
    assert told["largest_difference"] == pytest.approx(5e-5, rel=0.05)
    assert {**told, **ABOUT} == told and told["rows"] == 5 and told["output"] == "digits"


@pytest.mark.parametrize(
    "change, why",
    [
        (0.01, "output 'digits' differs from the original's by up to 0.01"),
        (lambda outputs: outputs[:, :2], "output 'digits' has shape [5, 3], and the original [5, 2]"),
        (lambda outputs: outputs * numpy.nan, "output 'digits' is not finite where the original is, or"),
        (lambda outputs: outputs > 0.3, "output 'digits' differs from the original's by up to 1"),
    ],
)
def test_other_answers_than_the_originals_are_no_conversion(
    model: str, answers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Any, why: str
) -> None:
    assert main(["compare", model, answers(change), str(tmp_path / "report.json")]) == CANNOT
    assert why in capsys.readouterr().err
    assert not (tmp_path / "report.json").exists()


def test_a_file_that_onnx_runtime_does_not_take_is_no_conversion(
    answers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    assert main(["compare", str(tmp_path / "model.onnx"), answers(), str(tmp_path / "report.json")]) == CANNOT
    assert "ONNX Runtime cannot load the result" in capsys.readouterr().err


def test_inputs_and_outputs_get_the_names_of_the_signature(tmp_path: Path) -> None:
    import onnx

    model = onnx.load(str(models.linear(tmp_path / "model.onnx", WEIGHTS)))
    convert._rename(model.graph, "pixels", "X")
    convert._rename(model.graph, "digits", "out")
    onnx.checker.check_model(model)
    assert ([each.name for each in model.graph.input], [each.name for each in model.graph.output]) == (["X"], ["out"])

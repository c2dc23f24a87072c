"""Every form of a request becomes the same arrays, and its answer comes back in the form of the request."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from lapis.scoring import number_rows, request_formats
from lapis.scoring.request_formats import Answer, parse, render
from lapis.scoring.runtimes import onnx as onnx_runtime
from lapis.scoring.tensors import Arrays, BadRequest, Runtime, Tensor
from tests.serving import models

WEIGHTS = numpy.random.default_rng(1).normal(size=(4, 3)).astype("float32")
ROWS = [[0.5, 1.0, -2.0, 3.0], [0.0, 0.25, 0.5, 1.0]]
EXPECTED = "Expected input: 'pixels' (float32, shape [any, 4])."


@pytest.fixture(params=["orjson, if it is there", "json"], autouse=True)
def _with_and_without_orjson(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "json":
        monkeypatch.setattr(request_formats, "orjson", None)


@pytest.fixture
def digits(tmp_path: Path) -> Runtime:
    return onnx_runtime.load(str(models.linear(tmp_path / "digits.onnx", WEIGHTS)))


@pytest.fixture
def two(tmp_path: Path) -> Runtime:
    return onnx_runtime.load(str(models.sum_and_flag(tmp_path / "two.onnx")))


def likely(rows: Any) -> Any:
    powers = numpy.exp(numpy.array(rows, "float32") @ WEIGHTS)
    return powers / powers.sum(axis=1, keepdims=True)


def ask(runtime: Runtime, body: Any, **how: Any) -> Answer:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = parse(sent, "application/json", runtime, **how)
    return render(request, runtime.run(request.signature, request.inputs))


def refused(runtime: Runtime, body: Any, **how: Any) -> str:
    with pytest.raises(BadRequest) as error:
        ask(runtime, body, **how)
    return error.value.message


# TensorFlow Serving


def test_rows_of_tensorflow_serving_are_answered_row_by_row(digits: Runtime) -> None:
    answer = ask(digits, {"instances": ROWS})
    assert numpy.allclose(json.loads(answer)["predictions"], likely(ROWS), atol=1e-6)
    assert answer.headers == {"Content-Type": "application/json"}
    named = ask(digits, {"signature_name": "serving_default", "instances": [{"pixels": row} for row in ROWS]})
    assert named == answer


def test_rows_of_a_model_with_several_inputs_and_outputs_are_objects(two: Runtime) -> None:
    rows = [{"a": [1, 2], "b": [3, 2]}, {"a": [0, 0], "b": [0, 5]}]
    assert json.loads(ask(two, {"instances": rows})) == {
        "predictions": [{"sum": [4, 4], "same": [False, True]}, {"sum": [0, 5], "same": [True, False]}]
    }


def test_columns_of_tensorflow_serving_are_answered_whole(digits: Runtime, two: Runtime) -> None:
    assert numpy.allclose(json.loads(ask(digits, {"inputs": ROWS}))["outputs"], likely(ROWS), atol=1e-6)
    assert ask(digits, {"inputs": {"pixels": ROWS}}) == ask(digits, {"inputs": ROWS})
    columns = {"inputs": {"a": [[1, 2]], "b": [[3, 2]]}}
    assert json.loads(ask(two, columns)) == {"outputs": {"sum": [[4, 4]], "same": [[False, True]]}}


def test_an_unknown_signature_is_told_with_those_that_there_are(digits: Runtime) -> None:
    said = refused(digits, {"signature_name": "classify", "instances": ROWS})
    assert said == "The model has no signature 'classify'. It has: serving_default."


# Azure's


def test_azures_data_is_answered_under_the_name_of_the_method(digits: Runtime) -> None:
    plain = json.loads(ask(digits, {"data": ROWS}))
    assert list(plain) == ["predict"] and numpy.allclose(plain["predict"], likely(ROWS), atol=1e-6)
    assert json.loads(ask(digits, {"data": ROWS, "method": "predict"})) == plain
    assert json.loads(ask(digits, ROWS)) == plain, "an array alone is data"
    assert "no method 'predict_proba'" in refused(digits, {"data": ROWS, "method": "predict_proba"})


class Estimator(Runtime):
    """As scikit-learn's: a signature for each method, and names for the columns."""

    methods = ("predict_proba", "predict")
    columns = ["age", "town"]

    def __init__(self) -> None:
        data = [Tensor("data", "any", (None, 2))]
        super().__init__({name: (data, [Tensor(name, "any", None)]) for name in self.methods}, self.methods[0])

    def run(self, signature: str, inputs: Arrays) -> Arrays:
        return {signature: numpy.array([f"{age} {town}" for age, town in inputs["data"]])}


def test_methods_are_chosen_by_name_and_rows_may_be_objects() -> None:
    body = {"data": [{"town": "Rome", "age": 3}, {"age": 4, "town": None}], "method": "predict"}
    assert json.loads(ask(Estimator(), body)) == {"predict": ["3 Rome", "4 None"]}
    assert json.loads(ask(Estimator(), {"data": [[1, 2]]})) == {"predict_proba": ["1 2"]}
    assert refused(Estimator(), {"data": [[1, 2]], "method": "fit"}) == (
        "The model has no method 'fit'. It has: predict_proba, predict."
    )
    assert refused(Estimator(), {"data": [{"age": 1}]}) == (
        "'town' is missing in a row. Expected: rows with the features age, town."
    )


def test_null_is_a_missing_number_where_the_model_decides() -> None:
    request = parse(b'{"data": [[1, null]]}', None, Estimator())
    assert numpy.array_equal(request.inputs["data"], [[1, numpy.nan]], equal_nan=True)


# ONNX Runtime Server


def tensor(array: Any, number: int) -> dict[str, Any]:
    dims = [str(size) for size in array.shape]
    return {"dims": dims, "dataType": number, "rawData": base64.b64encode(array.tobytes()).decode()}


def test_tensors_of_onnx_runtime_server_come_back_as_such(digits: Runtime, two: Runtime) -> None:
    body = {"inputs": {"pixels": tensor(numpy.array(ROWS, "float32"), 1)}, "outputFilter": ["digits"]}
    answer = json.loads(ask(digits, body))["outputs"]["digits"]
    assert answer["dims"] == ["2", "3"] and answer["dataType"] == 1
    found = numpy.frombuffer(base64.b64decode(answer["rawData"]), "float32").reshape(2, 3)
    assert numpy.allclose(found, likely(ROWS), atol=1e-6)

    numbers = {name: {"dims": [1, 2], "dataType": "INT64", "int64Data": ["1", "2"]} for name in "ab"}
    answers = json.loads(ask(two, {"inputs": numbers, "output_filter": ["same"]}))["outputs"]
    assert list(answers) == ["same"] and base64.b64decode(answers["same"]["rawData"]) == b"\x01\x01"
    assert "no output 'total'. It has: sum, same." in refused(two, {"inputs": numbers, "outputFilter": ["total"]})


@pytest.mark.parametrize(
    "change",
    [{"dims": [3, 4]}, {"dataType": 99}, {"rawData": "?"}, {"dims": None}, {"dataType": None}],
    ids=["too few bytes", "unknown type", "not base64", "no dims", "no type"],
)
def test_a_broken_tensor_is_told_with_the_input_that_is_expected(digits: Runtime, change: dict[str, Any]) -> None:
    broken = {**tensor(numpy.array(ROWS, "float32"), 1), **change}
    assert "'pixels' (float32, shape [any, 4])" in refused(digits, {"inputs": {"pixels": broken}})


def test_a_tensor_of_another_type_is_refused(digits: Runtime) -> None:
    body = {"inputs": {"pixels": tensor(numpy.array(ROWS, "float64"), 11)}}
    assert refused(digits, body) == f"Input 'pixels' is float64. {EXPECTED}"


# Open Inference Protocol


def test_the_open_inference_protocol_in_json(digits: Runtime) -> None:
    flat = [value for row in ROWS for value in row]
    for data in (flat, ROWS):
        given = {"name": "pixels", "shape": [2, 4], "datatype": "FP32", "data": data}
        answer = json.loads(ask(digits, {"id": "7", "inputs": [given]}, model="mnist"))
        (output,) = answer.pop("outputs")
        assert answer == {"model_name": "mnist", "model_version": "1", "id": "7"}
        assert (output["name"], output["shape"], output["datatype"]) == ("digits", [2, 3], "FP32")
        assert numpy.allclose(output["data"], likely(ROWS).ravel(), atol=1e-6)


def binary(head: dict[str, Any], *parts: bytes) -> tuple[bytes, int]:
    header = json.dumps(head).encode()
    return b"".join([header, *parts]), len(header)


def test_the_open_inference_protocol_in_binary(digits: Runtime) -> None:
    raw = numpy.array(ROWS, "<f4").tobytes()
    given = {"name": "pixels", "shape": [2, 4], "datatype": "FP32", "parameters": {"binary_data_size": len(raw)}}
    wanted = {"name": "digits", "parameters": {"binary_data": True}}
    body, length = binary({"inputs": [given], "outputs": [wanted]}, raw)
    answer = ask(digits, body, header_length=length)
    assert answer.headers["Content-Type"] == "application/octet-stream"
    end = int(answer.headers["Inference-Header-Content-Length"])
    (output,) = json.loads(answer[:end])["outputs"]
    assert output["parameters"] == {"binary_data_size": 24} and "data" not in output
    assert numpy.allclose(numpy.frombuffer(answer[end:], "<f4").reshape(2, 3), likely(ROWS), atol=1e-6)

    all_binary = ask(digits, raw, header_length=0)
    end = int(all_binary.headers["Inference-Header-Content-Length"])
    assert all_binary[end:] == answer[-24:], "the bytes of the only input alone"


@pytest.mark.parametrize("size", [31, 33, -1, "32"])
def test_binary_tensors_of_a_wrong_size_are_refused(digits: Runtime, size: Any) -> None:
    given = {"name": "pixels", "shape": [2, 4], "datatype": "FP32", "parameters": {"binary_data_size": size}}
    body, length = binary({"inputs": [given]}, numpy.array(ROWS, "<f4").tobytes())
    assert refused(digits, body, header_length=length)
    assert "32 bytes do not" not in refused(digits, body[:10], header_length=length)
    assert "do not make whole rows" in refused(digits, body[-31:], header_length=0)


def test_text_goes_in_and_out_in_every_form(tmp_path: Path) -> None:
    echo = onnx_runtime.load(str(models.echo(tmp_path / "echo.onnx")))
    words = ["über", "", "x"]
    assert json.loads(ask(echo, {"instances": words})) == {"predictions": words}
    assert "no text" in refused(echo, {"instances": ["a", 1]})
    encoded = [base64.b64encode(word.encode()).decode() for word in words]
    answer = json.loads(ask(echo, {"inputs": {"text": {"dims": [3], "dataType": 8, "stringData": encoded}}}))
    assert answer["outputs"]["said"] == {"dims": ["3"], "dataType": 8, "stringData": encoded}
    raw = b"".join(struct.pack("<I", len(word.encode())) + word.encode() for word in words)
    given = {"name": "text", "shape": [3], "datatype": "BYTES", "parameters": {"binary_data_size": len(raw)}}
    body, length = binary({"inputs": [given], "parameters": {"binary_data_output": True}}, raw)
    assert ask(echo, body, header_length=length).endswith(raw)
    plain = {"name": "text", "shape": [3], "datatype": "BYTES", "data": words}
    assert json.loads(ask(echo, {"inputs": [plain]}))["outputs"][0]["data"] == words


def test_the_protocol_tells_what_the_model_is(two: Runtime) -> None:
    assert request_formats.metadata(two, "adder") == {
        "name": "adder",
        "versions": ["1"],
        "platform": "onnxruntime_onnx",
        "inputs": [{"name": name, "datatype": "INT64", "shape": [-1, 2]} for name in "ab"],
        "outputs": [
            {"name": "sum", "datatype": "INT64", "shape": [-1, 2]},
            {"name": "same", "datatype": "BOOL", "shape": [-1, 2]},
        ],
    }


# What does not fit


def bad_bodies() -> Iterator[Any]:
    yield "not JSON", b"{'data': [1]}", "The body is not JSON"
    yield "nothing", b"", "The body is not JSON"
    yield "NaN", b'{"instances": [[1, 2, 3, NaN]]}', "JSON has no NaN and no Infinity"
    yield "Infinity", b'{"instances": [[1, 2, 3, -Infinity]]}', "JSON has no NaN and no Infinity"
    yield "a number", b"3", "neither an object nor an array"
    yield "other keys", {"rows": ROWS}, "none of 'instances', 'inputs' and 'data'; its keys: 'rows'"
    yield "no rows", {"instances": []}, "'instances' must be a list of at least one row"
    yield "a row alone", {"instances": ROWS[0]}, "Input 'pixels' has shape [4]"
    yield "too narrow", {"instances": [[1, 2, 3]]}, "Input 'pixels' has shape [1, 3]"
    yield "ragged", {"instances": [[1, 2, 3, 4], [1, 2]]}, "its rows are of different lengths"
    yield "text", {"instances": [["1", "2", "3", "4"]]}, "it holds text"
    yield "null", {"instances": [[1, 2, 3, None]]}, "it holds null"
    yield "booleans", {"instances": [[True, True, False, True]]}, "it holds true or false"
    yield "too large", {"instances": [[1e300, 2, 3, 4]]}, "it holds numbers beyond float32"
    yield "another name", {"instances": [{"pixel": ROWS[0]}]}, "'pixels' is missing in a row"
    yield "one name more", {"instances": [{"pixels": ROWS[0], "x": 1}]}, "There is no input 'x'"
    yield "objects and lists", {"instances": [{"pixels": ROWS[0]}, ROWS[1]]}, "Some rows are objects and some are not"
    yield "an unknown column", {"inputs": {"x": ROWS}}, "There is no input 'x'"
    yield "no column", {"inputs": {}}, "Input 'pixels' is missing"
    yield "an empty list", {"inputs": []}, "Input 'pixels' has shape [0]"


@pytest.mark.parametrize("body, why", [pytest.param(*rest, id=name) for name, *rest in bad_bodies()])
def test_what_does_not_fit_is_told_with_the_input_that_is_expected(digits: Runtime, body: Any, why: str) -> None:
    said = refused(digits, body)
    assert why in said and said.endswith(EXPECTED)


def test_numbers_that_would_change_are_refused(two: Runtime) -> None:
    whole = json.loads(ask(two, {"inputs": {"a": [[1.0, 2.0]], "b": [[1, 2]]}}))
    assert whole["outputs"]["sum"] == [[2, 4]]
    assert "it holds fractions" in refused(two, {"inputs": {"a": [[1.5, 2]], "b": [[1, 2]]}})
    assert "Input 'b' is missing" in refused(two, {"inputs": {"a": [[1, 2]]}})
    assert "give each by its name" in refused(two, {"instances": [[1, 2]]})
    huge = refused(two, {"inputs": {"a": [[2**70, 2]], "b": [[1, 2]]}})
    assert huge.endswith("Expected inputs: 'a' (int64, shape [any, 2]), 'b' (int64, shape [any, 2]).")


NUMBERS = ([[1, 2], [3, -4]], [[0.1, 1e-40], [3.4e38, -0.0]], [[1, 0.5]], [[2.5, True]], [[2**40, 7]], [[1.0, 2.0]])


@pytest.mark.parametrize("values", NUMBERS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_rows_of_plain_numbers_are_the_array_that_they_are_the_long_way(values: Any, dtype: str) -> None:
    quick = number_rows.array_of(values, Tensor("x", dtype, (None, 2)))
    try:
        slow = request_formats._cast(values, dtype)
    except ValueError:
        assert quick is None
        return
    assert quick is None or (quick.dtype == slow.dtype and quick.tolist() == slow.tolist())
    assert quick is not None or dtype.startswith("int"), "fractions that are whole, as 1.0, go the long way"


def test_protobuf_is_told_to_come_as_json(digits: Runtime) -> None:
    with pytest.raises(BadRequest, match="not understood here. Send the same tensors as application/json"):
        parse(b"\x0a", "application/x-protobuf", digits)


def test_what_json_cannot_hold_is_null() -> None:
    request = parse(b'{"data": [[1, 2]]}', None, Estimator())
    answer = render(request, {"predict_proba": numpy.array([[numpy.nan, 1.5, numpy.inf]], "float32")})
    assert json.loads(answer) == {"predict_proba": [[None, 1.5, None]]}


def test_bytes_that_are_no_text_come_as_base64() -> None:
    request = parse(b'{"data": [[1, 2]]}', None, Estimator())
    answer = json.loads(render(request, {"a": numpy.array([b"text", b"\xff"], object), "b_bytes": numpy.array([b"t"])}))
    assert answer == {"predict_proba": {"a": ["text", {"b64": "/w=="}], "b_bytes": [{"b64": "dA=="}]}}


def test_a_model_that_mixes_its_rows_is_asked_for_whole_outputs(digits: Runtime) -> None:
    request = parse(json.dumps({"instances": ROWS}).encode(), None, digits)
    with pytest.raises(BadRequest, match="Ask with 'inputs' instead of 'instances'"):
        render(request, {"digits": numpy.float32(3)})

"""An entry script is served as Azure's own scoring server would."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sdk.test_import import interpreters
from tests.serving.service import Service, described, serving

SCRIPT = """
import json, logging, os, sys
from azureml.contrib.services.aml_response import AMLResponse
from azureml.monitoring import ModelDataCollector

def init():
    global collector
    print("init is called once")
    collector = ModelDataCollector("mnist", designation="inputs", feature_names=["a", "b"])

def run(data, request_headers):
    logging.getLogger("mine").info("logged in run")
    print("printed in run")
    asked = json.loads(data)
    if asked == "raise":
        raise ValueError("no such digit")
    if asked == "headers":
        return {name: request_headers[name] for name in ("X-Mine", "Content-Type")}
    if asked == "collect":
        return collector.collect([[1, 2], [3, 4]])
    if asked == "exit":
        sys.exit("never do this")
    if not isinstance(asked, str):
        return asked
    return {
        "dict": {"a": [1.5, None]}, "list": [1], "text": "caf\\u00e9", "none": None, "bytes": b"\\x00\\xff",
        "false": False,
        "set": {1}, "nan": [float("nan")],
        "response": AMLResponse("teapot", 418, {"Allow": "GET, POST", "Evil": "a\\r\\nSet-Cookie: b"}),
        "no status": AMLResponse("x", 70000), "many headers": AMLResponse("x", 200, {"X": "y" * 100000}),
        "json response": AMLResponse({"a": 1}, 202, json_str=True, run_function_failed=True),
        "image": AMLResponse(b"\\x89PNG", 200, {"Content-Type": "image/png"}),
    }[asked]
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    with serving(folder, SCRIPT, collect=str(folder / "collected")) as running:
        yield running


@pytest.mark.parametrize(
    ("asked", "status", "content_type", "body"),
    [
        ("dict", 200, "application/json", b'{"a": [1.5, null]}'),
        ("list", 200, "application/json", b"[1]"),
        ("text", 200, "application/json", b'"caf\\u00e9"'),
        ("none", 200, "application/json", b"{}"),
        ("false", 200, "application/json", b"false"),
        ("nan", 200, "application/json", b"[NaN]"),
        ("bytes", 200, "application/octet-stream", b"\x00\xff"),
        ("response", 418, "text/html; charset=utf-8", b"teapot"),
        ("json response", 202, "application/json", b'{"a": 1}'),
        ("image", 200, "image/png", b"\x89PNG"),
    ],
)
def test_what_run_returns_is_the_answer(
    service: Service, asked: str, status: int, content_type: str, body: bytes
) -> None:
    answer = service.ask(asked)
    assert (answer.status, answer.headers["Content-Type"], answer.body) == (status, content_type, body)
    assert answer.headers["x-ms-run-function-failed"] == str(asked == "json response")


def test_a_header_with_commas_is_repeated_and_none_can_smuggle_in_another(service: Service) -> None:
    answer = service.ask("response")
    assert answer.headers.get_all("Allow") == ["GET", "POST"]
    assert "Set-Cookie" not in answer.headers and answer.headers["Evil"] == "a  Set-Cookie: b"


def test_an_exception_in_run_is_told_in_a_line_and_its_traceback_stays_in_the_log(service: Service) -> None:
    answer = service.ask("raise")
    assert answer.status == 500 and answer.headers["x-ms-run-function-failed"] == "True"
    assert answer.message.startswith("run() of score.py raised ValueError: no such digit.")
    assert "Traceback" not in answer.message
    assert 'raise ValueError("no such digit")' in service.log


def test_sys_exit_in_run_ends_the_request_and_not_the_worker(service: Service) -> None:
    before = service.workers
    answer = service.ask("exit")
    assert answer.status == 500 and "SystemExit: never do this" in answer.message
    assert service.ask("list").json == [1] and service.workers == before


def test_a_status_that_does_not_exist_and_headers_without_end_harm_nobody(service: Service) -> None:
    answer = service.ask("no status")
    assert answer.status == 500 and "the status 70000" in answer.message
    with service.socket() as connected:
        connected.sendall(b'POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 14\r\n\r\n"many headers"')
        assert connected.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert service.ask("list").json == [1]


def test_what_is_no_json_is_an_error_that_names_the_type(service: Service) -> None:
    answer = service.ask("set")
    assert answer.status == 500 and "set" in answer.message and "not JSON" in answer.message


def test_run_is_given_the_headers_if_it_asks_for_them(service: Service) -> None:
    answer = service.ask("headers", headers={"x-mine": "7"})
    assert answer.json == {"X-Mine": "7", "Content-Type": "application/json"}


def test_a_get_hands_the_query_over_as_json(service: Service) -> None:
    answer = service.ask(method="GET", path="/score?k=5&text=abc&many=1&many=%5B2%5D")
    assert answer.json == {"k": 5, "text": "abc", "many": [1, [2]]}


def test_bytes_that_are_no_text_are_refused(service: Service) -> None:
    answer = service.ask(b"\xff\xfe")
    assert answer.status == 400 and "rawhttp" in answer.message


def test_what_the_script_prints_and_logs_is_in_the_log(service: Service) -> None:
    service.ask("list")
    assert service.log.count("init is called once") == 1
    assert "printed in run" in service.log and "INFO mine: logged in run" in service.log


def test_collected_data_lies_in_a_file_for_the_day(service: Service) -> None:
    correlation = service.ask("collect").json
    (file,) = (service.folder / "collected" / "mnist" / "1" / "inputs").glob("*/*/*/data.csv")
    lines = file.read_text().splitlines()
    assert lines[0] == "$aml_dc_correlation_id,$aml_dc_timestamp,a,b"
    assert [line.split(",")[0] for line in lines[1:]] == [correlation] * 2
    assert lines[1].endswith(",1,2") and lines[2].endswith(",3,4")


def test_ids_are_echoed_or_made(service: Service) -> None:
    made = service.ask("list").headers
    assert len(made["x-request-id"]) == 36 and made["x-ms-request-id"] == made["x-request-id"]
    own = service.ask("list", headers={"x-request-id": "r", "x-ms-client-request-id": "c"}).headers
    assert (own["x-request-id"], own["x-ms-request-id"], own["x-ms-client-request-id"]) == ("r", "c", "c")
    assert float(own["x-ms-run-fn-exec-ms"]) >= 0
    long = service.ask("list", headers={"x-request-id": "r" * 101})
    assert (long.status, long.message) == (431, "x-request-id must not exceed 100 characters")


def test_swagger_is_there_in_two_versions(service: Service) -> None:
    second = service.ask(path="/swagger.json", method="GET").json
    assert second["swagger"] == "2.0" and set(second["definitions"]) >= {"ServiceInput", "ServiceOutput"}
    third = service.ask(path="/swagger.json?version=3", method="GET").json
    assert third["openapi"].startswith("3.0") and "/score" in third["paths"]
    unknown = service.ask(path="/swagger.json?version=9", method="GET")
    assert unknown.status == 404 and "[9]" in unknown.message


def test_a_clusters_address_leads_to_the_same_service(service: Service) -> None:
    assert service.ask("list", path="/api/v1/service/digits/score").json == [1]
    assert service.ask(path="/api/v1/service/digits/swagger.json", method="GET").status == 200


RAW = """
from azureml.contrib.services.aml_request import AMLRequest, rawhttp
from azureml.contrib.services.aml_response import AMLResponse

def init():
    pass

@rawhttp
def run(request):
    if request.method == "GET":
        return AMLResponse(request.full_path + " " + request.args["a"], 200)
    if request.method == "OPTIONS":
        answer = AMLResponse("", 200)
        answer.headers["Allow"] = "OPTIONS, GET, POST"
        return answer
    if request.mimetype == "multipart/form-data":
        image = request.files["image"]
        return {"name": image.filename, "bytes": list(image.read()), "note": request.form["note"]}
    assert isinstance(request, AMLRequest)
    return AMLResponse(request.get_data(False)[::-1], 200, {"Content-Type": request.headers["content-type"]})
"""


def test_a_raw_script_sees_the_request_as_it_came(tmp_path: Path) -> None:
    with serving(tmp_path, RAW) as service:
        assert service.ask(method="GET", path="/score?a=7").body == b"/score?a=7 7"
        assert service.ask(method="OPTIONS").headers["Allow"] == "OPTIONS, GET, POST"
        echo = service.ask(b"\x00\xff\x01", headers={"Content-Type": "application/x-thing"})
        assert (echo.body, echo.headers["Content-Type"]) == (b"\x01\xff\x00", "application/x-thing")
        binary = b"\r\n--\r\n\x00\xff\r"
        form = (
            b'--XX\r\nContent-Disposition: form-data; name="note"\r\n\r\nhello\r\n'
            b'--XX\r\nContent-Disposition: form-data; name="image"; filename="7.png"\r\n'
            b"Content-Type: image/png\r\n\r\n" + binary + b"\r\n--XX--\r\n"
        )
        answer = service.ask(form, headers={"Content-Type": "multipart/form-data; boundary=XX"})
        assert answer.json == {"name": "7.png", "bytes": list(binary), "note": "hello"}
        assert service.ask(method="DELETE").status == 405


@pytest.mark.parametrize("python", [pytest.param(path, id=name) for name, path in list(interpreters().items())[:1]])
def test_the_oldest_python_that_is_there_serves_too(tmp_path: Path, python: str) -> None:
    with serving(tmp_path, RAW, worker={"argv": [python, "-m", "lapis.scoring.worker"]}) as service:
        assert service.ask(method="GET", path="/score?a=7").body == b"/score?a=7 7"


# The public functions of the package `inference-schema` that are relied on. It wants a `wrapt` older than that of the
# other packages here, so it is not among them; where it is installed all the same, it takes this one's place.
STAND_IN = """
import functools

class Value:
    def __init__(self, sample, shape, convert=lambda given: given):
        self.shape, self.convert = {**shape, "example": sample}, convert

def input_schema(name, value):
    def decorate(function):
        @functools.wraps(function)
        def run(**given):
            return function(**{**given, name: value.convert(given[name])})
        run.inputs = {**getattr(function, "inputs", {}), name: value}
        run.output = getattr(function, "output", None)
        return run
    return decorate

def output_schema(value):
    def decorate(function):
        function.output = value
        return function
    return decorate

def is_schema_decorated(function):
    return hasattr(function, "output") or hasattr(function, "inputs")

def get_input_schema(function):
    return {"type": "object", "example": {name: each.shape["example"] for name, each in function.inputs.items()}}

def get_output_schema(function):
    return function.output.shape
"""

SCHEMA_OF_THE_STAND_IN = """
from inference_schema.schema_util import Value, input_schema, output_schema

def init():
    pass

@input_schema("scale", Value(1.5, {"type": "number"}))
@input_schema("data", Value([[1.0, 2.0]], {"type": "array"}, convert=lambda rows: [sum(row) for row in rows]))
@output_schema(Value([1.0], {"type": "array", "format": "numpy.ndarray"}))
def run(data, scale=2.0):
    return [each * scale for each in data]
"""

SCHEMA = """
import numpy
from inference_schema.parameter_types.numpy_parameter_type import NumpyParameterType
from inference_schema.parameter_types.standard_py_parameter_type import StandardPythonParameterType
from inference_schema.schema_decorators import input_schema, output_schema

def init():
    pass

@input_schema("data", NumpyParameterType(numpy.array([[1.0, 2.0]])))
@input_schema("scale", StandardPythonParameterType(1.5))
@output_schema(NumpyParameterType(numpy.array([1.0])))
def run(data, scale=2.0):
    return (data.sum(1) * scale).tolist()
"""


def test_declared_parameters_are_converted_and_described(tmp_path: Path) -> None:
    script = SCHEMA
    if importlib.util.find_spec("inference_schema") is None:
        script = SCHEMA_OF_THE_STAND_IN
        (tmp_path / "inference_schema").mkdir()
        (tmp_path / "inference_schema" / "__init__.py").touch()
        (tmp_path / "inference_schema" / "schema_util.py").write_text(STAND_IN)
    with serving(tmp_path, script) as service:
        assert service.ask({"data": [[1, 2]]}).json == [6.0]
        assert service.ask({"data": [[1, 2]], "scale": 3, "unknown": 1}).json == [9.0]
        assert service.ask(method="GET", path="/score?data=%5B%5B1,2%5D%5D").json == [6.0]
        missing = service.ask({"scale": 1})
        assert (missing.status, missing.message) == (400, "A value is not provided for the 'data' parameter.")
        assert service.ask([1]).status == 400
        assert service.ask(b"{bad").status == 400
        assert service.ask(b"{}", headers={"Content-Type": "text/plain"}).status == 415
        shapes = service.ask(path="/swagger.json", method="GET").json["definitions"]
        assert shapes["ServiceInput"]["example"] == {"data": [[1.0, 2.0]], "scale": 1.5}
        assert shapes["ServiceOutput"]["format"] == "numpy.ndarray"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("def run(data): ...", "score.py has no function init()"),
        ("def init(): ...", "score.py has no function run()"),
        ("def init(): ...\ndef run(): ...", "takes no input"),
        ("def init(): ...\ndef run(*data): ...", "takes *data"),
        ("def init(): ...\ndef run(a, b): ...", "a, b"),
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package' (score.py, line 1)"),
        ("def init(:", "SyntaxError"),
        ("import os\ndef init(): os._exit(7)\ndef run(data): ...", "ended with status 7 while it started"),
        ("import sys\ndef init(): sys.exit(1)\ndef run(data): ...", "SystemExit"),
    ],
)
def test_a_script_that_cannot_serve_is_told_why(tmp_path: Path, script: str, said: str) -> None:
    service = Service(tmp_path, described(tmp_path, script))
    assert service.process.wait(20) == 3, service.log
    assert service.state["state"] == "failed"
    assert said in service.state["error"]["message"]
    service.stop()


def test_a_failing_init_is_reported_with_its_own_traceback(tmp_path: Path) -> None:
    script = "def load():\n    raise RuntimeError('weights are gone')\ndef init():\n    load()\ndef run(data): ...\n"
    service = Service(tmp_path, described(tmp_path, script))
    assert service.process.wait(20) == 3
    error = service.state["error"]
    assert "RuntimeError: weights are gone (score.py, line 4)" in error["message"]
    assert "line 2, in load" in error["traceback"] and "weights are gone" in service.log
    service.stop()


def test_an_init_that_hangs_is_given_up_and_the_log_shows_where(tmp_path: Path) -> None:
    script = "import time\ndef init():\n    time.sleep(100)\ndef run(data): ...\n"
    service = Service(tmp_path, described(tmp_path, script, limits={"worker_start_seconds": 2}))
    assert service.process.wait(20) == 3
    assert "not ready after 2 seconds" in service.state["error"]["message"]
    assert 'score.py", line 3 in init' in service.log
    service.stop()


def test_a_page_of_the_scripts_own_takes_the_place_of_the_made_one(tmp_path: Path) -> None:
    (tmp_path / "swagger.json").write_text(json.dumps({"swagger": "2.0", "mine": True}))
    with serving(tmp_path, "def init(): ...\ndef run(data): return data\n") as service:
        assert service.ask(path="/swagger.json", method="GET").json["mine"] is True

"""An entry script: loads it, calls init(), and turns requests into calls of run() as Azure's scoring server does."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import sys
import time
import traceback
from typing import Any, Callable, NamedTuple, Sequence

from lapis.scoring import swagger
from lapis.scoring.frames import words_of
from lapis.scoring.raw_http import RAW, AMLRequest, AMLResponse, Headers

JSON_LINES = b"content-type: application/json\r\nx-ms-run-function-failed: False\r\n"
_HEADERS = "request_headers"
_LARGEST_ANSWER = 1 << 30  # bytes


class CannotServe(Exception):
    """The script cannot be served; says why."""


class Answer(NamedTuple):
    status: int
    lines: bytes  # of the header, each with its CR LF
    body: bytes
    seconds: float = 0.0  # spent in run()


class ScoreScript:
    """A loaded entry script."""

    batches = False
    model = None

    def __init__(self, module: Any, name: str) -> None:
        self.name = name
        self._run = _function(module, name, "run")
        self._schema = swagger.schema_of(self._run)
        self._parameters = _parameters(self._run, name)
        self._raw = bool(getattr(self._run, RAW, False))
        if self._raw and self._schema is not None:
            raise CannotServe(f"run() of {name} is marked with rawhttp and with an input or output schema: use one.")
        self._wants_headers = _HEADERS in self._parameters
        inputs = [each for each in self._parameters if each != _HEADERS]
        if not inputs:
            raise CannotServe(f"run() of {name} takes no input. It needs a parameter: def run(data): ...")
        if len(inputs) > 1 and self._schema is None:
            needed = [each for each in inputs[1:] if self._parameters[each].default is inspect.Parameter.empty]
            if needed:
                raise CannotServe(
                    f"run() of {name} takes {len(inputs)} inputs ({', '.join(inputs)}), and nothing says how a request "
                    "becomes them. Take one, or declare them with @input_schema."
                )
        self._inputs = inputs
        self._first = inputs[0]

    @property
    def wants(self) -> str:
        """How much of a request's head the front is to send along."""
        return "all" if self._raw or self._wants_headers else "content-type"

    def swagger(self, service: str) -> dict[str, Any]:
        return swagger.pages(service, self._schema)

    def answer(self, meta: bytes, body: bytes) -> Answer:
        """What run() makes of one request. Never raises."""
        words = words_of(meta)
        method = words[0]
        if self._raw:
            headers = _pairs(words)
            return self._call({self._first: AMLRequest(method.decode(), words[1].decode("latin-1"), headers, body)})
        if method == b"OPTIONS":
            return Answer(200, b"content-type: text/html; charset=utf-8\r\nx-ms-run-function-failed: False\r\n", b"")
        try:
            inputs = self._given(method, words, body)
        except _BadInput as error:
            return refusal(error.status, str(error))
        if self._wants_headers:
            inputs[_HEADERS] = dict(_titled(_pairs(words)))
        return self._call(inputs)

    def _given(self, method: bytes, words: Sequence[bytes], body: bytes) -> dict[str, Any]:
        if self._schema is None:
            if method == b"GET":
                return {self._first: json.dumps(_query(words[1]))}
            try:
                return {self._first: body.decode()}
            except UnicodeDecodeError as error:
                raise _BadInput(400, f"The body is not text in UTF-8 ({error}). For bytes mark run() with rawhttp.")
        if method == b"GET":
            found: Any = _query(words[1])
        else:
            content_type = Headers(_pairs(words)).get("content-type") or ""
            if content_type.partition(";")[0].strip().lower() != "application/json":
                raise _BadInput(415, "Expects Content-Type to be application/json")
            try:
                found = json.loads(body)
            except (ValueError, RecursionError) as error:
                raise _BadInput(400, f"POST body could not be decoded as JSON: {error}")
            if not isinstance(found, dict):
                raise _BadInput(400, "POST body should be a JSON dictionary.")
        for name in self._inputs:
            if name not in found and self._parameters[name].default is inspect.Parameter.empty:
                raise _BadInput(400, f"A value is not provided for the '{name}' parameter.")
        # Defaults too: the decorators look for every parameter that they declare.
        return {name: found.get(name, self._parameters[name].default) for name in self._inputs}

    def _call(self, inputs: dict[str, Any]) -> Answer:
        began = time.perf_counter()
        try:
            result = self._run(**inputs)
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            seconds = time.perf_counter() - began
            return failure(f"run() of {self.name} raised {_one_line(error)}", seconds)
        seconds = time.perf_counter() - began
        try:
            answer = _answer_of(result, seconds)
        except Exception as error:
            traceback.print_exc()
            kind = type(result).__name__
            return failure(f"What run() of {self.name} returned, {kind}, is not JSON: {_one_line(error)}", seconds)
        if not 200 <= answer.status <= 599:
            return failure(f"run() of {self.name} answered with the status {answer.status}, which HTTP does not have")
        if len(answer.body) + len(answer.lines) > _LARGEST_ANSWER:
            return failure(f"run() of {self.name} answered with {len(answer.body)} bytes, more than can be sent")
        return answer


def load(script: str) -> ScoreScript:
    """Import `script` and call its init(). Raises what they raise, and CannotServe."""
    folder, file_name = os.path.split(os.path.abspath(script))
    for each in (folder, os.getcwd()):
        if each not in sys.path:
            sys.path.insert(0, each)
    if not os.path.isfile(script):
        raise CannotServe(f"There is no entry script at {script}.")
    name = os.path.splitext(file_name)[0]
    spec = importlib.util.spec_from_file_location(name, script)
    if spec is None or spec.loader is None:
        raise CannotServe(f"The entry script {file_name} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    init = _function(module, file_name, "init")
    loaded = ScoreScript(module, file_name)
    init()
    return loaded


def refusal(status: int, message: str) -> Answer:
    """The request is at fault."""
    return Answer(status, JSON_LINES, json.dumps({"message": message}).encode())


def failure(message: str, seconds: float = 0.0) -> Answer:
    """run() is at fault; the traceback has gone to the log."""
    lines = b"content-type: application/json\r\nx-ms-run-function-failed: True\r\n"
    return Answer(500, lines, json.dumps({"message": f"{message}. The service's log has the rest."}).encode(), seconds)


class _BadInput(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _function(module: Any, script: str, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if not callable(found):
        raise CannotServe(f"{script} has no function {name}(). An entry script has init() and run(data).")
    function: Callable[..., Any] = found
    return function


def _parameters(run: Callable[..., Any], script: str) -> dict[str, inspect.Parameter]:
    found = dict(inspect.signature(run).parameters)
    kinds = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
        inspect.Parameter.POSITIONAL_ONLY: "positional-only ",
    }
    for name, parameter in found.items():
        if parameter.kind in kinds:
            what = kinds[parameter.kind] + name
            raise CannotServe(f"run() of {script} takes {what}; only named parameters can be given to it.")
    return found


def _pairs(words: Sequence[bytes]) -> list[tuple[str, str]]:
    texts = [word.decode("latin-1") for word in words[2:]]
    return list(zip(texts[0::2], texts[1::2]))


def _titled(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """As Azure's server writes names: X-Ms-Client-Request-Id."""
    return [("-".join(word.capitalize() for word in name.split("-")), value) for name, value in pairs]


def _query(target: bytes) -> dict[str, Any]:
    """The query as values: each parsed as JSON where it is, a list where a name is repeated."""
    from urllib.parse import parse_qs

    text = target.decode("latin-1").partition("?")[2]
    found = {name: [_parsed(value) for value in values] for name, values in parse_qs(text, True).items()}
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _answer_of(result: Any, seconds: float) -> Answer:
    if result is None:
        return Answer(200, JSON_LINES, b"{}", seconds)
    if isinstance(result, (bytes, bytearray)):
        lines = b"content-type: application/octet-stream\r\nx-ms-run-function-failed: False\r\n"
        return Answer(200, lines, bytes(result), seconds)
    if isinstance(result, AMLResponse) or all(hasattr(result, name) for name in ("status_code", "headers", "get_data")):
        return Answer(int(result.status_code), _lines(result.headers.items()), bytes(result.get_data()), seconds)
    return Answer(200, JSON_LINES, json.dumps(result).encode(), seconds)


def _lines(headers: Any) -> bytes:
    """Header lines; nothing in a value can begin another, and the front itself says how long the body is."""
    kept = [
        f"{_clean(name)}: {_clean(value)}\r\n"
        for name, value in headers
        if str(name).lower() not in ("content-length", "transfer-encoding", "connection")
    ]
    return "".join(kept).encode("latin-1", "replace")


def _clean(text: Any) -> str:
    return str(text).replace("\r", " ").replace("\n", " ").replace("\0", " ")


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__

"""A model that serves without a script: requests become arrays, those that wait together are one call of the model."""

from __future__ import annotations

import importlib
import time
import traceback
from functools import lru_cache
from typing import Any, Sequence

from lapis.scoring.frames import words_of
from lapis.scoring.score_script import JSON_LINES, Answer, failure, refusal

RUNTIMES = ("onnx", "tensorflow", "keras", "sklearn")


class NoCode:
    """A model that a runtime has loaded."""

    batches = True
    wants = "content-type"

    def __init__(self, runtime: Any, model: str) -> None:
        from lapis.scoring import request_formats, tensors

        self._formats, self._tensors = request_formats, tensors
        self._runtime = runtime
        self.model = request_formats.metadata(runtime, model)
        self.together: int = runtime.together

    def swagger(self, service: str) -> dict[str, Any]:
        from lapis.scoring import swagger

        return swagger.pages(service, None)

    def answer_all(self, requests: Sequence[tuple[bytes, bytes]]) -> list[Answer]:
        """Meta and body of each, answered in order. Never raises."""
        began = time.perf_counter()
        found: list[Any] = [self._parsed(meta, body) for meta, body in requests]
        asked = [each for each in found if not isinstance(each, Answer)]
        results = iter(self._tensors.run_together(self._runtime, asked))
        seconds = time.perf_counter() - began  # what comes after it is only written down
        return [each if isinstance(each, Answer) else self._rendered(each, next(results), seconds) for each in found]

    def _parsed(self, meta: bytes, body: bytes) -> Any:
        try:
            content_type, header_length, model = _head_of(meta)
            return self._formats.parse(body, content_type, self._runtime, header_length, model)
        except self._tensors.BadRequest as error:
            return refusal(400, error.message)
        except (ValueError, RecursionError) as error:
            return refusal(400, f"The request cannot be read: {error}")
        except Exception as error:
            traceback.print_exc()
            return failure(f"The request could not be read: {type(error).__name__}: {error}")

    def _rendered(self, request: Any, outputs: Any, seconds: float) -> Answer:
        try:
            if isinstance(outputs, Exception):
                raise outputs
            body = self._formats.render(request, outputs)
            return Answer(200, _lines(body.headers), body, seconds)
        except self._tensors.BadRequest as error:
            return refusal(400, error.message)
        except Exception as error:
            traceback.print_exception(type(error), error, error.__traceback__)
            return failure(f"The model raised {type(error).__name__}: {' '.join(str(error).split())[:300]}", seconds)


def load(runtime: str, model: str, sample: str | None, name: str) -> NoCode:
    if runtime not in RUNTIMES:
        raise ValueError(f"No runtime is called {runtime!r}. There are: {', '.join(RUNTIMES)}.")
    loaded = importlib.import_module(f"lapis.scoring.runtimes.{runtime}").load(model, sample)
    return NoCode(loaded, name)


@lru_cache(maxsize=256)  # most requests to a service look alike
def _head_of(meta: bytes) -> tuple[str | None, int | None, str]:
    """Content type, length of the binary form's header, name of the model in the address."""
    words = words_of(meta)
    given = dict(zip(words[2::2], words[3::2]))
    kind, length = given.get(b"content-type"), given.get(b"inference-header-content-length")
    content_type = kind.decode("latin-1") if kind is not None else None
    return content_type, int(length) if length is not None else None, _model_of(words[1])


def _model_of(target: bytes) -> str:
    """`m` of /v2/models/m/infer and /v1/models/m:predict."""
    parts = target.partition(b"?")[0].split(b"/")
    if len(parts) > 3 and parts[2] == b"models":
        return parts[3].partition(b":")[0].decode("latin-1")
    return ""


def _lines(headers: dict[str, str]) -> bytes:
    if len(headers) == 1 and headers.get("Content-Type") == "application/json":
        return JSON_LINES
    lines = "".join(f"{name.lower()}: {value}\r\n" for name, value in headers.items())
    return lines.encode("latin-1") + b"x-ms-run-function-failed: False\r\n"

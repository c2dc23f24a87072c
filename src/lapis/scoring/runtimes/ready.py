"""What every runtime does before its first request: finds its file, answers once so that the first is not slow, and
finds out how many rows of different requests it may answer in one call."""

from __future__ import annotations

import os
import time
import warnings
from typing import Any, Sequence

import numpy

from lapis.errors import ModelNotFoundException
from lapis.scoring import request_formats
from lapis.scoring.tensors import Arrays, Runtime, Tensor


def only_file(model: str, endings: Sequence[str], what: str) -> str:
    """The file itself, or the only one with such an ending below a folder."""
    if not os.path.isdir(model):
        return model
    found = [path for path in _below(model) if path.lower().endswith(tuple(endings))]
    if len(found) == 1:
        return found[0]
    there = ", ".join(os.path.relpath(path, model) for path in (found or _below(model))[:20]) or "nothing"
    raise ModelNotFoundException(f"{what} is one file ({', '.join(endings)}). In {model}: {there}.")


def saved_model_folder(model: str) -> str:
    """The folder with the SavedModel: of several versions, numbered as TensorFlow Serving does, the highest."""
    found = [os.path.dirname(path) for path in _below(model) if os.path.basename(path) in SAVED_MODEL_FILES]
    numbered = {int(os.path.basename(each)): each for each in found if os.path.basename(each).isdigit()}
    if len(found) == 1:
        return found[0]
    if found and len(numbered) == len(found):
        return numbered[max(numbered)]
    there = ", ".join(os.path.relpath(path, model) for path in (found or _below(model))[:20]) or "nothing"
    raise ModelNotFoundException(f"A SavedModel is a folder with saved_model.pb. In {model}: {there}.")


SAVED_MODEL_FILES = ("saved_model.pb", "saved_model.pbtxt")


def make_ready(runtime: Runtime, sample: str | None) -> None:
    """Run the sample, which has to work; or rows that may not fit a model that looks at what it gets."""
    if sample:
        with open(sample, "rb") as file:
            request = request_formats.parse(file.read(), request_formats.JSON, runtime)
        request_formats.render(request, runtime.run(request.signature, request.inputs))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runtime.together = min(_together(runtime, each) for each in runtime.signatures)
    except Exception:  # the requests will tell
        pass


def _together(runtime: Runtime, signature: str) -> int:
    """How many rows, up to which the model gives each row of a call, bit for bit, the answer that it gets alone.

    That its first dimension is free does not say so: it may be time and not rows, rows may be scaled by each other, and
    a sum may be added up in another order where there are more of them. None of that depends on the values.
    """
    inputs, outputs = runtime.signatures[signature]
    if any(each.shape is None or each.dtype == "string" for each in inputs):
        return 1
    began, chance = time.perf_counter(), numpy.random.RandomState(1)
    most = min(_COUNTS[-1], max(2, _NUMBERS // max(1, *[_numbers_in_a_row(each) for each in inputs])))
    rows = {each.name: _rows(each, most, chance) for each in inputs}

    def run(first: int, end: int) -> Arrays:
        return runtime.run(signature, {name: each[first:end] for name, each in rows.items()})

    if not all(_first_is_free(each) for each in (*inputs, *outputs)):
        runtime.run(signature, rows)
        return 1
    alone, proven = [run(0, 1)], 1
    for count in _COUNTS:
        if count > most or time.perf_counter() - began > _SECONDS:
            break
        alone += [run(at, at + 1) for at in range(len(alone), count)]
        if not _same(run(0, count), alone):
            break
        proven = count
    return proven


_COUNTS = (2, 3, 4, 5, 8, 13, 16, 27, 32, 50, 64)
_SECONDS = 0.5  # that may be spent on finding out,
_NUMBERS = 1 << 20  # and how many may be made up for it


def _numbers_in_a_row(tensor: Tensor) -> int:
    return int(numpy.prod([size or _ANY for size in (tensor.shape or ())[1:]], dtype=numpy.int64))


def _rows(tensor: Tensor, count: int, chance: Any) -> Any:
    shape = [size or _ANY for size in tensor.shape or ()]
    if _first_is_free(tensor):
        shape[0] = count
    if tensor.dtype == "bool" or "int" in tensor.dtype:
        return chance.randint(0, 2, shape).astype(tensor.dtype)
    return chance.normal(size=shape).astype("float64" if tensor.dtype == "any" else tensor.dtype)


_ANY = 3  # how long a dimension is made that may have any length


def _first_is_free(tensor: Tensor) -> bool:
    return tensor.shape is None or (len(tensor.shape) > 0 and tensor.shape[0] is None)


def _same(together: Arrays, alone: Sequence[Arrays]) -> bool:
    for name, found in together.items():
        parts = [each[name] for each in alone]
        if not numpy.ndim(found) or any(not numpy.ndim(each) or len(each) != 1 for each in parts):
            return False
        joined = numpy.concatenate(parts)
        as_bytes = found.dtype.kind not in "OUS"
        if joined.tobytes() != found.tobytes() if as_bytes else joined.tolist() != found.tolist():
            return False
    return True


def _below(folder: str) -> list[str]:
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)

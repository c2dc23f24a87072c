"""What every runtime does before its first request: finds its file, and answers once so that the first is not slow."""

from __future__ import annotations

import os
import warnings
from typing import Sequence

import numpy

from lapis.errors import ModelNotFoundException
from lapis.scoring import request_formats
from lapis.scoring.tensors import Runtime, Tensor


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


def answer_once(runtime: Runtime, sample: str | None) -> None:
    """Run the sample, which has to work; or ones, which may not fit a model that looks at what it gets."""
    if sample:
        with open(sample, "rb") as file:
            request = request_formats.parse(file.read(), request_formats.JSON, runtime)
        request_formats.render(request, runtime.run(request.signature, request.inputs))
        return
    if any(each.shape is None or each.dtype in ("string", "any") for each in runtime.inputs):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runtime.run(runtime.default, {each.name: _ones(each) for each in runtime.inputs})
    except Exception:  # the requests will tell
        pass


def _ones(tensor: Tensor) -> numpy.ndarray:
    return numpy.ones([size or 1 for size in tensor.shape or ()], tensor.dtype)


def _below(folder: str) -> list[str]:
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)

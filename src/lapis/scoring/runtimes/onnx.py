"""Serves an ONNX file with ONNX Runtime."""

from __future__ import annotations

import os
from typing import Any

import numpy
import onnxruntime

from lapis.scoring.runtimes.ready import make_ready, only_file
from lapis.scoring.tensors import SIGNATURES, Arrays, BadRequest, Runtime, Tensor

_TYPES = {
    "float": "float32", "double": "float64", "float16": "float16", "bool": "bool", "string": "string", "int8": "int8",
    "int16": "int16", "int32": "int32", "int64": "int64", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32",
    "uint64": "uint64",
}  # fmt: skip


def load(model: str, sample: str | None = None) -> Runtime:
    runtime = _Onnx(_session(only_file(model, [".onnx"], "An ONNX model")))
    make_ready(runtime, sample)
    return runtime


class _Onnx(Runtime):
    platform = "onnxruntime_onnx"

    def __init__(self, session: Any) -> None:
        self._session = session
        self._names = [each.name for each in session.get_outputs()]
        inputs = [_tensor(each) for each in session.get_inputs()]
        outputs = [_tensor(each) for each in session.get_outputs()]
        noted = session.get_modelmeta().custom_metadata_map.get(SIGNATURES) or "serving_default"
        names = noted.split(",")
        super().__init__({name: (inputs, outputs) for name in names}, names[0])

    def run(self, signature: str, inputs: Arrays) -> Arrays:
        try:
            found = self._session.run(self._names, inputs)
        except _REFUSED as error:
            raise BadRequest(f"The model refused the input: {error}") from None
        return {name: _array(each) for name, each in zip(self._names, found)}


_REFUSED = onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument


def _session(path: str) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or 0)  # 0: as many as cores
    # Threads that spin while they wait take the cores from the other replicas and from the front.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(path, options, providers=onnxruntime.get_available_providers())


def _tensor(value: Any) -> Tensor:
    kind = value.type.partition("(")[2].rstrip(")") if value.type.startswith("tensor(") else ""
    if kind not in _TYPES:  # a list of dictionaries, as classifiers converted from scikit-learn give
        return Tensor(value.name, "any", None)
    return Tensor(value.name, _TYPES[kind], tuple(size if isinstance(size, int) else None for size in value.shape))


def _array(value: Any) -> numpy.ndarray:
    if isinstance(value, numpy.ndarray):
        return value
    array = numpy.empty(len(value), object)
    array[:] = value
    return array

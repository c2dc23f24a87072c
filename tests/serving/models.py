"""Small ONNX models, made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper, numpy_helper


def linear(path: Path, weights: Any, rows: Any = "rows") -> Path:
    """`digits` = softmax(`pixels` x weights): (rows, n) -> (rows, m)."""
    wide, tall = weights.shape
    nodes = [
        helper.make_node("MatMul", ["pixels", "weights"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["digits"], axis=1),
    ]
    return _save(
        path,
        nodes,
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, [rows, wide])],
        [helper.make_tensor_value_info("digits", TensorProto.FLOAT, [rows, tall])],
        [numpy_helper.from_array(weights, "weights")],
    )


def sum_and_flag(path: Path) -> Path:
    """`sum` = a + b (int64), `same` = (a == b): two inputs, two outputs."""
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Equal", ["a", "b"], ["same"])]
    return _save(
        path,
        nodes,
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["rows", 2]) for name in "ab"],
        [
            helper.make_tensor_value_info("sum", TensorProto.INT64, ["rows", 2]),
            helper.make_tensor_value_info("same", TensorProto.BOOL, ["rows", 2]),
        ],
    )


def scaled(path: Path) -> Path:
    """`y` = `x` less the mean of all its rows: (rows, 3) -> (rows, 3), and no row is for itself."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], axes=[0], keepdims=1),
        helper.make_node("Sub", ["x", "mean"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 3]) for name in "xy"]
    return _save(path, nodes, ends[:1], ends[1:])


def echo(path: Path) -> Path:
    """Text in, the same text out."""
    ends = [helper.make_tensor_value_info(name, TensorProto.STRING, ["rows"]) for name in ("text", "said")]
    return _save(path, [helper.make_node("Identity", ["text"], ["said"])], ends[:1], ends[1:])


def _save(path: Path, nodes: Any, inputs: Any, outputs: Any, weights: Any = ()) -> Path:
    graph = helper.make_graph(nodes, path.stem, inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path

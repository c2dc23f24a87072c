"""Converts a SavedModel or a Keras file to ONNX, and compares what both answer. Two processes, two environments:

    python -m lapis.scoring.convert make MODEL ONNX ANSWERS [SAMPLE]    in the environment of the model's TensorFlow
    python -m lapis.scoring.convert compare ONNX ANSWERS REPORT         in the environment that will serve

`make` writes the ONNX file and, beside the inputs it tried, what the original answered; `compare` asks the ONNX file
the same and writes a report. Exit status CANNOT: it is not possible, for the reason in the last line.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from typing import Any

import numpy

from lapis.errors import AzureMLException
from lapis.scoring.tensors import SIGNATURES, Arrays, Runtime, Tensor

CANNOT = 4
KERAS_NAME = "serve"  # under which model.export() stores the default signature once more
OPSETS = (
    15,
    18,
)  # the first that works: old enough for every ONNX Runtime of today, else the newest that tf2onnx knows
ROWS = (1, 5)  # of the examples: one alone, and several at once
SIZES = (32, 224)  # of other dimensions that may have any: the first that the model takes
RELATIVE, ABSOLUTE = 1e-3, 1e-4  # what may differ: other kernels add in another order


class Impossible(Exception):
    """It cannot be converted; the message says why, in a sentence without its full stop."""


def main(argv: list[str]) -> int:
    try:
        (make if argv[0] == "make" else compare)(*argv[1:])
    except Impossible as error:
        print(error, file=sys.stderr)
        return CANNOT
    except AzureMLException as error:
        print(error.message, file=sys.stderr)
        return CANNOT
    return 0


def make(model: str, target: str, answers: str, sample: str = "") -> None:
    """Write the ONNX file with the names of the model's default signature; and inputs with the original's outputs."""
    import tensorflow as tf

    try:
        import tf2onnx.convert
    except ImportError as error:
        raise Impossible(f"tf2onnx does not work beside TensorFlow {tf.__version__}: {_one_line(error)}") from None
    runtime = _original(model)
    if any(each.dtype == "string" for each in (*runtime.inputs, *runtime.outputs)):
        raise Impossible("it takes or gives text, which ONNX files of TensorFlow do not")
    same = _same_as_default(model, runtime)
    examples, of = _examples(runtime, sample)
    with tempfile.TemporaryDirectory(prefix="lapis-convert-") as scratch:
        folder = _as_saved_model(model, scratch)
        opset = _convert(folder, runtime.default, target)
        _name_ends(folder, runtime, target, same)
    about = {"tensorflow": tf.__version__, "tf2onnx": tf2onnx.__version__, "opset": opset, "examples": of}
    _write_answers(answers, examples, about)


def compare(onnx_file: str, answers: str, report: str) -> None:
    """Ask the ONNX file what the original was asked. Impossible if it does not load, or answers something else."""
    import onnxruntime

    from lapis.scoring.runtimes import onnx as onnx_runtime

    try:
        runtime = onnx_runtime.load(onnx_file)
    except Exception as error:
        raise Impossible(f"ONNX Runtime cannot load the result: {_one_line(error)}") from None
    examples, about = _read_answers(answers)
    largest, worst = 0.0, ""
    for inputs, expected in examples:
        try:
            found = runtime.run(runtime.default, inputs)
        except Exception as error:
            raise Impossible(f"ONNX Runtime fails where the original answers: {_one_line(error)}") from None
        for name, value in expected.items():
            difference = _difference(found[name], value, name)
            if difference >= largest:
                largest, worst = difference, name
    rows = sum(len(next(iter(inputs.values()))) for inputs, _ in examples)
    with open(report, "w") as file:
        json.dump({**about, "onnxruntime": onnxruntime.__version__, "rows": rows, "largest_difference": largest,
                   "output": worst}, file, indent=2)  # fmt: skip


# The original


def _original(model: str) -> Runtime:
    if _is_keras_file(model):
        from lapis.scoring.runtimes import keras

        return keras.load(model)
    from lapis.scoring.runtimes import tensorflow

    return tensorflow.load(model)


def _is_keras_file(model: str) -> bool:
    from lapis.scoring.runtimes.ready import SAVED_MODEL_FILES

    return os.path.isfile(model) or not any(
        name in SAVED_MODEL_FILES for _, _, names in os.walk(model) for name in names
    )


def _same_as_default(model: str, runtime: Runtime) -> list[str]:
    """Other names of the default signature. Signatures that are other functions cannot come along."""
    others = [name for name in runtime.signatures if name != runtime.default]
    if not others:
        return []
    from lapis.scoring.runtimes import tensorflow
    from lapis.scoring.runtimes.ready import saved_model_folder

    defined = tensorflow.graph_to_serve(saved_model_folder(model)).signature_def

    def is_same(name: str) -> bool:
        if name == KERAS_NAME:
            return runtime.signatures[name] == runtime.signatures[runtime.default]
        one, other = defined[name], defined[runtime.default]
        return dict(one.inputs) == dict(other.inputs) and dict(one.outputs) == dict(other.outputs)

    different = [name for name in others if not is_same(name)]
    if different:
        raise Impossible(f"it has the signatures {', '.join(runtime.signatures)}, and an ONNX file holds one")
    return others


def _examples(runtime: Runtime, sample: str) -> tuple[list[tuple[Arrays, Arrays]], str]:
    if sample:
        from lapis.scoring import request_formats

        with open(sample, "rb") as file:
            request = request_formats.parse(file.read(), request_formats.JSON, runtime)
        return [(request.inputs, runtime.run(runtime.default, request.inputs))], "the sample"
    chance = numpy.random.RandomState(0)
    for size in SIZES:
        try:
            made = [_random(runtime.inputs, rows, size, chance) for rows in ROWS]
            return [(each, runtime.run(runtime.default, each)) for each in made], "random numbers"
        except Exception as error:
            why = _one_line(error)
    raise Impossible(
        "the model itself does not answer random numbers of its input's shape, so there is nothing to compare with "
        f"({why})"
    )


def _random(inputs: list[Tensor], rows: int, size: int, chance: Any) -> Arrays:
    return {each.name: _random_array(each, rows, size, chance) for each in inputs}


def _random_array(tensor: Tensor, rows: int, size: int, chance: Any) -> Any:
    if tensor.shape is None:
        raise Impossible(f"input {tensor} may have any number of dimensions")
    free = [rows if place == 0 else size for place in range(len(tensor.shape))]
    shape = [some if fixed is None else fixed for some, fixed in zip(free, tensor.shape)]
    if tensor.dtype.startswith("float"):
        return chance.random_sample(shape).astype(tensor.dtype)
    return chance.randint(0, 2, shape).astype(tensor.dtype)  # 0 and 1 are in every vocabulary


# The conversion


def _as_saved_model(model: str, scratch: str) -> str:
    from lapis.scoring.runtimes.ready import only_file, saved_model_folder

    if not _is_keras_file(model):
        return saved_model_folder(model)
    import tensorflow as tf

    from lapis.scoring.runtimes import keras

    path, folder = only_file(model, keras.ENDINGS, "A Keras model"), os.path.join(scratch, "saved_model")
    (_save_graph if tf.__version__.startswith("1.") else _save_function)(path, folder)
    return folder


def _save_function(path: str, folder: str) -> None:
    import tensorflow as tf

    from lapis.scoring.runtimes import keras

    model = keras.read(path)
    function, inputs, outputs = keras.as_function(model), keras.inputs_of(model), keras.outputs_of(model)

    def named(**values: Any) -> dict[str, Any]:
        found = function(*[values[each.name] for each in inputs])
        return {each.name: value for each, value in zip(outputs, found)}

    specs = {each.name: tf.TensorSpec(each.shape, each.dtype, name=each.name) for each in inputs}
    signature = tf.function(named, autograph=False).get_concrete_function(**specs)
    tf.saved_model.save(model, folder, signatures={"serving_default": signature})


def _save_graph(path: str, folder: str) -> None:
    """TensorFlow 1: tf2onnx understands what its sessions save, and not its first functions."""
    import tensorflow as tf

    from lapis.scoring.runtimes import keras

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.keras.backend.set_session(session)
        tf.compat.v1.keras.backend.set_learning_phase(0)
        model = keras.read(path)
        inputs = {each.name: value for each, value in zip(keras.inputs_of(model), model.inputs)}
        outputs = {each.name: value for each, value in zip(keras.outputs_of(model), model.outputs)}
        tf.compat.v1.saved_model.simple_save(session, folder, inputs, outputs)


def _convert(folder: str, signature: str, target: str) -> int:
    """The opset that it took. tf2onnx is called as from the command line, which is the same in all its versions."""
    from tf2onnx import convert

    heard = _Complaints()
    logging.getLogger("tf2onnx").addHandler(heard)
    for opset in OPSETS:
        argv = ["--saved-model", folder, "--signature_def", signature, "--tag", _tag(folder)]
        argv += ["--opset", str(opset), "--output", target]
        before, sys.argv = sys.argv, ["tf2onnx.convert", *argv]
        try:
            convert.main()
        except (Exception, SystemExit) as error:
            heard.lines.append(_one_line(error))
            continue
        finally:
            sys.argv = before
        return opset
    raise Impossible(f"tf2onnx cannot convert it: {'; '.join(dict.fromkeys(heard.lines))[:500]}")


class _Complaints(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(_one_line(record.getMessage()))


def _tag(folder: str) -> str:
    from lapis.scoring.runtimes import tensorflow

    return ",".join(tensorflow.graph_to_serve(folder).meta_info_def.tags) or "serve"


def _name_ends(folder: str, runtime: Runtime, target: str, same: list[str]) -> None:
    """Call inputs and outputs as the signature does, and note its names. TensorFlow 1 leaves its graph's: `X:0`."""
    import onnx

    from lapis.scoring.runtimes import tensorflow

    model = onnx.load(target)
    signature = tensorflow.graph_to_serve(folder).signature_def[runtime.default]
    for wanted, ends, declared in (
        ([each.name for each in runtime.inputs], model.graph.input, signature.inputs),
        ([each.name for each in runtime.outputs], model.graph.output, signature.outputs),
    ):
        there = [each.name for each in ends]
        for name in wanted:
            if name in there:
                continue
            in_graph = declared[name].name if name in declared else ""
            if in_graph not in there:
                raise Impossible(f"'{name}' is not among what the result has: {', '.join(there)}")
            _rename(model.graph, in_graph, name)
    onnx.helper.set_model_props(model, {SIGNATURES: ",".join([runtime.default, *same])})
    onnx.save(model, target)


def _rename(graph: Any, before: str, after: str) -> None:
    for node in graph.node:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                if name == before:
                    names[place] = after
    for each in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        if each.name == before:
            each.name = after


# What both answered


def _write_answers(path: str, examples: list[tuple[Arrays, Arrays]], about: dict[str, Any]) -> None:
    named: dict[str, Any] = {"about": numpy.array(json.dumps(about))}
    for place, sides in enumerate(examples):
        for side, arrays in zip(("in", "out"), sides):
            named.update({f"{side}|{place}|{name}": numpy.asarray(array) for name, array in arrays.items()})
    with open(path, "wb") as file:
        numpy.savez(file, **named)


def _read_answers(path: str) -> tuple[list[tuple[Arrays, Arrays]], dict[str, Any]]:
    with numpy.load(path) as stored:
        about = json.loads(str(stored["about"]))
        examples: dict[int, tuple[Arrays, Arrays]] = {}
        for key in stored.files:
            if key != "about":
                side, place, name = key.split("|", 2)
                examples.setdefault(int(place), ({}, {}))[side == "out"][name] = stored[key]
    return [examples[place] for place in sorted(examples)], about


def _difference(found: Any, expected: Any, name: str) -> float:
    """The largest, in absolute terms. Impossible if it is more than other kernels explain."""
    if found.shape != expected.shape:
        raise Impossible(f"output '{name}' has shape {list(found.shape)}, and the original {list(expected.shape)}")
    if not found.size:
        return 0.0
    if expected.dtype.kind == "f":
        finite = numpy.isfinite(expected)
        if not numpy.array_equal(finite, numpy.isfinite(found)):
            raise Impossible(f"output '{name}' is not finite where the original is, or the other way round")
        gap = numpy.abs(numpy.where(finite, found, 0).astype("float64") - numpy.where(finite, expected, 0))
        allowed = ABSOLUTE + RELATIVE * numpy.abs(numpy.where(finite, expected, 0))
    else:
        gap = (found != expected).astype("float64")
        allowed = numpy.zeros(expected.shape)
    largest = float(gap.max())
    if (gap > allowed).any():
        raise Impossible(f"output '{name}' differs from the original's by up to {largest:.3g}")
    return largest


def _one_line(value: Any) -> str:
    return " ".join(str(getattr(value, "message", value)).split())[:400] or type(value).__name__


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Serves a Keras file (.h5, .hdf5, .keras) through one concrete function."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # its greetings do not belong into a service's log
import tensorflow as tf

from lapis.errors import UserErrorException
from lapis.scoring.runtimes import keras_files
from lapis.scoring.runtimes.ready import make_ready, only_file
from lapis.scoring.tensors import Arrays, BadRequest, Runtime, Tensor

ENDINGS = (".h5", ".hdf5", ".keras")


def load(model: str, sample: str | None = None) -> Runtime:
    tf.compat.v1.enable_eager_execution()  # TensorFlow 1.15 can, and 2 does anyway
    runtime = _Keras(read(only_file(model, ENDINGS, "A Keras model")))
    make_ready(runtime, sample)
    return runtime


def read(path: str) -> Any:
    """The model, without what only training needs. One that holds code is refused."""
    try:
        keras_files.check(path)
        model = tf.keras.models.load_model(path, compile=False, **_safe_mode())
    except (ValueError, TypeError) as error:
        raise UserErrorException(
            f"Keras of TensorFlow {tf.__version__} cannot load {os.path.basename(path)}: {error}. Layers of one's own "
            "need an entry script; a file of another TensorFlow needs its model_framework_version."
        ) from error
    if not getattr(model, "inputs", None):
        raise UserErrorException(
            f"{os.path.basename(path)} does not say what its inputs are. Call the model once, or give its first layer "
            "an input shape, before it is saved."
        )
    return model


def _safe_mode() -> dict[str, bool]:
    """Keras has it from 2.13 on."""
    import inspect

    known = inspect.signature(tf.keras.models.load_model).parameters
    return {"safe_mode": keras_files.safe_mode()} if "safe_mode" in known else {}


def inputs_of(model: Any) -> list[Tensor]:
    names = getattr(model, "input_names", None) or [each.name for each in model.inputs]
    return [_tensor(name, each) for name, each in zip(names, model.inputs)]


def outputs_of(model: Any) -> list[Tensor]:
    names = getattr(model, "output_names", None) or [_layer_of(each) for each in model.outputs]
    if len(set(names)) < len(model.outputs):
        names = [f"output_{place}" for place in range(len(model.outputs))]
    return [_tensor(name, each) for name, each in zip(names, model.outputs)]


def as_function(model: Any) -> Any:
    """A tf.function from the inputs, in order, to the list of outputs."""
    specs = [tf.TensorSpec(each.shape, each.dtype, name=each.name) for each in inputs_of(model)]

    def call(*values: Any) -> Any:
        found = model(list(values) if len(values) > 1 else values[0], training=False)
        return found if isinstance(found, (list, tuple)) else [found]

    return tf.function(call, input_signature=specs, autograph=False)


class _Keras(Runtime):
    platform = "keras"

    def __init__(self, model: Any) -> None:
        super().__init__({"serving_default": (inputs_of(model), outputs_of(model))}, "serving_default")
        self._model = model
        self._function = as_function(model).get_concrete_function()

    def run(self, signature: str, inputs: Arrays) -> Arrays:
        try:
            found = self._function(*[tf.constant(inputs[each.name]) for each in self.inputs])
        except tf.errors.InvalidArgumentError as error:
            raise BadRequest(f"The model refused the input: {error.message}") from None
        return {each.name: value.numpy() for each, value in zip(self.outputs, found)}


def _layer_of(output: Any) -> str:
    """The layer that it comes from, whose name was stored; Keras 3 counts the tensors anew in each process."""
    history = getattr(output, "_keras_history", None)
    layer = getattr(history, "operation", None) or getattr(history, "layer", None)
    return str(layer.name if layer is not None else output.name)


def _tensor(name: str, value: Any) -> Tensor:
    shape = [getattr(size, "value", size) for size in value.shape]  # TensorFlow 1 wraps each number
    return Tensor(str(name).split(":")[0], tf.as_dtype(value.dtype).name, tuple(shape))

"""Lets `import tensorflow` mean TensorFlow 1, as far as TensorFlow 2 still has it: tensorflow.compat.v1."""

from __future__ import annotations

import importlib
from typing import Any

from lapis_old_code import tell


def apply(tensorflow: Any) -> None:
    v1 = importlib.import_module("tensorflow.compat.v1")
    v1.disable_v2_behavior()
    # The names are taken over into the same module: submodules are still found where they lie. Keras and the like are
    # loaded when they are first used, and stay so.
    for name, value in list(vars(v1).items()):
        if name != "compat" and not name.startswith("__"):  # Keras finds its TensorFlow through compat
            setattr(tensorflow, name, value)
    tensorflow.contrib = _Contrib()
    tell(
        f"the environment asks for TensorFlow 1; `tensorflow` is tensorflow.compat.v1 of {tensorflow.__version__} here."
    )


class _Contrib:
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"tf.contrib.{name} went away with TensorFlow 2. With Python 3.7 on the machine, Lapis installs "
            "TensorFlow 1: `uv python install 3.7`."
        )

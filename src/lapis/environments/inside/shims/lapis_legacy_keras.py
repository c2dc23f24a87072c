"""Lets `import keras` mean Keras 2, which is called tf_keras beside TensorFlow 2.16 and later."""

from __future__ import annotations

import importlib
from typing import Any


def stand_in(name: str, module: Any) -> Any:
    return importlib.import_module("tf_keras" + name[len("keras") :])

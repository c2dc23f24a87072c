"""Gives `keras.optimizers` of Keras 2.6 to 2.8 its names back: they were in tensorflow.keras.optimizers alone."""

from __future__ import annotations

import importlib
from typing import Any


def apply(module: Any) -> None:
    def __getattr__(name: str) -> Any:
        return getattr(importlib.import_module("tensorflow").keras.optimizers, name)

    if "Adam" not in vars(module):
        module.__getattr__ = __getattr__

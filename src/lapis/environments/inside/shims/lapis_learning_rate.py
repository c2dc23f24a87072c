"""Lets the optimizers of newer Keras obey `lr` and `decay`, which they refuse or, worse, take and pass over."""

from __future__ import annotations

import functools
import importlib
from typing import Any, Callable

from lapis_old_code import tell, watches

_told: set[str] = set()


def apply(module: Any) -> None:
    """`module` has the class that all optimizers inherit from, and none of them is defined yet."""
    base = getattr(module, "BaseOptimizer", None) or getattr(module, "_BaseOptimizer", None) or module.Optimizer

    def __init_subclass__(cls: Any, **kwargs: Any) -> None:
        super(base, cls).__init_subclass__(**kwargs)
        own = cls.__dict__.get("__init__")
        code = getattr(own, "__code__", None)
        if code is not None:
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            if "learning_rate" in names and "lr" not in names:
                cls.__init__ = _obeying(own, names)

    if watches("tensorflow"):
        base.__new__ = _fit_for_graphs
    base.__init_subclass__ = classmethod(__init_subclass__)  # type: ignore[arg-type]


def _obeying(init: Callable[..., None], names: Any) -> Callable[..., None]:
    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("lr") is not None and "learning_rate" not in kwargs:
            kwargs["learning_rate"] = kwargs.pop("lr")
            _tell_once("lr", f"this Keras calls lr learning_rate; it was set to {kwargs['learning_rate']}.")
        if "decay" in kwargs and "decay" not in names:
            decay = kwargs.pop("decay")
            if decay:
                kwargs["learning_rate"] = _decaying(self, kwargs.get("learning_rate", args[0] if args else None), decay)
                args = args[1:]
                _tell_once("decay", f"this Keras has no decay in optimizers; a schedule does it, with {decay}.")
        init(self, *args, **kwargs)

    return __init__


def _fit_for_graphs(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Where `tensorflow` is TensorFlow 1, only the older optimizers work. They know lr and decay themselves."""
    v1 = importlib.import_module("tensorflow.compat.v1")
    older = getattr(_keras(cls, "optimizers.legacy"), cls.__name__, None)
    if older is None or v1.executing_eagerly_outside_functions():
        return object.__new__(cls)
    return older(*args, **kwargs)


def _decaying(optimizer: Any, rate: Any, decay: float) -> Any:
    """The same decay, as a schedule: rate / (1 + decay * step)."""
    schedules = _keras(type(optimizer), "optimizers.schedules")
    return schedules.InverseTimeDecay(0.001 if rate is None else rate, decay_steps=1, decay_rate=decay)


def _keras(cls: Any, module: str) -> Any:
    """A module of the Keras that the class is of: keras or tf_keras."""
    return importlib.import_module("{}.{}".format(cls.__module__.split(".")[0], module))


def _tell_once(what: str, text: str) -> None:
    if what not in _told:
        _told.add(what)
        tell(text)

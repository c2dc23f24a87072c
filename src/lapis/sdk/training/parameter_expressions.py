"""The distributions that hyperparameters are drawn from. Each is a plain list, as SDK v1 writes it."""

from __future__ import annotations

from typing import Any

from lapis.domain.spaces import CHOICE, RANDINT, WHEN, check_expression


def choice(*options: Any) -> list[Any]:
    """One of these values; a list or a range of values is taken apart."""
    values = list(options)
    if len(values) == 1 and hasattr(values[0], "__iter__") and not isinstance(values[0], (str, bytes, dict)):
        values = list(values[0])
    return check_expression(CHOICE, [[_plain(value) for value in values]])


def randint(upper: int) -> list[Any]:
    """A whole number from 0 up to, and without, `upper`."""
    return check_expression(RANDINT, [_plain(upper)])


def uniform(min_value: float, max_value: float) -> list[Any]:
    """A number between the two."""
    return _expression("uniform", min_value, max_value)


def quniform(min_value: float, max_value: float, q: float) -> list[Any]:
    """As uniform(), rounded to a multiple of `q`."""
    return _expression("quniform", min_value, max_value, q)


def loguniform(min_value: float, max_value: float) -> list[Any]:
    """exp(uniform(min_value, max_value)): the bounds are logarithms."""
    return _expression("loguniform", min_value, max_value)


def qloguniform(min_value: float, max_value: float, q: float) -> list[Any]:
    """As loguniform(), rounded to a multiple of `q`."""
    return _expression("qloguniform", min_value, max_value, q)


def normal(mu: float, sigma: float) -> list[Any]:
    """A number of the normal distribution with that mean and standard deviation."""
    return _expression("normal", mu, sigma)


def qnormal(mu: float, sigma: float, q: float) -> list[Any]:
    """As normal(), rounded to a multiple of `q`."""
    return _expression("qnormal", mu, sigma, q)


def lognormal(mu: float, sigma: float) -> list[Any]:
    """exp(normal(mu, sigma))."""
    return _expression("lognormal", mu, sigma)


def qlognormal(mu: float, sigma: float, q: float) -> list[Any]:
    """As lognormal(), rounded to a multiple of `q`."""
    return _expression("qlognormal", mu, sigma, q)


def when(parameter: str, values: Any, expression: Any) -> list[Any]:
    """Lapis' own: `expression`, but only if another parameter, which stands before it, has one of these values."""
    several = list(values) if isinstance(values, (list, tuple, set, range)) else [values]
    return [WHEN, [parameter, [_plain(value) for value in several], expression]]


def _expression(kind: str, *arguments: Any) -> list[Any]:
    return check_expression(kind, [_plain(each) for each in arguments])


def _plain(value: Any) -> Any:
    """A number of numpy's as Python's own."""
    return value.item() if hasattr(value, "item") and callable(value.item) else value

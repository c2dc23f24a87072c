"""The space that a hyperparameter search looks through: checked, counted, and drawn from.

A space gives each parameter an expression, which is a plain list as SDK v1 writes it: `['uniform', [0, 1]]`. One more
kind is Lapis' own: `['when', ['optimizer', ['sgd'], ['uniform', [0.8, 0.99]]]]` is there only if `optimizer` is `sgd`.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any, Callable, Mapping, Sequence

from lapis.domain import limits
from lapis.domain.limits import CHOICES, NAME, WHOLE, shown
from lapis.errors import HyperDriveConfigException

Expression = Sequence[Any]
Space = Mapping[str, Expression]

CHOICE, RANDINT, WHEN = "choice", "randint", "when"
_BOUNDS, _BELL = ("min_value", "max_value"), ("mu", "sigma")
PARAMETERS = {
    "uniform": _BOUNDS,
    "quniform": (*_BOUNDS, "q"),
    "loguniform": _BOUNDS,
    "qloguniform": (*_BOUNDS, "q"),
    "normal": _BELL,
    "qnormal": (*_BELL, "q"),
    "lognormal": _BELL,
    "qlognormal": (*_BELL, "q"),
    RANDINT: ("upper",),
}
BAYESIAN = (CHOICE, "uniform", "quniform")  # what SDK v1 takes for Bayesian sampling
KINDS = (CHOICE, *PARAMETERS)


def check_space(space: Any) -> dict[str, list[Any]]:
    """The space as plain lists; each parameter that another hangs on stands before it."""
    if not isinstance(space, Mapping) or not space:
        raise HyperDriveConfigException(
            "The parameter space is empty: give a dictionary such as {'--learning-rate': uniform(0.01, 0.1)}."
        )
    if len(space) > limits.PARAMETERS:
        most = limits.PARAMETERS
        raise HyperDriveConfigException(f"A parameter space has at most {most} parameters, not {len(space)}.")
    checked: dict[str, list[Any]] = {}
    for name, expression in space.items():
        if (
            not isinstance(name, str)
            or len(name) > NAME
            or not name.strip("-").strip()
            or any(c.isspace() for c in name)
        ):
            raise HyperDriveConfigException(
                f"A parameter's name is text without spaces, of at most {NAME} characters, not {shown(name)}."
            )
        twin = next((other for other in checked if argument_name(other) == argument_name(name)), None)
        if twin is not None:
            raise HyperDriveConfigException(f"Parameters '{twin}' and '{name}' are the same argument.")
        checked[name] = _checked(name, expression, checked)
    _check_conditions(checked)
    return checked


def _check_conditions(space: Space) -> None:
    """Counting a space takes a look at every value of what others hang on."""
    hung_on = set().union(*(_hangs_on(expression) for expression in space.values()))
    ways = 1
    for name in hung_on:
        ways *= len(_options(space[name]))
    if ways > CHOICES:
        raise HyperDriveConfigException(
            f"The parameters that others hang on ({', '.join(sorted(hung_on)[:5])}) have more than {CHOICES} values "
            "together."
        )


def check_expression(kind: str, arguments: Sequence[Any], name: str = "") -> list[Any]:
    where = f" of parameter '{name}'" if name else ""
    if kind == CHOICE:
        options = arguments[0] if len(arguments) == 1 else None
        if not isinstance(options, (list, tuple, range)) or not options:
            raise HyperDriveConfigException(f"choice(){where} needs at least one value to choose from.")
        if len(options) > CHOICES:
            raise HyperDriveConfigException(f"choice(){where} takes at most {CHOICES} values, not {len(options)}.")
        return [CHOICE, [list(options)]]
    if kind not in PARAMETERS:
        raise HyperDriveConfigException(f"{kind!r}{where} is no expression. Known: {', '.join(KINDS)}.")
    names = PARAMETERS[kind]
    if len(arguments) != len(names):
        raise HyperDriveConfigException(f"{kind}(){where} takes {', '.join(names)}, not {len(arguments)} values.")
    for what, value in zip(names, arguments):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not _is_finite(value):
            raise HyperDriveConfigException(f"{what} of {kind}(){where} must be a number, not {shown(value)}.")
    values = dict(zip(names, arguments))
    if kind == RANDINT and (values["upper"] != int(values["upper"]) or not 1 <= values["upper"] <= WHOLE):
        raise HyperDriveConfigException(f"upper of randint(){where} must be a whole number from 1 to {WHOLE}.")
    if "min_value" in values and values["min_value"] >= values["max_value"]:
        raise HyperDriveConfigException(
            f"min_value of {kind}(){where} must be below max_value: {values['min_value']} and {values['max_value']}."
        )
    for what in ("sigma", "q"):
        if what in values and values[what] <= 0:
            raise HyperDriveConfigException(f"{what} of {kind}(){where} must be above 0, not {values[what]}.")
    return [kind, [int(values["upper"])] if kind == RANDINT else list(arguments)]


def kinds(space: Space) -> dict[str, str]:
    """The kind of each parameter; of a conditional one, of what it is when it is there."""
    return {name: unconditional(expression)[0] for name, expression in space.items()}


def unconditional(expression: Expression) -> Expression:
    while expression[0] == WHEN:
        expression = expression[1][2]
    return expression


def applies(expression: Expression, chosen: Mapping[str, Any]) -> bool:
    """Whether a parameter is there, given those before it."""
    while expression[0] == WHEN:
        other, values, expression = expression[1]
        if other not in chosen or chosen[other] not in values:
            return False
    return True


def draw(space: Space, chance: Random) -> dict[str, Any]:
    """One point of the space, by chance."""
    chosen: dict[str, Any] = {}
    for name, expression in space.items():
        if applies(expression, chosen):
            kind, arguments = unconditional(expression)
            chosen[name] = _DRAW[kind](chance, *arguments)
    return chosen


def size(space: Space) -> int | None:
    """How many points the space has; None if there is no end of them, or as good as none."""
    if any(kind not in (CHOICE, RANDINT) for kind in kinds(space).values()):
        return None
    count = _count(list(space.items()), {})
    return count if count <= WHOLE else None


def point(space: Space, index: int) -> dict[str, Any]:
    """The point of that number of a space that has an end, in the order of its parameters."""
    chosen: dict[str, Any] = {}
    items = list(space.items())
    for at, (name, expression) in enumerate(items):
        if not applies(expression, chosen):
            continue
        for option in _options(expression):
            below = _count(items[at + 1 :], {**chosen, name: option})
            if index < below:
                chosen[name] = option
                break
            index -= below
        else:
            raise IndexError(index)
    return chosen


def argument_name(name: str) -> str:
    """A parameter as the script's argument: `batch-size` and `--batch-size` are the same."""
    return name if name.startswith("-") else f"--{name}"


def as_arguments(parameters: Mapping[str, Any]) -> list[str]:
    """`--name value` for each; a whole number has no decimal point, so that scripts can read it as one."""
    return [word for name, value in parameters.items() for word in (argument_name(name), _text(value))]


def _checked(name: str, expression: Any, before: Mapping[str, Expression]) -> list[Any]:
    if not isinstance(expression, (list, tuple)) or len(expression) != 2 or not isinstance(expression[0], str):
        raise HyperDriveConfigException(
            f"Parameter '{name}' needs an expression such as choice(16, 32) or uniform(0, 1), not {expression!r}."
        )
    kind, arguments = expression
    if not isinstance(arguments, (list, tuple)):
        raise HyperDriveConfigException(f"The expression of parameter '{name}' cannot be read: {expression!r}.")
    if kind != WHEN:
        return check_expression(kind, arguments, name)
    if len(arguments) != 3 or not isinstance(arguments[1], (list, tuple)):
        raise HyperDriveConfigException(f"when() of parameter '{name}' takes a parameter, its values, an expression.")
    other, values, inner = arguments
    if not isinstance(other, str) or other not in before:
        raise HyperDriveConfigException(
            f"Parameter '{name}' hangs on '{other}', which must stand before it in the space. "
            f"Before it: {', '.join(before) or 'none'}."
        )
    kind_of_other, options = unconditional(before[other])
    if kind_of_other != CHOICE or not all(value in options[0] for value in values):
        raise HyperDriveConfigException(
            f"Parameter '{name}' hangs on '{other}' being {list(values)!r}, which it never is: {before[other]!r}."
        )
    return [WHEN, [other, list(values), _checked(name, inner, before)]]


def _options(expression: Expression) -> Sequence[Any]:
    kind, arguments = unconditional(expression)
    return range(arguments[0]) if kind == RANDINT else arguments[0]


def _count(items: list[tuple[str, Expression]], chosen: dict[str, Any]) -> int:
    total = 1
    for at, (name, expression) in enumerate(items):
        if not applies(expression, chosen):
            continue
        options, rest = _options(expression), items[at + 1 :]
        if any(name in _hangs_on(other) for _, other in rest):
            return total * sum(_count(rest, {**chosen, name: option}) for option in options)
        total *= len(options)
    return total


def _hangs_on(expression: Expression) -> set[str]:
    found = set()
    while expression[0] == WHEN:
        found.add(expression[1][0])
        expression = expression[1][2]
    return found


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number with hundreds of digits
        return False


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return str(value)


def rounded(value: float, q: float) -> float:
    """The nearest multiple of `q`, without the dust that floating point leaves."""
    return float(f"{round(value / q) * q:.12g}")


_DRAW: Mapping[str, Callable[..., Any]] = {
    CHOICE: lambda chance, options: options[chance.randrange(len(options))],
    RANDINT: lambda chance, upper: chance.randrange(upper),
    "uniform": lambda chance, low, high: chance.uniform(low, high),
    "quniform": lambda chance, low, high, q: rounded(chance.uniform(low, high), q),
    "loguniform": lambda chance, low, high: math.exp(chance.uniform(low, high)),
    "qloguniform": lambda chance, low, high, q: rounded(math.exp(chance.uniform(low, high)), q),
    "normal": lambda chance, mu, sigma: chance.normalvariate(mu, sigma),
    "qnormal": lambda chance, mu, sigma, q: rounded(chance.normalvariate(mu, sigma), q),
    "lognormal": lambda chance, mu, sigma: math.exp(chance.normalvariate(mu, sigma)),
    "qlognormal": lambda chance, mu, sigma, q: rounded(math.exp(chance.normalvariate(mu, sigma)), q),
}

"""The space of a search: what can be in it, how many points it has, and what is drawn from it."""

from __future__ import annotations

import math
from random import Random
from statistics import mean
from typing import Any

import pytest

from lapis.domain import spaces
from lapis.errors import HyperDriveConfigException
from lapis.sdk.training.parameter_expressions import (
    choice,
    lognormal,
    loguniform,
    normal,
    qlognormal,
    qloguniform,
    qnormal,
    quniform,
    randint,
    uniform,
    when,
)

CONDITIONAL = {
    "optimizer": choice("sgd", "adam"),
    "momentum": when("optimizer", "sgd", choice(0.8, 0.9)),
    "layers": choice(1, 2),
    "width": when("layers", [2], choice(8, 16, 32)),
}


@pytest.mark.parametrize(
    ("made", "plain"),
    [
        (choice(1, 2, 3), ["choice", [[1, 2, 3]]]),
        (choice([1, 2]), ["choice", [[1, 2]]]),
        (choice(range(1, 4)), ["choice", [[1, 2, 3]]]),
        (choice("relu"), ["choice", [["relu"]]]),
        (uniform(0, 1), ["uniform", [0, 1]]),
        (quniform(1, 9, 2), ["quniform", [1, 9, 2]]),
        (randint(5), ["randint", [5]]),
    ],
)
def test_an_expression_is_the_plain_list_that_sdk_v1_writes(made: Any, plain: Any) -> None:
    assert made == plain


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: choice(),
        lambda: choice([]),
        lambda: uniform(1, 1),
        lambda: uniform(2, 1),
        lambda: uniform("a", 1),
        lambda: quniform(0, 1, 0),
        lambda: normal(0, 0),
        lambda: normal(0, float("nan")),
        lambda: randint(0),
        lambda: randint(2.5),
    ],
)
def test_an_expression_that_means_nothing_is_refused(wrong: Any) -> None:
    with pytest.raises(HyperDriveConfigException):
        wrong()


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ({}, "is empty"),
        (None, "is empty"),
        ({"lr": 0.1}, "needs an expression"),
        ({"lr": ["gauss", [1, 2]]}, "is no expression. Known: choice, uniform"),
        ({"": uniform(0, 1)}, "name"),
        ({"--": uniform(0, 1)}, "name"),
        ({"lr": uniform(0, 1), "--lr": uniform(0, 1)}, "'lr' and '--lr' are the same argument"),
        ({"m": when("o", "sgd", uniform(0, 1)), "o": choice("sgd")}, "must stand before it"),
        ({"o": choice("sgd"), "m": when("o", "adam", uniform(0, 1))}, "which it never is"),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused(space: Any, said: str) -> None:
    with pytest.raises(HyperDriveConfigException) as refused:
        spaces.check_space(space)
    assert said in refused.value.message


DRAWS: list[tuple[list[Any], Any, Any]] = [
    (uniform(2, 4), lambda v: 2 <= v <= 4, 3),
    (quniform(0, 1, 0.25), lambda v: v in (0, 0.25, 0.5, 0.75, 1), 0.5),
    (loguniform(math.log(1e-4), math.log(1e-2)), lambda v: 1e-4 <= v <= 1e-2, None),
    (qloguniform(0, 3, 2), lambda v: v % 2 == 0 and 0 <= v <= 20, None),
    (normal(10, 3), lambda v: isinstance(v, float), 10),
    (qnormal(10, 3, 0.5), lambda v: v % 0.5 == 0, 10),
    (lognormal(0, 0.1), lambda v: v > 0, 1),
    (qlognormal(3, 0.1, 1), lambda v: v == int(v), 20),
    (randint(4), lambda v: v in range(4), 1.5),
    (choice(1, 5), lambda v: v in (1, 5), 3),
]


@pytest.mark.parametrize(("expression", "fits", "centre"), DRAWS, ids=[row[0][0] for row in DRAWS])
def test_what_is_drawn_has_its_distribution(expression: Any, fits: Any, centre: float | None) -> None:
    chance = Random(1)
    drawn = [spaces.draw({"p": expression}, chance)["p"] for _ in range(2000)]
    assert all(map(fits, drawn))
    if centre is not None:
        assert mean(drawn) == pytest.approx(centre, rel=0.06)


def test_the_logarithm_of_loguniform_is_uniform() -> None:
    chance = Random(2)
    drawn = [math.log(spaces.draw({"p": loguniform(-6, -1)}, chance)["p"]) for _ in range(2000)]
    assert mean(drawn) == pytest.approx(-3.5, abs=0.1)


def test_a_space_of_choices_has_an_end_and_every_point_of_it_once() -> None:
    space = {"a": choice(1, 2, 3), "b": choice("x", "y"), "c": randint(2)}
    points = [tuple(spaces.point(space, index).items()) for index in range(12)]
    assert spaces.size(space) == len(set(points)) == 12
    assert spaces.size({**space, "d": uniform(0, 1)}) is None
    with pytest.raises(IndexError):
        spaces.point(space, 12)


def test_a_conditional_parameter_is_there_only_if_its_condition_holds() -> None:
    points = [spaces.point(CONDITIONAL, index) for index in range(spaces.size(CONDITIONAL) or 0)]
    assert len(points) == (2 + 1) * (1 + 3)
    assert len({tuple(point.items()) for point in points}) == len(points)
    for point in [*points, *(spaces.draw(CONDITIONAL, Random(seed)) for seed in range(50))]:
        assert ("momentum" in point) == (point["optimizer"] == "sgd")
        assert ("width" in point) == (point["layers"] == 2)


def test_parameters_become_arguments_with_or_without_dashes() -> None:
    arguments = spaces.as_arguments({"--batch-size": 32, "lr": 0.5, "epochs": 65.0, "name": "a b"})
    assert arguments == ["--batch-size", "32", "--lr", "0.5", "--epochs", "65", "--name", "a b"]


def test_conditions_that_would_take_for_ever_to_count_are_refused() -> None:
    options = list(range(100))
    space: dict[str, Any] = {"p0": ["choice", [options]]}
    for number in range(1, 4):
        space[f"p{number}"] = ["when", [f"p{number - 1}", options, ["choice", [options]]]]
    with pytest.raises(HyperDriveConfigException, match="hang on .* more than 100000 values together"):
        spaces.check_space(space)


def test_a_space_too_large_to_count_is_drawn_from_as_one_without_end() -> None:
    assert spaces.size({f"x{number}": ["choice", [[1, 2]]] for number in range(60)}) is None

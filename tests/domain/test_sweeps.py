"""What a search does next, as a pure function: what it starts, what it stops, and how it ends."""

from __future__ import annotations

import math
from random import Random
from statistics import median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapis.domain.sweeps import (
    BAYESIAN,
    RANDOM,
    Board,
    Decision,
    Sampler,
    Spec,
    Start,
    Trial,
    board_of,
    check_spec,
    decide,
)
from lapis.errors import HyperDriveConfigException, HyperDriveScenarioNotSupportedException
from lapis.server.control.bayesian import BayesianSampler

SQUARE: dict[str, Any] = {"x": ["uniform", [-5, 10]], "y": ["uniform", [0, 15]]}
GRID = {"a": ["choice", [[1, 2, 3]]], "b": ["choice", [["u", "v"]]]}


def spec_of(space: Any = None, name: str = RANDOM, seed: int = 1, policy: Any = None, **more: Any) -> Spec:
    body = {
        "sampling": {"name": name, "parameter_space": space or SQUARE, "seed": seed},
        "policy": policy or {"name": "Default", "properties": {}},
        "metric": "loss", "goal": "minimize", "max_total": 10, "max_concurrent": 2, "max_minutes": 10, **more,
    }  # fmt: skip
    return check_spec(body)


def sampler_of(spec: Spec) -> Sampler:
    return BayesianSampler(spec) if spec.sampling.name == BAYESIAN else Sampler(spec)


def search(spec: Spec, value_of: Any, until: int | None = None) -> tuple[Board, list[Start]]:
    """Run a whole search, the oldest trial ending first."""
    board, started, live = Board(spec, sampler_of(spec)), [], []
    while until is None or len(started) < until:
        decision = board.decide(0.0, cancel=False)
        if decision.end is not None:
            break
        for start in decision.start:
            board.started(start)
            started.append(start)
            live.append(start)
        if not decision.start:
            first = live.pop(0)
            board.logged(first.number, [value_of(**first.parameters)])
            board.ended(first.number, "Completed")
    return board, started


def branin(x: float, y: float) -> float:
    """A test function with its least value, 0.398, at three places."""
    bowl = (y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6) ** 2
    return bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def test_so_many_run_at_once_and_so_many_in_all() -> None:
    spec = spec_of(max_total=5, max_concurrent=2)
    assert [start.number for start in decide(spec, Sampler(spec), [], 0.0).start] == [0, 1]
    running = [Trial(0, {}), Trial(1, {}, state="Completed")]
    assert [start.number for start in decide(spec, Sampler(spec), running, 0.0).start] == [2]
    last = [Trial(number, {}, state="Completed") for number in range(4)] + [Trial(4, {})]
    assert decide(spec, Sampler(spec), last, 0.0) == Decision([], [])


def test_without_a_limit_all_run_at_once() -> None:
    spec = spec_of(max_total=7, max_concurrent=None)
    assert len(decide(spec, Sampler(spec), [], 0.0).start) == 7


def test_a_grid_tries_every_combination_once_and_ends() -> None:
    board, started = search(spec_of(GRID, "GRID", max_total=100), lambda a, b: a)
    assert [tuple(start.parameters.values()) for start in started] == [(a, b) for a in (1, 2, 3) for b in ("u", "v")]
    assert board.decide(0.0, cancel=False).end is not None


def test_random_sampling_of_choices_tries_none_twice_and_ends_with_the_space() -> None:
    _, started = search(spec_of(GRID, max_total=100), lambda a, b: a)
    assert len({tuple(start.parameters.items()) for start in started}) == len(started) == 6


@pytest.mark.parametrize("name", [RANDOM, BAYESIAN])
@pytest.mark.parametrize("space", [SQUARE, {"a": ["choice", [[1, 2, 3]]], "x": ["quniform", [0, 10, 0.5]]}])
def test_the_same_seed_gives_the_same_search_and_another_one_another(name: str, space: Any) -> None:
    def parameters(seed: int) -> list[Any]:
        spec = spec_of(space, name, seed, max_total=12, max_concurrent=1)
        return [start.parameters for start in search(spec, lambda **given: sum(given.values()))[1]]

    assert parameters(3) == parameters(3)
    assert parameters(3) != parameters(4)


def test_a_bayesian_search_goes_on_after_a_restart_as_if_nothing_had_happened() -> None:
    spec = spec_of(name=BAYESIAN, max_total=16, max_concurrent=1)
    _, whole = search(spec, branin)
    for cut in (5, 11):
        trials = [Trial(s.number, s.parameters, [branin(**s.parameters)], "Completed") for s in whole[:cut]]
        again = decide(spec, BayesianSampler(spec), trials, 0.0).start
        assert [start.parameters for start in again] == [whole[cut].parameters]


def test_a_bayesian_search_of_choices_and_steps_stays_within_them() -> None:
    space = {
        "o": ["choice", [["sgd", "adam"]]],
        "m": ["when", ["o", ["sgd"], ["quniform", [0.1, 0.9, 0.2]]]],
        "n": ["choice", [[64, 16, 32]]],
    }
    _, started = search(spec_of(space, BAYESIAN, max_total=25), lambda o, n, m=0.0: n + m)
    for start in started:
        assert ("m" in start.parameters) == (start.parameters["o"] == "sgd")
        assert start.parameters["n"] in (16, 32, 64)
        assert start.parameters.get("m", 0.2) in (0.0, 0.2, 0.4, 0.6, 0.8)
    assert min(start.parameters["n"] for start in started[12:]) == 16


def test_bayesian_sampling_beats_chance_with_the_same_budget() -> None:
    def best(name: str, seed: int) -> float:
        board, _ = search(spec_of(name=name, seed=seed, max_total=30, max_concurrent=1), branin)
        assert board.best is not None
        return board.best[1]

    bayesian, chance = ([best(name, seed) for seed in range(20)] for name in (BAYESIAN, RANDOM))
    assert median(bayesian) < median(chance) - 0.3


def test_what_earlier_sweeps_found_out_is_known_to_a_bayesian_search() -> None:
    spec = spec_of(name=BAYESIAN, max_total=4, max_concurrent=1)
    chance = Random(0)
    points = [{"x": chance.uniform(-5, 10), "y": chance.uniform(0, 15)} for _ in range(200)]
    earlier = [Trial(-1 - at, point, [abs(point["x"] - 3)], "Completed") for at, point in enumerate(points)]
    found = [decide(spec._replace(sampling=spec.sampling._replace(seed=seed)), BayesianSampler(spec), [], 0.0,
                    earlier=earlier).start[0].parameters["x"] for seed in range(3)]  # fmt: skip
    assert all(abs(x - 3) < 2 for x in found)


def test_what_earlier_sweeps_found_out_is_known_to_the_policy_and_is_not_the_best_of_this_one() -> None:
    spec = spec_of(policy={"name": "Bandit", "properties": {"slack_factor": 0.1}})
    board = board_of(spec, Sampler(spec), [Trial(0, {}, [2.0])], [Trial(-1, {}, [1.0], "Completed")])
    assert [stop.number for stop in board.decide(0.0, cancel=False).stop] == [0]
    assert board.best == (0, 2.0)


def test_runs_to_go_on_with_come_first_and_count() -> None:
    resumed = [{"run_id": "HD_a_3", "parameters": {"x": 1.0, "y": 2.0}}]
    spec = spec_of(max_total=2, resume_child_runs=resumed)
    first, second = decide(spec, Sampler(spec), [], 0.0).start
    assert first == Start(0, {"x": 1.0, "y": 2.0}, "HD_a_3")
    assert second.resumes is None
    plain = spec_of(max_total=2)
    assert second.parameters == decide(plain, Sampler(plain), [], 0.0).start[0].parameters


def test_a_cancelled_search_stops_its_runs_and_ends_when_they_have() -> None:
    spec = spec_of()
    going = [Trial(0, {}, state="Completed"), Trial(1, {}), Trial(2, {}, asked_to_stop=True)]
    decision = decide(spec, Sampler(spec), going, 0.0, cancel=True)
    assert ([stop.number for stop in decision.stop], decision.start, decision.end) == ([1], [], None)
    gone = [Trial(0, {}, state="Completed"), Trial(1, {}, state="Canceled"), Trial(2, {}, state="Canceled")]
    end = decide(spec, Sampler(spec), gone, 0.0, cancel=True).end
    assert end is not None and end.state == "Canceled"


def test_a_search_that_took_too_long_is_cancelled() -> None:
    spec = spec_of(max_minutes=2)
    decision = decide(spec, Sampler(spec), [Trial(0, {}), Trial(1, {})], 120.0)
    assert [stop.reason for stop in decision.stop] == ["The sweep ran longer than max_duration_minutes=2"] * 2


def test_when_the_first_three_runs_have_failed_the_rest_is_not_tried() -> None:
    spec = spec_of()
    failed = [Trial(number, {}, state="Failed") for number in range(3)]
    decision = decide(spec, Sampler(spec), [*failed, Trial(3, {})], 0.0)
    assert ([stop.number for stop in decision.stop], decision.start) == ([3], [])
    end = decide(spec, Sampler(spec), [*failed, Trial(3, {}, state="Canceled")], 0.0).end
    assert end is not None and (end.state, end.code) == ("Failed", "FirstRunsFailed")
    late = [Trial(0, {}, state="Completed"), *(Trial(number, {}, state="Failed") for number in (1, 2, 3))]
    assert decide(spec, Sampler(spec), late, 0.0).start


def test_failures_among_others_do_not_end_a_search_and_it_completes() -> None:
    spec = spec_of(max_total=4)
    states = ["Completed", "Failed", "Failed", "Failed"]
    end = decide(spec, Sampler(spec), [Trial(n, {}, state=state) for n, state in enumerate(states)], 0.0).end
    assert end is not None
    assert (end.state, end.reason) == ("Completed", "All 4 runs have ended: 1 completed, 3 failed")


def test_a_search_all_of_whose_runs_failed_has_failed() -> None:
    spec = spec_of(max_total=2)
    end = decide(spec, Sampler(spec), [Trial(n, {}, state="Failed") for n in range(2)], 0.0).end
    assert end is not None and (end.state, end.code) == ("Failed", "AllRunsFailed")


def test_the_best_is_the_best_value_that_any_run_ever_reported() -> None:
    spec = spec_of()
    trials = [Trial(0, {}, [3.0, 1.0, 2.0], "Completed"), Trial(1, {}, [1.5], "Failed"), Trial(2, {}, [float("nan")])]
    assert board_of(spec, Sampler(spec), trials).best == (0, 1.0)


POLICIES = [
    {"name": "Default", "properties": {}},
    {"name": "Bandit", "properties": {"slack_factor": 0.2}},
    {"name": "Bandit", "properties": {"slack_amount": 0.3, "evaluation_interval": 2, "delay_evaluation": 2}},
    {"name": "MedianStopping", "properties": {"delay_evaluation": 2}},
    {"name": "TruncationSelection", "properties": {"truncation_percentage": 40}},
    {"name": "TruncationSelection", "properties": {"truncation_percentage": 40, "exclude_finished_jobs": True}},
    {"name": "Asha", "properties": {"reduction_factor": 2}},
]


@settings(max_examples=60, deadline=None)
@given(policy=st.sampled_from(POLICIES), goal=st.sampled_from(["maximize", "minimize"]), seed=st.integers(0, 10**6))
def test_told_bit_by_bit_a_board_decides_as_one_that_is_told_everything(policy: Any, goal: str, seed: int) -> None:
    chance = Random(seed)
    spec = spec_of(policy=policy, goal=goal, max_total=12, max_concurrent=4)
    board, trials = Board(spec, Sampler(spec)), dict[int, Trial]()
    for _ in range(200):
        decision = board.decide(0.0, cancel=False)
        assert decision == decide(spec, Sampler(spec), list(trials.values()), 0.0)
        if decision.end is not None:
            return
        for stop in decision.stop:
            board.asked_to_stop(stop.number)
            trials[stop.number] = trials[stop.number]._replace(asked_to_stop=True)
        for start in decision.start:
            board.started(start)
            trials[start.number] = Trial(start.number, start.parameters)
        number = chance.choice(board.live)
        trial = trials[number]
        if chance.random() < 0.15 or (trial.asked_to_stop and chance.random() < 0.5):
            state = "Canceled" if trial.asked_to_stop else chance.choice(["Completed", "Failed"])
            board.ended(number, state)
            trials[number] = trial._replace(state=state)
        else:
            values = [chance.choice([0.1, 0.2, 0.5, 0.9, math.inf]) for _ in range(chance.randint(1, 3))]
            board.logged(number, values)
            trials[number] = trial._replace(values=[*trial.values, *values])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"goal": "most"}, "maximize, minimize"),
        ({"metric": ""}, "primary_metric_name"),
        ({"max_total": 0}, "max_total_runs must be a whole number from 1"),
        ({"max_concurrent": 11}, "max_concurrent_runs=11 is more than max_total_runs=10"),
        ({"max_concurrent": 0}, "max_concurrent_runs"),
        ({"max_minutes": 0}, "max_duration_minutes"),
        ({"seed": -1}, "seed"),
        ({"name": "GRID"}, "is no list of them: use choice()"),
        ({"name": "BayesianOptimization", "space": {"x": ["normal", [0, 1]]}}, "takes choice, uniform, quniform"),
        ({"name": "SOBOL"}, "There is no sampling 'SOBOL'"),
        ({"resume_from": ["a"] * 6}, "5 sweeps at most"),
    ],
)
def test_what_cannot_be_searched_is_refused(changes: Any, said: str) -> None:
    with pytest.raises(HyperDriveConfigException) as refused:
        spec_of(**changes)
    assert said in refused.value.message


def test_bayesian_sampling_goes_without_early_termination() -> None:
    with pytest.raises(HyperDriveScenarioNotSupportedException, match="without early termination"):
        spec_of(name=BAYESIAN, policy={"name": "Bandit", "properties": {"slack_factor": 0.1}})

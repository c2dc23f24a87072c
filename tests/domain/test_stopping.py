"""Early termination as Azure's documentation tells it, on its own examples and on others worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from lapis.domain.stopping import check_policy, looks_at
from lapis.domain.sweeps import Sampler, Stop, Trial, check_spec, decide
from lapis.errors import HyperDriveConfigException


def stopped(
    policy: str, runs: list[list[float]], goal: str = "maximize", ended: int = 0, **properties: Any
) -> list[Stop]:
    """Which of these live runs are stopped; the first `ended` of them have completed."""
    body = {
        "sampling": {"name": "RANDOM", "parameter_space": {"x": ["uniform", [0, 1]]}, "seed": 0},
        "policy": {"name": policy, "properties": properties},
        "metric": "accuracy", "goal": goal, "max_total": len(runs), "max_minutes": 10,
    }  # fmt: skip
    spec = check_spec(body)
    trials = [Trial(n, {}, values, "Completed" if n < ended else None) for n, values in enumerate(runs)]
    return decide(spec, Sampler(spec), trials, 0.0).stop


def numbers(stops: list[Stop]) -> list[int]:
    return [stop.number for stop in stops]


def rising(best: float, intervals: int = 10) -> list[float]:
    return [best * (at + 1) / intervals for at in range(intervals)]


def test_bandit_as_in_azures_example() -> None:
    """slack_factor 0.2, the best at interval 10 is 0.8: whatever is below 0.8 / (1 + 0.2) = 0.66 ends."""
    runs = [rising(0.8), rising(0.70), rising(0.67), rising(0.66), rising(0.5)]
    found = stopped("Bandit", runs, slack_factor=0.2, evaluation_interval=10)
    assert numbers(found) == [3, 4]
    assert found[1].reason == (
        "Stopped early by the Bandit policy at interval 10: accuracy 0.5 is worse than 0.666667: "
        "the best is 0.8, and slack_factor is 0.2"
    )


def test_bandit_lets_91_percent_of_the_best_pass_with_a_slack_factor_of_a_tenth() -> None:
    assert numbers(stopped("Bandit", [[1.0] * 5, [0.92] * 5, [0.90] * 5], slack_factor=0.1, delay_evaluation=5)) == [2]


def test_bandit_with_an_amount() -> None:
    assert numbers(stopped("Bandit", [[0.8], [0.61], [0.59]], slack_amount=0.2)) == [2]


def test_bandit_to_minimize_lets_pass_what_is_not_more_than_the_factor_above_the_best() -> None:
    runs = [[1.0], [1.19], [1.21]]
    found = stopped("Bandit", runs, goal="minimize", slack_factor=0.2)
    assert numbers(found) == [2]
    assert "1.21 is worse than 1.2: the best is 1" in found[0].reason


@pytest.mark.parametrize(("goal", "sign"), [("maximize", -1), ("minimize", 1)])
def test_bandit_never_stops_the_best_run_whatever_the_sign(goal: str, sign: int) -> None:
    values = [[sign * 1.0], [sign * 1.1], [sign * 1.5]]
    assert numbers(stopped("Bandit", values, goal=goal, slack_factor=0.2)) == [2]


def test_bandit_looks_at_the_best_so_far_and_not_at_the_last_value() -> None:
    assert stopped("Bandit", [[0.8, 0.8], [0.79, 0.1]], slack_factor=0.1, evaluation_interval=2) == []


def test_a_run_is_compared_with_others_as_they_were_at_the_same_interval() -> None:
    old, young = [0.3, 0.6, 0.9], [0.29]
    assert stopped("Bandit", [old, young], slack_factor=0.1) == []
    assert numbers(stopped("Bandit", [old, [0.2]], slack_factor=0.1)) == [1]


def test_a_run_that_has_ended_is_compared_with_and_not_stopped() -> None:
    assert numbers(stopped("Bandit", [[0.8], [0.1], [0.1]], ended=2, slack_factor=0.1)) == [2]


def test_median_as_in_azures_example() -> None:
    """At interval 5, a run ends if its best is worse than the median of the averages over intervals 1 to 5."""
    runs = [[0.5, 0.6, 0.7, 0.8, 0.9], [0.1, 0.2, 0.3, 0.4, 0.5], [0.1, 0.1, 0.1, 0.1, 0.2]]
    # averages 0.7, 0.3 and 0.12, so the median is 0.3
    found = stopped("MedianStopping", runs, delay_evaluation=5)
    assert numbers(found) == [2]
    assert "accuracy 0.2 is worse than 0.3, the median of the averages of 3 runs" in found[0].reason


def test_median_of_an_even_number_lies_between_the_two_in_the_middle() -> None:
    assert numbers(stopped("MedianStopping", [[4.0], [3.0], [2.4], [1.0]])) == [2, 3]
    assert numbers(stopped("MedianStopping", [[1.0], [2.0], [2.6], [4.0]], goal="minimize")) == [2, 3]


def test_median_stops_nobody_who_is_alone() -> None:
    assert stopped("MedianStopping", [[0.5, 0.1, 0.0]]) == []


def test_truncation_as_in_azures_example() -> None:
    """A run ends at interval 5 if it is in the lowest 20 % of all runs at interval 5."""
    runs = [rising(value, 5) for value in (0.9, 0.8, 0.7, 0.6, 0.5)]
    found = stopped("TruncationSelection", runs, truncation_percentage=20, delay_evaluation=5)
    assert numbers(found) == [4]
    assert "0.5 has place 5: the lowest 20 % of 5 runs are stopped" in found[0].reason
    assert stopped("TruncationSelection", runs[:4], truncation_percentage=20, delay_evaluation=5) == []


def test_truncation_counts_runs_that_have_ended_unless_told_not_to() -> None:
    runs = [[0.9], [0.1], [0.8], [0.7]]
    assert numbers(stopped("TruncationSelection", runs, ended=2, truncation_percentage=50)) == [3]
    left = stopped("TruncationSelection", runs, ended=2, truncation_percentage=50, exclude_finished_jobs=True)
    assert numbers(left) == [3]
    assert numbers(stopped("TruncationSelection", runs, ended=2, truncation_percentage=25)) == []


def test_of_equals_truncation_stops_no_more_than_its_share() -> None:
    assert numbers(stopped("TruncationSelection", [[0.5]] * 4, truncation_percentage=50)) == [2, 3]


@pytest.mark.parametrize(
    ("every", "delay", "looks"),
    [(1, 0, [1, 2, 3, 4, 5, 6]), (2, 0, [2, 4, 6]), (2, 3, [4, 6]), (1, 5, [5, 6]), (3, 3, [3, 6])],
)  # fmt: skip
def test_a_policy_looks_at_every_multiple_of_its_interval_from_the_delay_on(every: int, delay: int, looks: Any) -> None:
    policy = check_policy("MedianStopping", {"evaluation_interval": every, "delay_evaluation": delay})
    assert [at for at in range(1, 7) if looks_at(policy, at)] == looks


def test_between_its_intervals_a_policy_lets_a_run_be() -> None:
    assert stopped("Bandit", [[0.8], [0.1]], slack_factor=0.1, evaluation_interval=2) == []
    assert stopped("Bandit", [[0.8, 0.8], [0.1]], slack_factor=0.1, evaluation_interval=2) == []
    assert numbers(stopped("Bandit", [[0.8, 0.8], [0.1, 0.1, 0.2]], slack_factor=0.1, evaluation_interval=2)) == [1]


def test_a_run_that_is_ahead_is_compared_where_the_next_one_is_with_all_it_has_reached_since() -> None:
    assert numbers(stopped("Bandit", [[0.8, 0.8], [0.1] * 9], ended=1, slack_factor=0.1)) == [1]
    assert stopped("Bandit", [[0.8, 0.8], [0.1] * 8 + [0.9]], ended=1, slack_factor=0.1) == []
    assert stopped("TruncationSelection", [[0.8], [0.7], [0.1, 0.75]], truncation_percentage=40) == []
    assert numbers(stopped("TruncationSelection", [[0.8], [0.7], [0.1, 0.6]], truncation_percentage=40)) == [2]


def test_asha_lets_one_of_so_many_go_on_at_every_rung() -> None:
    policy = check_policy("Asha", {"reduction_factor": 3, "first_rung": 2})
    assert [at for at in range(1, 60) if looks_at(policy, at)] == [2, 6, 18, 54]
    found = stopped("Asha", [[0.0, v] for v in (0.1, 0.9, 0.2, 0.8, 0.3, 0.4)], reduction_factor=3, first_rung=2)
    assert numbers(found) == [0, 2, 4, 5]


def test_a_run_that_diverged_is_the_worst() -> None:
    assert numbers(stopped("Bandit", [[1.0], [float("inf")], [float("nan")]], slack_factor=0.1)) == [1, 2]


@pytest.mark.parametrize(
    ("name", "properties", "said"),
    [
        ("Bandit", {}, "slack_factor or slack_amount"),
        ("Bandit", {"slack_factor": 0.1, "slack_amount": 1}, "and not both"),
        ("Bandit", {"slack_factor": -1}, "0 or more"),
        (
            "Bandit",
            {"slack_factor": 0.1, "evaluation_interval": 0},
            "evaluation_interval must be a whole number",
        ),
        ("MedianStopping", {"delay_evaluation": -1}, "delay_evaluation must be a whole number from 0"),
        ("TruncationSelection", {"truncation_percentage": 100}, "from 1 to 99"),
        ("TruncationSelection", {}, "from 1 to 99"),
        ("Asha", {"reduction_factor": 1}, "above 1"),
        ("Hyperband", {}, "There is no policy 'Hyperband'. Known: Default, Bandit"),
    ],
)
def test_a_policy_that_means_nothing_is_refused(name: str, properties: Any, said: str) -> None:
    with pytest.raises(HyperDriveConfigException) as refused:
        check_policy(name, properties)
    assert said in refused.value.message

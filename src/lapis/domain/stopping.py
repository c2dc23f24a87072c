"""Which runs of a search are stopped early: the policies of SDK v1, and ASHA.

An interval is one report of the primary metric. A policy looks at a run at every multiple of `evaluation_interval` that
is not before `delay_evaluation`, and compares it with all runs that came as far, as they were there: a young run is not
held against what older ones reached later. One that is ahead of all others is compared where the next one is, with
all it has reached since. Numbers are turned round for a metric to minimize, so greater is better.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, insort
from typing import Any, Mapping, NamedTuple, Sequence

from lapis.domain.limits import WHOLE, shown
from lapis.errors import HyperDriveConfigException

NONE, BANDIT, MEDIAN, TRUNCATION, ASHA = "Default", "Bandit", "MedianStopping", "TruncationSelection", "Asha"
_COMMON = {"evaluation_interval": 1, "delay_evaluation": 0}
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    NONE: {},
    BANDIT: {**_COMMON, "slack_factor": None, "slack_amount": None},
    MEDIAN: _COMMON,
    TRUNCATION: {**_COMMON, "truncation_percentage": None, "exclude_finished_jobs": False},
    ASHA: {"reduction_factor": 3, "first_rung": 1},
}


class Policy(NamedTuple):
    name: str
    properties: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "properties": dict(self.properties)}


def check_policy(name: Any, properties: Mapping[str, Any]) -> Policy:
    if name not in DEFAULTS:
        raise HyperDriveConfigException(f"There is no policy {name!r}. Known: {', '.join(DEFAULTS)}.")
    unknown = sorted(set(properties) - set(DEFAULTS[name]))
    if unknown:
        raise HyperDriveConfigException(f"The {name} policy does not know {', '.join(unknown)}.")
    values = {**DEFAULTS[name], **properties}
    for what in ("evaluation_interval", "first_rung"):
        if what in values:
            _check_whole(what, values[what], 1)
    if "delay_evaluation" in values:
        _check_whole("delay_evaluation", values["delay_evaluation"], 0)
    if name == BANDIT:
        _check_slack(values["slack_factor"], values["slack_amount"])
    if name == TRUNCATION:
        _check_whole("truncation_percentage", values["truncation_percentage"], 1, 99)
    if name == ASHA and not (_is_number(values["reduction_factor"]) and values["reduction_factor"] > 1):
        raise HyperDriveConfigException(f"reduction_factor must be above 1, not {values['reduction_factor']!r}.")
    return Policy(name, values)


def looks_at(policy: Policy, interval: int) -> bool:
    """Whether the policy looks at a run when it has reported so often."""
    if policy.name == NONE:
        return False
    if policy.name == ASHA:
        rung = policy.properties["first_rung"]
        while rung < interval:
            rung = math.ceil(rung * policy.properties["reduction_factor"])
        return bool(rung == interval)
    every, delay = policy.properties["evaluation_interval"], policy.properties["delay_evaluation"]
    return bool(interval % every == 0 and interval >= delay)


class Ranking:
    """All runs that reached one interval. Adding and asking cost next to nothing, however many there are.

    Only what the policy needs is kept: there may be thousands of runs, and thousands of intervals.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._count = 0
        self._best = -math.inf
        self._averages = array("d")
        self._bests: dict[int, float] = {}
        self._order: list[tuple[float, int]] = []  # the worst first; of equals, the latest

    def __len__(self) -> int:
        return self._count

    def add(self, number: int, best: float, average: float) -> None:
        """A run came so far: the best it had reported by then, and the average of its reports."""
        self._count += 1
        self._best = max(self._best, best)
        if self._policy.name == MEDIAN:
            insort(self._averages, average)
        elif self._policy.name in (TRUNCATION, ASHA):
            self._bests[number] = best
            insort(self._order, (best, -number))

    def verdict(self, number: int, reached: float, live: Sequence[int], sign: int) -> str | None:
        """Why a run that has `reached` so much is to be stopped, with the numbers; None if it may go on.

        `live` are those that still run.
        """
        name, given, mine = self._policy.name, self._policy.properties, f"{sign * reached:.6g}"
        if name == BANDIT:
            allowed = _allowed(self._best, given)
            if reached >= allowed:
                return None
            by = "slack_factor" if given["slack_factor"] is not None else "slack_amount"
            than = f"{sign * allowed:.6g}: the best is {sign * self._best:.6g}, and {by} is {given[by]:g}"
            return f"{mine} is worse than {than}"
        if name == MEDIAN:
            median = _median(self._averages)
            if reached >= median:
                return None
            of = f"the median of the averages of {self._count} runs"
            return f"{mine} is worse than {sign * median:.6g}, {of}"
        order = self._order
        if name == TRUNCATION and given["exclude_finished_jobs"]:
            order = sorted((self._bests[each], -each) for each in live if each in self._bests)
        place = bisect_left(order, (reached, -number)) - (self._bests[number] < reached)  # how many are worse
        if name == TRUNCATION:
            cut = len(order) * given["truncation_percentage"] // 100
            rule = f"the lowest {given['truncation_percentage']} % of {len(order)} runs are stopped"
        else:
            cut = len(order) - math.ceil(len(order) / given["reduction_factor"])
            rule = f"one of {given['reduction_factor']:g} goes on, and {len(order)} runs came so far"
        return None if place >= cut else f"{mine} has place {len(order) - place}: {rule}"


def _allowed(best: float, given: Mapping[str, Any]) -> float:
    """The least that Bandit lets pass: best / (1 + slack_factor) to maximize, as far from it to minimize."""
    if given["slack_amount"] is not None:
        return best - float(given["slack_amount"])
    ratio = 1 + float(given["slack_factor"])
    return best / ratio if best >= 0 else best * ratio


def _median(values: Sequence[float]) -> float:
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def _check_slack(factor: Any, amount: Any) -> None:
    if (factor is None) == (amount is None):
        raise HyperDriveConfigException("BanditPolicy needs slack_factor or slack_amount, and not both.")
    given = factor if amount is None else amount
    if not _is_number(given) or given < 0:
        raise HyperDriveConfigException(f"The slack of BanditPolicy must be a number of 0 or more, not {given!r}.")


def _check_whole(what: str, value: Any, least: int, most: int | None = None) -> None:
    most = WHOLE if most is None else most
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise HyperDriveConfigException(f"{what} must be a whole number from {least} to {most}, not {shown(value)}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= WHOLE

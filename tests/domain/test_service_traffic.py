"""Who gets which share of the requests."""

from __future__ import annotations

import pytest

from lapis.domain import service_traffic as traffic
from lapis.errors import WebserviceException
from tests.domain.service_samples import service, version

ONE = version(traffic=0, address="h:1")
TWO = version(traffic=30, address="h:2")
THREE = version(traffic=20, address="h:3")


def test_requests_are_shared_by_percentages() -> None:
    there = service({"one": ONE, "two": TWO, "three": THREE})
    assert traffic.shares(there) == {"two": 30, "three": 20, "one": 50}
    assert traffic.routes(there) == [(30, "h:2"), (20, "h:3")]


def test_a_default_version_where_no_requests_come_in_gets_what_is_left_all_the_same() -> None:
    there = service({"one": ONE, "two": TWO, "three": THREE}, default="two")
    assert traffic.routes(there) == [(20, "h:3"), (80, "h:2")]


def test_what_cannot_be_reached_gets_nothing() -> None:
    assert traffic.routes(service({"one": ONE, "two": version(traffic=30)})) == []


def test_more_than_there_is_cannot_be_promised() -> None:
    there = service({"one": ONE, "two": TWO, "three": THREE})
    traffic.check_traffic(there, {"one": 100, "two": 80}, "one")
    with pytest.raises(WebserviceException, match="would get 120 percent of traffic: two 100, three 20"):
        traffic.check_traffic(there, {"two": 100}, "one")


def test_another_default_version_changes_nobodys_share() -> None:
    there = service({"one": ONE, "two": TWO, "three": THREE})
    changed = traffic.with_default(there, "two")
    assert changed.default == "two" and traffic.shares(changed) == traffic.shares(there)
    assert traffic.with_default(there, "one") == there

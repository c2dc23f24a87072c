"""The rules of services: what may be asked for, who gets which request, what becomes of a revision that ends."""

from __future__ import annotations

from typing import Any

import pytest

from lapis.domain import service_moves as moves
from lapis.domain import services as rules
from lapis.domain.services import Share
from lapis.errors import WebserviceException


@pytest.mark.parametrize("name", ["abc", "a-1", "a" * 32])
def test_a_name_that_can_be_used(name: str) -> None:
    assert rules.check_service_name(name) == name


@pytest.mark.parametrize("name", ["ab", "a" * 33, "Abc", "1bc", "ab-", "a_b", "a b", "", None, 7, "a/b", "abc\n"])
def test_a_name_that_cannot_be_used(name: Any) -> None:
    with pytest.raises(WebserviceException, match="cannot be used"):
        rules.check_service_name(name)


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        ("ACI", {"cpu_cores": -1}, "cpu_cores must be a number greater than 0, not -1"),
        ("ACI", {"memory_gb": "1"}, "memory_gb must be"),
        ("ACI", {"cpu_cores": True}, "cpu_cores must be"),
        ("LOCAL", {"port": 70000}, "port must be a whole number from 1 to 65535"),
        ("AKS", {"scoring_timeout_ms": 0}, "scoring_timeout_ms must be a whole number of 1 at least"),
        ("AKS", {"autoscale_target_utilization": 101}, "from 1 to 100"),
        ("AKS", {"autoscale_enabled": False, "autoscale_max_replicas": 3}, "says nothing with autoscale_enabled=False"),
        ("AKS", {"cpu_cores": 2, "cpu_cores_limit": 1}, "is less than cpu_cores"),
        ("ACI", {"token_auth_enabled": True}, "Tokens open services of AksWebservice only"),
        ("ACI", {"primary_key": "long enough"}, "no key opens this service"),
        ("AKS", {"primary_key": "short"}, "8 characters"),
        ("AKS", {"primary_key": "long enough", "token_auth_enabled": True}, "no key opens"),
        ("ACI", {"ssl_enabled": True, "ssl_cname": "x"}, "needs ssl_cert_pem_file, ssl_key_pem_file"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(kind: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(WebserviceException, match=said):
        rules.check_settings(kind, settings)


def test_who_opens_a_service_unless_it_is_told_otherwise() -> None:
    assert [rules.uses_keys(kind, {}) for kind in ("ACI", "AKS", "AKSENDPOINT", "LOCAL")] == [False, True, True, False]
    assert rules.uses_keys("ACI", {"auth_enabled": True}) and not rules.uses_keys("AKS", {"auth_enabled": False})
    assert rules.uses_tokens("AKS", {"token_auth_enabled": True}) and not rules.uses_tokens("AKS", {})
    assert not rules.uses_keys("AKS", {"token_auth_enabled": True})


def test_a_service_has_as_many_replicas_as_its_kind_and_settings_say() -> None:
    def count(kind: str, **settings: Any) -> tuple[int, int]:
        told = rules.replicas(kind, settings, 4)
        return told["min"], told["max"]

    assert count("ACI") == count("LOCAL") == (1, 1)
    assert count("AKS") == (1, 4)  # not more than cores, unless somebody says so
    assert count("AKS", autoscale_max_replicas=20, autoscale_min_replicas=2) == (2, 20)
    assert count("AKS", num_replicas=3) == (3, 3) and count("AKS", autoscale_enabled=False) == (1, 1)
    assert count("AKS", autoscale_min_replicas=6) == (6, 6)


def test_cores_become_threads() -> None:
    assert rules.thread_variables({}) == {}
    assert rules.thread_variables({"cpu_cores": 0.1})["OMP_NUM_THREADS"] == "1"
    assert rules.thread_variables({"cpu_cores": 1.5})["OMP_NUM_THREADS"] == "2"
    assert rules.thread_variables({"cpu_cores": 1, "cpu_cores_limit": 4})["MKL_NUM_THREADS"] == "4"


def test_requests_are_shared_by_percentages() -> None:
    one, two, three = Share("one", 0, "h:1"), Share("two", 30, "h:2"), Share("three", 20, "h:3")
    assert rules.routes([one, two, three], gateway="one", default="one") == [
        {"percent": 30, "address": "h:2"},
        {"percent": 20, "address": "h:3"},
    ]
    # the default one is not where requests come in: it gets what is left all the same
    assert rules.routes([one, two, three], gateway="one", default="two") == [
        {"percent": 20, "address": "h:3"},
        {"percent": 80, "address": "h:2"},
    ]
    assert rules.routes([one, two._replace(address=None)], "one", "one") == []  # it cannot be reached yet
    rules.check_traffic({"one": 100, "two": 100}, "one")
    with pytest.raises(WebserviceException, match="would get 120 percent of traffic: two 100, three 20"):
        rules.check_traffic({"one": 0, "two": 100, "three": 20}, "one")


def test_a_fixed_number_of_replicas_and_scaling_end_each_other() -> None:
    scaling = {"autoscale_enabled": True, "autoscale_max_replicas": 5, "cpu_cores": 1}
    assert rules.merged(scaling, {"num_replicas": 2}) == {"cpu_cores": 1, "num_replicas": 2}
    assert rules.merged({"num_replicas": 2}, {"autoscale_max_replicas": 3}) == {"autoscale_max_replicas": 3}
    assert rules.merged(scaling, {"autoscale_enabled": False}) == {"cpu_cores": 1, "autoscale_enabled": False}
    assert rules.merged(scaling, {"autoscale_max_replicas": 6, "cpu_cores": None})["autoscale_max_replicas"] == 6


def slot(revision: int = 1, **more: Any) -> dict[str, Any]:
    return {**moves.new_slot(revision, {"models": []}, {}, 100.0), **more}


def version(**slots: Any) -> dict[str, Any]:
    return {**moves.new_version(slot(), 30000, 100, {}), **slots}


def test_what_serves_goes_on_until_its_successor_is_ready() -> None:
    first = version(wanted=slot(1, state="ready", run="a"))
    rolled, dropped = moves.rolled(first, slot(2))
    assert rolled["serving"]["run"] == "a" and rolled["wanted"]["revision"] == 2 and dropped == []
    again, dropped = moves.rolled({**rolled, "wanted": {**rolled["wanted"], "run": "b"}}, slot(3))
    assert again["serving"]["run"] == "a" and dropped == ["b"]  # the one that never came to serve is not wanted
    ready, dropped = moves.became_ready(again, 200.0, "h:1")
    assert ready["serving"] is None and dropped == ["a"] and ready["address"] == "h:1"
    assert ready["wanted"]["state"] == "ready" and ready["wanted"]["ready_at"] == 200.0


def test_a_first_start_that_fails_by_itself_has_failed() -> None:
    error = {"code": "EntryScript", "message": "no weights"}
    after = moves.ended(slot(run="a"), error, "why", 101.0)
    assert after["state"] == "failed" and after["error"] == error


def test_a_first_start_that_is_killed_is_tried_again_a_few_times() -> None:
    after = slot(run="a")
    for _ in range(moves.MOST_FALSE_STARTS):
        after = moves.ended(after, {"code": "Signal", "message": "killed"}, "killed", 101.0)
        assert after["state"] == "starting" and after["run"] is None
    assert moves.ended(after, {"code": "Signal", "message": "killed"}, "killed", 101.0)["state"] == "failed"


def test_what_answered_once_is_started_again_after_longer_and_longer_pauses() -> None:
    after = slot(run="a", state="ready", ready_at=100.0)
    pauses = []
    for _ in range(9):
        after = moves.ended(after, None, "it ended", 101.0)
        assert after["state"] == "ready" and after["why"] == "it ended"
        pauses.append(after["restart_at"] - 101.0)
    assert pauses == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    steady = moves.ended(after, None, "it ended", after["ready_at"] + rules.STEADY + 1)
    assert steady["restarts"] == 1  # it had lived long enough: the next one counts as the first


def test_how_a_service_fares_is_said_in_azures_words() -> None:
    assert rules.state_of(slot(), True) == "Transitioning"
    assert rules.state_of(slot(state="ready"), True) == "Healthy"
    assert rules.state_of(slot(state="ready"), False) == "Unhealthy"
    assert rules.state_of(slot(state="failed"), False) == "Failed"
    assert rules.worst(["Healthy", "Transitioning"]) == "Transitioning" and rules.worst(["Healthy"]) == "Healthy"

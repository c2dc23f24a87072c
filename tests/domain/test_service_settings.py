"""The settings of services: what may be asked for, and what it comes to."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from lapis.domain.service_settings import AZURE, Keys, ServiceSettings
from lapis.errors import WebserviceException


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"cpu_cores": -1}, "settings.cpu_cores must be between 0.001 and 100000, not -1"),
        ({"cpu_cores": float("nan")}, "cpu_cores must be a number"),
        ({"cpu_cores": float("inf")}, "cpu_cores must be a number"),
        ({"cpu_cores": 10**400}, "cpu_cores must be a number"),
        ({"memory_gb": "1"}, "memory_gb must be a number, not '1'"),
        ({"cpu_cores": True}, "cpu_cores must be a number"),
        ({"port": 70000}, "port must be between 1 and 65535"),
        ({"scoring_timeout_ms": 0}, "scoring_timeout_ms must be between 1 and 86400000, not 0"),
        ({"num_replicas": 1_000_000}, "num_replicas must be between 1 and 1000, not 1000000"),
        ({"num_replicas": 1.5}, "num_replicas must be a whole number"),
        ({"autoscale_target_utilization": 101}, "between 1 and 100"),
        ({"auth_enabled": "yes"}, "auth_enabled must be true or false, not 'yes'"),
        ({"location": 7}, "location must be text"),
        ({"cpu_coers": 1}, "settings has no field 'cpu_coers'. Known: cpu_cores, memory_gb, "),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(WebserviceException, match=said):
        ServiceSettings.asked(settings)


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        ("AKS", {"autoscale_enabled": False, "autoscale_max_replicas": 3}, "says nothing with autoscale_enabled=False"),
        ("AKS", {"autoscale_min_replicas": 3, "autoscale_max_replicas": 2}, "is more than autoscale_max_replicas=2"),
        ("AKS", {"cpu_cores": 2, "cpu_cores_limit": 1}, "is less than cpu_cores"),
        ("AKS", {"memory_gb_limit": 0.1}, "is less than memory_gb"),
        ("ACI", {"token_auth_enabled": True}, "Tokens open services of AksWebservice only"),
        ("ACI", {"ssl_enabled": True, "ssl_cname": "x"}, "needs ssl_cert_pem_file, ssl_key_pem_file"),
    ],
)
def test_settings_that_cannot_be_together_are_refused(kind: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(WebserviceException, match=said):
        ServiceSettings.asked(settings).check(kind)


@pytest.mark.parametrize(
    ("kind", "settings", "key", "said"),
    [
        ("ACI", {}, "long enough", "no key opens this service"),
        ("AKS", {}, "short", "primary_key must be text of 8 characters"),
        ("AKS", {"token_auth_enabled": True}, "long enough", "no key opens"),
    ],
)
def test_keys_that_cannot_be_are_refused(kind: str, settings: dict[str, Any], key: str, said: str) -> None:
    with pytest.raises(WebserviceException, match=said):
        ServiceSettings.asked(settings).check(kind, Keys(primary=key))


def test_none_is_not_given_and_what_is_given_is_written() -> None:
    assert ServiceSettings.asked({"cpu_cores": None, "port": 80}).to_json() == {"port": 80}
    assert ServiceSettings.from_json({"port": 80, "of_a_later_release": 1}) == ServiceSettings(port=80)


def test_azures_defaults_are_for_settings_that_there_are() -> None:
    assert set(AZURE._fields) <= {each.name for each in fields(ServiceSettings)}
    ServiceSettings.asked(AZURE._asdict()).check("AKS")
    assert ServiceSettings(cpu_cores=3).with_defaults().to_json() == {**AZURE._asdict(), "cpu_cores": 3}


def test_who_opens_a_service_unless_it_is_told_otherwise() -> None:
    nothing, kinds = ServiceSettings(), ("ACI", "AKS", "AKSENDPOINT", "LOCAL")
    assert [nothing.uses_keys(kind) for kind in kinds] == [False, True, True, False]
    assert ServiceSettings(auth_enabled=True).uses_keys("ACI")
    assert not ServiceSettings(auth_enabled=False).uses_keys("AKS")
    tokens = ServiceSettings(token_auth_enabled=True)
    assert tokens.uses_tokens("AKS") and not tokens.uses_keys("AKS") and not nothing.uses_tokens("AKS")


def test_a_service_has_as_many_replicas_as_its_kind_and_settings_say() -> None:
    def count(kind: str, **settings: Any) -> tuple[int, int]:
        told = ServiceSettings(**settings).replicas(kind, 4)
        return told["min"], told["max"]

    assert count("ACI") == count("LOCAL") == (1, 1)
    assert count("AKS") == (1, 4)  # not more than cores, unless somebody says so
    assert count("AKS", autoscale_max_replicas=20, autoscale_min_replicas=2) == (2, 20)
    assert count("AKS", num_replicas=3) == (3, 3) and count("AKS", autoscale_enabled=False) == (1, 1)
    assert count("AKS", autoscale_min_replicas=6) == (6, 6)


def test_cores_become_threads() -> None:
    assert ServiceSettings().thread_variables() == {}
    assert ServiceSettings(cpu_cores=0.1).thread_variables()["OMP_NUM_THREADS"] == "1"
    assert ServiceSettings(cpu_cores=1.5).thread_variables()["OMP_NUM_THREADS"] == "2"
    assert ServiceSettings(cpu_cores=1, cpu_cores_limit=4).thread_variables()["MKL_NUM_THREADS"] == "4"


def test_a_fixed_number_of_replicas_and_scaling_end_each_other() -> None:
    scaling = ServiceSettings(autoscale_enabled=True, autoscale_max_replicas=5, cpu_cores=1)
    fixed = ServiceSettings(num_replicas=2)
    assert scaling.changed(fixed) == ServiceSettings(cpu_cores=1, num_replicas=2)
    assert fixed.changed(ServiceSettings(autoscale_max_replicas=3)) == ServiceSettings(autoscale_max_replicas=3)
    off = ServiceSettings(autoscale_enabled=False)
    assert scaling.changed(off) == ServiceSettings(cpu_cores=1, autoscale_enabled=False)
    assert scaling.changed(ServiceSettings(autoscale_max_replicas=6)).autoscale_max_replicas == 6


def test_a_version_has_settings_of_its_own_over_those_of_its_endpoint() -> None:
    asked = ServiceSettings(cpu_cores=2, auth_enabled=False, num_replicas=3)
    assert asked.of_version() == ServiceSettings(cpu_cores=2, num_replicas=3)
    common = ServiceSettings(cpu_cores=1, auth_enabled=True)
    assert ServiceSettings(cpu_cores=4).over(common) == ServiceSettings(cpu_cores=4, auth_enabled=True)

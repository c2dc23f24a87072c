"""The rule of addresses: what is let through, what is not, and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapis.domain.addresses import METADATA, Rule, literal, refusal, refusal_of_address, rule_of
from lapis.errors import UserErrorException

ALL = rule_of({})


def rule(allowed: str = "", forbidden: str = "") -> Rule:
    return rule_of({"LAPIS_ALLOWED_ADDRESSES": allowed, "LAPIS_FORBIDDEN_ADDRESSES": forbidden})


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "localhost", "::1", "[::1]", "10.0.0.1", "minio.local"])
def test_without_settings_everything_is_let_through_but_metadata(host: str) -> None:
    assert refusal(ALL, host, ["127.0.0.1"]) is None


@pytest.mark.parametrize(
    ("host", "found"),
    [
        *((each, [] if each[0] == "m" else [each]) for each in METADATA),
        ("Metadata.Google.Internal.", ["10.0.0.1"]),
        ("innocent.example", ["93.184.216.34", "169.254.169.254"]),
        ("2852039166", []),
        ("0xa9fea9fe", []),
        ("0251.0376.0251.0376", []),
        ("169.254.43518", []),
        ("::ffff:169.254.169.254", []),
        ("[::ffff:a9fe:a9fe]", []),
        ("64:ff9b::169.254.169.254", []),
        ("innocent.example", ["fd00:ec2::254"]),
    ],
)
def test_a_metadata_service_is_found_however_it_is_written(host: str, found: list[str]) -> None:
    assert "metadata service" in str(refusal(ALL, host, found))


@pytest.mark.parametrize(
    ("host", "found", "hit"),
    [
        ("bad.example", ["1.1.1.1"], "bad.example"),
        ("sub.bad.example", ["1.1.1.1"], None),
        ("a.b.wide.example", ["1.1.1.1"], "a.b.wide.example"),
        ("wide.example", ["1.1.1.1"], "wide.example"),
        ("notwide.example", ["1.1.1.1"], None),
        ("good.example", ["1.1.1.1", "10.9.8.7"], "10.9.8.7"),
        ("10.0.0.1", ["10.0.0.1"], "10.0.0.1"),
        ("[2001:db8::5]", ["2001:db8::5"], "2001:db8::5"),
        ("good.example", ["fe80::1%eth0"], None),
    ],
)
def test_what_is_forbidden_is_told_by_name_and_by_address(host: str, found: list[str], hit: str | None) -> None:
    said = refusal(rule(forbidden="bad.example, *.wide.example, 10.0.0.0/8, 2001:db8::/32"), host, found)
    assert said == (None if hit is None else f"{hit} is among LAPIS_FORBIDDEN_ADDRESSES")


def test_where_some_are_allowed_the_rest_is_not() -> None:
    some = rule(allowed="data.example,10.0.0.0/8", forbidden="10.6.6.6")
    assert refusal(some, "data.example", ["1.1.1.1"]) is None
    assert refusal(some, "minio.local", ["10.1.1.1"]) is None
    assert refusal(some, "minio.local") is None  # that its address is not allowed is not known yet
    assert refusal(some, "minio.local", ["10.1.1.1", "1.1.1.1"]) == "minio.local is not among LAPIS_ALLOWED_ADDRESSES"
    assert refusal(some, "8.8.8.8") == "8.8.8.8 is not among LAPIS_ALLOWED_ADDRESSES"
    assert refusal(rule(allowed="data.example"), "minio.local") is not None
    assert "FORBIDDEN" in str(refusal(some, "minio.local", ["10.6.6.6"]))
    assert "metadata service" in str(refusal(some, "data.example", ["169.254.169.254"]))
    assert refusal(rule(allowed="169.254.169.254"), "169.254.169.254") is None


def test_of_an_address_alone_only_what_is_forbidden_is_told() -> None:
    assert refusal_of_address(rule(allowed="data.example"), "1.1.1.1") is None
    assert "FORBIDDEN" in str(refusal_of_address(rule(forbidden="1.0.0.0/8"), "1.1.1.1"))
    assert "metadata service" in str(refusal_of_address(ALL, "::ffff:169.254.169.254"))
    assert refusal_of_address(rule(allowed="169.254.0.0/16"), "169.254.169.254") is None


@pytest.mark.parametrize(
    "text", ["http://example.org", "10.0.0.0/99", "a/b", "*", "x*y.example", "example.org:80", "."]
)
def test_a_setting_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(UserErrorException, match="LAPIS_FORBIDDEN_ADDRESSES holds"):
        rule(forbidden=f"10.0.0.1, {text}")


@given(st.ip_addresses())
def test_every_address_is_its_own_literal_and_is_caught_by_its_own_rule(address: object) -> None:
    assert literal(str(address)) == [str(address)]
    assert refusal(rule(forbidden=str(address)), str(address)) is not None

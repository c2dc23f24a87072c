"""A service as a value: what is written of it is what is read, also where another release wrote it."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from lapis.domain.service import ServiceRecord, check_service_name, state_of, worst
from lapis.errors import WebserviceException
from tests.domain.service_samples import CONTENT, FULL_SERVICE, FULL_SLOT, FULL_VERSION, service, slot


@pytest.mark.parametrize("name", ["abc", "a-1", "a" * 32])
def test_a_name_that_can_be_used(name: str) -> None:
    assert check_service_name(name) == name


@pytest.mark.parametrize("name", ["ab", "a" * 33, "Abc", "1bc", "ab-", "a_b", "a b", "", None, 7, "a/b", "abc\n"])
def test_a_name_that_cannot_be_used(name: Any) -> None:
    with pytest.raises(WebserviceException, match="cannot be used"):
        check_service_name(name)


def test_what_is_written_of_a_service_is_what_is_read() -> None:
    for each in (FULL_SERVICE, service()):
        assert ServiceRecord.from_json(json.loads(json.dumps(each.to_json()))) == each


@pytest.mark.parametrize("value", [FULL_SERVICE, FULL_VERSION, FULL_SLOT, CONTENT, *CONTENT.models])
def test_every_field_is_written(value: Any) -> None:
    assert {each.name for each in fields(value)} == set(value.to_json())


def test_a_service_is_not_changed_in_place() -> None:
    with pytest.raises(FrozenInstanceError):
        FULL_SERVICE.deleting = False  # type: ignore[misc]


def test_what_another_release_kept_can_be_read() -> None:
    """As the first release with services wrote it, and with fields that only a later one knows."""
    kept_slot = {"revision": 1, "content": {"models": [], "snapshot_id": "s", "entry_script": "score.py", "later": 1},
                 "settings": {"cpu_cores": 1, "invented_later": True}, "state": "ready", "run": "r", "runs": ["r"],
                 "restarts": 0, "restart_at": None, "ready_at": 5.0, "why": None, "error": None}  # fmt: skip
    kept_version = {"port": 1, "address": "h:1", "traffic": 100, "wanted": kept_slot, "serving": None, "place": "p",
                    "is_control": True, "description": None, "tags": {}, "properties": {}, "later": {}}  # fmt: skip
    kept = {"id": "i", "workspace_id": "w", "name": "abc", "created_at": 1.0, "kind": "ACI", "target": None,
            "settings": {"cpu_cores": 1, "invented_later": [1], "ssl_enabled": "yes"},
            "sealed": "s", "versions": {"": kept_version}, "updated_at": 1.0, "later": True}  # fmt: skip
    found = ServiceRecord.from_json(kept)
    assert found.settings.to_json() == {"cpu_cores": 1, "ssl_enabled": "yes"} and not found.deleting
    wanted = found.version("").wanted
    assert wanted.content.image is None and wanted.content.notices == () and wanted.settings.cpu_cores == 1


def test_a_version_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(WebserviceException, match="has no version 'three'. Known: one, two."):
        FULL_SERVICE.version("three")
    with pytest.raises(WebserviceException, match="it is no AksEndpoint"):
        service().version("three")


def test_how_a_service_fares_is_said_in_azures_words() -> None:
    assert state_of(slot(), True) == "Transitioning"
    assert state_of(slot(state="ready"), True) == "Healthy"
    assert state_of(slot(state="ready"), False) == "Unhealthy"
    assert state_of(slot(state="failed"), False) == "Failed"
    assert worst(["Healthy", "Transitioning"]) == "Transitioning" and worst(["Healthy"]) == "Healthy"


def test_properties_stay_and_tags_change() -> None:
    changed = FULL_SERVICE.labels.with_tags({"tag": "now"}, ["other"]).with_properties("it", {"more": "1"})
    assert changed.tags == {"tag": "now"} and changed.properties == {"property": "fixed", "more": "1"}

"""What is asked for over the network is read strictly: what is unknown, wrong or too much is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from lapis.domain.deployment import NewContent, NewKey, NewService, ServiceChange
from lapis.domain.job import WantedEnvironment
from lapis.domain.service_content import Origin
from lapis.domain.service_settings import Keys, ServiceSettings
from lapis.errors import AzureMLException

NEW = {"name": "abc", "kind": "AKS"}


def test_a_service_is_read_with_all_that_may_be_asked_for() -> None:
    content = {
        "models": ["times:1"],
        "snapshot_id": "s",
        "entry_script": "score.py",
        "folder": None,
        "environment": {"name": "e", "lock": "l", "said": ["x"]},
        "environment_variables": {"A": "1"},
        "definition": {"name": "e"},
        "notices": ["n"],
        "origin": {"entry_script": "score.py", "source_directory": None, "cwd": "/", "beside": []},
    }
    body = {**NEW, "content": content, "settings": {"cpu_cores": 1}, "keys": {"primary": "k"}, "tags": {"a": None},
            "properties": {"b": "c"}, "target": "t", "version": "v", "overwrite": True, "created_by": "me"}  # fmt: skip
    new = NewService.checked(body, "service")
    assert new.settings == ServiceSettings(cpu_cores=1) and new.keys == Keys("k") and new.overwrite
    assert new.tags == {"a": None} and new.properties == {"b": "c"}
    assert new.content is not None and new.content.models == ("times:1",)
    assert new.content.environment == WantedEnvironment("l", "e", ("x",))
    assert new.content.origin == Origin("score.py", "/")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([], "service must be a dictionary, not \\[\\]"),
        ({"kind": "AKS"}, "service lacks the field 'name'"),
        ({**NEW, "replicas": 3}, "service has no field 'replicas'. Known: name, kind, content, image, like"),
        ({**NEW, "name": 3}, "service.name must be text, not 3"),
        ({**NEW, "kind": "VM"}, "service.kind must be one of ACI, AKS, AKSENDPOINT, LOCAL, not 'VM'"),
        ({**NEW, "kind": "PROFILE"}, "service.kind must be one of"),
        ({**NEW, "overwrite": "yes"}, "service.overwrite must be true or false, not 'yes'"),
        ({**NEW, "settings": {"cpu_cors": 1}}, "service.settings has no field 'cpu_cors'. Known: cpu_cores"),
        ({**NEW, "settings": {"num_replicas": 10**9}}, "service.settings.num_replicas must be between 1 and 1000"),
        ({**NEW, "settings": []}, "service.settings must be a dictionary"),
        ({**NEW, "tags": {"a": 1}}, "service.tags\\['a'\\] must be text, not 1"),
        ({**NEW, "tags": {str(n): "" for n in range(1001)}}, "service.tags can hold at most 1000 entries, not 1001"),
        ({**NEW, "description": "x" * 200_000}, "service.description can be at most 131071 characters long"),
        ({**NEW, "keys": {"third": "k"}}, "service.keys has no field 'third'. Known: primary, secondary."),
        ({**NEW, "content": {"modles": []}}, "service.content has no field 'modles'. Known: models, "),
        ({**NEW, "content": {"models": "times:1"}}, "service.content.models must be a list, not 'times:1'"),
        ({**NEW, "content": {"models": [1]}}, "service.content.models\\[0\\] must be text"),
        ({**NEW, "content": {"models": ["m"] * 1001}}, "service.content.models can hold at most 1000 items"),
        ({**NEW, "content": {"environment": {"name": "e"}}}, "service.content.environment lacks the field 'lock'"),
    ],
)
def test_a_new_service_that_cannot_be_read_is_refused_by_its_field(body: Any, said: str) -> None:
    with pytest.raises(AzureMLException, match=said) as caught:
        NewService.checked(body, "service")
    assert caught.value.status == 400 and len(caught.value.message) < 1500


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"traffic": 3}, "change has no field 'traffic'. Known: content, models, image, settings"),
        ({"settings": {"traffic_percentile": 101}}, "change.settings.traffic_percentile must be between 0 and 100"),
        ({"code": {"script": "x"}}, "change.code has no field 'script'. Known: snapshot_id, entry_script"),
        ({"remove_tags": "a"}, "change.remove_tags must be a list"),
        ({"is_default": 1}, "change.is_default must be true or false"),
    ],
)
def test_a_change_that_cannot_be_read_is_refused_by_its_field(body: Any, said: str) -> None:
    with pytest.raises(AzureMLException, match=said):
        ServiceChange.checked(body, "change")


def test_a_change_of_nothing_is_one() -> None:
    assert ServiceChange.checked({}) == ServiceChange() and NewContent.checked({}) == NewContent()


def test_no_empty_tags_and_no_tags_differ() -> None:
    assert ServiceChange.checked({"tags": {}}).tags == {} and ServiceChange.checked({"tags": None}).tags is None


def test_a_key_is_not_shown() -> None:
    assert "secret" not in repr(NewKey.checked({"which": "Primary", "key": "secret key"}))
    assert "secret" not in repr(NewService.checked({**NEW, "keys": {"primary": "secret key"}}))

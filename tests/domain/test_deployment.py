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
    new = NewService.from_json(body)
    assert new.settings == ServiceSettings(cpu_cores=1) and new.keys == Keys("k") and new.overwrite
    assert new.tags == {"a": None} and new.properties == {"b": "c"}
    assert new.content is not None and new.content.models == ("times:1",)
    assert new.content.environment == WantedEnvironment("l", "e", ("x",))
    assert new.content.origin == Origin("score.py", None, "/", ())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([], "A new service must be an object with fields, not .* \\(list\\)"),
        ({"kind": "AKS"}, "A new service needs a field 'name'"),
        ({**NEW, "replicas": 3}, "A new service has no field 'replicas'. Known: name, kind, content, image, like"),
        ({**NEW, "name": 3}, "Field 'name' must be text, not 3 \\(int\\)"),
        ({**NEW, "kind": "VM"}, "Field 'kind' must be one of ACI, AKS, AKSENDPOINT, LOCAL, not 'VM'"),
        ({**NEW, "kind": "PROFILE"}, "Field 'kind' must be one of"),
        ({**NEW, "overwrite": "yes"}, "Field 'overwrite' must be true or false, not 'yes'"),
        ({**NEW, "settings": {"cpu_cors": 1}}, "A service has no setting 'cpu_cors'. Known: cpu_cores"),
        ({**NEW, "settings": {"num_replicas": 10**9}}, "num_replicas must be a whole number from 1 to 1000"),
        ({**NEW, "settings": []}, "Field 'settings' must be an object"),
        ({**NEW, "tags": {"a": 1}}, "Field 'tags.a' must be text, not 1"),
        ({**NEW, "tags": {"": "1"}}, "A key of 'tags' must be text that is not empty"),
        ({**NEW, "tags": {str(n): "" for n in range(1001)}}, "Field 'tags' has 1001 entries; 1000 are the most"),
        (
            {**NEW, "description": "x" * 100_000},
            "Field 'description' must be text of 65536 characters at most, not 'xx",
        ),
        ({**NEW, "keys": {"third": "k"}}, "The keys of a service has no field 'third'. Known: primary, secondary."),
        ({**NEW, "content": {"modles": []}}, "What is to be served has no field 'modles'. Known: models, "),
        ({**NEW, "content": {"models": "times:1"}}, "Field 'models' must be a list of texts, not 'times:1'"),
        ({**NEW, "content": {"models": [1]}}, "Field 'models\\[0\\]' must be text"),
        ({**NEW, "content": {"models": ["m"] * 1001}}, "Field 'models' has 1001 entries"),
        ({**NEW, "content": {"environment": {"name": "e"}}}, "needs a field 'lock'"),
    ],
)
def test_a_new_service_that_cannot_be_read_is_refused_by_its_field(body: Any, said: str) -> None:
    with pytest.raises(AzureMLException, match=said) as caught:
        NewService.from_json(body)
    assert caught.value.status == 400 and len(caught.value.message) < 1500


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"traffic": 3}, "A change of a service has no field 'traffic'. Known: content, models, image, settings"),
        ({"settings": {"traffic_percentile": 101}}, "traffic_percentile must be a whole number from 0 to 100"),
        ({"code": {"script": "x"}}, "The code of a service has no field 'script'. Known: snapshot_id, entry_script"),
        ({"remove_tags": "a"}, "Field 'remove_tags' must be a list of texts"),
        ({"is_default": 1}, "Field 'is_default' must be true or false"),
    ],
)
def test_a_change_that_cannot_be_read_is_refused_by_its_field(body: Any, said: str) -> None:
    with pytest.raises(AzureMLException, match=said):
        ServiceChange.from_json(body)


def test_a_change_of_nothing_is_one() -> None:
    assert ServiceChange.from_json({}) == ServiceChange() and NewContent.from_json({}) == NewContent()


def test_no_empty_tags_and_no_tags_differ() -> None:
    assert ServiceChange.from_json({"tags": {}}).tags == {} and ServiceChange.from_json({"tags": None}).tags is None


def test_a_key_is_not_shown() -> None:
    assert "secret" not in repr(NewKey.from_json({"which": "Primary", "key": "secret key"}))
    assert "secret" not in repr(NewService.from_json({**NEW, "keys": {"primary": "secret key"}}))

"""Services are kept as they are, and those that another release kept are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lapis.errors import NotFound, WebserviceException
from lapis.server.control.stores import Stores, open_stores
from lapis.server.store.assets import SERVICE, Asset
from tests.domain.service_samples import FULL_SERVICE

KEPT = replace(FULL_SERVICE, workspace_id="w")


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    opened = open_stores(str(tmp_path))
    opened.workspaces.add({"id": "w", "subscription_id": "s", "resource_group": "g", "name": "w"})
    yield opened
    opened.database.close()


def test_a_service_comes_back_as_it_was_kept(stores: Stores) -> None:
    stores.services.add(KEPT)
    found = stores.services.get("w", KEPT.id)
    assert found == KEPT == stores.services.named("w", KEPT.name)
    assert stores.services.of_workspace("w") == [KEPT] == stores.services.all() and stores.services.count() == 1


def test_there_is_one_service_of_a_name(stores: Stores) -> None:
    stores.services.add(KEPT)
    with pytest.raises(WebserviceException, match="A service named 'abc' is being made already"):
        stores.services.add(replace(KEPT, id="another"))


def test_a_change_sees_the_service_as_it_is_now(stores: Stores) -> None:
    stores.services.add(KEPT)
    stores.services.change(KEPT, lambda found: replace(found, target="other"))
    changed = stores.services.change(KEPT, lambda found: replace(found, updated_at=9.0))
    assert changed == replace(KEPT, target="other", updated_at=9.0) == stores.services.get("w", KEPT.id)
    stores.services.remove(KEPT)
    assert stores.services.named("w", KEPT.name) is None
    with pytest.raises(NotFound):
        stores.services.change(KEPT, lambda found: found)


def test_a_row_with_fields_of_another_release_is_read(stores: Stores) -> None:
    body = {**KEPT.to_json(), "of_another_release": 1, "settings": {"auth_enabled": True, "of_another_release": 1}}
    stores.assets.add(Asset(KEPT.id, "w", SERVICE, KEPT.name, KEPT.created_at, body=body), lambda newest: None)
    assert stores.services.get("w", KEPT.id) == KEPT

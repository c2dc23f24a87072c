"""Services are kept as they are, and those that another release kept are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lapis.errors import NotFound, WebserviceException
from lapis.server.control.shelf import Shelf, open_shelf
from lapis.server.store.assets import SERVICE, Asset
from tests.domain.service_samples import FULL_SERVICE

KEPT = replace(FULL_SERVICE, workspace_id="w")


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    opened = open_shelf(str(tmp_path))
    opened.workspaces.add({"id": "w", "subscription_id": "s", "resource_group": "g", "name": "w"})
    yield opened
    opened.database.close()


def test_a_service_comes_back_as_it_was_kept(shelf: Shelf) -> None:
    shelf.services.add(KEPT)
    found = shelf.services.get("w", KEPT.id)
    assert found == KEPT == shelf.services.named("w", KEPT.name)
    assert shelf.services.of_workspace("w") == [KEPT] == shelf.services.all() and shelf.services.count() == 1


def test_there_is_one_service_of_a_name(shelf: Shelf) -> None:
    shelf.services.add(KEPT)
    with pytest.raises(WebserviceException, match="A service named 'abc' is being made already"):
        shelf.services.add(replace(KEPT, id="another"))


def test_a_change_sees_the_service_as_it_is_now(shelf: Shelf) -> None:
    shelf.services.add(KEPT)
    shelf.services.change(KEPT, lambda found: replace(found, target="other"))
    changed = shelf.services.change(KEPT, lambda found: replace(found, updated_at=9.0))
    assert changed == replace(KEPT, target="other", updated_at=9.0) == shelf.services.get("w", KEPT.id)
    shelf.services.remove(KEPT)
    assert shelf.services.named("w", KEPT.name) is None
    with pytest.raises(NotFound):
        shelf.services.change(KEPT, lambda found: found)


def test_a_row_with_fields_of_another_release_is_read(shelf: Shelf) -> None:
    body = {**KEPT.to_json(), "of_another_release": 1, "settings": {"auth_enabled": True, "of_another_release": 1}}
    shelf.assets.add(Asset(KEPT.id, "w", SERVICE, KEPT.name, KEPT.created_at, body=body), lambda newest: None)
    assert shelf.services.get("w", KEPT.id) == KEPT

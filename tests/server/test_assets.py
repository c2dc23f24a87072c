"""Assets are kept in numbered versions, with the runs that used them, and only for whom they are meant."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lapis.domain.addresses import rule_of
from lapis.domain.run import RunRecord
from lapis.errors import Conflict, NotFound, UserErrorException
from lapis.server.control.data import Data, NewDataset
from lapis.server.control.sealing import Sealing
from lapis.server.control.stores import Stores, open_stores
from lapis.server.control.workspaces import new_experiment
from lapis.server.store.assets import DATASET, DATASTORE, Asset

DEFINITION = {"type": "file", "sources": [{"kind": "local", "path": "/x"}], "steps": []}


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    opened = open_stores(str(tmp_path))
    for id in ("w", "other"):
        opened.workspaces.add({"id": id, "subscription_id": "s", "resource_group": "g", "name": id})
        for run in ("r", "s"):
            record = RunRecord(id=run, workspace_id=id, experiment="e", created_at=1.0)
            opened.runs.add(record, new_experiment("e", 1.0))
    yield opened
    opened.database.close()


@pytest.fixture
def data(stores: Stores, tmp_path: Path) -> Data:
    return Data(stores, Sealing(stores, str(tmp_path)), str(tmp_path), lambda: 5.0, rule_of({}))


def add(stores: Stores, id: str, name: str = "a", workspace: str = "w", kind: str = DATASET, **body: Any) -> Asset:
    return stores.assets.add(Asset(id, workspace, kind, name, 1.0, body=body), lambda newest: None)


def new(name: str = "a", **more: Any) -> NewDataset:
    return NewDataset(**{"name": name, "definition": DEFINITION, **more})


# -- kept


def test_versions_count_from_one_for_each_name_kind_and_workspace(stores: Stores) -> None:
    made = [
        add(stores, "1"), add(stores, "2"), add(stores, "3", name="b"), add(stores, "4", workspace="other"),
        add(stores, "5", kind=DATASTORE),
    ]  # fmt: skip
    assert [asset.version for asset in made] == [1, 2, 1, 1, 1]


def test_the_newest_of_each_name_or_all_versions_are_found(stores: Stores) -> None:
    for id, name in (("1", "a"), ("2", "a"), ("3", "b")):
        add(stores, id, name)
    assert [asset.id for asset in stores.assets.find("w", DATASET)] == ["2", "1", "3"]
    assert [asset.id for asset in stores.assets.find("w", DATASET, newest=True)] == ["2", "3"]
    assert [asset.id for asset in stores.assets.find("w", DATASET, "a", version=1)] == ["1"]
    assert stores.assets.find("other", DATASET) == []


def test_an_asset_comes_back_as_it_was_kept_and_only_in_its_workspace(stores: Stores) -> None:
    kept = add(stores, "1", tags={"k": None}, text="ü")
    assert stores.assets.get("w", "1") == kept
    with pytest.raises(NotFound, match="'1'"):
        stores.assets.get("other", "1")


def test_whoever_decides_sees_the_newest_and_may_keep_it(stores: Stores) -> None:
    first = add(stores, "1")
    assert stores.assets.add(Asset("2", "w", DATASET, "a", 1.0), lambda newest: newest) == first
    with pytest.raises(NotFound):
        stores.assets.get("w", "2")


def test_many_at_once_get_a_version_each(stores: Stores) -> None:
    with ThreadPoolExecutor(8) as threads:
        versions = list(threads.map(lambda number: add(stores, str(number)).version, range(40)))
    assert sorted(versions) == list(range(1, 41))


def test_a_change_that_fails_leaves_the_asset_as_it_was(stores: Stores) -> None:
    kept = add(stores, "1", tags={})

    def fail(asset: Asset) -> Asset:
        raise Conflict("no")

    with pytest.raises(Conflict):
        stores.assets.change("w", "1", fail)
    assert stores.assets.get("w", "1") == kept
    stores.assets.change("w", "1", lambda asset: replace(asset, body={"tags": {"k": "v"}}))
    assert stores.assets.get("w", "1").body == {"tags": {"k": "v"}}


def test_removing_a_name_removes_all_its_versions_and_no_other(stores: Stores) -> None:
    for id, name in (("1", "a"), ("2", "a"), ("3", "b")):
        add(stores, id, name)
    add(stores, "4", workspace="other")
    assert stores.assets.remove("w", DATASET, "a") == 2
    assert [asset.id for asset in stores.assets.find("w", DATASET)] == ["3"]
    assert [asset.id for asset in stores.assets.find("other", DATASET)] == ["4"]


# -- used


def test_uses_are_found_from_both_ends_and_count_once(stores: Stores) -> None:
    add(stores, "1")
    for _ in range(2):
        stores.assets.note_use("w", "r", [("1", "input", "x"), ("1", "output", "y")])
    stores.assets.note_use("w", "s", [("1", "input", "x")])
    assert [(use["run_id"], use["role"], use["name"]) for use in stores.assets.used_by("w", "1")] == [
        ("r", "input", "x"), ("r", "output", "y"), ("s", "input", "x"),
    ]  # fmt: skip
    uses = stores.assets.uses_of("w", "r")
    assert [use[:3] for use in uses] == [("1", "input", "x"), ("1", "output", "y")]
    assert [use.asset and use.asset.version for use in uses] == [1, 1]
    assert stores.assets.used_by("other", "1") == []


def test_a_run_keeps_what_it_used_after_the_name_is_forgotten(stores: Stores) -> None:
    add(stores, "1")
    stores.assets.note_use("w", "r", [("1", "input", "x")])
    stores.assets.remove("w", DATASET, "a")
    assert stores.assets.uses_of("w", "r") == [("1", "input", "x", None)]


def test_a_deleted_run_is_in_no_lineage(stores: Stores) -> None:
    add(stores, "1")
    stores.assets.note_use("w", "r", [("1", "input", "x")])
    stores.runs.remove("w", ["r"])
    assert stores.assets.used_by("w", "1") == []


# -- what may be done


def test_the_same_definition_is_the_same_version_unless_a_new_one_is_wanted(data: Data) -> None:
    first = data.register_dataset("w", new())
    assert data.register_dataset("w", new())["id"] == first["id"]
    assert data.register_dataset("w", new(create_new_version=True))["version"] == 2
    with pytest.raises(Conflict, match="create_new_version=True"):
        data.register_dataset("w", new(definition={**DEFINITION, "steps": [{"op": "take", "count": 1}]}))


def test_lists_do_not_carry_the_files_and_a_question_for_them_does(data: Data) -> None:
    files = [{"path": f"/{number}", "size": 1} for number in range(3)]
    made = data.register_dataset("w", new(files=files))
    assert "files" not in made and "files" not in data.datasets("w")[0]
    assert "files" not in data.dataset("w", "a", None)
    assert "files" not in data.dataset_by_id("w", made["id"])
    assert data.files("w", made["id"]) == files


def test_the_same_output_of_a_run_is_registered_once(data: Data) -> None:
    output = new(run_id="r", output="out", create_new_version=True)
    made = data.register_dataset("w", output)
    assert data.register_dataset("w", output)["id"] == made["id"]  # a reply was lost
    assert data.lineage("w", made["id"]) == [{"run_id": "r", "role": "output", "name": "out"}]
    another = data.register_dataset("w", new(run_id="r", output="second", create_new_version=True))
    assert another["version"] == 2
    with pytest.raises(NotFound):
        data.register_dataset("w", new(run_id="no-such-run", output="out"))


@pytest.mark.parametrize("definition", [{}, {"type": "file"}, {"sources": []}, {"type": "file", "sources": "x"}])
def test_a_definition_without_type_and_sources_is_refused(data: Data, definition: Any) -> None:
    with pytest.raises(UserErrorException, match="needs a type and sources"):
        data.register_dataset("w", new(definition=definition))


def test_only_datasets_answer_to_the_id_of_a_dataset(data: Data, stores: Stores) -> None:
    add(stores, "store", "s", kind=DATASTORE, type="AzureBlob", folder="/")
    for call in (
        lambda: data.dataset_by_id("w", "store"),
        lambda: data.files("w", "store"),
        lambda: data.lineage("w", "store"),
        lambda: data.change_dataset("w", "store", {"tags": {"a": "b"}}),
        lambda: data.lineage("w", "nothing"),
    ):
        with pytest.raises(NotFound):
            call()
    assert stores.assets.get("w", "store").body == {"type": "AzureBlob", "folder": "/"}


@pytest.mark.parametrize("changes", [{"name": "b"}, {"definition": {}}, {"description": 5}, {"tags": ["a"]}])
def test_only_tags_and_description_can_be_changed(data: Data, changes: Any) -> None:
    made = data.register_dataset("w", new())
    with pytest.raises(UserErrorException):
        data.change_dataset("w", made["id"], changes)
    assert data.dataset_by_id("w", made["id"]) == made

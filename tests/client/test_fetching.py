"""What arrives is what was stored, below the folder that it was meant for; else nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from azureml.core import Model, Workspace
from azureml.exceptions import UserErrorException
from lapis.client.fetching import fetch
from lapis.errors import AzureMLException
from lapis.testing import Home


class Lying:
    """A client whose server answers with something else."""

    def download(self, path: str, write: Any, query: Any = None) -> None:
        write(b"something else")


def test_what_arrives_changed_is_not_written(tmp_path: Path) -> None:
    client: Any = Lying()
    with pytest.raises(AzureMLException, match="The model arrived damaged"):
        fetch(client, "/blobs/x", str(tmp_path / "model"), "0" * 64, "The model")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def model(workspace: Workspace, tmp_path: Path) -> Model:
    (tmp_path / "model.bin").write_bytes(b"weights")
    return Model.register(workspace, str(tmp_path / "model.bin"), "weights")


def test_a_model_whose_stored_bytes_changed_is_not_downloaded(
    model: Model, on_shared_server: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Path(model.download(str(tmp_path / "whole"))).read_bytes() == b"weights"
    monkeypatch.setattr(model.workspace, "_client", Lying())
    with pytest.raises(AzureMLException, match="'model.bin' of model weights:1 arrived damaged"):
        model.download(str(tmp_path / "there"))
    assert not (tmp_path / "there" / "model.bin").exists()


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "a/../../outside"])
def test_a_model_does_not_write_outside_of_the_folder(model: Model, name: str, tmp_path: Path) -> None:
    model._view = {**model._view, "files": [{**model._view["files"][0], "path": name}]}
    with pytest.raises(UserErrorException, match="outside.* cannot be used"):
        model.download(str(tmp_path / "target"), exist_ok=True)
    assert not (tmp_path / "outside").exists()


def test_nor_through_a_link_that_lies_there(model: Model, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "target" / "inner").symlink_to(tmp_path / "elsewhere")
    model._view = {**model._view, "files": [{**model._view["files"][0], "path": "inner/file"}]}
    with pytest.raises(UserErrorException, match="a link leads it out"):
        model.download(str(tmp_path / "target"), exist_ok=True)
    assert list((tmp_path / "elsewhere").iterdir()) == []

"""What an agent lays out before the script starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapis.agent import prepare
from lapis.client.http_client import Client, Endpoint
from lapis.domain.launch import Place
from tests.launches import launch


@pytest.mark.parametrize("shared", [True, False])
def test_outputs_are_the_heads_where_a_node_sees_its_folder_and_its_own_elsewhere(tmp_path: Path, shared: bool) -> None:
    head, mine = tmp_path / "head", tmp_path / "mine"
    (head / "own" / "code" / "outputs").mkdir(parents=True)
    place = Place(index=1, count=2, head=str(head) if shared else None)
    client = Client(Endpoint("http://127.0.0.1:9", "none"))
    prepare.lay_out_code(launch(), str(mine / "code"), client, place)
    (mine / "code" / "outputs" / "a").touch()
    assert (head / "own" / "code" / "outputs" / "a").exists() == shared

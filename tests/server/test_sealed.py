"""Credentials in the database can be read with the key file, and only with that."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapis.errors import UserErrorException
from lapis.server.store.sealed import Sealer


def test_what_is_sealed_is_opened_by_another_server_of_the_same_home(tmp_path: Path) -> None:
    sealed = Sealer(str(tmp_path)).seal({"account_key": "secret"})
    assert "secret" not in sealed
    assert Sealer(str(tmp_path)).open(sealed, "datastore 'x'") == {"account_key": "secret"}


def test_the_same_is_sealed_differently_each_time(tmp_path: Path) -> None:
    sealer = Sealer(str(tmp_path))
    assert sealer.seal({"account_key": "secret"}) != sealer.seal({"account_key": "secret"})


def test_the_key_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    Sealer(str(tmp_path)).seal({})
    assert [path.name for path in tmp_path.iterdir()] == ["secrets.key"]
    assert (tmp_path / "secrets.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("key", [None, b"", b"not a key", b"A" * 43 + b"="])
def test_without_the_right_key_file_the_error_says_which_is_missing(tmp_path: Path, key: bytes | None) -> None:
    sealer = Sealer(str(tmp_path))
    sealed = sealer.seal({"account_key": "secret"})
    (tmp_path / "secrets.key").unlink()
    if key is not None:
        (tmp_path / "secrets.key").write_bytes(key)
    with pytest.raises(UserErrorException, match="credentials of datastore 'x' cannot be opened: .*secrets.key"):
        sealer.open(sealed, "datastore 'x'")

"""Blobs as an agent takes them: a copy of its own, with exactly the bytes of the hash."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lapis.agent.blobs import Blobs
from lapis.client.http_client import Client, Endpoint
from lapis.errors import ServiceException
from lapis.server.store.blobs import BlobFolder

NOBODY = Client(Endpoint("http://127.0.0.1:9", "none"))


def test_a_copy_is_a_file_of_its_own(tmp_path: Path) -> None:
    folder = BlobFolder(str(tmp_path / "blobs"))
    digest, _ = folder.put_bytes(b"weights")
    with Blobs(NOBODY, "/snapshots/s", folder.root, []) as blobs:
        blobs.copy(digest, str(tmp_path / "mine"))
    with open(tmp_path / "mine", "ab") as file:
        file.write(b" and more")
    assert folder.read_whole(digest) == b"weights"


def test_what_is_damaged_in_the_folder_is_not_taken_and_the_server_is_asked(tmp_path: Path) -> None:
    folder = BlobFolder(str(tmp_path / "blobs"))
    digest = hashlib.sha256(b"weights").hexdigest()
    folder.put_bytes(b"weights")
    Path(folder.path(digest)).write_bytes(b"WEIGHTS")
    with Blobs(NOBODY, "/snapshots/s", folder.root, []) as blobs, pytest.raises(ServiceException, match="127.0.0.1:9"):
        blobs.copy(digest, str(tmp_path / "mine"))

"""Reads blobs: on the server's own machine straight from its folder, else from the server."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable
from typing import BinaryIO

from lapis.client.http_client import Client
from lapis.domain import packs
from lapis.errors import UserErrorException
from lapis.machine import cloning


class Blobs:
    """`with Blobs(...) as blobs:` the packs that are named stay open within. Nobody has checked what is read."""

    def __init__(self, client: Client, under: str, folder: str | None, pack_names: Iterable[str]) -> None:
        """`under` is the address of the snapshot or model that they belong to."""
        self._client = client
        self._under = under
        self._folder = folder if folder and os.path.isdir(folder) else None
        self._pack_names = pack_names
        self._open: list[BinaryIO] = []
        self._places: dict[str, tuple[BinaryIO, int, int]] = {}  # hash -> pack, first byte, size

    def __enter__(self) -> Blobs:
        for name in self._pack_names if self._folder else ():
            try:
                pack = open(os.path.join(self._folder or "", "packs", name), "rb")
                self._open.append(pack)
                places = packs.read_places(pack)
            except (OSError, ValueError):
                continue  # the server is asked for what it held, and says what is wrong
            self._places.update({digest: (pack, *place) for digest, place in places.items()})
        return self

    def __exit__(self, *_: object) -> None:
        for pack in self._open:
            pack.close()

    def open(self, digest: str) -> BinaryIO:
        place = self._places.get(digest)
        if place is not None:
            pack, start, size = place
            return io.BytesIO(os.pread(pack.fileno(), size, start))
        if self._folder is not None:
            try:
                return open(os.path.join(self._folder, digest[:2], digest[2:]), "rb")
            except FileNotFoundError:
                pass
        return self.fetch(digest)

    def copy(self, digest: str, target: str) -> None:
        """A file of its own with exactly these bytes; one that is damaged in the folder is asked of the server."""
        for open_it in (self.open, self.fetch):
            with open_it(digest) as source, open(target, "wb") as file:
                cloning.copy_open(source, file)
            if _hash(target) == digest:
                return
        raise UserErrorException(f"Blob {digest} is damaged where it is stored. Register it again.")

    def fetch(self, digest: str) -> BinaryIO:
        """From the server, wherever it is."""
        import tempfile

        file = tempfile.TemporaryFile()
        try:
            self._client.download(f"{self._under}/blobs/{digest}", file.write)
        except BaseException:
            file.close()
            raise
        file.seek(0)
        return file


def _hash(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

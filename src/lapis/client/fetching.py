"""Brings one stored file here: whole and as it was stored, or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Mapping

from lapis.errors import AzureMLException
from lapis.machine.whole_files import replacing

if TYPE_CHECKING:
    from lapis.client.http_client import Client


def fetch_run_file(
    client: Client,
    path: str,
    target: str,
    file: Mapping[str, Any],
    what: str,
    count: Callable[[int], Any] | None = None,
) -> None:
    """As `fetch`, of a file as a run lists it: a server of this machine writes it straight into ours."""
    size = int(file["size"]) if file["hash"] else 0
    os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
    with replacing(target) as part:
        with open(part, "wb") as output:
            taken = client.hand_over("GET", path, output.fileno(), size)
        if taken is None:
            fetch(client, path, part, file["hash"], what, count)
        elif count is not None:
            count(size)


def fetch(
    client: Client, path: str, target: str, digest: str | None, what: str, count: Callable[[int], Any] | None = None
) -> None:
    """Write what the server has at `path` to the file `target`. `count` is told of every piece that has come.

    `digest` is the SHA-256 that it must have; None: of a file that still grows there is none.
    """
    import hashlib

    found = hashlib.sha256()

    def take(piece: bytes) -> None:
        output.write(piece)
        found.update(piece)
        if count is not None:
            count(len(piece))

    os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
    with replacing(target) as part:
        with open(part, "wb") as output:
            client.download(path, take)
        if digest and found.hexdigest() != digest:
            raise AzureMLException(f"{what} arrived damaged: it is not what was stored. Try again.")

"""What a snapshot comes by, as functions of bytes: which blobs are missing, many small ones, the list of files."""

from __future__ import annotations

import json
from typing import Any

from lapis.domain import frames, packs, strict_json
from lapis.domain.tree import Tree
from lapis.errors import UserErrorException
from lapis.server.control.guard import Guarded


def missing_from(control: Guarded, body: bytes) -> bytes:
    """Which of the blobs that a JSON body names are not here. Called by express.py, as the others."""
    asked = strict_json.decode(body)
    hashes = asked.get("hashes") if isinstance(asked, dict) else None
    if not isinstance(hashes, list) or any(not isinstance(digest, str) for digest in hashes):
        raise UserErrorException('The request cannot be read: it should be {"hashes": [...]}.')
    return _json({"missing": control.files.missing(hashes)})


def put_blobs_from(control: Guarded, body: bytes) -> bytes:
    """Many small blobs at once: frames whose header names their hashes. Says how many were here before."""
    return _json({"known": control.files.put_blobs(packs.decode(*frames.decode(body)))})


def add_from(control: Guarded, workspace_id: str, body: bytes) -> bytes:
    """Keep a snapshot, or say which of its blobs are missing: send those, then ask again.

    Frames whose header lists the files; blobs that were hardly here before may come along.
    """
    header, parts = frames.decode(body)
    tree = Tree.from_json(header.get("files"))
    lacking = control.files.add_snapshot(workspace_id, tree, packs.decode(header, parts))
    return _json({"id": tree.id, "missing": lacking})


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()

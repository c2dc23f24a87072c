"""Routes of bytes: blobs, snapshots, and the files of a run. What a snapshot comes by is in snapshots.py."""

from __future__ import annotations

import mimetypes
from collections.abc import AsyncIterator, Iterator
from typing import BinaryIO
from urllib.parse import quote

from fastapi import APIRouter, Body, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from lapis.domain.tree import check_path
from lapis.server.api.system import System, TheActor, TheSystem, answer

router = APIRouter()
_CHUNK = 1 << 20


@router.put("/blobs/{digest}")
async def put_blob(request: Request, system: TheSystem, actor: TheActor, digest: str) -> Response:
    """One blob of any size, as it comes."""
    actor.may_upload()
    system.stores.blobs.path(digest)
    stored = await _store(system, request, digest)
    return answer({"hash": stored[0], "size": stored[1]}, 201)


@router.get("/blobs/{digest}")
def get_blob(system: TheSystem, actor: TheActor, digest: str) -> Response:
    size = system.stores.blobs.size(digest)
    return StreamingResponse(
        _chunks(system.stores.blobs.open(digest)),
        media_type="application/octet-stream",
        headers={"Content-Length": str(size), "X-Content-Type-Options": "nosniff"},
    )


@router.get("/workspaces/{workspace_id}/snapshots/{snapshot_id}")
def get_snapshot(system: TheSystem, actor: TheActor, workspace_id: str, snapshot_id: str) -> Response:
    actor.may_read(workspace_id)
    return answer({"id": snapshot_id, "files": system.stores.snapshots.get(snapshot_id).to_json()})


@router.get("/workspaces/{workspace_id}/runs/{run_id}/files")
def list_files(system: TheSystem, actor: TheActor, workspace_id: str, run_id: str) -> Response:
    """Every file of the run, each with a link that reads it, alone, for some minutes."""
    system.runs.get(actor, workspace_id, run_id)
    now, base = system.now(), f"/api/v1/workspaces/{workspace_id}/runs/{run_id}/files/"
    return answer(
        {
            "files": [
                {
                    "name": file.name,
                    "size": file.size,
                    "hash": file.hash,
                    "created_at": file.created_at,
                    "link": system.access.sign_link(base + quote(file.name), now),
                }
                for file in system.stores.files.find(workspace_id, run_id)
            ]
        }
    )


@router.get("/workspaces/{workspace_id}/runs/{run_id}/files/{name:path}")
def get_file(
    system: TheSystem, actor: TheActor, workspace_id: str, run_id: str, name: str, offset: int = 0
) -> Response:
    """The file's bytes from `offset`, always as something to save or read, never as a page of this origin."""
    system.runs.get(actor, workspace_id, run_id)
    file = system.stores.files.get(workspace_id, run_id, check_path(name))
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    shown = kind if kind in ("image/png", "image/jpeg", "image/gif", "text/plain") else "application/octet-stream"
    headers = {"X-Content-Type-Options": "nosniff", "X-Lapis-Size": str(file.size), "X-Lapis-Hash": file.hash or ""}
    if shown == "application/octet-stream":
        headers["Content-Disposition"] = "attachment; filename*=UTF-8''" + quote(name.rsplit("/", 1)[-1])
    chunks = system.stores.files.read(workspace_id, run_id, file, max(0, offset))
    return StreamingResponse(chunks, media_type=shown, headers=headers)


@router.put("/workspaces/{workspace_id}/runs/{run_id}/files/{name:path}")
async def put_file(
    request: Request, system: TheSystem, actor: TheActor, workspace_id: str, run_id: str, name: str
) -> Response:
    check_path(name)
    await run_in_threadpool(system.runs.check_writable, actor, workspace_id, run_id)
    digest, size = await _store(system, request)
    await run_in_threadpool(system.stores.files.put, workspace_id, run_id, {name: (digest, size)}, system.now())
    system.bulletin.tell(run_id)
    return answer({"name": name, "hash": digest, "size": size}, 201)


@router.post("/workspaces/{workspace_id}/runs/{run_id}/files")
def name_files(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    run_id: str,
    files: dict[str, str] = Body(embed=True),  # noqa: B008
) -> Response:
    """Name blobs that are stored already as files of the run."""
    system.runs.check_writable(actor, workspace_id, run_id)
    named = {check_path(name): (digest, system.stores.blobs.size(digest)) for name, digest in files.items()}
    system.stores.files.put(workspace_id, run_id, named, system.now())
    system.bulletin.tell(run_id)
    return answer({}, 201)


async def _store(system: System, request: Request, expected: str | None = None) -> tuple[str, int]:
    """Write the body down as it comes; a sender that goes away leaves nothing behind."""
    writer = system.stores.blobs.writer()
    try:
        async for batch in _batches(request):
            await run_in_threadpool(writer.write, batch)
        return await run_in_threadpool(writer.commit, expected)
    except BaseException:
        writer.abandon()
        raise


async def _batches(request: Request) -> AsyncIterator[bytes]:
    held, size = [], 0
    async for chunk in request.stream():
        held.append(chunk)
        size += len(chunk)
        if size >= _CHUNK:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk

"""Routes of bytes: blobs, snapshots, and the files of a run. What a snapshot comes by is in snapshots.py."""

from __future__ import annotations

import mimetypes
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from lapis.client.handing_over import TICKET
from lapis.domain.limits import FILES_AT_ONCE
from lapis.domain.tree import check_path
from lapis.domain.values import Value, at_most
from lapis.server.api.repeats import harmless, whole
from lapis.server.api.request import Request, Response, TheControl, answer, blob_answer
from lapis.server.api.routing import Routes
from lapis.server.control.bounds import Offset
from lapis.server.control.files import Writer

router = Routes()
_CHUNK = 1 << 20


@dataclass(frozen=True)
class StoredFiles(Value):
    files: Mapping[str, str] = field(metadata=at_most(FILES_AT_ONCE))  # the hash of each


@router.put("/blobs/{digest}")
@harmless("a blob is its content")
async def put_blob(request: Request, control: TheControl, digest: str) -> Response:
    """One blob of any size, as it comes, or from a file that was handed over."""
    ticket = request.headers.get(TICKET)
    if ticket is not None:
        taken = await run_in_threadpool(control.files.copy_in_blob, digest, ticket)
        return answer({"taken": taken}, 201 if taken else 200)
    stored = await _received(request, control.files.blob_writer(digest), digest)
    return answer({"hash": stored[0], "size": stored[1]}, 201)


@router.get("/blobs/{digest}")
def get_blob(control: TheControl, digest: str) -> Response:
    return blob_answer(*control.files.open_blob(digest))


@router.get("/workspaces/{workspace_id}/snapshots/{snapshot_id}")
def get_snapshot(control: TheControl, workspace_id: str, snapshot_id: str) -> Response:
    return answer({"id": snapshot_id, "files": control.files.snapshot(workspace_id, snapshot_id).to_json()})


@router.get("/workspaces/{workspace_id}/snapshots/{snapshot_id}/blobs/{digest}")
def get_file_of_snapshot(control: TheControl, workspace_id: str, snapshot_id: str, digest: str) -> Response:
    return blob_answer(*control.files.open_in_snapshot(workspace_id, snapshot_id, digest))


@router.get("/workspaces/{workspace_id}/runs/{run_id}/files")
def list_files(control: TheControl, workspace_id: str, run_id: str) -> Response:
    """Every file of the run, each with a link that reads it, alone, for some minutes."""
    base = f"/api/v1/workspaces/{workspace_id}/runs/{run_id}/files/"
    return answer(
        {
            "files": [
                {
                    "name": file.name,
                    "size": file.size,
                    "hash": file.hash,
                    "created_at": file.created_at,
                    "link": link,
                }
                for file, link in control.files.links(workspace_id, run_id, base)
            ]
        }
    )


@router.get("/workspaces/{workspace_id}/runs/{run_id}/files/{name:path}")
def get_file(
    request: Request, control: TheControl, workspace_id: str, run_id: str, name: str, offset: Offset = 0
) -> Response:
    """The file's bytes from `offset`, always as something to save or read, never as a page of this origin.

    Or whether they were written to a file that was handed over.
    """
    file = control.files.get(workspace_id, run_id, name)
    ticket = request.headers.get(TICKET)
    if ticket is not None:
        return answer({"taken": control.files.copy_out(workspace_id, run_id, file, ticket)})
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    shown = kind if kind in ("image/png", "image/jpeg", "image/gif", "text/plain") else "application/octet-stream"
    headers = {"X-Content-Type-Options": "nosniff", "X-Lapis-Size": str(file.size), "X-Lapis-Hash": file.hash or ""}
    if shown == "application/octet-stream":
        headers["Content-Disposition"] = "attachment; filename*=UTF-8''" + quote(name.rsplit("/", 1)[-1])
    chunks = control.files.read(workspace_id, run_id, file, offset)
    return StreamingResponse(chunks, media_type=shown, headers=headers)


@router.put("/workspaces/{workspace_id}/runs/{run_id}/files/{name:path}")
@harmless("the same content under the same name")
async def put_file(
    request: Request, control: TheControl, workspace_id: str, run_id: str, name: str, replaces: str | None = None
) -> Response:
    """With `replaces`: a file that was found in the run's folders, and the hash that it may replace, if any."""
    check_path(name)
    ticket = request.headers.get(TICKET)
    if ticket is not None:
        copied = await run_in_threadpool(control.files.copy_in, workspace_id, run_id, ticket)
        if copied is None:
            return answer({"taken": False})
        digest, size = copied
    else:
        writer = await run_in_threadpool(control.files.writer, workspace_id, run_id)
        digest, size = await _received(request, writer)
    if replaces is None:
        await run_in_threadpool(control.files.put, workspace_id, run_id, {name: (digest, size)})
    else:
        put = control.files.put_collected
        await run_in_threadpool(put, workspace_id, run_id, name, (digest, size), replaces)
    return answer({"name": name, "hash": digest, "size": size}, 201)


@router.post("/workspaces/{workspace_id}/runs/{run_id}/files")
@whole
def name_files(
    control: TheControl,
    workspace_id: str,
    run_id: str,
    stored: StoredFiles,
) -> Response:
    """Name blobs that are stored already as files of the run."""
    control.files.put_stored(workspace_id, run_id, stored.files)
    return answer({}, 201)


async def _received(request: Request, writer: Writer, expected: str | None = None) -> tuple[str, int]:
    """Write the body down as it comes; a sender that goes away leaves nothing behind."""
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

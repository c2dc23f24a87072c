"""`lapis run logs`: a log of a run, as it stands or as it grows."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from lapis.cli import choice, screen
from lapis.cli.options import Json, RunId, WorkspaceName
from lapis.domain.run import ENDED
from lapis.domain.terminal_escapes import Colours

_WAIT = 20.0
_INTERRUPTED = 130


def logs(
    run_id: RunId,
    follow_it: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run ends; of one that has, print it all.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(metavar="FILE", help="Another log, as `lapis run files` calls it.")
    ] = None,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Print the log of a run.

    On a terminal, escape sequences in the log other than colours are left out; a file or a pipe gets every byte.
    """
    run = choice.run(run_id, workspace)
    name = name or str(run._own_log)
    if not follow_it and not _has(run, name):
        return
    kept: list[bytes] = []
    if follow_it:
        view = follow(run, name, quiet=False, write=kept.append if as_json else None)
        if view["status"] in ENDED and not kept and not _has(run, name):
            return
    elif as_json:
        run._read_file(name, kept.append)
    else:
        output = _Output()
        run._read_file(name, output.write)
        output.end()
    text = b"".join(kept).decode("utf-8", "replace")
    status = run._facts()["status"]
    screen.answer({"id": run.id, "name": name, "status": status, "text": text}, lambda: None)


def follow(run: Any, name: str, quiet: bool, write: Callable[[bytes], Any] | None = None) -> dict[str, Any]:
    """Print a log until its run ends, and on stderr what the run waits for before it speaks; the run's last view.

    With `write` the bytes go there; with `quiet` nowhere.
    """
    output = _Output() if write is None and not quiet else None
    take = output.write if output is not None else write
    from lapis.sdk.runs.waiting import WORTH_TELLING, just_queued

    revision, offset, told, held_back = -1, 0, "", False
    try:
        while True:
            wait = WORTH_TELLING if held_back else _WAIT
            query = {"revision": revision, "wait": wait, "log": name, "offset": offset}
            seen = run._call("GET", "/watch", query=query, timeout=_WAIT + 40.0)
            view, revision = seen["run"], seen["run"]["revision"]
            run._view = view
            held_back = just_queued(view)
            if not offset and not seen["length"] and not held_back:
                told = _tell_wait(view, told)
            if seen["length"] < offset:  # its script began it anew
                offset = 0
            if seen["length"] > offset:
                offset += _read_from(run, name, offset, take)
            if view["status"] in ENDED:
                return dict(view)
    except KeyboardInterrupt:
        screen.notice(
            f"\nNo longer following. Run {run.id} goes on: `lapis run logs -f {run.id}` follows it again, "
            f"`lapis run cancel {run.id}` stops it."
        )
        raise typer.Exit(_INTERRUPTED) from None
    finally:
        if output is not None:
            output.end()


class _Output:
    """Stdout for a job's log: on a terminal only text and colours, elsewhere every byte as it is."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace") if sys.stdout.isatty() else None
        self._colours = Colours()

    def write(self, data: bytes) -> None:
        if self._decoder is None:
            sys.stdout.buffer.write(data)
        else:
            sys.stdout.write(self._colours.feed(self._decoder.decode(data)))
        sys.stdout.flush()

    def end(self) -> None:
        if self._decoder is not None:
            sys.stdout.write(self._colours.feed(self._decoder.decode(b"", final=True)) + self._colours.end())
            sys.stdout.flush()


def _has(run: Any, name: str) -> bool:
    """Whether the run has this file. That a run has not spoken yet is no error, and is told on stderr."""
    from lapis.errors import NotFound

    names = run.get_file_names()
    if name in names:
        return True
    if name != run._own_log:
        raise NotFound(f"Run {run.id} has no file named '{name}'. It has: {', '.join(names) or 'none'}.")
    view = run._facts()
    document = {"id": run.id, "name": name, "status": view["status"], "text": ""}
    reason = view["stages"][-1]["reason"] if view["stages"] else ""
    remark = f"Run {run.id} has written no log. It is {view['status']}" + (f": {reason}." if reason else ".")
    screen.answer(document, lambda: screen.notice(remark))
    return False


def _tell_wait(view: dict[str, Any], told: str) -> str:
    """A line when the run begins to wait for something else; what was told last."""
    if view["status"] in ("Running", *ENDED) or not view["stages"]:
        return told
    last = view["stages"][-1]
    line = f"{view['status']}: {last['reason']}" + (f" ({last['until']})" if last["until"] else "")
    if line != told:
        screen.notice(line)
    return line


def _read_from(run: Any, name: str, offset: int, take: Callable[[bytes], Any] | None) -> int:
    """Hand over what the log has from `offset` on; how many bytes that were."""
    from lapis.client.http_client import quoted

    pieces: list[bytes] = []
    try:
        run._client.download(f"{run._base}/files/{quoted(name)}", pieces.append, {"offset": offset})
    except ConnectionError:
        pass  # the server went away in the middle: the next look finds it again, and the rest
    data = b"".join(pieces)
    if take is not None:
        take(data)
    return len(data)

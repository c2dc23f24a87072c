"""Interactive runs: they live in this process, from start_logging() to complete()."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lapis.client.collected import Collected, stamp
from lapis.client.recording import ProcessRecorder, guest_stream, owner_of
from lapis.domain.delivery import Losses
from lapis.domain.run import check_labels, check_run_id, check_text
from lapis.errors import UserErrorException
from lapis.sdk.runs.run import Run

if TYPE_CHECKING:
    from lapis.sdk.runs.experiment import Experiment

_FOLDERS = ("outputs", "logs")  # made beside us, and taken up when the run ends


def start_logging(
    experiment: Experiment,
    name: str | None = None,
    run_id: str | None = None,
    outputs: Any = None,
    snapshot_directory: Any = None,
    display_name: str | None = None,
    tags: Any = None,
    **unknown: Any,
) -> InteractiveRun:
    """Make the run on the server, with a snapshot of a folder if one is named."""
    if unknown:
        raise UserErrorException(
            "start_logging() takes name, run_id, outputs, snapshot_directory, display_name and tags; unknown: "
            f"{', '.join(sorted(unknown))}."
        )
    workspace = experiment.workspace
    chosen = check_run_id(run_id or str(uuid4()))
    shown = check_text("display_name", display_name) or check_text("name", name)
    checked_tags = check_labels("tags", tags or {})
    if outputs is not None and not isinstance(outputs, (str, os.PathLike)):
        raise UserErrorException(f"outputs must name a folder, not {type(outputs).__name__} ({outputs!r}).")
    snapshot_id = None
    if snapshot_directory is not None:
        from lapis.client.snapshot_sending import send_snapshot

        snapshot_id = send_snapshot(workspace, os.fspath(snapshot_directory)).id
    body = {
        "experiment": experiment.name,
        "run_id": chosen,
        "nonce": uuid4().hex,
        "display_name": shown,
        "tags": checked_tags,
        "properties": {"ContentSnapshotId": snapshot_id} if snapshot_id else {},
        "snapshot_id": snapshot_id,
        "target": "sdk",
        "owner": owner_of(),
        "started": True,
        "created_by": user_name(),
    }
    view = workspace._client.call("POST", workspace._base + "/runs", {"runs": [body]})["runs"][0]
    return InteractiveRun(experiment, chosen, outputs, view)


class InteractiveRun(Run):
    """What start_logging() gives. Ends with complete(), fail(), its `with` block, or the interpreter."""

    def __init__(self, experiment: Experiment, run_id: str, outputs: Any, view: dict[str, Any]) -> None:
        recorder = ProcessRecorder(experiment.workspace._client, experiment.workspace._workspace_id, run_id,
                                   "journal", owner=True)  # fmt: skip
        super().__init__(experiment, run_id, outputs, _view=view, _recorder=recorder)
        self._own = recorder
        self._folders = [os.path.abspath(outputs)] if outputs else [os.path.abspath(folder) for folder in _FOLDERS]
        self._named = bool(outputs)  # by the user: it is what was meant, though it be a link
        recorder.finish = self._at_exit
        for folder in self._folders:
            try:
                if not os.path.isdir(folder):
                    os.makedirs(folder, exist_ok=True)
            except OSError:
                pass  # a folder that cannot be made holds nothing to take up
        self._there = {path: stamp(path) for folder in self._folders for path in _below(folder)}

    def complete(self, _set_status: bool = True) -> None:
        self._end({"state": "Completed", "reason": "Completed by its owner"})

    def fail(self, error_details: Any = None, error_code: Any = None, _set_status: bool = True) -> None:
        message = "fail() was called for this run." if error_details is None else str(error_details)
        error = {"code": "UserError" if error_code is None else str(error_code), "message": message}
        self._end({"state": "Failed", "reason": message, "error": error})

    def cancel(self) -> None:
        self._end({"state": "Canceled", "reason": "cancel() was called"})

    def _end(self, verdict: dict[str, Any]) -> None:
        if self._own.finish is None:
            return  # it has ended before
        small = self._take_up_folders()
        reply = self._own.close(verdict, small)
        self._own.finish = None
        if self._view is not None:
            self._view = dict(self._view, status=reply["state"], state=reply["state"])

    def get_status(self) -> str:
        return str(self._refresh()["status"])

    def _take_up_folders(self) -> dict[str, bytes]:
        """Files that came or changed since the run began: large ones are sent, small ones returned for the last report.

        Whatever their times say: a file that is moved here keeps the time that it was written at.
        """
        small: dict[str, bytes] = {}
        for folder in self._folders:
            root, name = (folder, "") if self._named else os.path.split(folder)
            found = Collected(root, lambda path: path in self._there and self._there[path] == stamp(path))
            for stored_as, path in found.files(name, os.path.basename(folder)):
                self._own.losses += self._own.shipper.put_or_keep(stored_as, path, small, root)
            self._own.losses += Losses([], list(found.notices.values()))
        return small

    def _at_exit(self) -> None:
        """The interpreter ends: so does the run, as the program did."""
        if _uncaught is not None:
            kind = type(_uncaught).__name__
            self.fail(f"{kind}: {_uncaught}", error_code=kind)
        else:
            self.complete()


def _below(folder: str) -> list[str]:
    return [os.path.join(where, leaf) for where, _, leaves in os.walk(folder) for leaf in leaves]


_uncaught: BaseException | None = None
_hooked = sys.excepthook


def _remember(kind: Any, value: Any, trace: Any) -> None:
    global _uncaught
    if not hasattr(sys, "ps1"):  # at a prompt an exception ends nothing
        _uncaught = value
    _hooked(kind, value, trace)


sys.excepthook = _remember


def guest_recorder(run: Run) -> ProcessRecorder:
    """For a run that lives elsewhere: what this process logs to it travels in a journal of its own."""
    workspace = run.experiment.workspace
    return ProcessRecorder(workspace._client, workspace._workspace_id, run.id, guest_stream(), owner=False)


@lru_cache(maxsize=None)
def user_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"

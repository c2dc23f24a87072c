"""Waiting for a pipeline with something to see: one step after the other, each with its log, in SDK v1's words."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from lapis.domain.pipeline_moves import LOG
from lapis.domain.run import ENDED
from lapis.domain.terminal_escapes import plain
from lapis.errors import UserErrorException
from lapis.sdk.pipelines.step_run import IN_PIPELINES, StepRun
from lapis.sdk.runs.failure import exception_of
from lapis.sdk.runs.waiting import whole_characters

if TYPE_CHECKING:
    from lapis.sdk.pipelines.pipeline_run import PipelineRun
    from lapis.sdk.runs.run import Run

_WAIT = 20.0
_PORTAL = "Link to Azure Machine Learning Portal:"


def wait_for_pipeline(run: PipelineRun, show: bool, timeout: float, raise_on_error: bool) -> str:
    deadline = time.monotonic() + timeout
    if show:
        print(f"PipelineRunId: {run.id}\n{_PORTAL} {run.get_portal_url()}", flush=True)
    told = _Told("PipelineRun", show)
    shown: set[str] = set()
    revision, offset = -1, 0
    while True:
        seen = _watch(run, revision, LOG if show else None, offset, deadline)
        view, revision, offset = seen["run"], seen["run"]["revision"], seen["length"]
        if view["status"] not in ENDED:
            told.status(view["status"])
        if show:
            for row in sorted(run._steps()["steps"], key=lambda each: each["created_at"] or 0.0):
                if row["run_id"] is not None and row["run_id"] not in shown:
                    shown.add(row["run_id"])
                    print("\n")
                    _follow(_step(run, row["run_id"]), True, deadline)
        if view["status"] in ENDED and (not show or _all_shown(run, shown)):
            break
    return _sum_up(run, view, told, show, raise_on_error)


def wait_for_step(run: StepRun, show: bool, timeout: float, raise_on_error: bool) -> str:
    view = _follow(run, show, time.monotonic() + timeout)
    if view["status"] == "Failed" and raise_on_error:
        raise exception_of(view)
    return _word(view["status"])


def _follow(run: StepRun, show: bool, deadline: float) -> dict[str, Any]:
    """Until the step has ended, with its log as it grows; how it ended."""
    name = run.name or run.id
    told = _Told(f"StepRun( {name} )", show)
    if show:
        print(f"StepRunId: {run.id}\n{_PORTAL} {run.get_portal_url()}", flush=True)
    log = _Log(run)
    revision = -1
    while True:
        seen = _watch(run, revision, run._own_log if show else None, log.offset, deadline)
        view: dict[str, Any] = seen["run"]
        revision = view["revision"]
        if view["status"] not in ENDED:
            told.status(view["status"])
        if show and seen["length"] > log.offset:
            log.show()
        if view["status"] in ENDED:
            break
    run._view = view
    if show:
        heading = f"StepRun({name}) Execution Summary"
        print(f"\n{heading}\n{'=' * (len(heading) + 1)}")
        told.status(view["status"])
        print(plain(str(run.get_details())), flush=True)
    return view


class _Told:
    """Says a status when it is another one than before."""

    def __init__(self, whose: str, show: bool) -> None:
        self._whose, self._show, self._last = whose, show, ""

    def status(self, status: str) -> None:
        word = _word(status)
        if self._show and word != self._last:
            print(f"{self._whose} Status: {word}", flush=True)
        self._last = word


class _Log:
    def __init__(self, run: Run) -> None:
        self._run, self.offset = run, 0

    def show(self) -> None:
        if not self.offset:
            heading = f"Streaming {self._run._own_log}"
            print(f"\n{heading}\n{'=' * len(heading)}", flush=True)
        pieces: list[bytes] = []
        path = f"{self._run._base}/files/{self._run._own_log}"
        self._run._client.download(path, pieces.append, {"offset": self.offset})
        data = b"".join(pieces)
        whole = whole_characters(data)
        sys.stdout.write(plain(data[:whole].decode("utf-8", "replace")))
        sys.stdout.flush()
        self.offset += whole


def _watch(run: Run, revision: int, log: str | None, offset: int, deadline: float) -> dict[str, Any]:
    left = deadline - time.monotonic()
    if left <= 0:
        raise UserErrorException(
            f"Run {run.id} has not ended in the time that was given (timeout_seconds). It goes on: "
            "wait_for_completion() follows it again, cancel() stops it."
        )
    query: dict[str, Any] = {"revision": revision, "wait": min(_WAIT, left)}
    if log is not None:
        query.update(log=log, offset=offset)
    seen: dict[str, Any] = run._call("GET", "/watch", query=query, timeout=_WAIT + 40.0)
    return seen


def _step(run: PipelineRun, run_id: str) -> StepRun:
    return StepRun(run.experiment, run_id, run.id)


def _all_shown(run: PipelineRun, shown: set[str]) -> bool:
    return all(row["run_id"] is None or row["run_id"] in shown for row in run._steps()["steps"])


def _sum_up(run: PipelineRun, view: dict[str, Any], told: _Told, show: bool, raise_on_error: bool) -> str:
    run._view = view
    if show:
        heading = "PipelineRun Execution Summary"
        print(f"\n\n\n{heading}\n{'=' * (len(heading) + 1)}")
        told.status(view["status"])
        print(plain(str(run.get_details())) + "\n", flush=True)
    if view["status"] == "Failed" and raise_on_error:
        raise exception_of(view)
    return _word(view["status"])


def _word(status: str) -> str:
    return IN_PIPELINES.get(status, status)

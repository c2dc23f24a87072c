"""Whether a step of a pipeline has to run: what it is made of, and which earlier run of it was made of the same.

A step's marks are its code, its environment, its command line, what it reads, what it writes, and the version that its
author gave it. They are properties of its run, so an earlier run is found by them, and what changed is found by name.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lapis.domain.data import LOCAL, STORE
from lapis.domain.job import DatasetInput, Job, Output, Reference
from lapis.domain.pipeline import StepPlan
from lapis.domain.pipeline_moves import COMPLETED
from lapis.domain.run import STEP_RUN, RunRecord
from lapis.domain.run_filter import RunFilter
from lapis.errors import AzureMLException
from lapis.files.sources import resolve
from lapis.server.control.sealing import Sealing
from lapis.server.control.stores import Stores

STEP, MARKS, KEY, WRITTEN = "lapis.step", "lapis.marks", "lapis.reuse_key", "lapis.written"
_HASHED = 32 << 20  # bytes of an output up to which its content counts; beyond, names, sizes and times of its files
_MEANING = {
    "code": "its code",
    "environment": "its environment",
    "arguments": "its script, arguments or variables",
    "outputs": "where its outputs go",
    "version": "its version",
}


@dataclass(frozen=True)
class Found:
    run: RunRecord | None  # whose outputs can be used again
    why: str


class StepReuse:
    def __init__(self, stores: Stores, sealing: Sealing) -> None:
        self._stores = stores
        self._sealing = sealing

    def properties(self, workspace_id: str, step: StepPlan, job: Job, read: Mapping[str, str]) -> dict[str, str]:
        """The marks of a step as properties of its run. `job` has all its inputs; `read` are marks of those that other
        steps wrote, by the name that this one has for them."""
        shown = Job.from_json(self._sealing.masked(workspace_id, self._sealing.opened_job(workspace_id, job).to_json()))
        marks: dict[str, Any] = {
            "code": step.snapshot_id[:16],
            "environment": shown.environment.lock[:16] if shown.environment else shown.python or "",
            "arguments": _digest([_alone(shown).to_json(), _without_seed(step.search)]),
            "inputs": {each.name: read.get(each.name) or _mark_of(each) for each in shown.inputs},
            "outputs": _digest([each.to_json() for each in step.job.outputs]),  # before it is known who writes them
            "version": step.version or "",
        }
        return {STEP: step.name, MARKS: json.dumps(marks), KEY: _digest([step.name, marks])}

    def find(self, workspace_id: str, marks: Mapping[str, str]) -> Found:
        same = self._newest(workspace_id, KEY, marks[KEY])
        if same is not None:
            spoilt = self._spoilt(same)
            return Found(None, spoilt) if spoilt else Found(same, f"nothing has changed since {same.id}")
        before = self._newest(workspace_id, STEP, marks[STEP])
        if before is None:
            return Found(None, "no earlier run of it has completed")
        changed = _changed(json.loads(before.properties.get(MARKS, "{}")), json.loads(marks[MARKS]))
        return Found(None, f"{' and '.join(changed) or 'something'} changed since {before.id}")

    def written(self, outputs: Iterable[Output]) -> dict[str, str]:
        """What a completed step has written, as a property of its run: of each output that can be looked at a mark, and
        where it lies."""
        places = {each.name: each.place for each in outputs}
        found = {name: (content_of(place), place) for name, place in places.items() if isinstance(place, str)}
        return {WRITTEN: json.dumps({name: both for name, both in found.items() if both[0]})}

    def _newest(self, workspace_id: str, key: str, value: str) -> RunRecord | None:
        where = RunFilter(
            workspace_id=workspace_id, type=STEP_RUN, states=(COMPLETED,), properties=((key, value),), archived=None
        )
        found, _ = self._stores.runs.find(where, 1)
        return found[0] if found else None

    def _spoilt(self, run: RunRecord) -> str:
        """Why the outputs of a run cannot be used again; empty if they can."""
        if WRITTEN not in run.properties:
            return f"{run.id} did not note what it wrote"
        for name, (mark, place) in json.loads(run.properties[WRITTEN]).items():
            if content_of(place) != mark:
                return f"output '{name}' of {run.id} was changed or removed since"
        return ""


def written_by(run: RunRecord, output: str) -> str:
    """The mark of what a completed run wrote; where there is none, its own id is one."""
    found = json.loads(run.properties.get(WRITTEN, "{}")).get(output)
    return str(found[0]) if found else f"{run.id}/{output}"


def content_of(path: str) -> str | None:
    """A mark of a file or of all files below a folder; None if nothing is there. Links count by where they lead."""
    files = list(_files_at(path))
    if not files and not os.path.isdir(path):
        return None
    small = sum(status.st_size for _, _, status in files) <= _HASHED
    return _digest([[name, status.st_size, _content(file, status, small)] for name, file, status in files])


def _files_at(path: str) -> Iterator[tuple[str, str, os.stat_result]]:
    try:
        status = os.lstat(path)
    except OSError:
        return
    if not stat.S_ISDIR(status.st_mode):
        yield "", path, status
        return
    for where, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(where, name)
            yield os.path.relpath(file, path), file, os.lstat(file)


def _content(path: str, status: os.stat_result, small: bool) -> str:
    if stat.S_ISLNK(status.st_mode):
        return os.readlink(path)
    if not small or not stat.S_ISREG(status.st_mode):
        return str(status.st_mtime_ns)
    found = hashlib.sha256()
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            found.update(piece)
    return found.hexdigest()


def _mark_of(given: DatasetInput | Reference) -> str:
    """Of data that lies on this machine, its content; else where it lies, as SDK v1 had it."""
    shape = given.to_json()
    if isinstance(given, Reference):
        return _digest([shape, content_of(given.place) if isinstance(given.place, str) else None])
    sources = given.definition.get("sources") or ()
    here = all(each["kind"] == LOCAL or (each["kind"] == STORE and given.folders.get(each["datastore"]))
               for each in sources)  # fmt: skip
    files: list[Any] = []
    if here:
        try:
            found = resolve(given.definition, lambda name: given.folders[name])
            files = [[file.path, file.size, file.mark] for file in found]
        except (AzureMLException, OSError):
            pass  # its agent says what is wrong with it
    shape.pop("dataset_id", None)  # the same data under another id is the same
    return _digest([shape, files])


def _alone(job: Job) -> Job:
    """What a job runs, without its data, its environment and what does not change its result."""
    return replace(job, inputs=(), outputs=(), environment=None, python=None, notices=(), max_seconds=None, priority=0)


def _without_seed(search: Mapping[str, Any]) -> dict[str, Any]:
    """Of a search, what was asked for: each submission has a seed of its own."""
    sampling = {key: value for key, value in search.get("sampling", {}).items() if key != "seed"}
    return {**search, "sampling": sampling} if search else {}


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    said = [words for name, words in _MEANING.items() if before.get(name) != now[name]]
    old, new = before.get("inputs") or {}, now["inputs"]
    inputs = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    return [*said, *(f"input '{name}'" for name in inputs)]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]

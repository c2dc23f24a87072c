"""Lays out the data of a run before its script starts, and takes back what it was asked to upload."""

from __future__ import annotations

import contextlib
import filecmp
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from lapis.agent import reach
from lapis.agent.crew import Canceled
from lapis.agent.objects import Objects
from lapis.client.http_client import Client
from lapis.domain.data import LOCAL, File, glob_matcher
from lapis.domain.job import DatasetInput, InDatastore, Job, Output, Reference
from lapis.domain.launch import Work
from lapis.domain.secrets import masked
from lapis.errors import AzureMLException, UserErrorException
from lapis.files.layout import Say, lay_out_files
from lapis.files.object_store import bring_all
from lapis.files.sources import resolve
from lapis.files.streaming import Stream, end_below, folder_here, offer
from lapis.machine import mounts, shortages
from lapis.machine.whole_files import replacing

Streamed = Callable[[DatasetInput, list[File], str], list[File]]  # an input's files, those that are at their mount
_HELD: list[Stream] = []  # open as long as this process: a stream ends when nobody holds it


def lay_out_inputs(
    work: Work, code: str, folder: str, log: str, client: Client, canceled: Callable[[], bool]
) -> dict[str, str]:
    """Everything is there when this returns. The variables that tell the script where."""

    def look() -> None:
        if canceled():
            raise Canceled("while its data was on the way")

    def say(text: str) -> None:
        look()
        with open(log, "a") as file:
            file.write(f"Lapis: {masked(text)}\n")  # an address may be signed

    end_streams(folder)
    shutil.rmtree(os.path.join(folder, "data"), ignore_errors=True)  # what an agent before us had begun
    with contextlib.closing(Objects(client, work.launch.workspace.id, folder, say, look)) as objects:

        def streamed(wanted: DatasetInput, files: list[File], target: str) -> list[File]:
            found = offer(files, f"input '{wanted.name}'", _streams(folder), objects.place_of, log, say, look)
            if found.stream is not None:
                os.set_inheritable(found.stream.lifeline, True)  # it lives as long as we, the keeper or the script
                _HELD.append(found.stream)
                if not _is_ours(wanted):
                    _note_links(folder, target, [file.path for file in found.files])
            return found.files

        def check(path: str) -> None:
            reach.check_data(path, work, folder)

        return _lay_out(work.job, code, folder, say, objects, streamed, check)


def end_streams(folder: str) -> None:
    """Take away what is streamed to the run, and what leads there from outside of its folder. May be repeated."""
    mounts.clear_below(folder_here())  # of the script's own that it did not stop
    if not os.path.isdir(_streams(folder)):
        return
    end_below(_streams(folder))
    for target, existed, paths in _links(folder):
        _remove_links(_streams(folder), target, existed, paths)


def _lay_out(
    job: Job, code: str, folder: str, say: Say, objects: Objects, streamed: Streamed, check: Callable[[str], None]
) -> dict[str, str]:
    variables: dict[str, str] = {}
    inputs: dict[str, str] = {}
    outputs: dict[str, str] = {}
    for wanted in job.inputs:
        name, target = wanted.name, _target(wanted, code, folder)
        if isinstance(wanted, Reference):
            with _named("Data reference", name):
                if isinstance(wanted.place, str):
                    check(wanted.place)
                variables[f"AZUREML_DATAREFERENCE_{name}"] = _reference(objects.laid(wanted), target)
        elif wanted.mode == "direct":
            inputs[name] = wanted.dataset_id or ""
        else:
            with _named("Input", name):
                inputs[name] = _dataset(wanted, target, say, objects, streamed, check)
    for output in job.outputs:
        with _named("Output", output.name):
            if isinstance(output.place, str):
                check(output.place)
            made = output.made_by_script and isinstance(output.place, str)  # what stands in for an object store is ours
            laid = replace(objects.laid(output), made_by_script=made)
            path = _output(laid, _target(output, code, folder))
            if output.made_by_script:
                variables[f"AZUREML_DATAREFERENCE_{output.name}"] = path
            else:
                outputs[output.name] = path
    variables.update(inputs, **outputs)
    variables["AZUREML_DATASET_ENVIRONMENT_VARS"] = ",".join(inputs)
    variables["LAPIS_INPUTS"], variables["LAPIS_OUTPUTS"] = json.dumps(inputs), json.dumps(outputs)
    return variables


def take_back(work: Work, code: str, folder: str, client: Client) -> list[str]:
    """Copy what was written for upload to its datastore; what could not be copied, and why. May be repeated."""
    notices = []
    with contextlib.closing(Objects(client, work.launch.workspace.id, folder)) as objects:
        for asked in (*work.job.inputs, *work.job.outputs):
            if isinstance(asked, DatasetInput):
                continue  # nobody writes to it
            wanted = objects.again(asked)
            if wanted is not None:
                notices += _upload(wanted, code, folder, work) if wanted.mode == "upload" else []
                notices += objects.send_back(asked)
    return notices


def _upload(wanted: Reference | Output, code: str, folder: str, work: Work) -> list[str]:
    """Copy what was written to the folder that it belongs to; what could not be copied, and why."""
    notices = []
    globs = [glob_matcher(glob).match for glob in wanted.globs] if isinstance(wanted, Output) else []
    for name, source in _files_below(_target(wanted, code, folder)):
        if globs and not any(matches(name) for matches in globs):
            continue
        try:
            reach.check_data(source, work, folder)  # a link that the script made leads where it likes
            _copy(source, os.path.join(_folder_of(wanted), name) if name else _folder_of(wanted), wanted.overwrite)
        except (OSError, UserErrorException) as error:
            if shortages.of_room(error):
                raise  # it is tried again when there is room
            reason = getattr(error, "message", error)
            notices.append(f"{name} of '{wanted.name}' could not be uploaded to its datastore: {reason}")
    return notices


def _folder_of(wanted: Reference | Output) -> str:
    """Where it lies on this machine: of one that was laid out, there is always such a place."""
    assert isinstance(wanted.place, str)
    return wanted.place


def note_outputs(
    work: Work, folder: str, client: Client, completed: bool, note: Callable[[dict[str, Any]], Any]
) -> list[str]:
    """Register the outputs that a completed run is to register, and say where the others are.

    What could not be registered, and why. May be repeated: the server knows them.
    """
    notices = []
    for wanted in work.job.outputs:
        output = {"definition": wanted.definition, "run_id": work.launch.run_id, "output": wanted.name}
        try:
            if wanted.register is not None and completed:
                files = [file.recorded() for file in _written(wanted, work.launch.workspace.id, folder, client)]
                note({**wanted.register.to_json(), **output, "files": files, "create_new_version": True})
            else:
                note({"name": None, **output})
        except UserErrorException as error:
            notices.append(f"Output '{wanted.name}' was not registered: {error.message}")
    return notices


def _written(wanted: Output, workspace_id: str, folder: str, client: Client) -> list[File]:
    (source,) = wanted.definition["sources"]
    if not isinstance(wanted.place, InDatastore):
        source = {"kind": LOCAL, "path": os.path.join(wanted.place, wanted.glob or "")}
    with contextlib.closing(Objects(client, workspace_id, folder)) as objects:
        return resolve({"sources": [source]}, objects.place_of)


@contextlib.contextmanager
def _named(what: str, name: str) -> Iterator[None]:
    """So that whoever reads the verdict knows which of the inputs it speaks of."""
    try:
        yield
    except (AzureMLException, OSError) as error:
        reason = getattr(error, "message", None) or str(error)
        raise UserErrorException(f"{what} '{name}' could not be prepared. {reason}") from error


def _streams(folder: str) -> str:
    return os.path.join(os.path.realpath(folder), "streams")


def _note_links(folder: str, target: str, paths: list[str]) -> None:
    """Before they are made: whoever comes after us finds them, and whether the place was there before."""
    with open(os.path.join(folder, "links.jsonl"), "a") as file:
        file.write(json.dumps([target, os.path.isdir(target), paths]) + "\n")


def _links(folder: str) -> list[tuple[str, bool, list[str]]]:
    try:
        with open(os.path.join(folder, "links.jsonl")) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


def _remove_links(streams: str, target: str, existed: bool, paths: list[str]) -> None:
    """Links to what was streamed, and folders that were made for them. Whatever else lies there stays."""
    folders = set()
    for path in paths:
        place = target + path
        if os.path.islink(place) and os.readlink(place).startswith(streams):
            os.remove(place)
        while len(path) > 1:
            path = os.path.dirname(path)
            folders.add(path)
    for path in sorted(folders - {"/"} if existed else folders, key=len, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(target + path)


def _target(wanted: DatasetInput | Reference | Output, code: str, folder: str) -> str:
    """Where the script finds it: the place it asked for, or one of ours."""
    if not wanted.path_on_compute:
        return os.path.join(folder, "data", wanted.TAG[1], wanted.name)
    return os.path.join(code, wanted.path_on_compute)  # an absolute one stays as it is


def _is_ours(wanted: DatasetInput | Reference) -> bool:
    """Whether what lies at the target belongs to this run alone, and may be replaced."""
    return not os.path.isabs(wanted.path_on_compute or "")


def _dataset(
    wanted: DatasetInput, target: str, say: Say, objects: Objects, streamed: Streamed, check: Callable[[str], None]
) -> str:
    files = resolve(wanted.definition, lambda name: wanted.folders[name] or objects.place_of(name))
    if not files:
        raise UserErrorException("It holds no file.")
    for file in files:
        if file.kind == LOCAL:
            check(file.place)
    if wanted.mode == "mount":
        files = streamed(wanted, files, target)
    places = lay_out_files(
        files,
        target,
        copy=wanted.mode == "download",
        replace=_is_ours(wanted),
        say=say,
        bring=lambda found, copy: bring_all(found, copy, objects.place_of),
    )
    return places[0] if len(places) == 1 else target  # one file is given as that file, several as their folder


def _output(wanted: Output, target: str) -> str:
    if wanted.made_by_script:
        return _to_be_made(wanted, target)
    if wanted.mode == "upload":
        os.makedirs(target, exist_ok=True)
        return target
    place = _folder_of(wanted)
    os.makedirs(place, exist_ok=True)
    if not wanted.path_on_compute:
        return place
    return _linked(place, target)


def _to_be_made(wanted: Output, target: str) -> str:
    """Where the script makes a file or a folder: only what it lies in is there."""
    place = target if wanted.mode == "upload" else _folder_of(wanted)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if wanted.mode == "upload" or not wanted.path_on_compute:
        return place
    return _linked(place, target)


def _linked(place: str, target: str) -> str:
    """The place where it is wanted: a link, made anew by an agent that takes over."""
    if os.path.islink(target):
        os.remove(target)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.symlink(place, target)
    return target


def _reference(wanted: Reference, target: str) -> str:
    place = _folder_of(wanted)
    if wanted.mode == "mount":
        if not os.path.lexists(place):
            os.makedirs(place)  # a place that a script writes to need not be there before
        return place
    if wanted.mode == "upload":
        os.makedirs(target, exist_ok=True)
        return target
    overwrite = wanted.overwrite or _is_ours(wanted)
    if os.path.isfile(place):
        _copy(place, os.path.join(target, os.path.basename(place)), overwrite)
        return os.path.join(target, os.path.basename(place))
    if not os.path.isdir(place):
        raise UserErrorException("The place it names is not in its datastore.")
    os.makedirs(target, exist_ok=True)
    for name, source in _files_below(place):
        _copy(source, os.path.join(target, name), overwrite)
    return target


def _files_below(folder: str) -> Iterator[tuple[str, str]]:
    if os.path.isfile(folder):  # an output that the script made as a file
        yield "", folder
    for where, _, names in os.walk(folder):
        for name in sorted(names):
            path = os.path.join(where, name)
            yield os.path.relpath(path, folder).replace(os.sep, "/"), path


def _copy(source: str, place: str, overwrite: bool) -> None:
    """Whole or not at all. What is there already stays, unless `overwrite`; that it is something else is an error."""
    if os.path.exists(place) and not overwrite:
        if not filecmp.cmp(source, place, shallow=False):
            raise UserErrorException(f"{place} exists already and differs. Pass overwrite=True to replace it.")
        return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with replacing(place) as part:
        shutil.copyfile(source, part)

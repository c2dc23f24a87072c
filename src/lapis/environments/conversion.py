"""TensorFlow and Keras models become ONNX files before they are served, once for a model and a converter.

For whoever prepares a service (the agent), one call:

    ready = conversion.ready_to_serve(runtime, model, lock, root, tell, canceled, sample, into)

`runtime` and the definition behind `lock` are what no_code.no_code() gave; `model` is the file or folder on this
machine, `root` the machine's environments. It builds what is missing, converts where that can be done, and returns what
to serve: `ready.runtime`, `ready.model`, and `ready.python` with `ready.variables` to serve it in. A file counts only
if it answers as the original does; what cannot be converted is served by TensorFlow itself, and `tell` hears why. The
environment is held as long as this process lives; the file gets a name in the folder `into`, which is the caller's own.

What was made stays in LAPIS_HOME/cache/onnx/<hash of model, converter and server>/ until newer ones need the room:

    model.onnx, report.json     the file, and how far its answers are from the original's; or
    impossible.json             why there is none
    convert.log                 what the converter said
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from lapis.environments import contained, in_use, no_code
from lapis.environments.build import build_and_hold
from lapis.environments.recipe import recipe
from lapis.environments.resolve import resolve
from lapis.environments.values import Lock
from lapis.errors import AzureMLException, ServiceException
from lapis.machine import cloning, commands, json_files, own_sources, surroundings
from lapis.machine.commands import Canceled, Stopped, Tell, never
from lapis.machine.interpreters import interpreters

_CANNOT = 4  # how lapis.scoring.convert ends where it is sure
_FORMAT = 1
_NAME_LENGTH = 32
_KEEP_BYTES = 5 << 30
_LOOK_EVERY = 0.1  # seconds
_SAY_EVERY = 30.0


@dataclass(frozen=True)
class Ready:
    """What is served, and in what."""

    runtime: str
    model: str
    python: str
    variables: Mapping[str, str]
    report: Mapping[str, Any] | None = None  # of the conversion, where there was one
    not_converted: str = ""  # why there was none
    held: Sequence[int] = field(default=(), repr=False)  # open files: the environments stay until these are closed


@dataclass(frozen=True)
class Converted:
    path: str
    report: Mapping[str, Any]  # tensorflow, tf2onnx, opset, onnxruntime, rows, examples, largest_difference, output
    fresh: bool  # made now, not found


class NotConverted(Exception):
    """There is no ONNX file of the model; the text is a reason without its full stop."""


def ready_to_serve(
    runtime: str,
    model: str,
    lock: Lock,
    root: str,
    tell: Tell,
    canceled: Canceled = never,
    sample: str | None = None,
    into: str | None = None,
) -> Ready:
    """See above. Raises what building an environment raises, and Stopped."""
    folder, file = build_and_hold(lock, None, root, tell, canceled)
    own = Ready(runtime, model, _python(folder), {"VIRTUAL_ENV": folder, **lock.variables}, held=(file,))
    if runtime not in no_code.CONVERTIBLE:
        return own
    try:
        serving = serving_lock(root, tell)
        made = converted(model, lock, serving, root, tell, canceled, sample, into)
    except (AzureMLException, ServiceException, NotConverted) as error:
        why = getattr(error, "message", "") or str(error)
        tell(f"Not converted to ONNX: {why.rstrip('.')}. TensorFlow itself serves the model.")
        return Ready(**{**vars(own), "not_converted": why})
    folder, other = build_and_hold(serving, None, root, tell, canceled)
    os.close(file)
    tell(f"{described(made)} ONNX Runtime {made.report['onnxruntime']} serves it.")
    variables = {"VIRTUAL_ENV": folder, **serving.variables}
    return Ready(no_code.ONNX, made.path, _python(folder), variables, made.report, held=(other,))


def converted(
    model: str,
    lock: Lock,
    serving: Lock,
    root: str,
    tell: Tell,
    canceled: Canceled = never,
    sample: str | None = None,
    into: str | None = None,
) -> Converted:
    """The ONNX file, found or made in the environment of `lock` and compared in that of `serving`; copied `into`.

    Raises NotConverted, Stopped, and what building an environment raises.
    """
    name = _name(model, lock, serving, sample)
    folder = os.path.join(store(root), name)
    os.makedirs(store(root), exist_ok=True)
    with _turn(store(root), name, tell, canceled):
        fresh = not os.path.isdir(folder)
        if fresh:
            tell("Converting the model to ONNX, in the environment of its own TensorFlow")
            _make(model, lock, serving, root, folder, tell, canceled, sample)
            _make_room(root, folder)
        os.utime(folder)
        why = json_files.read(os.path.join(folder, "impossible.json"))
        if why is not None:
            raise NotConverted(str(why["reason"]))
        report = json_files.read(os.path.join(folder, "report.json")) or {}
        path = os.path.join(folder, "model.onnx")
        return Converted(_copied(path, into) if into else path, report, fresh)


@contextmanager
def _turn(root: str, name: str, tell: Tell, canceled: Canceled) -> Iterator[None]:
    """Of several deployments of one model at once, one converts it."""
    file = in_use.take(root, name)
    if file is None:
        tell("The same model is being converted for another deployment; waiting for that")
    while file is None:
        if canceled():
            raise Stopped("Canceled while another deployment converted the model.")
        time.sleep(_LOOK_EVERY)
        file = in_use.take(root, name)
    try:
        yield
    finally:
        os.close(file)


def described(made: Converted) -> str:
    report = made.report
    how = f"in {report['seconds']:.1f} s" if made.fresh else "before"
    return (
        f"Converted to ONNX {how} (TensorFlow {report['tensorflow']}, tf2onnx {report['tf2onnx']}, opset "
        f"{report['opset']}). The largest difference to the original is {report['largest_difference']:.2g}, in output "
        f"'{report['output']}' over {report['rows']} rows of {report['examples']}."
    )


def serving_lock(root: str, tell: Tell) -> Lock:
    """The lock of the environment that serves ONNX files, resolved once on this machine."""
    machine = interpreters()
    plan = recipe(no_code.for_onnx(), pythons=[each.version for each in machine], gpu=False, strict=False)
    key = hashlib.sha256(json.dumps(asdict(plan), sort_keys=True).encode()).hexdigest()[:32]
    path = os.path.join(store(root), f"serving-{key}.json")
    known = json_files.read(path)
    if known is not None:
        return Lock.from_json(known)
    lock = resolve(plan, next(each for each in machine if each.version == plan.python), tell, root=root)
    _write(path, lock.to_json())
    return lock


def store(root: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(root)), "cache", "onnx")


def _name(model: str, lock: Lock, serving: Lock, sample: str | None) -> str:
    import lapis.scoring

    converter = os.path.join(os.path.dirname(lapis.scoring.__file__), "convert.py")
    parts = [_FORMAT, _hash(model), lock.hash, serving.hash, _hash(converter), _hash(sample) if sample else ""]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_NAME_LENGTH]


def _hash(path: str) -> str:
    """Of the bytes of a file, or of all files below a folder."""
    files = [path] if os.path.isfile(path) else sorted(os.path.join(at, n) for at, _, ns in os.walk(path) for n in ns)
    found = hashlib.sha256()
    for each in files:
        found.update(f"{os.path.relpath(each, path)} {os.path.getsize(each)}\n".encode())
        with open(each, "rb") as file:
            hashlib.file_digest(file, lambda: found)
    return found.hexdigest()


def _make(
    model: str, lock: Lock, serving: Lock, root: str, folder: str, tell: Tell, canceled: Canceled, sample: str | None
) -> None:
    """A folder with the file and the report, or with the reason; it is there whole or not at all."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="making-", dir=store(root)) as scratch:
        made, packages = os.path.join(scratch, "made"), os.path.join(scratch, "packages")
        os.makedirs(made)
        own_sources.link_into(packages)
        onnx, answers = os.path.join(made, "model.onnx"), os.path.join(scratch, "answers.npz")
        report = os.path.join(made, "report.json")
        try:
            _step(["make", os.path.abspath(model), onnx, answers, *([os.path.abspath(sample)] if sample else [])],
                  lock, root, made, packages, tell, canceled)  # fmt: skip
            _step(["compare", onnx, answers, report], serving, root, made, packages, tell, canceled)
            _write(report, {**(json_files.read(report) or {}), "seconds": round(time.monotonic() - began, 1)})
        except _Impossible as error:
            _write(os.path.join(made, "impossible.json"), {"reason": str(error)})
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(made, folder)


def _make_room(root: str, keep: str) -> None:
    """Remove what was not used for longest while all takes too much. Services have names of their own for theirs."""
    folders = [entry.path for entry in os.scandir(store(root)) if entry.is_dir() and len(entry.name) == _NAME_LENGTH]
    taken = {folder: sum(entry.stat().st_size for entry in os.scandir(folder)) for folder in folders}
    for folder in sorted(taken, key=lambda each: os.stat(each).st_mtime):
        if sum(taken.values()) <= _KEEP_BYTES:
            return
        if folder != keep:
            shutil.rmtree(folder, ignore_errors=True)
            del taken[folder]


def _copied(path: str, into: str) -> str:
    target = os.path.join(into, os.path.basename(path))
    if os.path.exists(target):
        os.unlink(target)
    cloning.copy(path, target)
    return target


class _Impossible(NotConverted):
    """It will not be possible the next time either."""


def _step(
    arguments: Sequence[str], lock: Lock, root: str, made: str, packages: str, tell: Tell, canceled: Canceled
) -> None:
    folder, file = build_and_hold(lock, None, root, tell, canceled)
    environment = {**surroundings.harmless(os.environ), **lock.variables}  # what loads a model runs what is in it
    # Both on the CPU: what differs is then the file, not the device.
    environment.update({"PYTHONPATH": packages, "VIRTUAL_ENV": folder, "CUDA_VISIBLE_DEVICES": "-1"})
    environment["HOME"] = os.path.dirname(made)
    said_at = began = time.monotonic()

    def still_wanted() -> bool:
        nonlocal said_at
        if time.monotonic() > said_at + _SAY_EVERY:
            said_at = time.monotonic()
            tell(f"Still converting after {said_at - began:.0f} s")
        return canceled()

    try:
        argv = [_python(folder), "-m", "lapis.scoring.convert", *arguments]
        given = [folder, packages, *own_sources.real_folders(), *filter(os.path.isabs, arguments)]
        argv = contained.command(argv, given, [os.path.dirname(made)])
        said = commands.run(argv, environment, made, canceled=still_wanted, keep_open=[file])
    finally:
        os.close(file)
    with open(os.path.join(made, "convert.log"), "a") as log:
        log.write(said.complaints + said.output)
    if said.ok:
        return
    last = next((line for line in reversed(said.complaints.splitlines()) if line.strip()), "it said nothing")
    if said.code == _CANNOT:
        raise _Impossible(last)
    raise NotConverted(f"the converter ended with exit code {said.code}: {last.strip()}")


def _python(folder: str) -> str:
    return os.path.join(folder, "bin", "python")


def _write(path: str, value: Mapping[str, Any]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    json_files.write(path, value)

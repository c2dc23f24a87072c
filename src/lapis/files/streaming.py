"""Streams the remote files of a dataset, where that is better than to download them before anybody reads them.

A process of its own serves them under a mount (`lapis.streaming`); they are laid out as links to there.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, NamedTuple, Sequence
from uuid import uuid4

from lapis.domain import in_words
from lapis.domain import settings as settings_module
from lapis.domain.data import DOWNLOAD, LOCAL, OBJECT, STREAM, WEB, File, delivery
from lapis.errors import AzureMLException, UserErrorException, from_wire
from lapis.files.layout import Say, web_cache
from lapis.files.object_store import ObjectPlace, datastore_of
from lapis.files.web_cache import DEFAULT_LIMIT, Said
from lapis.machine import mounts

_ASKED_AT_ONCE = 16
_START_SECONDS = 60.0
_END_SECONDS = 5.0

PlaceOf = Callable[[str], ObjectPlace]


class Stream:
    """A mount, and the process behind it. It ends with close(), or when nobody has `lifeline` open any more."""

    def __init__(self, point: str, process: Any, lifeline: int) -> None:
        self.point = point
        self.lifeline = lifeline
        self._process = process

    def close(self) -> None:
        import subprocess

        mounts.detach(self.point)
        os.close(self.lifeline)
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Offered(NamedTuple):
    """The files of a dataset as they are to be laid out, and the stream if some of them come by one."""

    files: list[File]
    stream: Stream | None


def offer(
    files: Sequence[File],
    name: str,
    folder: str,
    place_of: PlaceOf,
    log: str | None = None,
    say: Say = lambda text: None,
    look: Callable[[], None] = lambda: None,
) -> Offered:
    """Mount below `folder` what is better streamed. `say` tells what was chosen; `log` is for what goes wrong later."""
    remote = [file for file in files if file.kind in (WEB, OBJECT)]
    if not remote:
        return Offered(list(files), None)
    can = {file.path: file for file in _streamable(remote)}
    how, why = _choice(list(can.values()), place_of)
    said = f"{name}: {len(remote)} remote file{'s' * (len(remote) > 1)}"
    if can:
        said += f", {in_words.size(sum(file.size or 0 for file in can.values()))}"
    if how == STREAM:
        try:
            stream = _start(list(can.values()), name, folder, place_of, log, look)
        except (AzureMLException, OSError) as error:
            how, why = DOWNLOAD, f"it cannot be streamed ({why}): {getattr(error, 'message', None) or error}"
        else:
            say(f"{said}: streamed while the script reads, as {why}")
            there = {path: file._replace(kind=LOCAL, place=stream.point + path) for path, file in can.items()}
            return Offered([there.get(file.path, file) for file in files], stream)
    say(f"{said}: downloaded before the script starts, as {why}")
    return Offered([can.get(file.path, file) for file in files], None)


def folder_here() -> str:
    """Below which processes of this machine mount what they stream for themselves."""
    return os.path.join(settings_module.home(), "streams")


def end_below(folder: str) -> None:
    """Unmount what is streamed below a folder, and wait until its processes have said their last."""
    mounts.clear_below(folder)
    mounts.detach_below(folder)
    deadline = time.monotonic() + _END_SECONDS
    while os.path.isdir(folder) and os.listdir(folder) and time.monotonic() < deadline:
        time.sleep(0.01)


def _choice(can: Sequence[File], place_of: PlaceOf) -> tuple[str, str]:
    if not can:
        return DOWNLOAD, "no parts of it can be had"
    size, missing = sum(file.size or 0 for file in can), _missing(can, place_of)
    return delivery(settings_module.load().mount, len(can), size, missing, _room(size - missing))


def _streamable(remote: Sequence[File]) -> list[File]:
    """Those of which parts can be had, with size and mark."""
    cache = web_cache()

    def ask(file: File) -> File | None:
        if file.kind == OBJECT:
            return file
        said = cache.ask(file.place)
        if said.size is None or not said.ranges or (said.mark or "").startswith("W/"):  # a weak mark covers no parts
            return None
        return file._replace(size=said.size, mark=said.mark)

    if all(file.kind == OBJECT for file in remote):
        return list(remote)
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as threads:
        return [file for file in threads.map(ask, remote) if file is not None]


def _missing(files: Sequence[File], place_of: PlaceOf) -> int:
    """Bytes that are not in the cache whole. Pieces do not count: using them takes less than joining them."""
    cache, missing = web_cache(), 0
    stores: dict[str, list[File]] = {}
    for file in files:
        if file.kind == OBJECT:
            stores.setdefault(datastore_of(file), []).append(file)
        elif not cache.has(file.place, Said(file.size, file.mark, ranges=True)):
            missing += file.size or 0
    return missing + sum(place_of(name).missing(wanted) for name, wanted in stores.items())


def _room(have: int) -> int:
    """Bytes that a download may come to, with what is here of it already."""
    home = settings_module.home()
    while not os.path.isdir(home):
        home = os.path.dirname(home)
    return min(DEFAULT_LIMIT, shutil.disk_usage(home).free + have)


def _start(
    files: Sequence[File], name: str, folder: str, place_of: PlaceOf, log: str | None, look: Callable[[], None]
) -> Stream:
    import subprocess

    from lapis.machine.own_python import own_python

    if sys.version_info < (3, 11):
        raise UserErrorException(f"this is Python {sys.version.split()[0]}, and that takes 3.11 or later")
    why_not = mounts.impossible()
    if why_not is not None:
        raise UserErrorException(why_not)
    point = os.path.join(os.path.realpath(folder), uuid4().hex[:12])  # a new name: who ended before unmounts its own
    stores = {datastore_of(file) for file in files if file.kind == OBJECT}
    request = {
        "point": point,
        "name": name,
        "log": log,
        "files": files,
        "stores": {store: dict(place_of(store).access()) for store in stores},
    }
    command, environment = own_python("lapis.streaming")
    os.makedirs(point, mode=0o700)
    theirs, lifeline = os.pipe()
    process = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, env=environment, cwd="/", start_new_session=True
    )
    os.close(theirs)
    stream = Stream(point, process, lifeline)
    try:
        with open(lifeline, "w", closefd=False) as sending:
            sending.write(json.dumps(request) + "\n")
        said = _first_line(process, look)
        if "error" in said:
            raise from_wire(said, 400)
    except BaseException:
        stream.close()
        shutil.rmtree(point, ignore_errors=True)
        raise
    finally:
        assert process.stdout is not None
        process.stdout.close()
    return stream


def _first_line(process: Any, look: Callable[[], None]) -> Any:
    import select

    deadline = time.monotonic() + _START_SECONDS
    while not select.select([process.stdout], [], [], 1.0)[0]:
        look()
        if time.monotonic() > deadline:
            raise UserErrorException(f"it was not mounted within {_START_SECONDS:.0f} s")
    line = process.stdout.readline()
    if not line:
        raise UserErrorException("the process that streams ended at once")
    return json.loads(line)

"""`python -m lapis.streaming`: mounts the remote files of one dataset, and serves them until it is unmounted.

What to serve is a line of JSON on stdin, where nobody else can read it: it holds credentials. A line on stdout says
that it is mounted, or why not. It ends by itself when nobody holds the other end of its stdin any more.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

from lapis.domain import in_words
from lapis.domain.data import OBJECT, WEB, File
from lapis.errors import AzureMLException, UserErrorException, to_wire
from lapis.files.layout import web_cache
from lapis.files.object_store import cache_folder
from lapis.machine import mounts
from lapis.object_stores.cache import ObjectCache
from lapis.streaming.kernel import Mounted
from lapis.streaming.reading import Reader, Say, Source
from lapis.streaming.sources import Objects, Web


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # whoever ends the readers must not take their files away before
    request = json.loads(sys.stdin.readline())
    files, say = [File(*row) for row in request["files"]], _sayer(request["log"])
    try:
        reader = Reader(files, _sources(request), say)
        device = mounts.attach(request["point"])
    except AzureMLException as error:
        _tell(to_wire(error))
        return
    except OSError as error:
        _tell(to_wire(UserErrorException(f"{error.filename or mounts.DEVICE}: {error.strerror}")))
        return
    _tell({"mounted": request["point"]})
    threading.Thread(target=_let_go, args=(request["point"],), daemon=True).start()
    Mounted(device, [(file.path, file.size or 0) for file in files], reader.read).serve()
    reader.close()
    if request["log"]:
        whole = in_words.size(sum(file.size or 0 for file in files))
        say(f"{request['name']}: {in_words.size(reader.fetched)} of {whole} were fetched for reading it")
    os.rmdir(request["point"])  # which tells that all has been said


def _sources(request: Mapping[str, Any]) -> dict[str, Source]:
    """Only what is needed: each brings packages and connections along."""
    kinds = {row[1] for row in request["files"]}
    sources: dict[str, Source] = {}
    if WEB in kinds:
        sources[WEB] = Web(web_cache())
    if OBJECT in kinds:
        sources[OBJECT] = Objects(ObjectCache(cache_folder()), request["stores"])
    return sources


def _sayer(log: str | None) -> Say:
    def say(text: str) -> None:
        with open(log, "a") if log else open(2, "w", closefd=False) as file:
            file.write(f"Lapis: {text}\n")

    return say


def _tell(value: Any) -> None:
    os.write(1, json.dumps(value).encode() + b"\n")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)  # whoever waited for this line reads no other


def _let_go(point: str) -> None:
    sys.stdin.read()
    mounts.detach(point)


if __name__ == "__main__":
    main()
    os._exit(0)  # not by the interpreter's end: threads of the libraries, and fetches nobody wants, would keep it

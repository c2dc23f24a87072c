"""Builds one environment: the process that the server starts for each lock that nobody has built yet.

It lives on when its server is replaced, and says what it does on standard output. Why it could not be done goes to
a file, since whoever asks may not be its parent any more.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from lapis.environments.build import build
from lapis.environments.tidy import tidy_later
from lapis.environments.values import Lock
from lapis.errors import AzureMLException, ServiceException
from lapis.machine import json_files
from lapis.machine.commands import Stopped


def main(lock_file: str, root: str) -> int:
    with open(lock_file) as file:
        lock = Lock.from_json(json.load(file))
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))  # ends uv too
    try:
        build(lock, None, root, tell, lambda: bool(stopped))
    except (AzureMLException, ServiceException, Stopped, OSError) as error:
        message = getattr(error, "message", "") or f"{type(error).__name__}: {error}"
        tell(message)
        json_files.write(failure_file(root, lock.hash), {"message": message})
        return 1
    tidy_later(root)
    return 0


def tell(line: str) -> None:
    print(line, flush=True)


def failure_file(root: str, lock_hash: str) -> str:
    return os.path.join(root, f"{lock_hash}.failed.json")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

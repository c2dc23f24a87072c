"""Builds one environment: the process that the server starts for each lock that nobody has built yet.

It lives on when its server is replaced, and says what it does on standard output. Why it could not be done goes to
a file, since whoever asks may not be its parent any more. The lock's file is named after its hash: who only waits for
another to build it reads nothing, and imports no more than waiting needs.
"""

from __future__ import annotations

import os
import sys

from lapis.environments.turns import turn


def main(lock_file: str, root: str) -> int:
    name = os.path.splitext(os.path.basename(lock_file))[0]
    ours = turn(root, name, tell, canceled=lambda: False)  # a signal ends us: nothing is begun
    return 0 if ours is None else _build(lock_file, name, root, ours)


def tell(line: str) -> None:
    print(line, flush=True)


def failure_file(root: str, lock_hash: str) -> str:
    return os.path.join(root, f"{lock_hash}.failed.json")


def _build(lock_file: str, name: str, root: str, ours: int) -> int:
    import json
    import signal

    from lapis.environments.build import build_in_turn
    from lapis.environments.tidy import tidy_later
    from lapis.environments.values import Lock
    from lapis.errors import AzureMLException, ServiceException
    from lapis.machine import json_files
    from lapis.machine.commands import Stopped

    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))  # ends uv too
    with open(lock_file) as file:
        lock = Lock.from_json(json.load(file))
    if lock.hash != name:
        tell(f"{lock_file} holds the lock {lock.hash}, and has to be named after it.")
        return 1
    try:
        build_in_turn(lock, None, root, tell, lambda: bool(stopped), ours)
    except (AzureMLException, ServiceException, Stopped, OSError) as error:
        message = getattr(error, "message", "") or f"{type(error).__name__}: {error}"
        tell(message)
        json_files.write(failure_file(root, lock.hash), {"message": message})
        return 1
    tidy_later(root)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

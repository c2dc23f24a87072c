"""`python -m lapis.object_stores.fetch`: does errands at object stores for a process without packages.

A request is a line of JSON on stdin, where nobody else can read it: it holds credentials. What is said on stdout is
lines of JSON too: `{"progress": [files, of, bytes]}` now and then, and one `{"result": ...}` or `{"error": ...}` each.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from lapis.domain.addresses import Rule, literal, refusal_of_address, rule_of
from lapis.errors import AzureMLException, UserErrorException, to_wire
from lapis.object_stores.cache import ObjectCache
from lapis.object_stores.moving import Say, bring_all, put_all
from lapis.object_stores.stores import Object, ObjectStore

_writing = threading.Lock()


def main() -> None:
    _watch_connections(rule_of(os.environ))
    opened: dict[str, ObjectStore] = {}  # with their connections

    def open_store(access: Mapping[str, Any]) -> ObjectStore:
        key = json.dumps(access, sort_keys=True)
        if key not in opened:
            opened[key] = ObjectStore(access)
        return opened[key]

    for line in sys.stdin:
        _tell(_answer(line, open_store))


def _watch_connections(rule: Rule) -> None:
    """Whatever a store's library does, a redirect or a name that leads elsewhere now, nothing forbidden is reached."""

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect" and isinstance(arguments[1], tuple):
            for address in literal(str(arguments[1][0])):
                reason = refusal_of_address(rule, address)
                if reason is not None:
                    raise UserErrorException(f"A connection was not made: {reason}.")

    sys.addaudithook(watch)


def _answer(line: str, open_store: Callable[[Mapping[str, Any]], ObjectStore]) -> dict[str, Any]:
    try:
        return {"result": do(json.loads(line), _progress, open_store)}
    except AzureMLException as error:
        return to_wire(error)
    except OSError as error:  # this machine's: a full disk
        where = error.filename or "this machine"
        return to_wire(UserErrorException(f"{where}: {error.strerror or type(error).__name__}."))
    except Exception as error:  # its text is not shown, as it may hold what must not be
        return to_wire(UserErrorException(f"The object store could not be used: {type(error).__name__}."))


def do(
    request: Mapping[str, Any], progress: Say, open_store: Callable[[Mapping[str, Any]], ObjectStore] = ObjectStore
) -> Any:
    """One errand, in this process."""
    store = open_store(request["store"])
    errand = request["do"]
    if errand == "check":
        return store.check(create=bool(request.get("create")))
    if errand == "find":
        return store.find(request["pattern"])
    if errand == "bring":
        wanted = [(Object(*each), place) for each, place in request["wanted"]]
        return bring_all(store, wanted, ObjectCache(request["cache"]), bool(request["copy"]), progress)
    if errand == "missing":
        cache = ObjectCache(request["cache"])
        return sum(each.size for each in (Object(*row) for row in request["wanted"]) if not cache.has(store, each))
    if errand == "put":
        return put_all(store, [(path, key) for path, key in request["files"]], bool(request["overwrite"]), progress)
    raise UserErrorException(f"An errand {errand!r} is not known.")


def _progress(done: int, files: int, size: int) -> None:
    _tell({"progress": [done, files, size]})


def _tell(value: Any) -> None:
    with _writing:
        sys.stdout.write(json.dumps(value) + "\n")
        try:
            sys.stdout.flush()
        except BrokenPipeError:  # nobody waits for it any more
            os._exit(1)


if __name__ == "__main__":
    main()
    os._exit(0)  # not by the interpreter's end: the libraries' own threads would keep it for seconds

"""How long, how large and how many: every bound on what comes from outside, by name, and the words of its refusal.

They are far above what anybody needs, and low enough that nobody takes the machine's memory with one number. What is
stored already is read whatever it says. docs/limits.md shows the same list, and a test holds that it does.
"""

from __future__ import annotations

from typing import Any, Iterable, Sized

from lapis.errors import TooLarge, UserErrorException

# texts, in characters
NAME = 255  # of anything that has a name: a run, a target, a metric, an output, a nonce
DISPLAY_NAME = 4096
PATH = 4096  # of a folder or file of a machine
DESCRIPTION = 131_071
LABEL_KEY = 1024  # of a tag or a property
LABEL_VALUE = 131_071
WORD = 131_071  # an argument, a variable: the kernel takes none that is longer
MESSAGE = 1_000_000  # of an error, with its traceback

# how many
LABELS = 1000  # tags, or properties, of one thing
ITEMS = 10_000  # of any other list or dictionary
RUNS_AT_ONCE = 10_000  # made by one request
FILES_AT_ONCE = 100_000  # named by one request
FILES_OF_SNAPSHOT = 1_000_000
FILTERS = 100  # tags, properties or statuses that a list is asked for by
NODES = 10_000  # of a cluster, or of a run
PROCESSES = 10_000  # on a node; workers, parameter servers
PRIORITY = 1_000_000
STEPS_OF_HISTORY = 10_000  # events that a run keeps; later ones change its state and are not noted
REPLICAS = 1000
CHOICES = 100_000  # of one parameter of a search
PARAMETERS = 1000  # of a search
TRIALS = 100_000  # of a search
PAGE = 1000  # runs in one answer

# numbers
WHOLE = 2**53  # a whole number beyond it is another one in other people's JSON
STEP = 2**63 - 1  # of a metric, and every whole number that the database keeps
SECONDS = 10 * 365 * 24 * 3600  # of any duration
MOMENT = 2**40  # seconds since 1970: tens of thousands of years

# bytes
JSON_BODY = 16 << 20
BATCH_BODY = 128 << 20  # runs, reports, snapshots and small blobs, which come many at once
BODIES_HELD = 512 << 20  # of all requests that are in memory together
FRAME_HEADER = 64 << 20
LOGIN_BODY = 1 << 10
SERVICE_BODY = 100 << 20  # of a request to a service
POINT = 64 << 20  # one thing that was logged: a table, say
NODE_WORDS = 64 << 10  # what a node of a run may tell of itself
HTTP_TARGET = 8 << 10
HTTP_HEAD = 64 << 10  # all of its lines; of a body in chunks, what is not the body as well
HTTP_HEADERS = 100  # lines

# depth
JSON_DEPTH = 64
YAML_DEPTH = 64
YAML_ITEMS = 1_000_000  # with what aliases stand for

# what is unfolded: a compressed model, an archive
UNFOLDED_RATIO = 200  # to one
UNFOLDED_ALWAYS = 64 << 20  # so much may come of however little
UNFOLDED = 8 << 30

# seconds
HEAD_SECONDS = 20.0  # for the head of a request to come
IDLE_SECONDS = 75.0  # that a kept connection may be silent
BODY_SECONDS = 30.0  # for a body, beside one for every BODY_RATE bytes of it
BODY_RATE = 4096
TAKE_SECONDS = 120.0  # in which a client has to take some of its answer
RESOLVE_SECONDS = 1800.0  # for one environment to be resolved


def check_text(what: str, value: Any, most: int) -> str:
    if not isinstance(value, str):
        raise UserErrorException(f"{what} must be text, not {shown(value)}.")
    if len(value) > most:
        raise UserErrorException(f"{what} can be at most {most} characters long, not {len(value)}.")
    return value


def check_count(what: str, many: Sized, most: int, of: str = "entries") -> None:
    if len(many) > most:
        raise UserErrorException(f"{what} can hold at most {most} {of}, not {len(many)}.")


def check_whole(what: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UserErrorException(f"{what} must be a whole number, not {shown(value)}.")
    if not least <= value <= most:
        raise UserErrorException(f"{what} must be between {least} and {most}, not {shown(value)}.")
    return value


def check_number(what: str, value: Any, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserErrorException(f"{what} must be a number, not {shown(value)}.")
    if not least <= value <= most:  # not a number is not between
        raise UserErrorException(f"{what} must be between {least:g} and {most:.12g}, not {shown(value)}.")
    return value


def check_depth(what: str, value: Any, most: int = JSON_DEPTH) -> None:
    """Of lists and dictionaries in one another. Goes level by level: it needs no stack of its own."""
    level: list[Any] = [value]
    for _ in range(most + 1):
        level = [item for each in level for item in _inside(each) if isinstance(item, (dict, list, tuple))]
        if not level:
            return
    raise UserErrorException(f"{what} is nested more than {most} levels deep.")


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()


def too_large(what: str, most: int) -> TooLarge:
    return TooLarge(f"{what} can be at most {in_bytes(most)} long.")


def in_bytes(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size and not count % size:
            return f"{count // size} {unit}"
    return f"{count} bytes"


def shown(value: Any) -> str:
    """A value in the words of an error, however long it is."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write whole numbers with thousands of digits
        return "so large a number"
    return text if len(text) <= 80 else text[:77] + "..."

"""What a dataset is: sources and steps as plain values, and the names its files have."""

from __future__ import annotations

import posixpath
import random
import re
from datetime import datetime, timezone
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence
from urllib.parse import quote, urlsplit

from lapis.domain.conditions import holds
from lapis.domain.tree import check_path
from lapis.errors import UserErrorException

WEB, STORE, LOCAL, OBJECT = "web", "datastore", "local", "object"
QUERY = "query"  # a source that is no file: rows of a database
PIECE = 8 << 20  # bytes in which large remote files travel, and are kept while they are not whole
AUTO, DOWNLOAD, STREAM = "auto", "download", "stream"  # how a mount brings remote files
STREAM_ABOVE = 10 * 10**9  # bytes
STREAM_FILES_ABOVE = 8 * 10**6  # bytes of a file, on average
_STORE_NAME = re.compile(r"\w{1,255}\Z", re.ASCII)
_INPUT_NAME = re.compile(r"[a-zA-Z_]\w*\Z", re.ASCII)
_GLOB = re.compile(r"[*?\[]")
_IN_USE = {"PATH", "HOME", "PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "TMPDIR", "USER", "SHELL", "LANG"}

# Addresses of well-known data sets that answer no more, and where the same files are today.
GONE = {
    "http://yann.lecun.com/exdb/mnist/": "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://yann.lecun.com/exdb/mnist/": "https://ossci-datasets.s3.amazonaws.com/mnist/",
}


class File(NamedTuple):
    """One file of a dataset: its name in it, where it really is, and what is known of its content."""

    path: str  # begins with /
    kind: str  # WEB: `place` is an address; LOCAL: a path on this machine; OBJECT: datastore/name in its object store
    place: str
    size: int | None = None
    mark: str | None = None  # an ETag, or the time of the last change
    modified: float | None = None  # seconds since 1970, where they are known
    created: float | None = None

    def recorded(self) -> dict[str, Any]:
        """What is written down of it with a dataset: what tells whether it is the same later."""
        return {"path": self.path, "kind": self.kind, "place": self.place, "size": self.size, "mark": self.mark}


# What a condition can ask of a file. The names hold a colon, which no partition key does.
FILE_FACTS: dict[str, Callable[[File], Any]] = {
    "file:Size": lambda file: file.size,
    "file:LastModifiedTime": lambda file: _moment(file.modified),
    "file:CreationTime": lambda file: _moment(file.created),
    "file:Extension": lambda file: posixpath.splitext(file.path)[1][1:],
    "file:CanSeek": lambda file: True,  # whatever a script gets lies on a disk
}


def _moment(seconds: float | None) -> datetime | None:
    """In UTC, and without saying so, as the times of tables."""
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc).replace(tzinfo=None)


def check_datastore_name(name: Any) -> str:
    if not isinstance(name, str) or not _STORE_NAME.match(name):
        raise UserErrorException(
            f"Datastore name {name!r} cannot be used. A name is 1 to 255 letters, digits and underscores."
        )
    return name


def check_dataset_name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > 255 or any(ord(c) < 32 for c in name):
        raise UserErrorException(f"Dataset name {name!r} cannot be used: 1 to 255 printable characters are allowed.")
    return name


def check_input_name(name: Any) -> str:
    """A name under which a run gets a dataset: it becomes an environment variable."""
    if not isinstance(name, str) or not _INPUT_NAME.match(name):
        raise UserErrorException(
            f"Input name {name!r} cannot be used: letters, digits and underscores, and not a digit first."
        )
    if name in _IN_USE or name.startswith(("AZUREML_", "LAPIS_")):
        raise UserErrorException(f"Input name {name!r} cannot be used: the script needs the variable of that name.")
    return name


def check_output_name(name: Any) -> str:
    """A name under which a run writes a dataset: an environment variable too."""
    try:
        return check_input_name(name)
    except UserErrorException as error:
        raise UserErrorException(error.message.replace("Input name", "Output name")) from None


def check_path_on_compute(path: Any) -> str | None:
    """Where on the compute data is wanted: absolute, or below the folder that the script starts in."""
    if path is None or path == "":
        return None
    if not isinstance(path, str):
        raise UserErrorException(f"path_on_compute must be text, not {path!r}.")
    if path.startswith("/"):
        if path.strip("/"):
            check_path(path.strip("/"))
            return path
        raise UserErrorException("path_on_compute cannot be the root of the file system.")
    return check_path((path[2:] if path.startswith("./") else path).rstrip("/"))


OUTPUT_PLACE = "dataset/{run-id}/{output-name}"


def output_place(template: Any, run_id: str, name: str) -> str:
    """The path in a datastore that an output goes to."""
    if template is not None and not isinstance(template, str):
        raise UserErrorException(f"The path of an output's destination must be text, not {template!r}.")
    path = (template or OUTPUT_PLACE).replace("{run-id}", run_id).replace("{output-name}", name).strip("/")
    return check_path(path) if path else path


def check_reference_name(name: Any) -> str:
    """A name of a data reference: the end of an environment variable's name."""
    if not isinstance(name, str) or not _STORE_NAME.match(name):
        raise UserErrorException(f"Data reference name {name!r} cannot be used: letters, digits and underscores.")
    return name


def is_web(path: str) -> bool:
    return path.startswith(("http://", "https://"))


def web_path(url: str) -> str:
    """The name that a web file has in a dataset: `/http%3A/%2Fhost%3Aport/path`, as SDK v1 lays it."""
    parts = urlsplit(url)
    if not parts.hostname:
        raise UserErrorException(f"{shown_url(url)!r} is not a web address: it names no host.")
    if "@" in parts.netloc:
        raise UserErrorException(
            f"The address of {parts.hostname} holds a user name or a password, which would be kept and shown. Download "
            "the file with your own tool, and make a dataset of the copy."
        )
    path = re.sub("/+", "/", "/" + parts.path)
    path += "index" if path.endswith("/") else ""
    check_path(path[1:])
    return "/{}%3A/%2F{}{}".format(parts.scheme, quote(parts.netloc, safe=""), path)


def shown_url(url: str) -> str:
    """An address for people: what follows the `?` may be a key."""
    return url.partition("?")[0] + ("?..." if "?" in url else "")


def requestable(url: str) -> str:
    """An address with spaces and foreign letters as the web wants them; what is quoted already stays so."""
    return quote(url, safe="%/:=&?~#+!$,;'@()*[]-._")


def mirrored(url: str, mirrors: str | None) -> str:
    """Where to get `url` from: LAPIS_URL_MIRRORS first, then the table of what is gone."""
    for old, new in [*parse_mirrors(mirrors), *GONE.items()]:
        if url.startswith(old):
            return new + url[len(old) :]
    return url


def parse_mirrors(text: str | None) -> list[tuple[str, str]]:
    """`old-prefix=new-prefix`, separated by commas; the longest old prefix first."""
    found = []
    for pair in filter(None, (part.strip() for part in (text or "").split(","))):
        old, sign, new = pair.partition("=")
        if not sign or not is_web(old) or not is_web(new):
            raise UserErrorException(
                f"LAPIS_URL_MIRRORS holds {pair!r}; it must be old-prefix=new-prefix, both of them web addresses."
            )
        found.append((old, new))
    return sorted(found, key=lambda pair: -len(pair[0]))


def delivery(asked: str, files: int, size: int, missing: int, room: int) -> tuple[str, str]:
    """How a mount brings remote files, DOWNLOAD or STREAM, and why.

    Of their `size` bytes `missing` are not in the cache yet, which could hold `room` of them. What was measured stands
    in docs/decisions/0011-mount-by-download-or-stream.md.
    """
    if asked != AUTO:
        return asked, f"LAPIS_MOUNT is {asked}"
    if missing == 0:
        return DOWNLOAD, "all of it is in the cache"
    if size > room:
        return STREAM, f"the cache has room for {room / 1e9:.1f} GB"
    large = f"more than {STREAM_ABOVE / 1e9:g} GB"
    if missing <= STREAM_ABOVE:
        return DOWNLOAD, f"it is not {large}" if missing == size else f"what is missing of it is not {large}"
    if size / files < STREAM_FILES_ABOVE:
        return DOWNLOAD, f"files below {STREAM_FILES_ABOVE / 1e6:g} MB come faster together"
    return STREAM, f"it is {large}"


def fixed_part(pattern: str) -> str:
    """The folders of a pattern before its first wildcard."""
    kept = []
    for segment in pattern.split("/"):
        if _GLOB.search(segment):
            break
        kept.append(segment)
    return "/".join(kept)


def has_glob(pattern: str) -> bool:
    return bool(_GLOB.search(pattern))


def check_glob(pattern: Any) -> str:
    """A pattern that says which files below a folder are meant."""
    if not isinstance(pattern, str) or not pattern.strip("/") or ".." in pattern.split("/"):
        raise UserErrorException(f"A pattern of files is such as '**/*.csv', not {pattern!r}.")
    glob_matcher(pattern)
    return pattern.strip("/")


def glob_matcher(pattern: str) -> Any:
    """A compiled pattern: `*` and `?` stay within a folder, `**` crosses folders."""
    out, i = [], 0
    while i < len(pattern):
        if pattern.startswith("**/", i):
            out.append("(?:[^/]+/)*")
            i += 3
        elif pattern.startswith("**", i):
            out.append(".*")
            i += 2
        elif pattern[i] == "*":
            out.append("[^/]*")
            i += 1
        elif pattern[i] == "?":
            out.append("[^/]")
            i += 1
        elif pattern[i] == "[" and "]" in pattern[i + 2 :]:
            end = pattern.index("]", i + 2)
            body = pattern[i + 1 : end]
            negated, body = body[0] in "!^", body[1:] if body[0] in "!^" else body
            body = re.sub(r"([^\w-])", r"\\\1", re.sub("-+", "-", body))
            out.append(f"[{'^' if negated else ''}{body}]")
            i = end + 1
        else:
            out.append(re.escape(pattern[i]))
            i += 1
    try:
        return re.compile("".join(out) + r"\Z", re.DOTALL)
    except re.error as error:
        raise UserErrorException(f"The pattern {pattern!r} cannot be read: {error}.") from None


def apply_steps(
    files: Sequence[File],
    steps: Iterable[Mapping[str, Any]],
    values: Callable[[File], Mapping[str, Any]] = lambda file: {},
) -> list[File]:
    """Filter, skip, take, sample and split, one after the other. `values` is what conditions can ask of a file."""
    chosen = list(files)
    for step in steps:
        if step["op"] == "filter":
            chosen = [file for file in chosen if holds(step["condition"], values(file))]
        elif step["op"] == "skip":
            chosen = chosen[step["count"] :]
        elif step["op"] == "take":
            chosen = chosen[: step["count"]]
        elif step["op"] == "sample":
            chance = random.Random(step["seed"])
            chosen = [file for file in chosen if chance.random() < step["probability"]]
        elif step["op"] == "split":
            chance = random.Random(step["seed"])
            first = [chance.random() < step["percentage"] for _ in chosen]
            chosen = [file for file, mine in zip(chosen, first) if mine == (step["part"] == 0)]
        else:
            raise UserErrorException(f"A dataset step {step['op']!r} is not known to this release of Lapis.")
    return chosen


NEEDED_FOR_TABLES = ("pandas", "pyarrow")


def cannot_read_tables(tables: Sequence[str], where: str, missing: Sequence[str]) -> str:
    """What to tell about a run whose script could not read its inputs."""
    names = ", ".join(f"'{name}'" for name in tables)
    return (
        f"The run has a table among its inputs ({names}), and {where} has no {' and no '.join(missing)} to read it. "
        "Add azureml-dataset-runtime[pandas] to the packages: it brings both. Nothing was submitted."
    )

"""What is sent with a run: walk the source folder, hash its files, lay the tree out on the other side."""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import json
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from operator import itemgetter
from typing import Any, BinaryIO, NamedTuple

from lapis.domain.ignore import ENVIRONMENT_MARK, IgnoreRules, default_skip
from lapis.domain.packs import SMALL
from lapis.domain.tree import Tree, TreeEntry, check_path, resolve_under
from lapis.errors import SnapshotException, UserErrorException
from lapis.machine import whole_files

IGNORE_FILES = (".amlignore", ".gitignore")
"""The first of these at the top of the folder counts; those of the folders below are not read."""

SNAPSHOT_MAX_SIZE_BYTES = 300 * 1024 * 1024
SNAPSHOT_MAX_FILES = 2000
"""Azure's limits. Here they cause a warning only; users may assign other values."""


class PlannedFile(NamedTuple):
    """A file to send as `path`, read from `source`: the same file, or the one that `path` is a link to."""

    path: str
    source: str
    size: int
    executable: bool
    stamp: tuple[int, int, int, int]


class Plan:
    """What a folder would send: `files` sorted by path, and (path, reason) for everything left out."""

    def __init__(self, folder: str, files: Iterable[PlannedFile], skipped: Iterable[tuple[str, str]]) -> None:
        self.folder = folder
        self.files = sorted(files, key=itemgetter(0))
        self.skipped = sorted(skipped)

    @property
    def total_size(self) -> int:
        return sum(file.size for file in self.files)

    def biggest(self, n: int) -> list[PlannedFile]:
        return heapq.nlargest(n, self.files, key=lambda file: file.size)


def scan(folder: str | os.PathLike[str], ignore_files: Iterable[str] = IGNORE_FILES) -> Plan:
    """Walk `folder` once and say what would be sent. Reads no content but the ignore file's, follows no link.

    A link to a file that is sent itself is sent as that file's content; any other link is left out.
    """
    root = os.path.realpath(folder)
    if not os.path.isdir(root):
        raise UserErrorException(f"There is no folder '{folder}' to take a snapshot of.")
    rules, rules_file = _read_rules(root, ignore_files)
    base = os.path.join(root, "")
    files: list[PlannedFile] = []
    links: list[str] = []
    skipped: list[tuple[str, str]] = []
    folders = [("", True)]  # (path with a trailing slash, whether to send it even if a virtual environment)
    while folders:
        prefix, wanted = folders.pop()
        entries = _list(base, prefix)
        if not wanted and any(entry.name == ENVIRONMENT_MARK for entry, _ in entries):
            skipped.append((prefix, "a virtual environment is skipped by default"))
            continue
        for entry, status in entries:
            path = prefix + entry.name
            is_folder = stat.S_ISDIR(status.st_mode)
            rule = rules.decide(path, is_folder)
            wanted = rule is not None and rule.negated and rule.names_something
            default = None if wanted else default_skip(path, is_folder)
            if rule is not None and not rule.negated:
                skipped.append((path + "/" * is_folder, f"rule '{rule.text}' of {rules_file}"))
            elif default is not None:
                skipped.append((path + "/" * is_folder, f"'{default}' is skipped by default"))
            elif is_folder:
                folders.append((path + "/", wanted))
            elif stat.S_ISLNK(status.st_mode):
                links.append(path)
            elif stat.S_ISREG(status.st_mode):
                files.append(_planned(path, base + path, status))
            else:
                skipped.append((path, "neither a file nor a folder"))
    sent = {file.source: file for file in files}
    for path in links:
        target = os.path.realpath(base + path)
        if target in sent:
            files.append(sent[target]._replace(path=_checked(path)))
        else:
            skipped.append((path, _why_not_followed(target, root)))
    return Plan(root, files, skipped)


def cache_path_for(folder: str | os.PathLike[str], cache_dir: str) -> str:
    """Where the hash cache of `folder` lies: one file for each folder."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]
    return os.path.join(cache_dir, f"{name}.hashes")


class Courier:
    """Takes small files from `hash_plan` as it reads them, so that nobody needs to read them again."""

    def expect(self, size: int) -> None:
        """How many bytes of small files will be read."""

    def take(self, digest: str, content: bytes) -> None: ...

    def end(self) -> None:
        """All have been read."""


def hash_plan(
    plan: Plan,
    cache_path: str | None = None,
    clock: Callable[[], int] = time.time_ns,
    courier: Courier | None = None,
) -> Tree:
    """The tree of a plan. With a cache, only files that changed since the last time are read.

    Any number of processes may use one cache at once. A damaged one counts as empty.
    """
    known = _load_cache(cache_path) if cache_path else {}
    rows = [known.get(file.path) for file in plan.files]
    rows = [row if row and tuple(row[:4]) == file.stamp else None for row, file in zip(rows, plan.files)]
    if courier is not None:
        courier.expect(sum(f.size for f, row in zip(plan.files, rows) if row is None and f.size <= SMALL))
    kept: dict[str, list[Any]] = {}
    entries, news = [], False
    # A file written just before it is hashed may change again within the same tick of its clock and look
    # unchanged for ever: only what has been quiet for a while is remembered.
    quiet_since = clock() - 2_000_000_000
    for file, row in zip(plan.files, rows):
        if row is None:
            digest, stamp, content = _hash_file(file)
            row = [*stamp, digest]
            if courier is not None and content is not None:
                courier.take(digest, content)
            news = news or (row[0] < quiet_since and row[1] < quiet_since)
        if row[0] < quiet_since and row[1] < quiet_since:
            kept[file.path] = row
        entries.append(TreeEntry(file.path, row[4], row[2], file.executable))
    if courier is not None:
        courier.end()
    # the row of a file that changed a moment ago fits no more, and does no harm: it is no reason to write all of them
    if cache_path and (news or not known.keys() <= {file.path for file in plan.files}):
        _save_cache(cache_path, kept)
    return Tree.of_folder(entries)


def warning_for(plan: Plan) -> str | None:
    """What to tell the user about a snapshot that Azure would refuse as too big. It is sent all the same."""
    any_number = os.environ.get("AML_SNAPSHOT_NO_FILE_LIMIT", "").lower() not in ("", "0", "false")
    too_many = len(plan.files) > SNAPSHOT_MAX_FILES and not any_number
    if not too_many and plan.total_size <= SNAPSHOT_MAX_SIZE_BYTES:
        return None
    lines = [
        f"The snapshot of '{plan.folder}' is big: {len(plan.files):,} files, {_megabytes(plan.total_size)}. "
        f"Azure's limits are {SNAPSHOT_MAX_FILES:,} files and {_megabytes(SNAPSHOT_MAX_SIZE_BYTES)}; "
        "here it is sent, but submitting takes longer. The biggest files:"
    ]
    lines += [f"  {_megabytes(file.size):>12}  {file.path}" for file in plan.biggest(10)]
    if too_many:
        lines.append("The fullest folders:")
        lines += [f"  {count:>6,} files  {folder}/" for folder, count in _fullest_folders(plan, 5)]
    lines.append("To leave something out, name it in a file .amlignore at the top of that folder, as in .gitignore.")
    return "\n".join(lines)


def lay_out(tree: Tree, read_blob: Callable[[str], BinaryIO], target: str | os.PathLike[str]) -> None:
    """Write the files of `tree` below `target`. Files of the same name are replaced, others stay.

    Every content is checked against its hash and removed if it differs. No link in `target` leads out of it.
    """
    root = os.path.realpath(target)
    made = {"": _make_folder(root)}
    for entry in tree.entries:
        folder, _, name = entry.path.rpartition("/")
        if folder not in made:
            made[folder] = _make_folder(resolve_under(root, folder))
        with closing(read_blob(entry.hash)) as blob:
            _write_verified(entry, blob, os.path.join(made[folder], name))


_ODD = frozenset("\\:")
_CHUNK = 1024 * 1024
_READ_ATTEMPTS = 3
# A file may become a link or a pipe between the walk and the reading: do not follow it, do not hang on it.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_CACHE_HEADER = b"lapis hashes 1 "


def _read_rules(root: str, ignore_files: Iterable[str]) -> tuple[IgnoreRules, str]:
    for name in ignore_files:
        try:
            with open(os.path.join(root, name), "rb") as file:
                content = file.read()
        except (FileNotFoundError, IsADirectoryError):
            continue
        except OSError as error:
            raise SnapshotException(_unreadable(name, error))
        if b"\0" in content:
            raise SnapshotException(f"The ignore file '{name}' of '{root}' is not text in UTF-8. Save it as such.")
        return IgnoreRules.parse(content.decode("utf-8", "surrogateescape")), name
    return IgnoreRules(()), ""


def _list(base: str, prefix: str) -> list[tuple[os.DirEntry[str], os.stat_result]]:
    """What lies in a folder now. What vanishes while we look was never there."""
    found = []
    name = prefix
    try:
        with os.scandir(base + prefix) as entries:
            for entry in entries:
                name = prefix + entry.name
                try:
                    found.append((entry, entry.stat(follow_symlinks=False)))
                except FileNotFoundError:
                    continue
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SnapshotException(_unreadable(name, error))
    return found


def _unreadable(path: str, error: OSError) -> str:
    way_out = "Make it readable or leave it out with a line in .amlignore."
    return f"Cannot read {path!r} for the snapshot: {error.strerror}. {way_out}"


def _planned(path: str, source: str, status: os.stat_result) -> PlannedFile:
    executable = bool(status.st_mode & stat.S_IXUSR) and os.name != "nt"
    return PlannedFile(_checked(path), source, status.st_size, executable, _stamp(status))


def _stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    """What changes when a file does, as far as can be told without reading it."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _checked(path: str) -> str:
    if path.isascii() and path.isprintable() and len(path) < 512 and not _ODD.intersection(path):
        return path  # as nearly all are: it came from a folder, and so has no empty parts and no dots for parts
    try:
        return check_path(path)
    except UserErrorException as error:
        raise SnapshotException(f"{error.message} Rename the file or leave it out with a line in .amlignore.")


def _why_not_followed(target: str, root: str) -> str:
    if target != root and not target.startswith(root.rstrip(os.sep) + os.sep):
        return "link that leads out of the folder"
    if not os.path.exists(target):
        return "link that leads nowhere"
    if os.path.isdir(target):
        return "link to a folder"
    return f"link to '{os.path.relpath(target, root)}', which is left out itself"


def _hash_file(file: PlannedFile) -> tuple[str, tuple[int, int, int, int], bytes | None]:
    """Hash and stamp of a file that did not change since it was found, or while it was read; a small one's content."""
    expected = file.stamp
    for _ in range(_READ_ATTEMPTS + 1):
        try:
            descriptor = os.open(file.source, _READ)
            try:
                digest, size, content = _digest(descriptor, expected[2])
                status = os.fstat(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise SnapshotException(_unreadable(file.path, error))
        stamp = _stamp(status)
        if size == stamp[2] and stamp == expected and stat.S_ISREG(status.st_mode):
            return digest, stamp, content
        expected = stamp
    raise SnapshotException(
        f"'{file.path}' kept changing while it was read for the snapshot. "
        "Wait until it is written or leave it out with a line in .amlignore."
    )


def hash_file(path: str) -> tuple[str, int]:
    """The hash and the size of a file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        digest, size, _ = _digest(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)
    return digest, size


def _digest(descriptor: int, size: int) -> tuple[str, int, bytes | None]:
    """The hash of at most `size` bytes, how many there were, and they themselves if they are few."""
    if size <= SMALL:
        content = os.read(descriptor, size)
        return hashlib.sha256(content).hexdigest(), len(content), content
    digest, done = hashlib.sha256(), 0
    while done < size:
        chunk = os.read(descriptor, min(_CHUNK, size - done))
        if not chunk:
            break
        digest.update(chunk)
        done += len(chunk)
    return digest.hexdigest(), done, None


def _load_cache(cache_path: str) -> dict[str, list[Any]]:
    try:
        with open(cache_path, "rb") as file:
            header, _, body = file.read().partition(b"\n")
        if header != _CACHE_HEADER + hashlib.sha256(body).hexdigest().encode():
            return {}
        rows: dict[str, list[Any]] = json.loads(body)
        return rows
    except OSError:
        return {}


def _save_cache(cache_path: str, rows: dict[str, list[Any]]) -> None:
    body = json.dumps(rows, separators=(",", ":")).encode()
    header = _CACHE_HEADER + hashlib.sha256(body).hexdigest().encode()
    with contextlib.suppress(OSError):  # without a cache the next snapshot is slower, nothing else
        os.makedirs(os.path.dirname(cache_path) or ".", exist_ok=True)
        whole_files.write(cache_path, header + b"\n" + body)


def _remove_if_there(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _megabytes(size: float) -> str:
    return f"{size / 1024 / 1024:,.1f} MB"


def _fullest_folders(plan: Plan, n: int) -> list[tuple[str, int]]:
    return Counter(file.path.partition("/")[0] for file in plan.files if "/" in file.path).most_common(n)


def _make_folder(place: str) -> str:
    try:
        os.makedirs(place, exist_ok=True)
    except OSError as error:
        raise SnapshotException(f"Cannot make the folder '{place}': {error.strerror}.")
    return place


def _write_verified(entry: TreeEntry, blob: BinaryIO, place: str) -> None:
    descriptor = _create(place, 0o777 if entry.executable else 0o666)
    complete = False
    try:
        digest, left = hashlib.sha256(), entry.size
        while left >= 0:
            chunk = blob.read(min(_CHUNK, left + 1))
            if not chunk:
                break
            digest.update(chunk)
            left -= len(chunk)
            _write_all(descriptor, chunk, place)
        if digest.hexdigest() != entry.hash or left != 0:
            raise SnapshotException(f"The content received for '{entry.path}' is damaged: its hash differs.")
        complete = True
    finally:
        os.close(descriptor)
        if not complete:
            _remove_if_there(place)


def _create(place: str, mode: int) -> int:
    try:
        try:
            return os.open(place, _CREATE, mode)
        except FileExistsError:
            os.unlink(place)  # never write through a link, nor into a file that has another name too
            return os.open(place, _CREATE, mode)
    except OSError as error:
        raise SnapshotException(f"Cannot write '{place}': {error.strerror}.")


def _write_all(descriptor: int, chunk: bytes, place: str) -> None:
    try:
        written = os.write(descriptor, chunk)
        while written < len(chunk):
            written += os.write(descriptor, chunk[written:])
    except OSError as error:
        raise SnapshotException(f"Cannot write '{place}': {error.strerror}.")

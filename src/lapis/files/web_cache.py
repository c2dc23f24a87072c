"""Files from the web, fetched once for all runs of a machine: whole or not at all, resumed when cut off.

A file is kept under the hash of its address and of what the server says it is (ETag, or date), so a changed file is
another file. Two that want the same one wait for one download. A large file comes in pieces, several at once, where the
server allows it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Iterator, NamedTuple

from lapis.domain.data import GONE, PIECE, mirrored, requestable, shown_url
from lapis.errors import NotFound, UserErrorException
from lapis.files import pieces
from lapis.machine.threads import do_all

if TYPE_CHECKING:
    from lapis.domain.addresses import Rule

DEFAULT_LIMIT = 50 << 30  # bytes that the cache may hold
STREAMS = 16  # of one large file
_CHUNK = 1 << 20
_TIMEOUT = 30.0
_TRIES = 4
_STALE = 7 * 24 * 3600.0  # a half download that nobody has touched for so long is thrown away
_TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_NO_HEAD = (400, 403, 405, 501)  # some servers answer a GET where they refuse a HEAD, signed links among them

_streams = threading.BoundedSemaphore(STREAMS)  # of this process, however many files it fetches
Progress = Callable[[int, "int | None"], None]


class Said(NamedTuple):
    """What a server says of a file before it is fetched."""

    size: int | None
    mark: str | None
    ranges: bool
    modified: float | None = None


class WebCache:
    def __init__(
        self, folder: str, mirrors: str | None = None, limit: int = DEFAULT_LIMIT, rule: Rule | None = None
    ) -> None:
        """`rule` says which addresses may be asked; without one the settings do."""
        self._folder = folder
        self._mirrors = mirrors
        self._limit = limit
        self._rule = rule
        self._unlooked = limit  # bytes that came since the room was looked at; the first ones are looked at

    def describe(self, url: str) -> Said:
        """What the address holds now; an error that says which of missing, denied, unreachable."""
        return self.ask(url)

    def place(self, url: str, said: Said) -> str:
        """Where a copy is kept once it is here whole."""
        return os.path.join(self._folder, _key(url, said))

    def has(self, url: str, said: Said) -> bool:
        """Whether a whole copy is here, as it was downloaded."""
        return _intact(self.place(url, said))

    def read(self, url: str, said: Said, begin: int, end: int) -> Iterator[memoryview]:
        """Part of what the address held when that was `said` of it; an error if it holds something else now.

        It comes in chunks, each good until the next one is asked for.
        """
        why: BaseException = _Cut()
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(0.1 * 2**attempt)
            try:
                for chunk in self._part(url, said, begin, end):
                    begin += len(chunk)
                    yield chunk
                return
            except _WholeOnly:
                raise UserErrorException(f"{shown_url(url)} gives no part of itself{self._through(url)}.") from None
            except _Cut as cut:
                why = cut.__cause__ or cut
        raise self._unreachable(url, why)

    def fetch(self, url: str, progress: Progress = lambda done, total: None) -> str:
        """The path of a local copy of what the address holds now."""
        with self.holding(url, progress) as path:
            return path

    @contextlib.contextmanager
    def holding(
        self, url: str, progress: Progress = lambda done, total: None, said: Said | None = None
    ) -> Iterator[str]:
        """The same, for as long as the block lasts: until then nobody clears it away. `said` of it a moment ago."""
        import fcntl

        said = said or self.ask(url)
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        final = self.place(url, said)
        with open(final + ".lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # whoever comes second finds it done
            fresh = said.mark is None or not _intact(final)  # what cannot be told from a changed file is fetched anew
            if fresh:
                self._download(url, said, final, progress)
            os.utime(final, ns=(time.time_ns(), os.stat(final).st_mtime_ns))  # used now: the last to be cleared away
            fcntl.flock(lock, fcntl.LOCK_SH)
            if fresh and self._is_due(os.path.getsize(final)):
                self.clear()
            yield final

    # -- getting it

    def _download(self, url: str, said: Said, final: str, progress: Progress) -> None:
        part = final + ".part"
        if said.mark is None:
            _forget(part)  # a half of something that may have changed
        streamed = os.path.exists(pieces.path_of(final, 0))
        in_pieces = said.ranges and said.size is not None and (said.size > 2 * PIECE or streamed)
        why: BaseException = _Cut()
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(0.1 * 2**attempt)
            try:
                if in_pieces:
                    self._take_in_pieces(url, said, final, progress)
                else:
                    self._take_in_one(url, said, part, progress)
            except _WholeOnly:
                in_pieces = False
                _forget(part)
            except _Cut as cut:
                why = cut.__cause__ or cut
            else:
                _keep(part, final)
                pieces.drop(final, said.size or 0)
                return
        if isinstance(why, _Lengths):
            _forget(part)
            raise UserErrorException(
                f"{shown_url(url)} said it is {said.size} bytes long, but sent {why.got}{self._through(url)}, {_TRIES} "
                "times. Nothing was kept."
            )
        raise self._unreachable(url, why)

    def _take_in_one(self, url: str, said: Said, part: str, progress: Progress) -> None:
        have = os.path.getsize(part) if said.ranges and os.path.exists(part) else 0
        if said.size is not None and have >= said.size:
            have = 0  # longer than it should be, or whole and yet not taken
        with self._open(url, said, (have, None) if have else None) as reply:
            done = have if reply.status == 206 else 0
            with open(part, "ab" if done else "wb") as file:
                for chunk in _chunks(reply):
                    file.write(chunk)
                    done += len(chunk)
                    progress(done, said.size)
        if said.size is not None and done != said.size:
            if done > said.size:
                _forget(part)
            raise _Cut() from _Lengths(done)
        if done == 0:
            raise UserErrorException(f"{shown_url(url)} is empty: it answers with no byte{self._through(url)}.")

    def _take_in_pieces(self, url: str, said: Said, final: str, progress: Progress) -> None:
        """Each piece that is whole is noted beside the file, so that a later try asks for the others only."""
        assert said.size is not None
        part, lock = final + ".part", threading.Lock()
        noted = part + ".done"
        have = _noted(noted) if os.path.exists(part) else set()
        wanted = [begin for begin in range(0, said.size, PIECE) if begin not in have]
        done = said.size - sum(min(PIECE, said.size - begin) for begin in wanted)
        with open(part, "r+b" if have else "wb") as file:
            file.truncate(said.size)

        def take(begin: int) -> None:
            nonlocal done
            end = min(begin + PIECE, said.size or 0)
            kept = pieces.find(final, begin, end - begin)  # somebody streamed it
            with open(part, "r+b") as file:
                file.seek(begin)
                for chunk in [kept.content(end - begin)] if kept else self._part(url, said, begin, end):
                    file.write(chunk)
                    with lock:
                        done += len(chunk)
                        progress(done, said.size)
            with lock, open(noted, "a") as notes:
                notes.write(f"{begin}\n")

        do_all(STREAMS, take, [(begin,) for begin in wanted])

    def _part(self, url: str, said: Said, begin: int, end: int) -> Iterator[memoryview]:
        """All bytes of a part, else _Cut after the last one."""
        got = 0
        with self._open(url, said, (begin, end - 1)) as reply:
            if reply.status != 206:
                raise _WholeOnly()
            for chunk in _chunks(reply):
                got += len(chunk)
                yield chunk
        if got != end - begin:
            raise _Cut() from _Lengths(got)

    @contextlib.contextmanager
    def _open(self, url: str, said: Said, span: tuple[int, int | None] | None) -> Iterator[Any]:
        """The answer to a GET, of a part if asked for; _Cut for whatever another try may mend."""
        import http.client
        import urllib.error
        import urllib.request

        request = urllib.request.Request(requestable(mirrored(url, self._mirrors)))
        if span is not None:
            request.add_header("Range", "bytes={}-{}".format(span[0], "" if span[1] is None else span[1]))
            if said.mark:
                request.add_header("If-Range", said.mark)
        with _streams:
            try:
                reply = self._opened(request)
            except urllib.error.HTTPError as refused:
                with refused:
                    if refused.code in _TRY_AGAIN:
                        raise _Cut() from refused
                    raise self._refused(url, refused.code) from None
            except (OSError, http.client.HTTPException) as cut:
                raise _Cut() from cut
            with reply:
                if _mark(reply.headers) != said.mark:
                    raise UserErrorException(
                        f"{shown_url(url)} changed while it was read{self._through(url)}. Nothing was kept. Try again."
                    )
                yield reply

    # -- asking about it

    def ask(self, url: str, method: str = "HEAD", attempt: int = 1) -> Said:
        import http.client
        import urllib.error
        import urllib.request

        request = urllib.request.Request(requestable(mirrored(url, self._mirrors)), method=method)
        try:
            with self._opened(request) as reply:
                headers = reply.headers
        except urllib.error.HTTPError as refused:
            with refused:
                if method == "HEAD" and refused.code in _NO_HEAD:
                    return self.ask(url, "GET")
                if refused.code not in _TRY_AGAIN or attempt == _TRIES:
                    raise self._refused(url, refused.code) from None
            time.sleep(0.1 * 2**attempt)
            return self.ask(url, method, attempt + 1)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise self._unreachable(url, error) from None
        length = headers.get("Content-Length")
        size = int(length) if length and length.isdigit() and not headers.get("Content-Encoding") else None
        if size == 0:
            raise UserErrorException(
                f"{shown_url(url)} is empty: it answers with no byte{self._through(url)}. {_way_out(url)}"
            )
        mark = _mark(headers)
        ranges = mark is not None and headers.get("Accept-Ranges") == "bytes"
        return Said(size, mark, ranges, _modified(headers.get("Last-Modified")))

    def _opened(self, request: Any) -> Any:
        from lapis.domain.addresses import rule_of
        from lapis.files.web_guard import opener

        if self._rule is None:
            self._rule = rule_of(os.environ)
        return opener(self._rule).open(request, timeout=_TIMEOUT)

    def _refused(self, url: str, status: int) -> UserErrorException:
        why = {401: "denied", 403: "denied", 404: "not there", 410: "gone"}.get(status, "refused")
        kind = NotFound if status in (404, 410) else UserErrorException
        return kind(f"{shown_url(url)} is {why} (status {status}){self._through(url)}. {_way_out(url)}")

    def _unreachable(self, url: str, error: BaseException) -> UserErrorException:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        return UserErrorException(f"{shown_url(url)} cannot be reached ({reason}){self._through(url)}. {_way_out(url)}")

    def _through(self, url: str) -> str:
        real = mirrored(url, self._mirrors)
        return "" if real == url else f", asked at {shown_url(real)}"

    # -- room

    def _is_due(self, size: int) -> bool:
        """Whether to look at all that is kept: not for each of many small files."""
        self._unlooked += size
        if self._unlooked < self._limit // 50:
            return False
        self._unlooked = 0
        return True

    def clear(self) -> None:
        """Remove what was used longest ago until the cache fits its limit; never what somebody uses."""
        found = []
        for entry in os.scandir(self._folder) if os.path.isdir(self._folder) else ():
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            if entry.name.endswith(".part"):
                if time.time() - status.st_mtime > _STALE:
                    _forget(entry.path)
            elif "." not in entry.name or entry.name.endswith(pieces.SUFFIX):
                found.append((status.st_atime, status.st_size, status.st_nlink, entry.path))
        held = sum(size for _, size, _, _ in found)
        for _, size, links, path in sorted(found):
            if held <= self._limit:
                return
            if links == 1 and _remove_unheld(path):  # a second link is a run's: removing ours would free nothing
                held -= size


class _Cut(Exception):
    """Something that another try may mend; its cause says what."""


class _WholeOnly(Exception):
    """The server says it gives parts of files, and does not."""


class _Lengths(Exception):
    def __init__(self, got: int) -> None:
        super().__init__(f"cut off after {got} bytes")
        self.got = got


def _key(url: str, said: Said) -> str:
    return hashlib.sha256(json.dumps([url, said.size, said.mark]).encode()).hexdigest()


def _mark(headers: Any) -> str | None:
    found = headers.get("ETag") or headers.get("Last-Modified")
    return str(found) if found else None


def _modified(text: str | None) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (TypeError, ValueError, OverflowError):
        return None  # servers say all kinds of things


def _chunks(reply: Any) -> Iterator[memoryview]:
    """What is read, each part good until the next one is asked for."""
    import http.client

    room = memoryview(bytearray(_CHUNK))  # the same for all chunks: new memory for each would cost as much as reading
    while True:
        try:
            count = reply.readinto(room)
        except (OSError, http.client.HTTPException) as cut:
            raise _Cut() from cut
        if not count:
            return
        yield room[:count]


def _keep(part: str, final: str) -> None:
    """Make a whole download the cache's own: read-only, with a note by which a change is found out."""
    os.chmod(part, 0o444)
    status = os.stat(part)
    with open(final + ".json", "w") as file:
        json.dump([status.st_size, status.st_mtime_ns], file)
    os.replace(part, final)
    _forget(part)


def _intact(final: str) -> bool:
    """Whether it is there as it was downloaded: a script may have written through its link."""
    try:
        with open(final + ".json") as file:
            noted = json.load(file)
        status = os.stat(final)
    except (FileNotFoundError, ValueError):
        return False
    return bool(noted == [status.st_size, status.st_mtime_ns])


def _noted(path: str) -> set[int]:
    try:
        with open(path) as file:
            return {int(line) for line in file if line.endswith("\n")}
    except FileNotFoundError:
        return set()


def _forget(part: str) -> None:
    for path in (part, part + ".done"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)


def _remove_unheld(path: str) -> bool:
    import fcntl

    if pieces.is_piece(path):
        return pieces.remove(path)
    with open(path + ".lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False  # somebody is about to link it
        for each in (path, path + ".json"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(each)
    return True


def _way_out(url: str) -> str:
    folder = url.partition("?")[0].rsplit("/", 1)[0] + "/"
    known = next((old for old in GONE if url.startswith(old)), None)
    ours = f" Lapis' own table of mirrors has {GONE[known]} for it." if known else ""
    return f"If the files are elsewhere today, set LAPIS_URL_MIRRORS={known or folder}=<new prefix>.{ours}"

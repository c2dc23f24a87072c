"""Files from the web, fetched once for all runs of a machine: whole or not at all, resumed when cut off.

A file is kept under the hash of its address and of what the server says it is (ETag, or length and date), so a changed
file is another file. Two that want the same one wait for one download.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import Any, Callable

from lapis.domain.data import mirrored
from lapis.errors import UserErrorException

_CHUNK = 1 << 20
_TIMEOUT = 30.0
_TRIES = 3
DEFAULT_LIMIT = 50 << 30  # bytes that the cache may hold


class WebCache:
    def __init__(self, folder: str, mirrors: str | None = None, limit: int = DEFAULT_LIMIT) -> None:
        self._folder = folder
        self._mirrors = mirrors
        self._limit = limit

    def describe(self, url: str) -> tuple[int | None, str | None]:
        """Size and mark of what the address holds now; an error that says which of missing, denied, unreachable."""
        headers = self._ask(url, "HEAD")
        return headers["size"], headers["mark"]

    def fetch(self, url: str, progress: Callable[[int, int | None], None] = lambda done, total: None) -> str:
        """The path of a local copy of what the address holds now."""
        import fcntl

        headers = self._ask(url, "HEAD")
        key = hashlib.sha256(json.dumps([url, headers["size"], headers["mark"]]).encode()).hexdigest()
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        final = os.path.join(self._folder, key)
        with open(final + ".lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # whoever comes second finds it done
            if os.path.exists(final):
                os.utime(final)  # used now: the last to be cleared away
                return final
            self._download(url, headers, final + ".part", progress)
            os.replace(final + ".part", final)
        self._clear(keep=final)
        return final

    def _download(self, url: str, headers: dict[str, Any], part: str, progress: Callable[..., None]) -> None:
        import urllib.error

        for attempt in range(_TRIES):
            have = os.path.getsize(part) if os.path.exists(part) and headers["ranges"] else 0
            try:
                self._take(url, have, headers["size"], part, progress)
            except (OSError, urllib.error.URLError) as cut:
                if attempt == _TRIES - 1:
                    raise self._unreachable(url, cut) from cut
                time.sleep(0.2 * (attempt + 1))
                continue
            got = os.path.getsize(part)
            if headers["size"] is None or got == headers["size"]:
                return
            os.remove(part)
        raise UserErrorException(
            f"{url} said it is {headers['size']} bytes long, but sent another number each time it was asked. Nothing was "
            "kept."
        )

    def _take(self, url: str, have: int, total: int | None, part: str, progress: Callable[..., None]) -> None:
        import urllib.request

        request = urllib.request.Request(mirrored(url, self._mirrors))
        if have:
            request.add_header("Range", f"bytes={have}-")
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as reply:
            resumed = have and reply.status == 206
            with open(part, "ab" if resumed else "wb") as file:
                done = have if resumed else 0
                while True:
                    chunk = reply.read(_CHUNK)
                    if not chunk:
                        return
                    file.write(chunk)
                    done += len(chunk)
                    progress(done, total)

    def _ask(self, url: str, method: str) -> dict[str, Any]:
        import urllib.error
        import urllib.request

        request = urllib.request.Request(mirrored(url, self._mirrors), method=method)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as reply:
                said = reply.headers
        except urllib.error.HTTPError as refused:
            with refused:
                if method == "HEAD" and refused.code in (405, 501):
                    return self._ask(url, "GET")
                raise self._refused(url, refused.code) from None
        except (OSError, ValueError) as error:
            raise self._unreachable(url, error) from None
        size = said.get("Content-Length")
        mark = said.get("ETag") or said.get("Last-Modified")
        return {"size": int(size) if size else None, "mark": mark, "ranges": said.get("Accept-Ranges") == "bytes"}

    def _refused(self, url: str, status: int) -> UserErrorException:
        why = {401: "denied", 403: "denied", 404: "not there", 410: "gone"}.get(status, f"refused with status {status}")
        return UserErrorException(f"{url} is {why} (status {status}{self._through(url)}). {_WAY_OUT}")

    def _unreachable(self, url: str, error: BaseException) -> UserErrorException:
        reason = getattr(error, "reason", None) or error
        return UserErrorException(f"{url} cannot be reached ({reason}{self._through(url)}). {_WAY_OUT}")

    def _through(self, url: str) -> str:
        real = mirrored(url, self._mirrors)
        return "" if real == url else f"; asked at {real}"

    def _clear(self, keep: str) -> None:
        """Remove what was used longest ago until the cache fits its limit."""
        found = []
        for entry in os.scandir(self._folder):
            if not entry.name.endswith((".lock", ".part")):
                status = entry.stat()
                found.append((status.st_mtime, status.st_size, entry.path))
        held = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if held <= self._limit:
                return
            if path != keep:
                os.remove(path)  # a run that reads it holds it open, or has a link of its own
                held -= size


_WAY_OUT = "If the files have moved, set LAPIS_URL_MIRRORS=old-prefix=new-prefix."

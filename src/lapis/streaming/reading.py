"""Reads remote files piece by piece: from the shared cache, else from afar, and ahead of whoever reads on and on."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate
from typing import Protocol

from lapis.domain.data import PIECE, File, shown_url
from lapis.errors import AzureMLException
from lapis.files.pieces import Chunk, Piece, obtain
from lapis.streaming.kernel import Answer

AT_ONCE = 16  # pieces on their way
AHEAD = 16  # pieces, at most
_OPEN = 64  # pieces kept open
_FOLLOWED = 256  # readers whose next piece is known
_CLEAR_EVERY = 1 << 30  # bytes

Say = Callable[[str], None]


class Source(Protocol):
    """Where files of one kind come from."""

    def whole(self, file: File) -> str:
        """Where the shared cache keeps the file, once it is there whole."""

    def is_whole(self, file: File) -> bool: ...

    def fetch(self, file: File, begin: int, end: int) -> Iterable[Chunk]:
        """Part of the file as it was when it was found; an error if it is another one now."""

    def clear(self) -> None:
        """Make room in the shared cache."""


class Reader:
    """Pieces are numbered through all files, so that reading on leads from the end of a file into the next one."""

    def __init__(self, files: Sequence[File], sources: dict[str, Source], say: Say) -> None:
        self._files, self._sources, self._say = files, sources, say
        counts = [-(-(file.size or 0) // PIECE) for file in files]
        self._first = list(accumulate(counts, initial=0))  # the first piece of each file, and the number of all
        self._held: OrderedDict[int, Future[Piece]] = OrderedDict()
        self._next: OrderedDict[int, int] = OrderedDict()  # the piece that follows what was read: how many ahead
        self._said: set[str] = set()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(AT_ONCE)
        self._rooms = threading.local()
        self._clearing = 0
        self.fetched = 0  # bytes that came from afar

    def read(self, number: int, offset: int, size: int, answer: Answer) -> None:
        """Answer with bytes of a file at once, or when they have come; the reason of an error stands in the log."""
        end = min(offset + size, self._files[number].size or 0)
        if offset >= end:
            answer(b"")
            return
        first = self._first[number] + offset // PIECE
        last = self._first[number] + (end - 1) // PIECE
        pieces = [self._wanted(number, piece) for piece in range(first, last + 1)]
        start = (first - self._first[number]) * PIECE

        def tell() -> None:
            room = self._room(end - offset)
            try:
                for place, piece in enumerate(pieces):
                    at = start + place * PIECE
                    begin, stop = max(offset, at), min(end, at + PIECE)
                    piece.result().read_into(room[begin - offset : stop - offset], begin - at)
            except Exception as error:
                self._explain(self._files[number], error)
                answer(OSError(errno.EIO, ""))
                return
            answer(room)

        _when_done(pieces, tell)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for source in self._sources.values():
            source.clear()

    def _wanted(self, number: int, piece: int) -> Future[Piece]:
        with self._lock:
            found = self._get(number, piece)
            for further in self._ahead(piece):
                while further >= self._first[number + 1]:
                    number += 1
                self._get(number, further)
            return found

    def _get(self, number: int, piece: int) -> Future[Piece]:
        held = self._held.get(piece)
        if held is None:
            held = self._held[piece] = self._threads.submit(self._obtain, number, piece)
        self._held.move_to_end(piece)
        while len(self._held) > _OPEN:
            self._held.popitem(last=False)
        return held

    def _ahead(self, piece: int) -> range:
        """What to fetch beyond a piece: nothing for who jumps about, ever more for who has read what lies before."""
        if piece + 1 in self._next:
            return range(0)  # more of the same piece
        window = self._next.pop(piece, None)
        window = 0 if window is None else min(max(1, 2 * window), AHEAD)
        self._next[piece + 1] = window
        while len(self._next) > _FOLLOWED:
            self._next.popitem(last=False)
        return range(piece + 1, min(piece + 1 + window, self._first[-1]))

    def _obtain(self, number: int, piece: int) -> Piece:
        file = self._files[number]
        source = self._sources[file.kind]
        begin = (piece - self._first[number]) * PIECE
        end = min(begin + PIECE, file.size or 0)

        def fetch() -> Iterable[Chunk]:
            for chunk in source.fetch(file, begin, end):
                yield chunk
                with self._lock:
                    self.fetched += len(chunk)

        whole = source.whole(file)
        if source.is_whole(file):
            with contextlib.suppress(FileNotFoundError):  # cleared away at this very moment
                return Piece(os.open(whole, os.O_RDONLY), begin)
        try:
            found = obtain(whole, begin, end - begin, fetch)
        except BaseException:
            with self._lock:
                self._held.pop(piece, None)  # whoever asks next may have better luck
            raise
        self._clear()
        return found

    def _room(self, size: int) -> memoryview:
        """Memory of this thread, used again and again: to get new one for each read would cost as much as reading."""
        if len(getattr(self._rooms, "room", b"")) < size:
            self._rooms.room = memoryview(bytearray(size))
        room: memoryview = self._rooms.room
        return room[:size]

    def _explain(self, file: File, error: Exception) -> None:
        """Once: the kernel and the script may ask again and again."""
        reason = error.message if isinstance(error, AzureMLException) else f"{type(error).__name__}: {error}"
        text = f"{file.path} ({shown_url(file.place)}) could not be read, so reading it gave an I/O error. {reason}"
        with self._lock:
            if text in self._said:
                return
            self._said.add(text)
        self._say(text)

    def _clear(self) -> None:
        with self._lock:
            if self.fetched - self._clearing < _CLEAR_EVERY:
                return
            self._clearing = self.fetched
        for source in self._sources.values():
            source.clear()


def _when_done(futures: Sequence[Future[Piece]], then: Callable[[], None]) -> None:
    """Call `then` after all of them, at once if they are."""
    for future in futures:
        if not future.done():
            future.add_done_callback(lambda _: _when_done(futures, then))
            return
    then()

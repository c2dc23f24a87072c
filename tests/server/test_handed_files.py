"""Files that are handed over open: copied whole, under the hash of what was copied, or not at all; never by a path."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lapis.client.handing_over import handed_over
from lapis.errors import AzureMLException, UserErrorException
from lapis.machine import unix_sockets
from lapis.server.handed_files import HandedFiles
from lapis.server.store.blobs import BlobFolder
from lapis.testing import until

CONTENT = os.urandom(20 << 20)


@pytest.fixture
def blobs(tmp_path: Path) -> BlobFolder:
    return BlobFolder(str(tmp_path / "blobs"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def door(tmp_path: Path) -> Iterator[tuple[str, HandedFiles]]:
    path = str(tmp_path / ("a folder with a name that is too long for a socket " * 3) / "door" / "files")
    taker = HandedFiles(path)
    taker.start()
    yield path, taker
    taker.stop()


def left_in(blobs: BlobFolder) -> list[str]:
    return os.listdir(os.path.join(blobs.root, "incoming"))


# -- copied


def test_a_file_is_copied_in_and_out_as_it_is(blobs: BlobFolder, source: Path, tmp_path: Path) -> None:
    with open(source, "rb") as file:
        stored = blobs.copy_in(file.fileno())
    assert stored == (hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
    for _ in range(2):
        with open(tmp_path / "target", "wb") as target:
            assert blobs.copy_out(stored[0], target.fileno())
        assert (tmp_path / "target").read_bytes() == CONTENT
    assert blobs.read_whole(stored[0]) == CONTENT and left_in(blobs) == []


def test_what_changes_while_it_is_copied_has_the_hash_of_what_was_copied(blobs: BlobFolder, source: Path) -> None:
    stop = threading.Event()

    def change() -> None:
        with open(source, "r+b", buffering=0) as file:
            while not stop.is_set():
                for at in range(0, len(CONTENT), 1 << 20):
                    os.pwrite(file.fileno(), os.urandom(64), at)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        with open(source, "rb") as file:
            copied = [blobs.copy_in(file.fileno()) for _ in range(5)]
    finally:
        stop.set()
        changing.join()
    for stored in copied:
        assert stored is not None
        assert hashlib.sha256(blobs.read_whole(stored[0])).hexdigest() == stored[0]


def test_another_content_than_was_announced_is_refused(blobs: BlobFolder, source: Path) -> None:
    with open(source, "rb") as file, pytest.raises(UserErrorException, match="Nothing was stored"):
        blobs.copy_in(file.fileno(), "0" * 64)
    assert left_in(blobs) == []


def test_what_is_no_file_of_this_disk_is_not_copied(blobs: BlobFolder, source: Path, tmp_path: Path) -> None:
    pipe, other_end = os.pipe()
    opened = [pipe, other_end]
    opened += [os.open(path, os.O_RDONLY) for path in ("/dev/zero", "/proc/self/environ", str(tmp_path))]
    opened += [os.open(source, os.O_WRONLY), os.open(source, os.O_PATH)]
    try:
        assert [blobs.copy_in(each) for each in opened] == [None] * len(opened)
        with open(source, "rb") as file:
            stored = blobs.copy_in(file.fileno())
        assert stored is not None
        assert [blobs.copy_out(stored[0], each) for each in opened] == [False] * len(opened)
        with open(tmp_path / "to read", "w+"), open(tmp_path / "to read") as no_writing:
            assert not blobs.copy_out(stored[0], no_writing.fileno())
    finally:
        for each in opened:
            os.close(each)
    assert left_in(blobs) == [] and source.read_bytes() == CONTENT


def test_a_blob_that_somebody_changed_is_not_handed_out(blobs: BlobFolder, source: Path, tmp_path: Path) -> None:
    with open(source, "rb") as file:
        stored = blobs.copy_in(file.fileno())
    assert stored is not None
    with open(blobs.path(stored[0]), "r+b") as blob:
        blob.write(b"x")
    with open(tmp_path / "target", "wb") as target, pytest.raises(AzureMLException, match="is damaged"):
        blobs.copy_out(stored[0], target.fileno())
    assert blobs.missing([stored[0]]) == [stored[0]]


# -- handed over


def test_a_file_is_taken_once_and_by_its_ticket_alone(door: tuple[str, HandedFiles], source: Path) -> None:
    path, taker = door
    with open(source, "rb") as file, handed_over(path, file.fileno()) as ticket:
        assert taker.take(str(source)) is None and taker.take("") is None
        taken = taker.take(ticket)
        assert taken is not None and os.fstat(taken).st_ino == os.fstat(file.fileno()).st_ino
        assert not os.get_inheritable(taken)
        assert taker.take(ticket) is None
        os.close(taken)


def test_who_leaves_takes_his_file_along(door: tuple[str, HandedFiles], source: Path) -> None:
    path, taker = door
    with open(source, "rb") as file:
        with handed_over(path, file.fileno()) as ticket:
            pass
        until(lambda: not taker._tickets)
        assert taker.take(ticket) is None
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(50):
            with handed_over(path, file.fileno()):
                pass
        until(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_who_comes_without_a_ticket_or_with_anothers_is_shown_out(door: tuple[str, HandedFiles], source: Path) -> None:
    path, taker = door
    with open(source, "rb") as file, handed_over(path, file.fileno()) as ticket:
        for said in (b"x", b"../../token", ticket.encode()):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connected:
                with unix_sockets.short(path) as reachable:
                    connected.connect(reachable)
                unix_sockets.send_file(connected, said, file.fileno())
                assert connected.recv(1) == b""
        taken = taker.take(ticket)
        assert taken is not None
        os.close(taken)


def test_the_door_is_never_blocked_by_those_who_stand_in_it(door: tuple[str, HandedFiles], source: Path) -> None:
    path, taker = door
    silent = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(100)]
    try:
        for each in silent:
            with unix_sockets.short(path) as reachable:
                each.connect(reachable)
        with open(source, "rb") as file, handed_over(path, file.fileno()) as ticket:
            taken = taker.take(ticket)
            assert taken is not None
            os.close(taken)
    finally:
        for each in silent:
            each.close()

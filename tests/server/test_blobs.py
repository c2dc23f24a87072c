"""Blobs in files of their own and in packs: one promise, kept through kill -9, damage and many writers at once."""

from __future__ import annotations

import hashlib
import logging
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lapis.domain.packs import SMALL
from lapis.errors import AzureMLException, NotFound, UserErrorException
from lapis.server.store.blobs import BlobFolder


def named(*contents: bytes) -> list[tuple[str, memoryview]]:
    return [(hashlib.sha256(content).hexdigest(), memoryview(content)) for content in contents]


def many(label: str, count: int = 50) -> list[tuple[str, memoryview]]:
    return named(*(f"{label} {number}".encode() * (number + 1) for number in range(count)))


def hashes(blobs: list[tuple[str, memoryview]]) -> list[str]:
    return [digest for digest, _ in blobs]


def read(blobs: BlobFolder, digest: str) -> bytes:
    return blobs.read_whole(digest)


def packs_in(root: Path) -> list[Path]:
    return sorted((root / "packs").iterdir())


def loose_in(root: Path) -> list[Path]:
    return [path for path in root.glob("??/*") if path.is_file()]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


def test_many_small_blobs_that_come_together_lie_in_one_file(root: Path) -> None:
    blobs = BlobFolder(str(root))
    given = many("a")
    assert blobs.missing(hashes(given)) == hashes(given)
    assert blobs.put_all(given) == 0
    assert len(packs_in(root)) == 1 and loose_in(root) == []
    assert blobs.missing(hashes(given)) == []
    for digest, content in given:
        assert (blobs.has(digest), blobs.size(digest), read(blobs, digest)) == (True, len(content), content)


def test_few_blobs_and_large_ones_are_files_of_their_own(root: Path) -> None:
    blobs = BlobFolder(str(root))
    (large,) = named(b"x" * (SMALL + 1))
    blobs.put_all(many("few", 3))
    assert packs_in(root) == [] and len(loose_in(root)) == 3
    blobs.put_all([*many("many"), large])
    assert len(packs_in(root)) == 1
    assert read(blobs, large[0]) == large[1]
    assert Path(blobs.path(large[0])).is_file()


def test_a_later_server_finds_what_lies_in_packs_and_what_does_not(root: Path) -> None:
    blobs = BlobFolder(str(root))
    first, second, few = many("first"), many("second"), many("few", 2)
    for each in (first, second, few):
        blobs.put_all(each)
    again = BlobFolder(str(root))
    everything = [*first, *second, *few]
    assert again.missing(hashes(everything)) == []
    assert all(read(again, digest) == content for digest, content in everything)
    assert len(again.packs_of(hashes(first))) == 1
    assert len(again.packs_of(hashes(everything))) == 2
    assert again.packs_of(hashes(few)) == []


def test_a_folder_of_the_release_before_packs_is_read_and_added_to(root: Path) -> None:
    old = many("old")
    for digest, content in old:
        place = root / digest[:2] / digest[2:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    blobs = BlobFolder(str(root))
    assert blobs.missing([*hashes(old), "0" * 64]) == ["0" * 64]
    assert blobs.put_all(old) == len(old), "what lies here already is not stored a second time"
    assert packs_in(root) == []
    blobs.put_all([*old, *many("new")])
    assert len(loose_in(root)) == len(old) and len(packs_in(root)) == 1
    assert all(read(blobs, digest) == content for digest, content in [*old, *many("new")])


def test_the_same_blobs_sent_again_are_stored_once(root: Path) -> None:
    blobs = BlobFolder(str(root))
    assert [blobs.put_all(many("a")), blobs.put_all(many("a")), blobs.put_all(many("a", 60))] == [0, 50, 50]
    assert len(packs_in(root)) == 1 and len(loose_in(root)) == 10


def test_one_wrong_hash_among_many_blobs_stores_none_of_them(root: Path) -> None:
    blobs = BlobFolder(str(root))
    given = many("a")
    with pytest.raises(UserErrorException, match="Nothing was stored"):
        blobs.put_all([*given, ("0" * 64, memoryview(b"something else"))])
    assert blobs.missing(hashes(given)) == hashes(given)
    assert [path for path in root.rglob("*") if path.is_file()] == []


def test_an_empty_blob_can_lie_in_a_pack(root: Path) -> None:
    blobs = BlobFolder(str(root))
    (empty,) = named(b"")
    blobs.put_all([empty, *many("a")])
    assert len(packs_in(root)) == 1 and read(BlobFolder(str(root)), empty[0]) == b""


def test_what_is_not_here_is_said(root: Path) -> None:
    blobs = BlobFolder(str(root))
    blobs.put_all(many("a"))
    for ask in (blobs.read, blobs.size):
        with pytest.raises(NotFound, match="No blob 0000"):
            ask("0" * 64)


# -- damage


def test_a_damaged_blob_is_named_and_counts_as_missing_until_it_is_sent_again(root: Path) -> None:
    blobs = BlobFolder(str(root))
    given = many("a")
    blobs.put_all(given)
    (pack,) = packs_in(root)
    whole = pack.read_bytes()
    digest, content = given[30]
    at = whole.index(bytes(content))
    pack.write_bytes(whole[:at] + b"?" + whole[at + 1 :])
    with pytest.raises(AzureMLException, match=f"{digest} is damaged on the server's disk, in pack {pack.name}"):
        blobs.read(digest)
    assert blobs.missing(hashes(given)) == [digest], "its neighbours are whole"
    blobs.put_all([given[30]])
    assert read(blobs, digest) == content
    assert read(BlobFolder(str(root)), digest) == content, "a later server takes the good one too"


@pytest.mark.parametrize("size", [100, 5 << 20], ids=["small", "large"])
def test_bytes_that_are_not_those_of_the_hash_are_put_aside_and_never_given_whole(root: Path, size: int) -> None:
    blobs = BlobFolder(str(root))
    digest, _ = blobs.put_bytes(b"w" * size)
    path = Path(blobs.path(digest))
    path.chmod(0o600)
    path.write_bytes(b"W" + b"w" * (size - 1))
    given = b""
    with pytest.raises(AzureMLException, match=f"{digest} is damaged on the server's disk"):
        for chunk in blobs.read(digest):
            given += chunk
    assert len(given) < size, "whoever counts finds that some are lacking"
    assert blobs.missing([digest]) == [digest] and (root / "damaged" / digest).exists()
    blobs.put_bytes(b"w" * size)
    assert blobs.read_whole(digest) == b"w" * size


@pytest.mark.parametrize("start", [0, 1, 1 << 20, (3 << 20) - 1, 3 << 20, 9 << 20])
def test_a_blob_is_read_from_where_one_wants(root: Path, start: int) -> None:
    blobs = BlobFolder(str(root))
    content = random.Random(1).randbytes(3 << 20)
    digest, _ = blobs.put_bytes(content)
    assert b"".join(blobs.read(digest, start)) == content[start:]


@pytest.mark.parametrize("left", [0, 100, -1])
def test_a_pack_that_is_not_whole_is_said_and_what_it_held_is_stored_anew(
    root: Path, left: int, caplog: pytest.LogCaptureFixture
) -> None:
    given, other = many("a"), many("b")
    blobs = BlobFolder(str(root))
    blobs.put_all(given)
    (pack,) = packs_in(root)
    blobs.put_all(other)
    pack.write_bytes(pack.read_bytes()[:left])
    with caplog.at_level(logging.ERROR):
        again = BlobFolder(str(root))
    assert f"Pack {pack.name} is damaged" in caplog.text
    assert again.missing(hashes([*given, *other])) == hashes(given)
    again.put_all(given)
    assert all(read(BlobFolder(str(root)), digest) == content for digest, content in [*given, *other])


def test_a_pack_that_was_removed_is_noticed_when_it_is_read(root: Path) -> None:
    blobs = BlobFolder(str(root))
    given = many("a")
    blobs.put_all(given)
    assert read(blobs, given[0][0]) == given[0][1]
    packs_in(root)[0].unlink()
    for digest in hashes(given)[:2]:
        with pytest.raises(AzureMLException, match="is damaged on the server's disk"):
            blobs.read(digest)
    assert blobs.missing(hashes(given)[:3]) == hashes(given)[:2]


FULL = """
import hashlib, resource, sys
from lapis.server.store.blobs import BlobFolder
blobs = BlobFolder(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))  # the disk takes a part, then no more
content = [bytes([number]) * 1000 for number in range(200)]
given = [(hashlib.sha256(each).hexdigest(), memoryview(each)) for each in content]
try:
    blobs.put_all(given)
except OSError as error:
    print(error.strerror, len(blobs.missing(digest for digest, _ in given)))
"""


def test_a_pack_that_the_disk_does_not_take_leaves_nothing_behind(root: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL, str(root)], capture_output=True, text=True, check=True)
    assert done.stdout == "File too large 200\n"
    assert [path for path in root.rglob("*") if path.is_file()] == []


# -- kill -9

WRITER = """
import hashlib, os, sys
from lapis.server.store.blobs import BlobFolder
blobs = BlobFolder(sys.argv[1])
for batch in range(10**9):
    content = [os.urandom(20_000) for _ in range(100)]
    given = [(hashlib.sha256(each).hexdigest(), memoryview(each)) for each in content]
    print("begun", flush=True)
    blobs.put_all(given)
    print("stored", " ".join(digest for digest, _ in given), flush=True)
"""


@pytest.mark.parametrize("seed", range(5))
def test_kill_9_in_the_middle_leaves_whole_blobs_or_none(seed: int, root: Path) -> None:
    chance = random.Random(seed)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(root)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    lines = [writer.stdout.readline() for _ in range(2 * chance.randint(1, 5) + 1)]
    threading.Event().wait(chance.uniform(0, 0.01))  # somewhere between "begun" and the end of the next batch
    os.kill(writer.pid, signal.SIGKILL)
    lines += writer.communicate()[0].splitlines()
    stored = [
        digest
        for line in lines
        if line.startswith("stored") and len(line.split()) == 101
        for digest in line.split()[1:]
    ]
    blobs = BlobFolder(str(root))
    assert stored and blobs.missing(stored) == [], "what was acknowledged is there"
    for digest in [*stored, *all_packed(blobs)]:
        assert hashlib.sha256(read(blobs, digest)).hexdigest() == digest
    assert list((root / "incoming").iterdir()) == [], "what was half written is cleared away"


def all_packed(blobs: BlobFolder) -> Iterator[str]:
    yield from blobs._packs._pack_of


# -- many at once


def test_writers_of_the_same_blobs_and_readers_do_not_disturb_each_other(root: Path) -> None:
    blobs = BlobFolder(str(root))
    batches = [many("shared", 40 + extra) for extra in range(8)]
    everything = hashes(batches[-1])
    faults: list[BaseException] = []
    done = threading.Event()

    def write(batch: list[tuple[str, memoryview]]) -> None:
        try:
            blobs.put_all(batch)
            assert blobs.missing(hashes(batch)) == []
        except BaseException as fault:
            faults.append(fault)

    def look() -> None:
        try:
            while not done.is_set():
                for digest in everything:
                    if blobs.has(digest):
                        assert hashlib.sha256(read(blobs, digest)).hexdigest() == digest
        except BaseException as fault:
            faults.append(fault)

    readers = [threading.Thread(target=look) for _ in range(2)]
    writers = [threading.Thread(target=write, args=(batch,)) for batch in batches * 3]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert faults == []
    again = BlobFolder(str(root))
    assert all(read(again, digest) == content for digest, content in batches[-1])

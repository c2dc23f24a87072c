"""Remote files under a real mount: read piece by piece, ahead, once; a fault is an I/O error that says why."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Dataset
from azureml.exceptions import UserErrorException
from lapis.domain.data import PIECE, WEB, File
from lapis.files import streaming
from lapis.machine import mounts
from lapis.machine.processes import started
from lapis.testing import until
from tests.needs import need, need_fuse
from tests.web import Web, serving

CONTENT = os.urandom(3 * PIECE + 12345)
PIECES = [f"bytes={begin}-{min(begin + PIECE, len(CONTENT)) - 1}" for begin in range(0, len(CONTENT), PIECE)]


@pytest.fixture(autouse=True)
def streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of its own, where everything is streamed that can be; nothing is left mounted."""
    need_fuse()
    monkeypatch.setenv("LAPIS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LAPIS_MOUNT", "stream")
    yield tmp_path / "home" / "streams"
    left = mounted(tmp_path)
    mounts.detach_below(str(tmp_path))
    assert left == []


def mounted(below: Path) -> list[str]:
    return mounts.points_below(str(below))


def put(web: Web, path: str = "/large.bin", content: bytes = CONTENT, **more: Any) -> str:
    return web.put(path, content, **{"etag": '"v1"', **more})  # a name and not a hash: that of a large file takes long


def fetched(web: Web, path: str = "/large.bin") -> list[str]:
    return sorted(str(span) for span in web.gets(path))


def only_file(context: Any) -> str:
    (found,) = [os.path.join(where, name) for where, _, names in os.walk(context.mount_point) for name in names]
    return found


# -- reading


def test_a_file_is_read_without_being_downloaded_and_fetched_once_for_all(web: Web, streams: Path) -> None:
    dataset = Dataset.File.from_files(put(web))
    for _ in "ab":
        with dataset.mount() as context:
            assert mounted(streams)
            assert Path(only_file(context)).read_bytes() == CONTENT
    assert fetched(web) == sorted(PIECES)
    assert [file.suffix for file in (streams.parent / "cache" / "web").iterdir()] == [".piece"] * len(PIECES)


def test_only_what_is_read_is_fetched(web: Web) -> None:
    with Dataset.File.from_files(put(web)).mount() as context, open(only_file(context), "rb") as file:
        assert web.gets("/large.bin") == []
        file.seek(2 * PIECE + 5)
        assert file.read(100) == CONTENT[2 * PIECE + 5 :][:100]
        assert web.gets("/large.bin") == [PIECES[2]]
        file.seek(PIECE - 50)
        assert file.read(100) == CONTENT[PIECE - 50 :][:100]
    assert fetched(web) == sorted(PIECES[:3])


def test_who_reads_on_and_on_is_fetched_for_ahead_and_into_the_next_file(web: Web) -> None:
    urls = [put(web, f"/{name}.bin") for name in "abc"]
    with Dataset.File.from_files(urls).mount() as context:
        folder = Path(context.mount_point, f"http%3A/%2F127.0.0.1%3A{web.port}")
        with open(folder / "a.bin", "rb", buffering=0) as file:
            for begin in range(0, 3 * PIECE, PIECE):
                file.seek(begin)
                file.read(1)
        until(lambda: PIECES[0] in web.gets("/b.bin"))
        assert web.gets("/c.bin") == []


def test_small_and_large_files_keep_their_names_sizes_and_folders(web: Web) -> None:
    names = ["/a/plain.txt", "/a/b/100%25.txt", "/gr%C3%BC%C3%9Fe.txt"]
    dataset = Dataset.File.from_files([web.put(name, name.encode()) for name in names])
    with dataset.mount() as context:
        for name, path in zip(names, dataset.to_path(), strict=True):
            found = Path(context.mount_point + path)
            assert found.read_text() == name
            assert (found.stat().st_size, found.resolve().name) == (len(name), os.path.basename(path))


def test_a_file_may_be_mapped_into_memory_and_not_be_written_to(web: Web) -> None:
    code = """
import mmap, sys
with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
    print(mapped[int(sys.argv[2]) - 3:][:6].hex())
"""
    with Dataset.File.from_files(put(web)).mount() as context:
        command = [sys.executable, "-c", code, only_file(context), str(PIECE)]  # the web server lives in this process
        assert subprocess.check_output(command, text=True).strip() == CONTENT[PIECE - 3 : PIECE + 3].hex()
        with pytest.raises(OSError) as refused:
            open(only_file(context), "r+b")
        assert refused.value.errno == errno.EROFS


def test_a_large_folder_is_listed_whole(web: Web, tmp_path: Path) -> None:
    files = [File(f"/many/{number:05}.bin", WEB, put(web, "/x", b"x"), 1, '"v1"') for number in range(3000)]
    stream = streaming._start(files, "many", str(tmp_path / "m"), lambda name: None, None, lambda: None)  # type: ignore
    try:
        assert sorted(os.listdir(stream.point + "/many")) == [f"{number:05}.bin" for number in range(3000)]
        assert os.statvfs(stream.point).f_files > 3000
        assert not os.path.exists(stream.point + "/many/none")
    finally:
        stream.close()


def test_a_download_takes_what_was_streamed_and_a_stream_what_was_downloaded(
    web: Web, monkeypatch: pytest.MonkeyPatch, streams: Path
) -> None:
    dataset = Dataset.File.from_files(put(web))
    with dataset.mount() as context, open(only_file(context), "rb") as file:
        file.seek(PIECE)
        file.read(1)
    assert web.gets("/large.bin") == [PIECES[1]]
    assert Path(dataset.download()[0]).read_bytes() == CONTENT
    assert fetched(web) == sorted(PIECES)
    assert not list((streams.parent / "cache" / "web").glob("*.piece"))
    with dataset.mount() as context:
        assert Path(only_file(context)).read_bytes() == CONTENT
    assert len(web.gets("/large.bin")) == len(PIECES)


# -- what goes wrong


def io_error(path: str, begin: int) -> None:
    with open(path, "rb", buffering=0) as file:
        file.seek(begin)
        with pytest.raises(OSError) as failed:
            file.read(10)
    assert failed.value.errno == errno.EIO


def test_a_file_that_changes_while_it_is_read_is_an_error_and_never_a_mixture(
    web: Web, capfd: pytest.CaptureFixture[str]
) -> None:
    url = put(web)
    with Dataset.File.from_files(url).mount() as context:
        path = only_file(context)
        with open(path, "rb") as file:
            assert file.read(10) == CONTENT[:10]
        put(web, content=bytes(len(CONTENT)), etag='"v2"')
        io_error(path, 2 * PIECE)
        io_error(path, 2 * PIECE)
        with open(path, "rb") as file:
            assert file.read(PIECE) == CONTENT[:PIECE], "what had come before is still what it was"
    said = capfd.readouterr().err
    assert f"({url}) could not be read, so reading it gave an I/O error. {url} changed while it was read" in said
    assert said.count("could not be read") == 1


def test_an_answer_that_is_cut_off_is_asked_for_again_from_there(web: Web) -> None:
    with Dataset.File.from_files(put(web, cut_after=PIECE // 2, cuts=2)).mount() as context:
        with open(only_file(context), "rb") as file:
            assert file.read(PIECE) == CONTENT[:PIECE]
    assert f"bytes={PIECE // 2}-{PIECE - 1}" in web.gets("/large.bin")


def test_a_server_that_is_gone_is_an_error_with_its_reason_and_one_that_comes_back_is_read_again(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with serving() as web:
        url, port = put(web), web.port
        context = Dataset.File.from_files(url).mount().start()
        with open(only_file(context), "rb") as file:
            file.read(10)
    try:
        io_error(only_file(context), 2 * PIECE)
        assert f"I/O error. {url} cannot be reached (" in capfd.readouterr().err
        with serving(port) as web:
            put(web)

            def comes() -> bool:
                with open(only_file(context), "rb") as file:
                    file.seek(2 * PIECE)
                    try:
                        return file.read(10) == CONTENT[2 * PIECE :][:10]
                    except OSError:
                        return False

            until(comes)
    finally:
        context.stop()


def test_files_that_cannot_be_had_in_parts_are_downloaded_beside_the_others(web: Web) -> None:
    put(web, "/a.bin")
    urls = [put(web), web.put("/whole.txt", b"w", ranges=False), web.put("/weak.txt", b"k", etag='W/"1"')]
    dataset = Dataset.File.from_files(urls)
    with dataset.mount() as context:
        linked = [os.path.islink(context.mount_point + path) for path in dataset.to_path()]
        assert linked == [True, False, False]
        assert [web.asked.count(("HEAD", path, None)) for path in ("/large.bin", "/whole.txt")] == [2, 3]
        assert [Path(context.mount_point + path).read_bytes() for path in dataset.to_path()] == [CONTENT, b"w", b"k"]


def test_where_nothing_can_be_mounted_files_are_downloaded_and_that_is_said(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "DEVICE", "/dev/no-fuse-here")
    said: list[str] = []
    files = Dataset.File.from_files(put(web))._files()
    offered = streaming.offer(files, "input 'x'", str(tmp_path), lambda name: None, say=said.append)  # type: ignore
    assert [file.place for file in offered.files] == [files[0].place] and offered.stream is None
    assert said == [
        "input 'x': 1 remote file, 25.2 MB: downloaded before the script starts, as it cannot be streamed "
        "(LAPIS_MOUNT is stream): this machine has no /dev/no-fuse-here"
    ]
    with Dataset.File.from_files(put(web)).mount() as context:
        assert Path(only_file(context)).read_bytes() == CONTENT and not os.path.islink(only_file(context))


def test_a_word_that_means_nothing_is_refused(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPIS_MOUNT", "sream")
    with pytest.raises(UserErrorException, match="LAPIS_MOUNT='sream' cannot be used. Known: auto, download, stream."):
        Dataset.File.from_files(put(web)).mount().start()


# -- the end

HOLD = """
import sys
from azureml.core import Dataset
context = Dataset.File.from_files(sys.argv[1]).mount(sys.argv[2]).start()
print("mounted", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(web: Web, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has mounted a file to `there`."""
    command = [sys.executable, "-c", HOLD, put(web), str(tmp_path / "there")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "mounted\n"
        yield process
        process.kill()


def serving_process(streams: Path) -> int:
    """The process behind the only mount."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                ours = f"LAPIS_HOME={streams.parent}".encode() in (entry / "environ").read_bytes()
                if ours and b"lapis.streaming" in (entry / "cmdline").read_bytes():
                    return int(entry.name)
            except OSError:
                continue
    raise AssertionError("nobody serves it")


def test_a_mount_and_its_process_go_when_the_process_that_asked_for_it_is_killed(
    holder: subprocess.Popen[str], streams: Path
) -> None:
    process = serving_process(streams)
    assert mounted(streams)
    holder.kill()
    until(lambda: started(process) is None)
    assert mounted(streams) == []


def test_a_mount_whose_process_was_killed_fails_and_is_taken_away_by_the_next(
    holder: subprocess.Popen[str], streams: Path, web: Web, tmp_path: Path
) -> None:
    process = serving_process(streams)
    os.kill(process, signal.SIGKILL)
    until(lambda: started(process) is None)
    (stale,) = mounted(streams)
    with pytest.raises(OSError) as failed:
        os.statvfs(stale)
    assert failed.value.errno in (errno.ENOTCONN, errno.ECONNABORTED)
    with Dataset.File.from_files(put(web, "/b.bin")).mount():
        assert stale not in mounted(streams)


def test_a_reader_that_waits_can_be_killed(web: Web, streams: Path) -> None:
    gate = threading.Event()
    with Dataset.File.from_files(put(web, gate=gate)).mount() as context:
        reader = subprocess.Popen(["cat", only_file(context)], stdout=subprocess.DEVNULL)
        until(lambda: web.gets("/large.bin"))
        reader.kill()
        assert reader.wait(10) == -signal.SIGKILL
        gate.set()


def test_a_user_who_is_not_root_mounts_through_fusermount(tmp_path: Path) -> None:
    need("fusermount3", "fuse3")
    if os.geteuid() == 0:  # as fuse3's rule for udev does at a real start; a container keeps what its image had
        os.chmod(mounts.DEVICE, 0o666)
    code = """
import os, shutil, socket, subprocess, sys, threading  # now: another user may not read where they lie
from lapis.machine import mounts
from lapis.streaming.kernel import Mounted
point = sys.argv[1]
if os.geteuid() == 0:
    for path in (os.path.dirname(point), point):
        os.chown(path, 65534, 65534)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
print(mounts.impossible())
device = mounts.attach(point)
read = lambda file, offset, size, answer: answer(b"hello"[offset:offset + size])
serving = threading.Thread(target=Mounted(device, [("/a/b.txt", 5)], read).serve)
serving.start()
print(open(point + "/a/b.txt").read(), mounts.points_below(os.path.dirname(point)) == [point], flush=True)
mounts.detach(point)
serving.join(10)
print(serving.is_alive(), mounts.points_below(os.path.dirname(point)))
"""
    root = Path(tempfile.mkdtemp(prefix="lapis-user-"))  # where such a user may go
    point = root / "mount"
    point.mkdir()
    try:
        done = subprocess.run([sys.executable, "-c", code, point], capture_output=True, text=True, timeout=30)
        assert done.stdout.split("\n") == ["None", "hello True", "False []", ""], done.stderr
    finally:
        mounts.detach(str(point))
        shutil.rmtree(root)

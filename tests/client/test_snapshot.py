"""A snapshot holds what the user means to send, nothing from elsewhere, and arrives as it was sent."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lapis.client import snapshot
from lapis.client.snapshot import Plan, cache_path_for, hash_plan, lay_out, scan, warning_for
from lapis.domain.tree import Tree, TreeEntry
from lapis.errors import SnapshotException, UserErrorException
from tests.memory import PEAK


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def write(folder: Path, *names: str, content: str = "x") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def sent(plan: Plan) -> list[str]:
    return [file.path for file in plan.files]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def hours_later() -> int:
    return time.time_ns() + 3600 * 10**9


class TestWhatIsSent:
    def test_every_file_is_sent_under_its_relative_name(self, folder: Path) -> None:
        write(folder, "train.py", "src/model.py", ".config", "été/日本語.txt")
        assert sent(scan(folder)) == [".config", "src/model.py", "train.py", "été/日本語.txt"]
        assert scan(folder).skipped == []
        assert scan(folder).total_size == 4

    def test_the_amlignore_leaves_files_out_and_says_why(self, folder: Path) -> None:
        write(folder, "train.py", "data/a.csv", "data/b.csv", "x.log", "keep.log")
        write(folder, ".amlignore", content="data/\n*.log\n!keep.log\n")
        plan = scan(folder)
        assert sent(plan) == [".amlignore", "keep.log", "train.py"]
        assert plan.skipped == [
            ("data/", "rule 'data/' of .amlignore"),
            ("x.log", "rule '*.log' of .amlignore"),
        ]

    def test_the_gitignore_counts_where_there_is_no_amlignore(self, folder: Path) -> None:
        write(folder, "a", "b")
        write(folder, ".gitignore", content="a")
        assert sent(scan(folder)) == [".gitignore", "b"]
        write(folder, ".amlignore", content="b")
        assert sent(scan(folder)) == [".amlignore", ".gitignore", "a"]

    def test_ignore_files_of_lower_folders_are_not_read(self, folder: Path) -> None:
        write(folder, "sub/a")
        write(folder, "sub/.gitignore", "sub/.amlignore", content="a")
        assert "sub/a" in sent(scan(folder))

    def test_a_caller_may_ask_that_no_ignore_file_counts(self, folder: Path) -> None:
        write(folder, ".amlignore", content="*")
        assert sent(scan(folder, ignore_files=())) == [".amlignore"]

    def test_an_ignore_file_that_is_not_utf_8_is_refused(self, folder: Path) -> None:
        (folder / ".amlignore").write_text("data/", encoding="utf-16")
        with pytest.raises(SnapshotException, match="UTF-8"):
            scan(folder)

    def test_clutter_and_virtual_environments_are_skipped_and_reported(self, folder: Path) -> None:
        write(
            folder,
            "train.py",
            "a.pyc",
            ".git/HEAD",
            "lib/__pycache__/a.py",
            "env/pyvenv.cfg",
            "env/bin/python",
        )
        plan = scan(folder)
        assert sent(plan) == ["train.py"]
        assert plan.skipped == [
            (".git/", "'.git' is skipped by default"),
            ("a.pyc", "'*.pyc' is skipped by default"),
            ("env/", "a virtual environment is skipped by default"),
            ("lib/__pycache__/", "'__pycache__' is skipped by default"),
        ]

    def test_an_explicit_negation_re_includes_what_is_skipped_by_default(self, folder: Path) -> None:
        write(folder, "a.pyc", ".git/HEAD", "node_modules/x", "env/pyvenv.cfg", "env/x", ".hg/x")
        write(folder, ".amlignore", content="!*.pyc\n!.git\n!node_modules/\n!/env\n")
        assert sent(scan(folder)) == [
            ".amlignore",
            ".git/HEAD",
            "a.pyc",
            "env/pyvenv.cfg",
            "env/x",
            "node_modules/x",
        ]

    def test_re_including_all_folders_to_look_into_them_does_not_send_clutter(self, folder: Path) -> None:
        write(folder, "a/b.py", "a/b.txt", ".git/hook.py", "env/pyvenv.cfg", "env/lib.py")
        write(folder, ".amlignore", content="*\n!*/\n!*.py\n")
        assert sent(scan(folder)) == ["a/b.py"]

    def test_the_folder_itself_may_be_a_virtual_environment(self, folder: Path) -> None:
        write(folder, "pyvenv.cfg")
        assert sent(scan(folder)) == ["pyvenv.cfg"]

    def test_an_empty_folder_sends_nothing(self, folder: Path) -> None:
        assert hash_plan(scan(folder)) == Tree([])

    def test_a_folder_that_is_not_there_is_refused_by_name(self, folder: Path) -> None:
        write(folder, "file")
        for name in ("missing", "file"):
            with pytest.raises(UserErrorException, match=name):
                scan(folder / name)

    def test_two_hundred_folders_deep_is_no_problem(self, folder: Path) -> None:
        deep = "d/" * 200 + "x"
        write(folder, deep)
        tree = hash_plan(scan(folder))
        assert [entry.path for entry in tree] == [deep]
        lay_out(tree, lambda _: io.BytesIO(b"x"), folder / "copy")
        assert (folder / "copy" / deep).read_text() == "x"

    @pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J", "back\\slash", "C:x", os.fsdecode(b"caf\xe9")])
    def test_a_hostile_name_is_refused_with_a_way_out(self, folder: Path, name: str) -> None:
        write(folder, name)
        with pytest.raises(SnapshotException, match="Rename the file or leave it out") as refused:
            scan(folder)
        assert refused.value.message.isprintable()

    def test_a_hostile_name_that_is_ignored_does_no_harm(self, folder: Path) -> None:
        write(folder, "a\nb", "sub/c\\d", "ok")
        write(folder, ".amlignore", content="a?b\nsub/")
        assert sent(scan(folder)) == [".amlignore", "ok"]

    def test_a_pipe_and_a_socket_are_skipped_and_reported(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        os.mkfifo(folder / "pipe")
        monkeypatch.chdir(folder)  # the name of a socket must be short
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket")
            plan = scan(folder)
        assert plan.files == []
        assert plan.skipped == [(name, "neither a file nor a folder") for name in ("pipe", "socket")]


class TestLinks:
    def test_a_link_to_a_file_of_the_folder_is_sent_as_its_content(self, folder: Path) -> None:
        write(folder, "real/a.txt", content="hello")
        os.chmod(folder / "real/a.txt", 0o755)
        (folder / "alias").symlink_to("real/a.txt")
        (folder / "far").symlink_to(folder / "alias")
        tree = hash_plan(scan(folder))
        digest = sha256(b"hello")
        assert tree == Tree(TreeEntry(path, digest, 5, True) for path in ("alias", "far", "real/a.txt"))

    @pytest.mark.parametrize(
        ("target", "reason"),
        [
            ("../secret", "link that leads out of the folder"),
            ("/etc/passwd", "link that leads out of the folder"),
            ("../project-beside/x", "link that leads out of the folder"),
            ("hop/secret", "link that leads out of the folder"),
            ("..", "link that leads out of the folder"),
            (".", "link to a folder"),
            ("sub", "link to a folder"),
            ("missing", "link that leads nowhere"),
            ("link", "link that leads nowhere"),
            ("private.key", "link to 'private.key', which is left out itself"),
            (".git/config", "link to '.git/config', which is left out itself"),
            ("pipe", "link to 'pipe', which is left out itself"),
        ],
    )
    def test_no_other_link_is_followed(self, folder: Path, target: str, reason: str) -> None:
        write(folder.parent, "secret", "project-beside/x")
        write(folder, "sub/a", "private.key", ".git/config")
        write(folder, ".amlignore", content="*.key\nhop\npipe\n")
        os.mkfifo(folder / "pipe")
        (folder / "hop").symlink_to(folder.parent)
        (folder / "link").symlink_to(target)
        plan = scan(folder)
        assert sent(plan) == [".amlignore", "sub/a"]
        assert ("link", reason) in plan.skipped

    def test_a_link_to_a_folder_does_not_count_as_a_folder_in_a_rule(self, folder: Path) -> None:
        write(folder, "sub/a")
        write(folder, ".amlignore", content="link/")
        (folder / "link").symlink_to("sub")
        assert scan(folder).skipped == [("link", "link to a folder")]

    def test_a_folder_reached_through_a_link_is_scanned_as_usual(self, folder: Path) -> None:
        write(folder, "a")
        (folder.parent / "shortcut").symlink_to(folder)
        assert scan(folder.parent / "shortcut").files == scan(folder).files

    def test_a_file_that_became_a_link_after_the_walk_is_not_followed(self, folder: Path) -> None:
        write(folder.parent, "secret")
        write(folder, "a")
        plan = scan(folder)
        (folder / "a").unlink()
        (folder / "a").symlink_to("../secret")
        with pytest.raises(SnapshotException, match="'a'"):
            hash_plan(plan)

    def test_a_file_that_became_a_pipe_after_the_walk_does_not_hang(self, folder: Path) -> None:
        write(folder, "a")
        plan = scan(folder)
        (folder / "a").unlink()
        os.mkfifo(folder / "a")
        with pytest.raises(SnapshotException, match="'a'"):
            hash_plan(plan)


class TestHashing:
    def test_the_tree_says_what_the_files_hold(self, folder: Path) -> None:
        write(folder, "run.sh", content="echo\n")
        write(folder, "empty", content="")
        os.chmod(folder / "run.sh", 0o755)
        assert hash_plan(scan(folder)).to_json() == [
            ["empty", sha256(b""), 0, False],
            ["run.sh", sha256(b"echo\n"), 5, True],
        ]

    def test_a_large_file_is_hashed_in_little_memory(self, folder: Path) -> None:
        size = 200 * 1024 * 1024
        with open(folder / "big", "wb") as big:
            big.truncate(size)
        code = (
            PEAK + "import sys\n"
            "from lapis.client.snapshot import hash_plan, scan\n"
            "before = peak()\n"
            "assert hash_plan(scan(sys.argv[1])).total_size == int(sys.argv[2])\n"
            "print(peak() - before)"
        )
        answer = subprocess.run([sys.executable, "-c", code, folder, str(size)], stdout=subprocess.PIPE, check=True)
        assert int(answer.stdout) < 30 * 1024

    def test_a_file_changed_after_the_walk_is_sent_as_it_is_now(self, folder: Path) -> None:
        write(folder, "a", content="old")
        plan = scan(folder)
        write(folder, "a", content="newer")
        assert hash_plan(plan) == Tree([TreeEntry("a", sha256(b"newer"), 5)])

    def test_a_file_that_vanished_after_the_walk_is_named(self, folder: Path) -> None:
        write(folder, "gone")
        plan = scan(folder)
        (folder / "gone").unlink()
        with pytest.raises(SnapshotException, match="'gone'"):
            hash_plan(plan)

    def test_a_file_that_keeps_changing_is_refused(self, folder: Path) -> None:
        with open(folder / "log", "wb") as log:
            log.truncate(64 * 1024 * 1024)
        code = (
            "import sys\n"
            "with open(sys.argv[1], 'ab', 0) as log:\n"
            "    print(log.write(b'x'), flush=True)\n"
            "    while True: log.write(b'x')\n"
        )
        command = [sys.executable, "-c", code, str(folder / "log")]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            try:
                with pytest.raises(SnapshotException, match="'log' kept changing"):
                    hash_plan(scan(folder))
            finally:
                writer.kill()

    def test_files_coming_and_going_do_not_disturb_the_walk(self, folder: Path) -> None:
        write(folder, "steady", *(f"sub{i}/steady" for i in range(20)))
        code = (
            "import os, shutil, sys; print(flush=True)\n"
            "while True:\n"
            "    for i in range(20):\n"
            "        os.makedirs(f'{sys.argv[1]}/sub{i}/new')\n"
            "        open(f'{sys.argv[1]}/sub{i}/passing', 'w').close()\n"
            "    for i in range(20):\n"
            "        os.rmdir(f'{sys.argv[1]}/sub{i}/new')\n"
            "        os.unlink(f'{sys.argv[1]}/sub{i}/passing')\n"
        )
        with subprocess.Popen([sys.executable, "-c", code, folder], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            try:
                plans = [scan(folder) for _ in range(100)]
            finally:
                writer.kill()
        for plan in plans:
            assert [path for path in sent(plan) if path.endswith("steady")] == sorted(
                ["steady", *(f"sub{i}/steady" for i in range(20))]
            )


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user could reach, so that permissions can be tested as root too."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture
def as_an_ordinary_user() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


class TestUnreadable:
    @pytest.fixture(params=[("file", 0, "file"), ("sub", 0, "sub/"), ("sub", 0o444, "sub/a"), ("sub/a", 0, "sub/a")])
    def unreadable(self, request: pytest.FixtureRequest, open_folder: Path) -> Iterator[str]:
        name, mode, told = request.param
        write(open_folder, "sub/a", "file")
        os.chmod(open_folder / name, mode)
        yield told
        os.chmod(open_folder / name, 0o755)

    def test_what_cannot_be_read_is_named(self, open_folder: Path, unreadable: str, as_an_ordinary_user: None) -> None:
        with pytest.raises(SnapshotException, match=f"'{unreadable}'.*Permission denied.*amlignore"):
            hash_plan(scan(open_folder))


class TestTheCache:
    @pytest.fixture
    def cache(self, folder: Path) -> str:
        return cache_path_for(folder, str(folder.parent / "cache"))

    def replace_content(self, file: Path, content: bytes) -> None:
        """Change a file but neither its size nor its date."""
        before = file.stat()
        with open(file, "r+b") as stream:
            stream.write(content)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    def cached(self, cache: str) -> dict[str, list[object]]:
        content: dict[str, list[object]] = json.loads(Path(cache).read_bytes().partition(b"\n")[2])
        return content

    def test_an_unchanged_file_is_not_read_again(self, folder: Path, cache: str) -> None:
        write(folder, "a", content="one")
        plan = scan(folder)
        first = hash_plan(plan, cache, clock=hours_later)
        self.replace_content(folder / "a", b"two")
        # The same plan has the same stamps, so a second reading would be the only way to see the change.
        assert hash_plan(plan, cache, clock=hours_later) == first

    def test_a_changed_file_is_read_again_even_with_its_old_date_and_size(self, folder: Path, cache: str) -> None:
        write(folder, "a", content="one")
        hash_plan(scan(folder), cache, clock=hours_later)
        wait_for_the_clock_of(folder)
        self.replace_content(folder / "a", b"two")
        assert hash_plan(scan(folder), cache, clock=hours_later).entries[0].hash == sha256(b"two")

    def test_a_file_replaced_by_another_is_read_again(self, folder: Path, cache: str) -> None:
        write(folder, "a", content="one")
        hash_plan(scan(folder), cache, clock=hours_later)
        write(folder, "b", content="two")
        os.replace(folder / "b", folder / "a")
        assert hash_plan(scan(folder), cache, clock=hours_later).entries[0].hash == sha256(b"two")

    def test_a_file_written_a_moment_ago_is_not_cached(self, folder: Path, cache: str) -> None:
        write(folder, "a")
        hash_plan(scan(folder), cache)
        assert not os.path.exists(cache)
        hash_plan(scan(folder), cache, clock=hours_later)
        assert list(self.cached(cache)) == ["a"]

    def test_a_file_that_is_gone_leaves_the_cache(self, folder: Path, cache: str) -> None:
        write(folder, "a", "b")
        hash_plan(scan(folder), cache, clock=hours_later)
        (folder / "a").unlink()
        hash_plan(scan(folder), cache, clock=hours_later)
        assert list(self.cached(cache)) == ["b"]

    @pytest.mark.parametrize(
        "damage",
        [
            lambda content: b"",
            lambda content: content[: len(content) // 2],
            lambda content: b"\xff" * 100,
            lambda content: content[:-5] + b"0" + content[-4:],
            lambda content: content.replace(b"hashes 1", b"hashes 0"),
            lambda content: content + b" ",
        ],
    )
    def test_a_damaged_cache_counts_as_empty(self, folder: Path, cache: str, damage: Callable[[bytes], bytes]) -> None:
        write(folder, "a", content="one")
        plan = scan(folder)
        hash_plan(plan, cache, clock=hours_later)
        whole = Path(cache).read_bytes()
        Path(cache).write_bytes(damage(whole))
        self.replace_content(folder / "a", b"two")
        assert hash_plan(plan, cache, clock=hours_later).entries[0].hash == sha256(b"two")

    def test_a_cache_that_cannot_be_written_is_no_error(self, folder: Path) -> None:
        write(folder, "a")
        write(folder.parent, "not-a-folder")
        tree = hash_plan(scan(folder), str(folder.parent / "not-a-folder" / "x"), clock=hours_later)
        assert tree == hash_plan(scan(folder))

    def test_the_cache_is_whole_at_any_moment_while_many_write_it(self, folder: Path, cache: str) -> None:
        write(folder, *(f"f{i}" for i in range(300)))
        code = (
            "import sys, time\n"
            "from lapis.client.snapshot import hash_plan, scan\n"
            "for i in range(20):\n"
            "    plan = scan(sys.argv[1])\n"
            "    plan.files = plan.files[i::2]\n"  # each writer has other files, so each round writes
            "    hash_plan(plan, sys.argv[2], clock=lambda: time.time_ns() + 3600 * 10**9)\n"
        )
        writers = [subprocess.Popen([sys.executable, "-c", code, folder, cache]) for _ in range(3)]
        seen = 0
        while any(writer.poll() is None for writer in writers) or not seen:
            if os.path.exists(cache):
                header, _, body = Path(cache).read_bytes().partition(b"\n")
                assert header.endswith(sha256(body).encode())
                seen += 1
        assert [writer.wait() for writer in writers] == [0, 0, 0]
        assert os.listdir(os.path.dirname(cache)) == [os.path.basename(cache)]

    def test_two_folders_have_two_caches(self, tmp_path: Path) -> None:
        assert cache_path_for(tmp_path / "a", "cache") != cache_path_for(tmp_path / "b", "cache")
        assert cache_path_for(tmp_path / "a" / ".." / "b", "cache") == cache_path_for(tmp_path / "b", "cache")


def wait_for_the_clock_of(folder: Path) -> None:
    """Return once the file system's clock has moved on: it ticks every few milliseconds."""
    probe = folder.parent / "probe"
    probe.touch()
    start = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == start:
        probe.touch()


class TestTheWarning:
    def test_an_ordinary_snapshot_brings_no_warning(self, folder: Path) -> None:
        write(folder, "a")
        assert warning_for(scan(folder)) is None

    def test_a_big_one_names_the_biggest_files_and_the_way_out(self, folder: Path) -> None:
        for i in range(12):
            with open(folder / f"part{i:02}", "wb") as part:
                part.truncate((20 + i) * 1024 * 1024)
        plan = scan(folder)
        assert [file.path for file in plan.biggest(2)] == ["part11", "part10"]
        warning = warning_for(plan)
        assert warning is not None
        assert "31.0 MB  part11" in warning
        assert "part02" in warning and "part01" not in warning
        assert ".amlignore" in warning

    def test_the_limit_on_size_can_be_set(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(folder, "a")
        monkeypatch.setattr(snapshot, "SNAPSHOT_MAX_SIZE_BYTES", 0)
        assert warning_for(scan(folder)) is not None

    def test_many_files_bring_a_warning_unless_it_is_turned_off(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(folder, "a", "images/b", "images/c")
        monkeypatch.setattr(snapshot, "SNAPSHOT_MAX_FILES", 2)
        warning = warning_for(scan(folder))
        assert warning is not None and "2 files  images/" in warning
        monkeypatch.setenv("AML_SNAPSHOT_NO_FILE_LIMIT", "True")
        assert warning_for(scan(folder)) is None


class Blobs(dict[str, bytes]):
    """Contents by hash."""

    def tree(self, files: dict[str, bytes]) -> Tree:
        self.update((sha256(content), content) for content in files.values())
        return Tree(TreeEntry(path, sha256(content), len(content)) for path, content in files.items())

    def read(self, digest: str) -> io.BytesIO:
        return io.BytesIO(self[digest])


class TestLayingOut:
    @pytest.fixture
    def blobs(self) -> Blobs:
        return Blobs()

    def test_a_folder_arrives_as_it_was_sent(self, folder: Path, tmp_path: Path) -> None:
        write(folder, "a", "sub/deep/b", "été", content="été")
        write(folder, "empty", content="")
        (folder / "big").write_bytes(os.urandom(3 * 1024 * 1024 + 7))
        os.chmod(folder / "a", 0o755)
        plan = scan(folder)
        tree = hash_plan(plan)
        sources = {entry.hash: file.source for entry, file in zip(tree.entries, plan.files, strict=True)}
        lay_out(tree, lambda digest: open(sources[digest], "rb"), tmp_path / "new" / "copy")
        assert hash_plan(scan(tmp_path / "new" / "copy")) == tree

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        files=st.dictionaries(
            st.text(st.characters(exclude_categories=["C"], exclude_characters="/\\:"), min_size=1, max_size=20).filter(
                lambda name: name not in (".", "..")
            ),
            st.binary(max_size=50),
            max_size=5,
        )
    )
    def test_any_allowed_names_arrive(self, tmp_path: Path, files: dict[str, bytes]) -> None:
        target = tmp_path / "any"
        shutil.rmtree(target, ignore_errors=True)
        blobs = Blobs()
        (target / "d").mkdir(parents=True)
        lay_out(blobs.tree({f"d/{name}": content for name, content in files.items()}), blobs.read, target)
        written = {name: (target / "d" / name).read_bytes() for name in os.listdir(target / "d")}
        assert written == files

    @pytest.mark.parametrize("received", [b"", b"goof", b"good and more", b"goo"])
    def test_a_content_that_differs_is_refused_and_removed(self, blobs: Blobs, tmp_path: Path, received: bytes) -> None:
        tree = blobs.tree({"a": b"good"})
        with pytest.raises(SnapshotException, match="'a' is damaged"):
            lay_out(tree, lambda _: io.BytesIO(received), tmp_path)
        assert os.listdir(tmp_path) == []

    def test_an_endless_content_is_cut_off(self, blobs: Blobs, tmp_path: Path) -> None:
        with open("/dev/zero", "rb") as endless, pytest.raises(SnapshotException):
            lay_out(blobs.tree({"a": b"good"}), lambda _: endless, tmp_path)

    def test_a_size_that_lies_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SnapshotException):
            lay_out(Tree([TreeEntry("a", sha256(b"good"), 5)]), lambda _: io.BytesIO(b"good"), tmp_path)

    def test_an_error_of_the_reader_passes_and_leaves_no_half_file(self, blobs: Blobs, tmp_path: Path) -> None:
        class Broken(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                raise ConnectionResetError("the line is dead")

        with pytest.raises(ConnectionResetError):
            lay_out(blobs.tree({"a": b"good"}), lambda _: Broken(), tmp_path)
        assert os.listdir(tmp_path) == []

    def test_an_older_file_is_replaced_and_others_stay(self, blobs: Blobs, tmp_path: Path) -> None:
        write(tmp_path, "a", "other", content="a longer old content")
        os.link(tmp_path / "a", tmp_path / "second-name")
        lay_out(blobs.tree({"a": b"new"}), blobs.read, tmp_path)
        assert (tmp_path / "a").read_text() == "new"
        assert (tmp_path / "second-name").read_text() == (tmp_path / "other").read_text() == "a longer old content"

    def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(self, blobs: Blobs, tmp_path: Path) -> None:
        write(tmp_path, "outside", content="mine")
        (tmp_path / "target").mkdir()
        (tmp_path / "target" / "a").symlink_to("../outside")
        lay_out(blobs.tree({"a": b"new"}), blobs.read, tmp_path / "target")
        assert (tmp_path / "outside").read_text() == "mine"
        assert (tmp_path / "target" / "a").read_text() == "new"

    @pytest.mark.parametrize("leads_to", ["../outside", "../missing", ".."])
    def test_a_link_in_the_place_of_a_folder_never_leads_out(self, blobs: Blobs, tmp_path: Path, leads_to: str) -> None:
        (tmp_path / "outside").mkdir()
        (tmp_path / "target").mkdir()
        (tmp_path / "target" / "sub").symlink_to(leads_to)
        with pytest.raises(UserErrorException, match="link"):
            lay_out(blobs.tree({"sub/deep/a": b"new"}), blobs.read, tmp_path / "target")
        assert sorted(os.listdir(tmp_path)) == ["outside", "target"]
        assert os.listdir(tmp_path / "outside") == []

    @pytest.mark.parametrize(("there", "path"), [("sub", "sub/a"), ("a/b", "a")])
    def test_a_file_in_the_way_of_a_folder_and_the_reverse_are_named(
        self, blobs: Blobs, tmp_path: Path, there: str, path: str
    ) -> None:
        write(tmp_path, there)
        with pytest.raises(SnapshotException, match="Cannot"):
            lay_out(blobs.tree({path: b"new"}), blobs.read, tmp_path)
        assert (tmp_path / there).read_text() == "x"

    def test_every_blob_is_closed(self, blobs: Blobs, tmp_path: Path) -> None:
        given_out: list[io.BytesIO] = []

        def read(digest: str) -> io.BytesIO:
            given_out.append(blobs.read(digest))
            return given_out[-1]

        lay_out(blobs.tree({"a": b"1", "b": b"2"}), read, tmp_path)
        assert [blob.closed for blob in given_out] == [True, True]

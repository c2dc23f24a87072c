"""Files of a run: sent, listed, fetched whole and checked, and never from or to where they should not be."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, Run, Workspace
from azureml.exceptions import AzureMLException, UserErrorException
from lapis.client import handing_over
from lapis.client.http_client import Client
from lapis.testing import Home

Submit = Callable[..., Any]
ESCAPES = ["../up.txt", "/etc/passwd", "a/../../b", "a//b", "./../x", "", "a\\b", "a\0b", "C:/x", "..", "a/", 5, None]


@pytest.fixture
def run(experiment: Experiment) -> Any:
    with experiment.start_logging() as run:
        yield run


def fetched(run: Any, name: str, tmp_path: Path) -> bytes:
    run.download_file(name, tmp_path / "fetched")
    return (tmp_path / "fetched").read_bytes()


# -- sent


def test_a_file_is_sent_from_a_path_and_from_a_stream(run: Any, tmp_path: Path) -> None:
    (tmp_path / "model.pkl").write_bytes(b"\0weights")
    run.upload_file("outputs/model.pkl", str(tmp_path / "model.pkl"))
    run.upload_file("a/deep/name with spaces & ünicode#?.txt", tmp_path / "model.pkl")
    run.upload_file("stream.bin", io.BytesIO(b"from a stream"))
    run.upload_file("text.txt", io.StringIO("grüße"))
    with open(tmp_path / "model.pkl", "rb") as opened:
        run.upload_file(name="opened", path_or_stream=opened)
    (tmp_path / "empty").touch()
    run.upload_file("empty", tmp_path / "empty")
    assert run.get_file_names() == [
        "a/deep/name with spaces & ünicode#?.txt", "empty", "opened", "outputs/model.pkl", "stream.bin", "text.txt",
    ]  # fmt: skip
    assert fetched(run, "outputs/model.pkl", tmp_path) == fetched(run, "opened", tmp_path) == b"\0weights"
    assert fetched(run, "a/deep/name with spaces & ünicode#?.txt", tmp_path) == b"\0weights"
    assert fetched(run, "stream.bin", tmp_path) == b"from a stream"
    assert fetched(run, "text.txt", tmp_path).decode() == "grüße"
    assert fetched(run, "empty", tmp_path) == b""


def test_a_leading_dot_slash_means_the_same_name(run: Any, tmp_path: Path) -> None:
    run.upload_file("./outputs/x.txt", io.BytesIO(b"x"))
    assert run.get_file_names() == ["outputs/x.txt"]


def test_a_folder_is_sent_with_all_below_it(run: Any, tmp_path: Path) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "one").write_text("1")
    (tmp_path / "data" / "deep" / "two").write_text("2")
    run.upload_folder("results/", tmp_path / "data")
    assert run.get_file_names() == ["results/deep/two", "results/one"]


def test_several_files_are_sent_or_none(run: Any, tmp_path: Path) -> None:
    (tmp_path / "here").write_text("x")
    run.upload_files(["a", "b"], [tmp_path / "here", str(tmp_path / "here")])
    assert run.get_file_names() == ["a", "b"]
    with pytest.raises(UserErrorException, match="no file .*nowhere"):
        run.upload_files(["c", "d"], [tmp_path / "here", tmp_path / "nowhere"])
    with pytest.raises(UserErrorException, match="2 names and 1 paths"):
        run.upload_files(["c", "d"], [tmp_path / "here"])
    with pytest.raises(UserErrorException, match="list"):
        run.upload_files("c", str(tmp_path / "here"))
    with pytest.raises(UserErrorException, match="twice"):
        run.upload_files(["c", "c"], [tmp_path / "here", tmp_path / "here"])
    assert run.get_file_names() == ["a", "b"]


def test_what_is_not_there_cannot_be_sent(run: Any, tmp_path: Path) -> None:
    with pytest.raises(UserErrorException, match="'x'.*no file .*nowhere"):
        run.upload_file("x", tmp_path / "nowhere")
    with pytest.raises(UserErrorException, match="no file"):
        run.upload_file("x", tmp_path)
    with pytest.raises(UserErrorException, match="path or a stream, not int"):
        run.upload_file("x", 5)
    with pytest.raises(UserErrorException, match="no folder"):
        run.upload_folder("x", tmp_path / "nowhere")
    with pytest.raises(UserErrorException, match="no folder"):
        run.upload_folder("x", None)
    assert run.get_file_names() == []


@pytest.mark.parametrize("name", ESCAPES)
def test_a_name_that_leaves_the_run_is_refused(run: Any, name: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for upload in (
        lambda: run.upload_file(name, tmp_path / "file"),
        lambda: run.upload_files([name], [tmp_path / "file"]),
    ):
        with pytest.raises(UserErrorException, match="name"):
            upload()
    assert run.get_file_names() == []


def test_a_stored_file_is_not_overwritten_by_another(run: Any, tmp_path: Path) -> None:
    run.upload_file("a.txt", io.BytesIO(b"first"))
    with pytest.raises(UserErrorException, match="'a.txt' already"):
        run.upload_file("a.txt", io.BytesIO(b"second"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_bytes(b"second")
    run.upload_folder("b", tmp_path / "folder")
    with pytest.raises(UserErrorException, match="'b/a.txt' already"):
        (tmp_path / "folder" / "a.txt").write_bytes(b"third")
        run.upload_folder("b", tmp_path / "folder")
    assert fetched(run, "a.txt", tmp_path) == b"first" and fetched(run, "b/a.txt", tmp_path) == b"second"


def test_the_same_file_again_is_no_conflict(run: Any, tmp_path: Path) -> None:
    """Scripts write to outputs/ and upload the same file by hand; which comes first is chance."""
    (tmp_path / "a.txt").write_text("same")
    run.upload_file("outputs/a.txt", tmp_path / "a.txt")
    run.upload_file("outputs/a.txt", tmp_path / "a.txt")
    run.upload_files(["outputs/a.txt"], [tmp_path / "a.txt"])
    run.upload_file("outputs/a.txt", io.BytesIO(b"same"))
    assert run.get_file_names() == ["outputs/a.txt"]


def test_a_script_uploads_what_it_wrote_to_outputs(finish: Submit) -> None:
    run = finish(
        "import time\nfrom azureml.core import Run\n"
        "run = Run.get_context()\n"
        "open('outputs/model.txt', 'w').write('weights')\n"
        "while 'outputs/model.txt' not in run.get_file_names(): time.sleep(0.05)\n"
        "run.upload_file('outputs/model.txt', 'outputs/model.txt')\n"
        "run.upload_folder('copies', 'outputs')\n"
    )
    assert run.get_status() == "Completed", run.get_details()["error"]
    assert {"outputs/model.txt", "copies/model.txt"} <= set(run.get_file_names())


# -- fetched


@pytest.fixture
def stored(run: Any) -> Any:
    for name in ("outputs/model/a.bin", "outputs/model/deep/b.bin", "outputs/other.txt", "logs/x.txt"):
        run.upload_file(name, io.BytesIO(name.encode()))
    return run


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_one_file_is_fetched_to_a_file_a_folder_or_here(stored: Any, tmp_path: Path) -> None:
    stored.download_file("outputs/other.txt")
    assert Path("other.txt").read_text() == "outputs/other.txt"
    stored.download_file("outputs/other.txt", output_file_path=tmp_path / "new" / "folder" / "name.txt")
    assert (tmp_path / "new" / "folder" / "name.txt").read_text() == "outputs/other.txt"
    (tmp_path / "there").mkdir()
    stored.download_file("outputs/other.txt", str(tmp_path / "there"))
    assert (tmp_path / "there" / "other.txt").exists()
    stored.download_file("outputs/other.txt", str(tmp_path / "made") + "/")
    assert (tmp_path / "made" / "other.txt").exists()


def test_files_are_fetched_by_the_beginning_of_their_names(stored: Any, tmp_path: Path) -> None:
    stored.download_files(prefix="outputs/model", output_directory=tmp_path / "kept")
    assert set(tree(tmp_path / "kept")) == {"outputs/model/a.bin", "outputs/model/deep/b.bin"}
    stored.download_files(prefix="outputs/model", output_directory=tmp_path / "cut", append_prefix=False)
    assert tree(tmp_path / "cut") == {"a.bin": "outputs/model/a.bin", "deep/b.bin": "outputs/model/deep/b.bin"}
    stored.download_files("outputs/other.txt", tmp_path / "one", append_prefix=False)
    assert set(tree(tmp_path / "one")) == {"other.txt"}
    stored.download_files(output_directory=tmp_path / "all")
    assert set(tree(tmp_path / "all")) == set(stored.get_file_names())


def test_files_are_fetched_to_paths_of_ones_own(stored: Any, tmp_path: Path) -> None:
    stored.download_files("outputs/model", tmp_path, output_paths=["first", "sub/second"])
    assert (tmp_path / "first").read_text() == "outputs/model/a.bin"
    assert (tmp_path / "sub" / "second").read_text() == "outputs/model/deep/b.bin"
    with pytest.raises(UserErrorException, match="2 files .* names 1"):
        stored.download_files("outputs/model", tmp_path, output_paths=["only"])
    assert not (tmp_path / "only").exists()


@pytest.mark.parametrize("name", ESCAPES)
def test_a_path_that_escapes_cannot_be_fetched(stored: Any, name: Any, tmp_path: Path) -> None:
    before = tree(tmp_path)
    with pytest.raises(UserErrorException, match="name"):
        stored.download_file(name, tmp_path / "got")
    assert tree(tmp_path) == before


def test_a_link_does_not_lead_a_download_out_of_its_folder(stored: Any, tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    (tmp_path / "outside").mkdir()
    os.symlink(tmp_path / "outside", tmp_path / "into" / "outputs")
    with pytest.raises(UserErrorException, match="link leads it out"):
        stored.download_files("outputs", tmp_path / "into")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_file_that_the_run_lacks_is_told_with_those_it_has(stored: Any, tmp_path: Path) -> None:
    with pytest.raises(UserErrorException, match="no file named 'outputs/modle'.*outputs/other.txt"):
        stored.download_file("outputs/modle", tmp_path / "got")
    assert not (tmp_path / "got").exists()


def test_a_download_replaces_what_is_there_only_when_it_is_whole(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A blob that rotted on the server's disk does not pass as the file."""
    monkeypatch.chdir(tmp_path)
    with Experiment(Workspace.from_config(), "rot").start_logging() as run:
        run.upload_file("model", io.BytesIO(b"the true weights"))
    (blob,) = [
        path for path in (home.path / "blobs").rglob("*") if path.is_file() and path.read_bytes() == b"the true weights"
    ]
    blob.chmod(0o644)
    blob.write_bytes(b"the TRUE weights")
    (tmp_path / "model").write_text("as before")
    with pytest.raises(AzureMLException, match="is damaged on the server's disk"):
        run.download_file("model", tmp_path / "model")
    assert (tmp_path / "model").read_text() == "as before"
    assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []


def test_logs_are_fetched_all_at_once(finish: Submit, tmp_path: Path) -> None:
    run = finish("print('hello'); open('logs/mine.txt', 'w').write('x')")
    paths = run.get_all_logs(destination=tmp_path / "logs")
    assert sorted(os.path.relpath(path, tmp_path / "logs") for path in paths) == [
        f"{run.id}/azureml-logs/70_driver_log.txt", f"{run.id}/logs/mine.txt", f"{run.id}/user_logs/std_log.txt",
    ]  # fmt: skip
    assert all(os.path.isfile(path) for path in paths)


# -- large ones


def test_fifty_megabytes_go_both_ways_in_bounded_time_and_memory(
    experiment: Experiment, python: Callable[..., str], tmp_path: Path
) -> None:
    block = os.urandom(1 << 20)
    with open(tmp_path / "big.bin", "wb") as file:
        for _ in range(50):
            file.write(block)
    with experiment.start_logging() as run:
        began = time.monotonic()
        peak = python(
            "import re, sys\nfrom azureml.core import Run, Workspace\n"
            "run = Run.get(Workspace.get(sys.argv[1]), sys.argv[2])\n"
            "run.upload_file('outputs/big.bin', 'big.bin')\n"
            "run.download_file('outputs/big.bin', 'back.bin')\n"
            "print(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1])\n",
            experiment.workspace.name, run.id,
        )  # fmt: skip
        assert time.monotonic() - began < 15
    assert int(peak) < 45_000, "kilobytes: the file is never held in memory"
    digests = {hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("big.bin", "back.bin")}
    assert len(digests) == 1


def test_a_large_file_is_handed_over_on_one_machine_and_not_sent(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "large").write_bytes(os.urandom(5 << 20))
    for way in ("upload", "download"):
        monkeypatch.setattr(Client, way, None)
    run.upload_file("large", tmp_path / "large")
    assert fetched(run, "large", tmp_path) == (tmp_path / "large").read_bytes()


def test_a_script_that_is_kept_apart_hands_its_files_over_too(finish: Submit) -> None:
    finish("""
        import os
        from azureml.core import Run
        from lapis.client.http_client import Client
        Client.upload = Client.download = None
        with open("large", "wb") as file:
            file.write(os.urandom(5 << 20))
        run = Run.get_context()
        run.upload_file("large", "large")
        run.download_file("large", "again")
        assert open("large", "rb").read() == open("again", "rb").read()
    """)


@pytest.mark.parametrize("away", ["killed", "no door"])
def test_a_file_that_cannot_be_handed_over_is_sent(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    """As on another machine or disk, or when the server is killed with the file in its hands."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "large").write_bytes(os.urandom(5 << 20))
    with Experiment(Workspace.from_config(), "sent").start_logging() as run:
        hand_over = handing_over.handed_over

        @contextlib.contextmanager
        def then_gone(door: str, descriptor: int) -> Iterator[str]:
            with hand_over(door if away == "killed" else str(tmp_path / "none"), descriptor) as ticket:
                home.kill_server()
                yield ticket

        monkeypatch.setattr(handing_over, "handed_over", then_gone)
        run.upload_file("large", tmp_path / "large")
        assert fetched(run, "large", tmp_path) == (tmp_path / "large").read_bytes()


def test_a_large_output_of_a_script_arrives_whole(finish: Submit, tmp_path: Path) -> None:
    run = finish(
        "import hashlib, os\n"
        "with open('outputs/big.bin', 'wb') as file:\n"
        "    block = os.urandom(1 << 20); digest = hashlib.sha256()\n"
        "    for _ in range(20): file.write(block); digest.update(block)\n"
        "print(digest.hexdigest())\n"
    )
    assert hashlib.sha256(fetched(run, "outputs/big.bin", tmp_path)).hexdigest() == (
        run.get_logs()["user_logs/std_log.txt"].strip()
    )


def test_outputs_that_come_and_go_while_they_are_collected_do_no_harm(submit: Submit, tmp_path: Path) -> None:
    run = submit(
        "import itertools, os, time\n"
        "begun = time.time()\n"
        "for number in itertools.count():\n"  # five hundred of them at any time, each gone a moment later
        "    open(f'outputs/{number}.tmp', 'w').close(); os.utime(f'outputs/{number}.tmp', (1, 1))\n"
        "    if number >= 500: os.remove(f'outputs/{number - 500}.tmp')\n"
        "    if time.time() > begun + 2.5: break\n"
        "for left in os.listdir('outputs'): os.remove('outputs/' + left)\n"
        "open('outputs/last', 'w').write('kept')\n"
    )
    assert run.wait_for_completion()["status"] == "Completed"
    assert "outputs/last" in run.get_file_names()
    again = Run.get(run.experiment.workspace, run.id)
    assert not [stage for stage in again.get_details()["stages"] if "agent went away" in stage["reason"]]

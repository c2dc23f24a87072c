"""A file that is written this way is whole or not there, however the writing ends."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lapis.machine import json_files, whole_files


def test_a_block_that_fails_leaves_what_was_there_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "facts.txt"
    whole_files.write(str(path), b"old")
    with pytest.raises(ZeroDivisionError), whole_files.replacing(str(path)) as draft:
        Path(draft).write_bytes(b"half of the ne")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["facts.txt"]


def test_a_writer_that_is_killed_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "facts.txt"
    path.write_text("old")
    code = (
        "import os, signal, sys\n"
        "from lapis.machine.whole_files import replacing\n"
        "with replacing(sys.argv[1]) as draft:\n"
        "    open(draft, 'w').write('new' * 1000)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_two_writers_at_once_do_not_mix(tmp_path: Path) -> None:
    path = str(tmp_path / "facts.json")
    code = (
        "import sys\n"
        "from lapis.machine import json_files\n"
        "for _ in range(200):\n"
        "    json_files.write(sys.argv[1], {'who': sys.argv[2] * 5000})\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, path, name]) for name in "ab"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        content = json_files.read(path)
        if content is not None:
            seen.add((content["who"][0], len(set(content["who"])), len(content["who"])))
    assert [writer.wait() for writer in writers] == [0, 0]
    assert seen <= {("a", 1, 5000), ("b", 1, 5000)} and seen
    assert os.listdir(tmp_path) == ["facts.json"]


def test_json_files_are_their_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    json_files.write(str(path), {"token": "secret"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [None, "", '{"half": ', "[1, 2]", "\x00\x00"])
def test_what_is_no_json_object_reads_as_nothing(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "job.json"
    if content is not None:
        path.write_text(content)
    assert json_files.read(str(path)) is None

"""Logs that do not grow for ever, under whoever writes and reads them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lapis.machine import rotation

BLOCK = 4096


def on_disk(path: Path) -> int:
    return path.stat().st_blocks * 512


def test_a_large_log_is_put_aside_and_of_old_ones_the_oldest_goes(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    for number in range(6):
        log.write_text(str(number) * 10)
        assert rotation.rotate(str(log), large=10)
        assert not log.exists()
    assert {path.name: path.read_text()[0] for path in tmp_path.iterdir()} == {
        "server.log.1": "5",
        "server.log.2": "4",
        "server.log.3": "3",
    }
    log.write_text("short")
    assert not rotation.rotate(str(log), large=10) and log.read_text() == "short"
    assert not rotation.rotate(str(tmp_path / "none"))


def test_a_process_goes_on_in_a_new_log_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    code = (
        "import sys\nfrom lapis.machine import rotation\nprint('before', flush=True)\n"
        f"rotation.rotate_own_output({str(log)!r}, large=1)\nprint('after', flush=True)\n"
        "print('complaint', file=sys.stderr)"
    )
    with open(log, "ab") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, stderr=file, check=True)
    assert log.read_text().splitlines() == ["after", "complaint"]
    assert (tmp_path / "server.log.1").read_text() == "before\n"


def test_output_that_goes_elsewhere_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("x" * 100)
    rotation.rotate_own_output(str(log), large=1)
    assert [path.name for path in tmp_path.iterdir()] == ["server.log"]


def test_the_beginning_of_a_long_log_is_given_up_and_positions_stay(tmp_path: Path) -> None:
    log, keep = tmp_path / "std_log.txt", 16 * BLOCK
    with open(log, "ab", buffering=0) as writer:  # somebody has it open all the time
        written = b""
        for _ in range(50):
            piece = os.urandom(BLOCK)
            writer.write(piece)
            written += piece
            rotation.give_up_beginning(str(log), keep)
            assert on_disk(log) <= 2 * keep + BLOCK
    assert log.stat().st_size == len(written)
    with open(log, "rb") as reader:
        first = rotation.first_byte(reader.fileno())
        assert 0 < first <= len(written) - keep
        reader.seek(first)
        assert reader.read() == written[first:]


def test_what_the_server_has_not_got_is_not_given_up(tmp_path: Path) -> None:
    log = tmp_path / "std_log.txt"
    content = os.urandom(100 * BLOCK)
    log.write_bytes(content)
    rotation.give_up_beginning(str(log), BLOCK, before=0)
    assert log.read_bytes() == content
    rotation.give_up_beginning(str(log), BLOCK, before=10 * BLOCK)
    assert log.read_bytes()[10 * BLOCK :] == content[10 * BLOCK :]
    assert on_disk(log) == 90 * BLOCK

"""Files of tables are kept within a limit: what was used longest ago goes first, and what is in use stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import lapis
from azureml.core import Dataset
from lapis.sdk.workspace.workspace import Workspace
from lapis.tables.cache import TableCache

LIMIT = 2500
CHILD = """
import sys
from lapis.tables.cache import TableCache
def write(folder):
    if sys.argv[3] == "stuck":
        print("writing", flush=True); sys.stdin.readline()
    open(folder + "/part", "w").write("x" * 1000)
cache = TableCache(sys.argv[1], int(sys.argv[4]))
for key in sys.argv[2].split(","):
    cache.written(key, write)
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def child(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """A process that writes tables of 1,000 bytes and lives until it is told to end."""

    def start(keys: str, how: str = "") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path), keys, how, str(LIMIT)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(Path(lapis.__file__).parents[1])},
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline().strip() == ("writing" if how == "stuck" else "done")
        return process

    return start


def end(process: subprocess.Popen[str], how: int | None = None) -> None:
    if how is not None:
        process.send_signal(how)
    process.communicate("go on\nend\n")


def there(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_dir()}


def write_1000(folder: str) -> None:
    Path(folder, "part").write_bytes(b"x" * 1000)


def test_what_was_used_longest_ago_goes_first(tmp_path: Path, child: Callable[..., subprocess.Popen[str]]) -> None:
    end(child("old,new"))
    for age, key in enumerate(["new", "old"]):  # old was used since
        os.utime(tmp_path / key, (1e9 + age, 1e9 + age))
    TableCache(str(tmp_path), LIMIT).written("newest", write_1000)
    assert there(tmp_path) == {"old", "newest"}


def test_what_is_there_is_not_written_again(tmp_path: Path, child: Callable[..., subprocess.Popen[str]]) -> None:
    end(child("a"))
    os.utime(tmp_path / "a", (1e9, 1e9))
    assert TableCache(str(tmp_path)).written("a", lambda folder: pytest.fail("written again")) == str(tmp_path / "a")
    assert (tmp_path / "a").stat().st_mtime > 1.5e9  # used now


def test_what_a_living_process_was_given_stays(tmp_path: Path, child: Callable[..., subprocess.Popen[str]]) -> None:
    holder = child("a,b")
    end(child("c,d"))
    assert there(tmp_path) == {"a", "b", "c", "d"}  # above the limit, but each was in use
    TableCache(str(tmp_path), LIMIT).written("e", write_1000)
    assert there(tmp_path) == {"a", "b", "e"}
    end(holder, signal.SIGKILL)
    TableCache(str(tmp_path), LIMIT).written("f", write_1000)
    assert there(tmp_path) == {"e", "f"}


def test_what_a_killed_process_left_half_done_goes(tmp_path: Path, child: Callable[..., subprocess.Popen[str]]) -> None:
    living, killed = child("a", "stuck"), child("b", "stuck")
    end(killed, signal.SIGKILL)
    TableCache(str(tmp_path)).written("c", write_1000)
    assert len(there(tmp_path)) == 2  # c, and what is still being written
    end(living)
    assert there(tmp_path) == {"a", "c"}


def test_of_two_that_write_the_same_both_get_it(tmp_path: Path, child: Callable[..., subprocess.Popen[str]]) -> None:
    slower = child("a", "stuck")
    TableCache(str(tmp_path)).written("a", write_1000)
    end(slower)
    assert slower.returncode == 0 and there(tmp_path) == {"a"}


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: str) -> None:
        Path(folder, "half").write_text("x")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        TableCache(str(tmp_path)).written("a", fail)
    assert there(tmp_path) == set()


def test_a_registered_table_of_files_stays(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    code = (
        "import sys\nfrom azureml.core import Dataset, Workspace\n"
        "made = Dataset.Tabular.from_delimited_files('a.csv').to_csv_files()\n"
        "made.register(Workspace.get(sys.argv[1]), 'kept')\n"
        "print(Dataset.Tabular.from_delimited_files('a.csv').to_parquet_files()._files()[0].place)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(lapis.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code, workspace.name], check=True, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert Path(done.stdout.strip()).exists()
    folder = Path(os.environ["LAPIS_HOME"], "cache", "tables")
    place = Dataset.get_by_name(workspace, "kept").download(str(tmp_path / "down"))
    TableCache(str(folder), 0).written(os.urandom(8).hex(), write_1000)
    again = Dataset.get_by_name(workspace, "kept").download(str(tmp_path / "again"))
    assert Path(place[0]).read_text() == Path(again[0]).read_text()
    assert not Path(done.stdout.strip()).exists()

"""The environments of a machine: listed, held, and pruned by when they were last used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lapis.environments import bytecode, in_use
from lapis.environments.build import build, build_and_hold
from lapis.environments.cache import Built, built, lock_of, pins, prune, too_much
from lapis.environments.turns import MARKER, ready
from lapis.testing import until
from tests.environments.conftest import Shop, this_python, until_free
from tests.wheels import make_wheel


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)


def made(shop: Shop, *requirements: str, used: float = 0.0) -> str:
    """An environment that was last used at `used`, and that nobody compiles any more."""
    lock = shop.lock(*requirements)
    folder = build(lock, this_python(), shop.root, shop.told.append)
    bytecode.compile_now(folder, shop.root)
    os.close(until_free(shop.root, lock.hash))
    os.utime(os.path.join(folder, "lapis-environment.json"), (used, used))
    return lock.hash


def there(shop: Shop) -> list[str]:
    return [each.hash for each in built(shop.root, sizes=False)]


def test_what_is_built_is_listed_the_last_used_first(shop: Shop) -> None:
    old, new = made(shop, "toy==1.0", used=100), made(shop, "toy==2.0", used=200)
    first, second = built(shop.root)
    assert [first.hash, second.hash] == [new, old]
    assert (second.packages, second.python, second.used_by) == (2, this_python().version, ())
    assert second.size > 1000 and second.last_used == 100
    os.utime(os.path.join(second.folder, MARKER))
    assert there(shop) == [old, new]
    assert pins(lock_of(second.folder)) == {"helper": "2.1", "toy": "1.0"}


def test_nothing_is_listed_or_pruned_where_nothing_is(tmp_path: Path) -> None:
    assert built(str(tmp_path / "none")) == []
    assert prune(str(tmp_path / "none"), 0).removed == ()


def test_who_uses_an_environment_is_known(shop: Shop) -> None:
    name = made(shop, "toy")
    with in_use.held(shop.root, name):
        assert built(shop.root)[0].used_by == (os.getpid(),)
    assert built(shop.root)[0].used_by == ()


def test_pruning_takes_what_was_not_used_for_longest_and_no_more(shop: Shop) -> None:
    make_wheel(shop.wheels, "large", "1.0", code=f"TEXT = '{'x' * 3_000_000}'")
    old, new = made(shop, "large", "toy==1.0", used=100), made(shop, "toy==2.0", used=200)
    assert prune(shop.root, 10**9).removed == ()
    done = prune(shop.root, 2_000_000, shop.told.append)
    assert done.removed == (old,) and there(shop) == [new]
    assert done.freed > 3_000_000 and done.kept < 2_000_000
    assert not [path for path in Path(shop.root, "..", "cache").rglob("large*") if path.is_file()]
    assert ready(build(lock_of(os.path.join(shop.root, new)), this_python(), shop.root, shop.told.append))


def test_an_environment_in_which_something_runs_is_never_pruned(shop: Shop) -> None:
    used, free = made(shop, "toy==1.0", used=100), made(shop, "toy==2.0", used=200)
    folder, file = build_and_hold(lock_of(os.path.join(shop.root, used)), this_python(), shop.root, print)
    try:
        assert prune(shop.root, 0).removed == (free,)
        done = subprocess.run([os.path.join(folder, "bin", "python"), "-c", "import toy, helper"])
        assert done.returncode == 0
    finally:
        os.close(file)
    assert prune(shop.root, 0).removed == (used,)


def test_pruning_removes_what_killed_builds_left_and_nothing_else(shop: Shop) -> None:
    name = made(shop, "toy")
    remains = Path(shop.root, "0" * 32)
    (remains / "bin").mkdir(parents=True)
    for other in ("locks", "resolved"):
        Path(shop.root, other).mkdir()
        Path(shop.root, other, "a.json").touch()
    failed = Path(shop.root, "1" * 32 + ".failed.json")
    failed.touch()
    prune(shop.root, 10**9)
    assert failed.exists()  # so young that somebody may be about to build it again
    os.utime(failed, (1, 1))
    prune(shop.root, 10**9)
    assert sorted(os.listdir(shop.root)) == sorted([name, f"{name}.lock", "locks", "prune.lock", "resolved"])
    assert os.listdir(os.path.join(shop.root, "locks")) == ["a.json"]


def test_bytecode_that_no_environment_has_goes_too(shop: Shop) -> None:
    made(shop, "toy")
    kept = Path(bytecode.store(shop.root))
    assert list(kept.rglob("*.pyc"))
    prune(shop.root, 0)
    assert not list(kept.rglob("*.pyc"))


def test_the_users_own_cache_of_uv_is_left_alone(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "mine"))
    made(shop, "toy")
    before = sorted(path for path in (tmp_path / "mine").rglob("*.py"))
    prune(shop.root, 0)
    assert before and sorted(path for path in (tmp_path / "mine").rglob("*.py")) == before


def test_files_that_environments_share_count_once() -> None:
    def environment(name: str, used: float, by: tuple[int, ...] = ()) -> Built:
        return Built(name, name, "3.8.1", 1, 0.0, used, by)

    shared, mine, yours = (0, 1), (0, 2), (0, 3)
    old, new, running = environment("old", 1), environment("new", 2), environment("running", 0, (7,))
    files = {old: {shared: 100, mine: 10}, new: {shared: 100, yours: 10}, running: {shared: 100}}
    assert too_much(files, 120) == []
    assert too_much(files, 119) == [old]
    assert too_much(files, 109) == [old, new]
    assert too_much(files, 0) == [old, new]


def test_two_that_prune_at_once_do_not_disturb_each_other(shop: Shop) -> None:
    for number in range(4):
        make_wheel(shop.wheels, f"part{number}", "1.0")
        made(shop, f"part{number}", used=number)
    code = f"from lapis.environments.cache import prune; print(len(prune({shop.root!r}, 0).removed))"
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    counts = [int(each.communicate(timeout=60)[0]) for each in both]
    assert [each.returncode for each in both] == [0, 0] and sum(counts) == 4
    assert there(shop) == []


def test_a_build_of_the_server_keeps_to_the_limit(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = made(shop, "toy==1.0", used=100)
    new = shop.lock("toy==2.0")
    file = tmp_path / f"{new.hash}.json"
    file.write_text(json.dumps(new.to_json()))
    monkeypatch.setenv("LAPIS_ENVIRONMENTS_MAX_GB", "0.000001")
    command = [sys.executable, "-m", "lapis.environments", str(file), shop.root]
    with in_use.held(shop.root, "f" * 32):  # other environments' locks do not matter
        assert subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0
        until(lambda: old not in there(shop), seconds=60)

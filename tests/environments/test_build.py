"""Building: whole or not at all, once however many ask, on every Python from 3.7."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lapis.environments import bytecode, in_use
from lapis.environments.build import build, build_and_hold, site_packages
from lapis.environments.old_code import SHIMS, shim_files
from lapis.environments.turns import ready
from lapis.environments.values import Lock
from lapis.errors import StorageFull, UserErrorException
from lapis.machine.commands import Stopped
from lapis.machine.interpreters import Interpreter, interpreters
from lapis.machine.processes import started
from lapis.testing import until
from tests.environments.conftest import Shop, this_python, until_free
from tests.needs import lacking
from tests.wheels import make_wheel

BUILDER = str(Path(__file__).parent / "builder.py")
MINOR_VERSIONS = ("3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13")


def said(folder: str, code: str) -> str:
    done = subprocess.run([os.path.join(folder, "bin", "python"), "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def start(shop: Shop, tmp_path: Path) -> Iterator[Callable[[Lock], subprocess.Popen[str]]]:
    """Starts processes that build a lock; none outlives the test, nor what it started."""
    begun: list[subprocess.Popen[str]] = []

    def go(lock: Lock) -> subprocess.Popen[str]:
        path = tmp_path / "lock.json"
        path.write_text(json.dumps(lock.to_json()))
        process = subprocess.Popen(
            [sys.executable, BUILDER, str(path), shop.root], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        begun.append(process)
        return process

    yield go
    shop.gate.touch()
    for process in begun:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("minor", MINOR_VERSIONS)
def test_a_lock_becomes_a_folder_whose_python_has_the_packages(shop: Shop, minor: str) -> None:
    python = next((each for each in interpreters() if each.version.startswith(f"{minor}.")), None)
    if python is None:
        lacking(f"Python {minor} is not on this machine")
    folder = build(shop.lock("toy<2", python=python), python, shop.root, shop.told.append)
    code = "import helper, sys, toy; print(toy.VERSION, helper.VERSION, sys.version.split()[0], sys.prefix)"
    assert said(folder, code) == f"1.0 2.1 {python.version} {folder}"
    assert "lock.json" in os.listdir(folder) and "build.log" in os.listdir(folder)


def test_what_is_built_already_is_not_built_again(shop: Shop) -> None:
    lock = shop.lock("toy")
    folder = build(lock, this_python(), shop.root, shop.told.append)
    shop.told.clear()
    assert build(lock, this_python(), shop.root, shop.told.append) == folder
    assert shop.told == []


def test_an_environment_without_packages_has_a_python_all_the_same(shop: Shop) -> None:
    assert said(build(shop.lock(), this_python(), shop.root, shop.told.append), "print(1)") == "1"


def test_it_is_told_what_happens_and_how_long_it_took(shop: Shop) -> None:
    lock = shop.lock("toy==1.0")
    build(lock, this_python(), shop.root, shop.told.append)
    told = "\n".join(shop.told)
    assert f"Building environment {lock.hash}: Python {lock.python}, 2 packages" in told
    for stage in ("Resolved 2 packages in ", "Linked 2 packages in ", "is ready after "):
        assert stage in told


def test_eight_processes_that_ask_at_once_build_once(
    shop: Shop, start: Callable[[Lock], subprocess.Popen[str]]
) -> None:
    shop.add_slow_source("slow")
    lock = shop.lock("slow", "toy")
    first = start(lock)
    until(shop.reached.exists)
    others = [start(lock) for _ in range(7)]
    waiting = f"Environment {lock.hash} is being built by process {first.pid}"
    for each in others:
        assert each.stdout is not None
        assert each.stdout.readline().startswith(waiting)
    shop.gate.touch()
    outputs = [each.communicate(timeout=60)[0] for each in (first, *others)]
    assert {output.splitlines()[-1] for output in outputs} == {os.path.join(shop.root, lock.hash)}
    assert sum("Building environment" in output for output in outputs) == 1
    assert len(shop.reached.read_text().split()) == 1


def test_who_only_waits_for_a_build_imports_nothing_that_builds() -> None:
    waits = "import sys, lapis.environments.__main__; print(*sys.modules)"
    imported = subprocess.run([sys.executable, "-c", waits], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "lapis.environments.turns" in imported.split()
    assert not {"lapis.environments.build", "subprocess", "json", "typing"} & set(imported.split())


def test_a_build_that_was_killed_never_counts_and_the_next_one_is_whole(
    shop: Shop, start: Callable[[Lock], subprocess.Popen[str]]
) -> None:
    shop.add_slow_source("slow")
    lock = shop.lock("slow", "toy")
    killed = start(lock)
    until(shop.reached.exists)
    killed.kill()
    killed.wait()
    folder = os.path.join(shop.root, lock.hash)
    assert os.path.isdir(folder) and not ready(folder)
    second = start(lock)
    assert second.stdout is not None
    # uv and the package's own build outlive the killed process: as long as they write, nobody else does.
    assert "is being built by" in second.stdout.readline()
    shop.gate.touch()
    assert second.communicate(timeout=60)[0].splitlines()[-1] == folder
    assert said(folder, "import slow, toy; print(slow.VERSION, toy.VERSION)") == "1.0 2.0"


def test_cancel_ends_the_build_and_all_that_it_started(shop: Shop) -> None:
    shop.add_slow_source("slow")
    lock = shop.lock("slow")
    with pytest.raises(Stopped):
        build(lock, this_python(), shop.root, shop.told.append, canceled=shop.reached.exists)
    assert os.listdir(shop.root) == [f"{lock.hash}.lock"]
    assert started(int(shop.reached.read_text())) is None
    shop.gate.touch()
    assert ready(build(lock, this_python(), shop.root, shop.told.append))


def test_cancel_ends_the_wait_for_another_process(shop: Shop, start: Callable[[Lock], subprocess.Popen[str]]) -> None:
    shop.add_slow_source("slow")
    lock = shop.lock("slow")
    start(lock)
    until(shop.reached.exists)
    with pytest.raises(Stopped):
        build(lock, this_python(), shop.root, shop.told.append, canceled=lambda: "is being built" in shop.told[-1])


def test_a_builder_of_the_server_leaves_in_order_when_it_is_asked_to(shop: Shop, tmp_path: Path) -> None:
    shop.add_slow_source("slow")
    lock = shop.lock("slow")
    file = tmp_path / f"{lock.hash}.json"
    file.write_text(json.dumps(lock.to_json()))
    builder = subprocess.Popen([sys.executable, "-m", "lapis.environments", str(file), shop.root])
    until(shop.reached.exists)
    builder.send_signal(signal.SIGTERM)
    assert builder.wait(timeout=30) == 1
    assert not os.path.exists(os.path.join(shop.root, lock.hash))
    assert started(int(shop.reached.read_text())) is None


def test_a_package_that_is_not_the_locked_one_is_refused(shop: Shop) -> None:
    lock = shop.lock("toy==2.0")
    make_wheel(shop.wheels, "toy", "2.0", code="STOLEN = True")
    shutil.rmtree(os.path.join(shop.root, "..", "cache"))
    with pytest.raises(UserErrorException, match="not the one that was locked"):
        build(lock, this_python(), shop.root, shop.told.append)
    assert not os.path.exists(os.path.join(shop.root, lock.hash))


def test_another_python_than_the_locked_one_is_refused(shop: Shop) -> None:
    with pytest.raises(UserErrorException, match="locked for Python"):
        build(shop.lock("toy"), Interpreter(sys.executable, "3.7.1"), shop.root, shop.told.append)


def test_an_environment_whose_interpreter_is_gone_is_built_again(shop: Shop) -> None:
    lock = shop.lock("toy")
    folder = build(lock, this_python(), shop.root, shop.told.append)
    python = os.path.join(folder, "bin", "python")
    os.unlink(python)
    os.symlink("/no/such/python", python)
    assert said(build(lock, this_python(), shop.root, shop.told.append), "import toy; print(toy.VERSION)") == "2.0"


def test_a_full_disk_is_said_and_leaves_nothing(shop: Shop, tmp_path: Path) -> None:
    make_wheel(shop.wheels, "large", "1.0", code=f"TEXT = '{os.urandom(4_000_000).hex()}'")
    small = tmp_path / "small"
    small.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(small)]).returncode:
        lacking("a small file system cannot be mounted here")
    try:
        lock = shop.lock("large")
        with pytest.raises(StorageFull, match="lapis env prune"):
            build(lock, this_python(), str(small / "environments"), shop.told.append)
        assert os.listdir(small / "environments") == [f"{lock.hash}.lock"]
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)


def test_a_held_environment_cannot_be_taken_for_removal(shop: Shop) -> None:
    lock = shop.lock("toy")
    folder, file = build_and_hold(lock, this_python(), shop.root, shop.told.append)
    bytecode.compile_now(folder, shop.root)
    assert in_use.take(shop.root, lock.hash) is None
    child = os.fork()
    if child == 0:  # a keeper: it holds what its parent held
        time.sleep(60)
        os._exit(0)
    os.close(file)
    assert in_use.take(shop.root, lock.hash) is None
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(until_free(shop.root, lock.hash))


def test_help_for_old_code_lies_among_the_packages(shop: Shop) -> None:
    name = next(iter(SHIMS))
    lock = replace(shop.lock("toy"), shims=(name,))
    folder = build(lock, this_python(), shop.root, shop.told.append)
    there = os.listdir(site_packages(folder, lock.python))
    assert shim_files([name]) and set(shim_files([name])) <= set(there)
    assert lock.hash != shop.lock("toy").hash


# Bytecode


def compiled(folder: str) -> dict[str, os.stat_result]:
    return {path.name.split(".")[0]: path.stat() for path in Path(folder).rglob("site-packages/__pycache__/*.pyc")}


def test_bytecode_comes_after_the_build_and_the_next_environment_gets_a_copy_of_it(shop: Shop) -> None:
    first = build(shop.lock("toy==2.0"), this_python(), shop.root, shop.told.append)
    until(lambda: "toy" in compiled(first))
    bytecode.compile_now(first, shop.root)  # keeps it for others, if the one in the background has not yet
    second = build(shop.lock("toy==2.0", "helper"), this_python(), shop.root, shop.told.append)
    until(lambda: "toy" in compiled(second))
    assert compiled(second)["toy"].st_nlink == 1


def test_kept_bytecode_is_used_in_place_of_the_source(shop: Shop) -> None:
    first = build(shop.lock("toy==2.0"), this_python(), shop.root, shop.told.append)
    bytecode.compile_now(first, shop.root)
    second = build(shop.lock("toy==2.0", "helper"), this_python(), shop.root, shop.told.append)
    until(lambda: "toy" in compiled(second))
    told = subprocess.run(
        [os.path.join(second, "bin", "python"), "-v", "-c", "import toy"], capture_output=True, text=True
    ).stderr
    assert f"code object from '{second}" in told and "toy.cpython" in told
    assert "wrote" not in told


def test_files_that_do_not_compile_do_no_harm(shop: Shop) -> None:
    make_wheel(shop.wheels, "broken", "1.0", code="print 'Python 2'")
    folder = build(shop.lock("broken", "toy"), this_python(), shop.root, shop.told.append)
    bytecode.compile_now(folder, shop.root)
    assert "toy" in compiled(folder) and "broken" not in compiled(folder)

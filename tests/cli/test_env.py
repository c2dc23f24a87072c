"""`lapis env`: the environments of this machine, from the command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lapis.environments import in_use
from tests.cli.conftest import Lapis
from tests.wheels import make_wheel


@pytest.fixture
def requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A requirements file whose packages lie in a folder beside it, and a home without any environment."""
    monkeypatch.setenv("LAPIS_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    make_wheel(tmp_path / "wheels", "toy", "1.0", requires=("helper",))
    make_wheel(tmp_path / "wheels", "toy", "2.0")
    make_wheel(tmp_path / "wheels", "helper", "1.5")
    for name in ("pip", "setuptools", "wheel"):  # what an environment of conda's had always
        make_wheel(tmp_path / "wheels", name, "1.0")
    file = tmp_path / "requirements.txt"
    file.write_text(f"--no-index\n--find-links {tmp_path / 'wheels'}\ntoy==1.0\n")
    return file


@pytest.fixture
def two(lapis: Lapis, requirements: Path) -> tuple[str, str]:
    """The hashes of two environments."""
    first = lapis("env", "build", str(requirements), "--json").json["hash"]
    requirements.write_text(requirements.read_text().replace("toy==1.0", "toy==2.0"))
    return first, lapis("env", "build", str(requirements), "--json").json["hash"]


def test_an_environment_is_built_of_a_requirements_file_and_told_as_it_happens(
    lapis: Lapis, requirements: Path
) -> None:
    said = lapis("env", "build", str(requirements))
    assert said.status == 0
    for words in ("Resolving environment 'requirements'", " packages in", "Compiling bytecode"):
        assert words in said.err
    folder = said.out.split()[-1]
    assert list(Path(folder).rglob("toy*.pyc"))


def test_an_environment_is_built_of_a_conda_file(lapis: Lapis, requirements: Path, tmp_path: Path) -> None:
    lines = "".join(f"    - {line}\n" for line in requirements.read_text().splitlines())
    (tmp_path / "conda.yml").write_text(f"name: mine\ndependencies:\n  - pip\n  - pip:\n{lines}")
    assert lapis("env", "build", str(tmp_path / "conda.yml"), "--json").status == 0
    assert len(lapis("env", "list", "--json").json["environments"]) == 1


def test_what_is_there_is_listed(lapis: Lapis, two: tuple[str, str]) -> None:
    said = lapis("env", "list")
    assert said.out.splitlines()[0].split() == ["HASH", "PYTHON", "PACKAGES", "SIZE", "LAST", "USED"]
    assert {line.split()[0] for line in said.out.splitlines()[1:]} == {each[:12] for each in two}


def test_nothing_there_is_said(lapis: Lapis, requirements: Path) -> None:
    said = lapis("env", "list")
    assert (said.status, said.out) == (0, "") and "No environment is built" in said.err


def test_one_is_shown_with_its_packages_and_its_log(lapis: Lapis, two: tuple[str, str]) -> None:
    shown = lapis("env", "show", two[0][:8])
    assert ["helper", "1.5"] in [line.split() for line in shown.out.splitlines()]
    assert f"Hash       {two[0]}" in shown.out
    assert "Linked " in lapis("env", "show", two[0], "--log").out
    packages = lapis("env", "show", two[0], "--json").json["packages"]
    assert (packages["helper"], packages["toy"]) == ("1.5", "1.0")


def test_one_that_is_not_there_is_an_error_that_names_the_others(lapis: Lapis, two: tuple[str, str]) -> None:
    said = lapis("env", "show", "nobody")
    assert said.status == 1 and two[0][:12] in said.err


def test_what_differs_between_two_is_told(lapis: Lapis, two: tuple[str, str]) -> None:
    rows = [line.split() for line in lapis("env", "diff", *two).out.splitlines()]
    assert rows == [["WHAT", "A", "B"], ["helper", "1.5", "-"], ["toy", "1.0", "2.0"]]
    assert lapis("env", "diff", two[0], two[0]).out == "They are the same.\n"


def test_lock_files_are_compared_too(lapis: Lapis, two: tuple[str, str], requirements: Path, tmp_path: Path) -> None:
    lock = Path(lapis("env", "show", two[0], "--json").json["folder"]) / "lock.json"
    text = tmp_path / "environment.lock.txt"
    text.write_text("# Environment 'old': Python 3.6.2, 1 packages, lock 1\ntoy==1.0 \\\n    --hash=sha256:00\n")
    found = lapis("env", "diff", str(lock), str(text), "--json").json["differences"]
    assert {"Python", "helper"} <= {each["name"] for each in found} and found[0]["b"] == "3.6.2"
    assert "toy" not in {each["name"] for each in found}


def test_verify_says_which_files_are_not_as_they_were_built(lapis: Lapis, two: tuple[str, str], tmp_path: Path) -> None:
    assert f"{two[0][:12]} is as it was built." in lapis("env", "verify").out
    (module,) = (tmp_path / "home" / "environments" / two[0]).rglob("toy.py")
    module.chmod(0o644)
    module.write_text("poisoned = True")
    told = lapis("env", "verify", two[0])
    assert told.status == 1 and "site-packages/toy.py" in told.out
    assert lapis("env", "verify", two[1]).status == 0
    assert lapis("env", "verify", "--json").json["environments"][two[1]] == []


def test_verify_says_that_there_is_nothing_to_look_at(
    lapis: Lapis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPIS_HOME", str(tmp_path))
    assert lapis("env", "verify").out == f"No environment is built in {tmp_path}/environments.\n"


def test_pruning_leaves_what_is_in_use(lapis: Lapis, two: tuple[str, str], tmp_path: Path) -> None:
    root = str(tmp_path / "home" / "environments")
    assert lapis("env", "prune", "--json").json["removed"] == []
    with in_use.held(root, two[0]):
        assert f"process {os.getpid()}" in lapis("env", "list").out
        assert lapis("env", "prune", "--keep", "0", "--json").json["removed"] == [two[1]]
    assert "1 environment removed" in lapis("env", "prune", "--keep", "0").out


def test_a_limit_that_is_no_number_is_named(lapis: Lapis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPIS_ENVIRONMENTS_MAX_GB", "much")
    assert "LAPIS_ENVIRONMENTS_MAX_GB='much'" in lapis("env", "prune").err

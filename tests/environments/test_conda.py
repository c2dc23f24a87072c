"""Conda packages, where a command for them is there: solved before anything is built, linked beside those of pip."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lapis.environments import conda
from lapis.environments.build import build
from lapis.environments.environment_builds import EnvironmentBuilds
from lapis.environments.values import Lock
from lapis.errors import UserErrorException
from tests.conda_channel import PYTHON, SITE, Channel
from tests.wheels import make_wheel

MINOR = ".".join(PYTHON.split(".")[:2])


@pytest.fixture
def channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Channel:
    """With a Python, a library that PyPI does not have, and two versions of a Python package."""
    command = tmp_path / "bin" / "micromamba"
    command.parent.mkdir()
    stand_in = Path(__file__).parent.parent / "conda_command.py"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{stand_in}" "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("LAPIS_CONDA", str(command))
    monkeypatch.setenv("CONDA_TEST_CACHE", str(tmp_path / "conda-cache"))
    made = Channel(tmp_path / "channel")
    made.add_python()
    made.add("openjdk", "11.0.1", {"bin/java": "#!/bin/sh\necho coffee\n"})
    for number in ("1.0", "1.1"):
        info = f"{SITE}/beans-{number}.dist-info"
        files = {
            f"{SITE}/beans.py": f"VERSION = {number!r}\n",
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: beans\nVersion: {number}\n",
            f"{info}/RECORD": "",
            f"{info}/INSTALLER": "conda\n",
        }
        made.add("beans", number, files, depends=["python", "openjdk"])
    return made


def definition(channel: Channel, *dependencies: Any, pip: list[str]) -> dict[str, Any]:
    section = {"channels": [channel.address], "dependencies": [*dependencies, {"pip": pip}] if pip else dependencies}
    return {"name": "roastery", "python": {"condaDependencies": section}}


def resolved(tmp_path: Path, wish: dict[str, Any]) -> Lock:
    return EnvironmentBuilds(str(tmp_path / "environments"), lambda: None).resolve(wish, strict=False).lock


def said(folder: str, *command: str) -> str:
    argv = [os.path.join(folder, "bin", command[0]), *command[1:]]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def test_what_conda_and_pip_ask_for_is_in_one_environment(tmp_path: Path, channel: Channel) -> None:
    wheels = make_wheel(tmp_path / "wheels", "cup", "2.0", requires=("beans",)).parent
    make_wheel(wheels, "beans", "1.0")
    make_wheel(wheels, "beans", "1.1")
    pip = ["--no-index", f"--find-links {wheels}", "cup"]
    lock = resolved(tmp_path, definition(channel, f"python={MINOR}", "pip", "beans=1.0", pip=pip))
    assert lock.python == PYTHON and lock.channels == (channel.address,)
    assert lock.conda == ("beans=1.0=0", "openjdk=11.0.1=0", f"python={PYTHON}=0")
    assert "beans==1.0" in lock.packages, "pip's part keeps to what conda brings"
    told: list[str] = []
    folder = build(lock, None, str(tmp_path / "environments"), told.append)
    assert said(folder, "java") == "coffee"
    code = "import beans, cup, sys; print(beans.VERSION, cup.VERSION, sys.prefix)"
    assert said(folder, "python", "-c", code) == f"1.0 2.0 {folder}"
    assert "micromamba links 3 conda packages" in told
    assert json.loads(Path(folder, "lock.json").read_text())["conda"] == list(lock.conda)


def test_the_lock_is_another_when_conda_brings_another_version(tmp_path: Path, channel: Channel) -> None:
    one = resolved(tmp_path, definition(channel, "beans=1.0", pip=[]))
    other = resolved(tmp_path, definition(channel, "beans", pip=[]))
    assert "beans=1.1=0" in other.conda and one.hash != other.hash
    assert Lock.from_json(one.to_json()) == one


def test_packages_that_the_channels_do_not_have_are_named_and_nothing_is_built(
    tmp_path: Path, channel: Channel
) -> None:
    with pytest.raises(UserErrorException, match=r"micromamba finds no packages for .*teapot.* in file://") as error:
        resolved(tmp_path, definition(channel, "teapot=3", pip=[]))
    assert "teapot" in error.value.message.split("channel", 1)[1], "with what the solver says"
    assert os.listdir(tmp_path / "environments" / "locks") == []


def test_python_and_pip_alone_do_not_need_conda(tmp_path: Path, channel: Channel) -> None:
    wheels = make_wheel(tmp_path / "wheels", "cup", "2.0").parent
    pip = ["--no-index", f"--find-links {wheels}", "cup"]
    assert resolved(tmp_path, definition(channel, f"python={MINOR}", "pip", pip=pip)).conda == ()


def test_without_the_command_the_names_are_looked_up_on_pypi(
    tmp_path: Path, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPIS_CONDA", "off")
    with pytest.raises(UserErrorException, match="not Python packages.*openjdk"):
        resolved(tmp_path, definition(channel, "openjdk", pip=[]))


def test_a_command_that_is_not_there_is_an_error_that_says_what_to_set(
    tmp_path: Path, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPIS_CONDA", "mamba-of-yesterday")
    with pytest.raises(UserErrorException, match="LAPIS_CONDA is 'mamba-of-yesterday', and there is no such command"):
        resolved(tmp_path, definition(channel, "beans", pip=[]))


def test_an_old_python_is_replaced_by_one_that_lapis_runs_on(channel: Channel) -> None:
    how: dict[str, Any] = {"gpu": False, "strict": False, "mpi": False, "horovod_in": ""}
    made = conda.plan(definition(channel, "python=3.6.2", "beans", pip=[]), **how)
    assert made.conda == ("python=3.7", "beans") and made.substitutions[0].asked == "python=3.6.2"
    made = conda.plan(definition(channel, "python=3.8.5", "beans", pip=[]), **how)
    assert made.conda == ("python=3.8.5", "beans") and made.substitutions == ()

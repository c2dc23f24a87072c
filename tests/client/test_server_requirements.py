"""What the server needs is said in three places, which agree; and the package itself needs nothing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from lapis.client import server_requirements
from lapis.client.server_requirements import EXTRAS, NEEDED, lacking
from lapis.machine.installed_packages import installed_versions

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pins(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==([^\s;]+)", text, re.MULTILINE))


def test_the_package_requires_nothing() -> None:
    assert PROJECT["dependencies"] == []


def test_the_extra_server_is_the_list_that_clients_know() -> None:
    written = [each.partition(";")[0].strip().partition(">=") for each in PROJECT["optional-dependencies"]["server"]]
    assert {name: least for name, _, least in written} == NEEDED
    assert {name: tuple(PROJECT["optional-dependencies"][name]) for name in EXTRAS} == EXTRAS


def test_the_pinned_list_has_all_of_it_in_the_versions_that_tests_run_with() -> None:
    pinned, of_development = pins(server_requirements.pinned()), pins((ROOT / "requirements" / "dev.txt").read_text())
    assert lacking(pinned) == []
    assert {name: of_development.get(name, version) for name, version in pinned.items()} == pinned


@pytest.mark.parametrize(
    "entry, lacks",
    [
        ("typer-0.15.dist-info", False),
        ("typer-0.29.0rc1.dist-info", False),
        ("Typer-1.0-py3.11.egg-info", False),
        ("typer-0.9.4.dist-info", True),
        ("typer_slim-0.15.dist-info", True),
    ],
)
def test_an_interpreter_whose_packages_are_too_old_is_not_the_servers(tmp_path: Path, entry: str, lacks: bool) -> None:
    (tmp_path / entry).mkdir()
    assert ("typer" in lacking(installed_versions([str(tmp_path / "gone"), str(tmp_path)]))) is lacks


def test_this_interpreter_has_what_the_server_needs() -> None:
    assert server_requirements.are_here()

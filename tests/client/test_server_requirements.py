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


# The first release without the hole, as advisories tell: a lower bound is never below it.
FIXED = {
    "aiohttp": "3.14.3",  # CVE-2026-69244, CVE-2026-69243, CVE-2026-34993
    "anyio": "4.14.2",  # GHSA-82r6-8w77-94w6, GHSA-5p39-cfhj-2xmp
    "cryptography": "48.0.1",  # GHSA-537c-gmf6-5ccf; CVE-2026-26007, CVE-2026-34073 before
    "h11": "0.16",  # CVE-2025-43859
    "idna": "3.15",  # CVE-2026-45409
    "jinja2": "3.1.6",  # CVE-2025-27516
    "mako": "1.3.12",  # CVE-2026-44307, CVE-2026-41205
    "pyarrow": "14.0.1",  # CVE-2023-47248; CVE-2026-25087 from 15 to 23.0.0
    "pydantic": "2.4",  # CVE-2024-3772
    "pygments": "2.20",  # CVE-2026-4539
    "pymysql": "1.1.1",  # CVE-2024-36039
    "ray": "2.54",  # CVE-2026-27482; CVE-2025-62593 before
    "requests": "2.33",  # CVE-2026-25645
    "starlette": "1.3.1",  # CVE-2026-54282, CVE-2026-54283; CVE-2026-48710 before
    "tqdm": "4.66.3",  # CVE-2024-34062
    "urllib3": "2.7",  # CVE-2026-44431, CVE-2026-44432
    "uv": "0.11.28",  # how it reads ZIP and TAR files; GHSA-4gg8-gxpx-9rph before
}
# Which of them the packages of an extra bring along.
BRING = {
    "adlfs": ("aiohttp", "requests", "urllib3"),
    "gcsfs": ("aiohttp", "requests", "urllib3"),
    "kubernetes": ("requests", "urllib3"),
    "ray": ("aiohttp", "requests", "urllib3"),
    "s3fs": ("aiohttp", "urllib3"),
    "smbprotocol": ("cryptography",),
}


def bounds(extra: str) -> dict[str, list[str]]:
    """The lower bounds of each package; one without has an empty one."""
    found: dict[str, list[str]] = {}
    for line in PROJECT["optional-dependencies"][extra]:
        name, least = re.fullmatch(r"([\w-]+)(?:\[\w+\])?(?:>=([\d.]+))?.*", line).groups()  # type: ignore[union-attr]
        found.setdefault(name, []).append(least or "")
    return found


def numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


@pytest.mark.parametrize("extra", PROJECT["optional-dependencies"])
def test_no_lower_bound_lets_a_version_with_a_known_hole_in(extra: str) -> None:
    for name, least in bounds(extra).items():
        assert all(each and numbers(each) >= numbers(FIXED.get(name, "0")) for each in least), (name, least)
        assert set(BRING.get(name, ())) <= set(bounds(extra)), f"{name} brings what has no bound of its own"


def test_everything_of_the_server_that_had_a_hole_has_a_bound() -> None:
    pinned = pins(server_requirements.pinned())
    assert sorted(set(pinned) & set(FIXED)) == sorted(set(NEEDED) & set(FIXED))
    assert not [name for name in set(pinned) & set(FIXED) if numbers(pinned[name]) < numbers(FIXED[name])]


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

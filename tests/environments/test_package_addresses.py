"""Where packages may come from: every way to name an address in a definition, or a place on the server's disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from azureml.core import Environment
from lapis.domain.addresses import rule_of
from lapis.environments import package_addresses
from lapis.environments.environment_builds import EnvironmentBuilds
from lapis.errors import Forbidden, UserErrorException

FORBIDDEN = {"LAPIS_FORBIDDEN_ADDRESSES": "evil.example,127.0.0.0/8"}
RULE = rule_of(FORBIDDEN)

ADDRESSES = {
    "a direct address": "foo @ https://evil.example/foo-1.0.tar.gz",
    "a bare address": "https://evil.example/foo-1.0.tar.gz",
    "with a password": "foo @ https://me:secret@evil.example/foo-1.0.whl",
    "git": "git+https://evil.example/foo.git#egg=foo",
    "git by ssh": "git+ssh://git@evil.example/foo.git",
    "editable": "-e git+https://evil.example/foo.git#egg=foo",
    "as a number": "foo @ http://2130706433/foo-1.0.tar.gz",
    "an index": "--index-url https://evil.example/simple",
    "an index with =": "--index-url=https://evil.example/simple",
    "one more index": "--extra-index-url https://evil.example/simple",
    "links": "--find-links https://evil.example/wheels",
    "links in short": "-f https://evil.example/wheels",
}
PLACES = {
    "file": "foo @ file:///etc/foo-1.0.tar.gz",
    "a path": "/etc/foo",
    "editable": "-e /etc/foo",
    "links": "--find-links /etc",
    "links by file": "--find-links file:///etc",
    "an index": "--index-url file:///etc",
    "git": "git+file:///etc/repository",
}


def definition(line: str, **more: Any) -> dict[str, Any]:
    made = Environment("named")
    found: dict[str, Any] = made._to_dict()
    found["python"]["condaDependencies"]["dependencies"] = ["python=3.11", {"pip": [line]}]
    for name, value in more.items():
        found["python"]["condaDependencies"][name] = value
    return found


@pytest.fixture
def builds(tmp_path: Path) -> EnvironmentBuilds:
    return EnvironmentBuilds(str(tmp_path / "environments"), lambda: None)


@pytest.mark.parametrize("line", ADDRESSES.values(), ids=ADDRESSES.keys())
def test_nothing_is_fetched_from_a_forbidden_address(
    builds: EnvironmentBuilds, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPIS_FORBIDDEN_ADDRESSES", FORBIDDEN["LAPIS_FORBIDDEN_ADDRESSES"])
    with pytest.raises(UserErrorException, match="No package is fetched from .* is among LAPIS_FORBIDDEN") as error:
        builds.resolve(definition(line), strict=False)
    assert "secret" not in error.value.message


def test_a_clouds_metadata_service_is_forbidden_without_any_setting(builds: EnvironmentBuilds) -> None:
    with pytest.raises(UserErrorException, match="metadata service"):
        builds.resolve(definition("foo @ http://169.254.169.254/latest/foo-1.0.tar.gz"), strict=False)


@pytest.mark.parametrize("line", PLACES.values(), ids=PLACES.keys())
def test_a_run_cannot_name_a_place_on_the_servers_disk(builds: EnvironmentBuilds, line: str) -> None:
    with pytest.raises(Forbidden, match="cannot name a place on the server's disk"):
        builds.resolve(definition(line), strict=False, may_name_files=False)


@pytest.mark.parametrize(
    ("channels", "packages", "named"),
    [
        (["conda-forge"], ["numpy"], ["https://conda.anaconda.org/conda-forge"]),
        (["https://evil.example/channel"], [], ["https://evil.example/channel"]),
        ([], ["https://evil.example/channel::numpy"], ["https://evil.example/channel"]),
        (["/etc/channel", "file:///etc"], [], ["/etc/channel", "file:///etc"]),
    ],
)
def test_channels_of_conda_are_addresses_too(channels: list[str], packages: list[str], named: list[str]) -> None:
    assert package_addresses.of_channels(channels, packages) == named


@pytest.mark.parametrize(
    ("image", "dockerfile", "host"),
    [
        ("ubuntu:22.04", None, "docker.io"),
        ("team/base", None, "docker.io"),
        ("registry.example:5000/base", None, "registry.example:5000"),
        ("localhost/base", None, "localhost"),
        (None, "# comment\nFROM --platform=linux/amd64 evil.example/base AS one\nRUN true\n", "evil.example"),
    ],
)
def test_the_registry_of_an_image_is_one_too(image: str | None, dockerfile: str | None, host: str) -> None:
    assert package_addresses.of_images(image, dockerfile) == [f"https://{host}"]


def test_packages_that_others_want_from_an_address_are_found_in_the_lock() -> None:
    lock = "foo==1.0 \\\n    --hash=sha256:aa\nbar @ https://evil.example/bar.whl \\\n    --hash=sha256:bb\n"
    found = package_addresses.of_requirements(lock.splitlines())
    assert found == ["https://evil.example/bar.whl"]
    with pytest.raises(UserErrorException, match="evil.example"):
        package_addresses.check(found, RULE, may_name_files=True)


@pytest.mark.parametrize("option", ["--volume=/:/host", "-v", "--privileged", "--mount=type=bind", "--pid=host"])
def test_a_run_opens_nothing_of_the_machine_to_a_container(option: str) -> None:
    with pytest.raises(Forbidden, match=option):
        package_addresses.check_container([option], may_name_files=False)
    package_addresses.check_container([option], may_name_files=True)
    package_addresses.check_container(["--shm-size=2g", "--ulimit", "memlock=-1"], may_name_files=False)

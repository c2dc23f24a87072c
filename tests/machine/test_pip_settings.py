"""What pip was told about indexes reaches uv, unless uv was told itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapis.machine import uv
from lapis.machine.pip_settings import variables_for_uv

CACHE = "/no/such/cache"


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment that knows one file of pip's, and no settings of the user who runs the tests."""
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://one/simple\nextra-index-url =\n    https://two/simple\n    https://three/simple\n"
        "[install]\nfind-links = /wheels /more\n"
    )
    return {"PIP_CONFIG_FILE": str(file), "XDG_CONFIG_HOME": str(tmp_path / "none"), "VIRTUAL_ENV": str(tmp_path / "v")}


def of_uv(environ: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables_for_uv(environ).items() if name.startswith("UV_")}


def test_a_file_of_pip_is_read(environ: dict[str, str]) -> None:
    found = variables_for_uv(environ)
    assert found["UV_INDEX_URL"] == "https://one/simple"
    assert found["UV_EXTRA_INDEX_URL"] == "https://two/simple https://three/simple"
    assert found["UV_FIND_LINKS"] == "/wheels,/more"


def test_a_variable_of_pip_counts_more_than_its_file(environ: dict[str, str]) -> None:
    assert variables_for_uv({**environ, "PIP_INDEX_URL": "https://four"})["UV_INDEX_URL"] == "https://four"


def test_no_file_is_read_where_pip_reads_none(environ: dict[str, str]) -> None:
    assert variables_for_uv({**environ, "PIP_CONFIG_FILE": "/dev/null"}) == {}


@pytest.mark.parametrize("name", ["UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL"])
def test_settings_of_uv_stand_alone(environ: dict[str, str], name: str) -> None:
    assert of_uv({**environ, name: "https://mine"}) == {}
    assert uv.environment_for({**environ, name: "https://mine"}, CACHE)[name] == "https://mine"


def test_a_file_of_uv_that_names_an_index_stands_alone(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "none" / "uv").mkdir(parents=True)
    file = tmp_path / "none" / "uv" / "uv.toml"
    file.write_text("offline = false\n")
    assert "UV_INDEX_URL" in variables_for_uv(environ)
    file.write_text('[[index]]\nurl = "https://mine"\n')
    assert of_uv(environ) == {}


def test_what_opens_the_server_is_not_shown_to_the_builds_of_packages(environ: dict[str, str]) -> None:
    assert "LAPIS_TOKEN" not in uv.environment_for({**environ, "LAPIS_TOKEN": "secret", "VIRTUAL_ENV": "/mine"}, CACHE)


def test_a_certificate_of_pip_is_one_for_uv(environ: dict[str, str]) -> None:
    assert variables_for_uv({**environ, "PIP_CERT": "/ca.pem"})["SSL_CERT_FILE"] == "/ca.pem"
    kept = uv.environment_for({**environ, "PIP_CERT": "/ca.pem", "SSL_CERT_FILE": "/mine.pem"}, CACHE)
    assert kept["SSL_CERT_FILE"] == "/mine.pem"

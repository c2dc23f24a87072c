"""Packages that come as source, and do not build with today's tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lapis.environments import old_builds
from lapis.machine.commands import Said

FAILED = "error: Failed to build `forecast==0.5`\n"
UNSAID = (
    FAILED + "ModuleNotFoundError: No module named 'pystan'\n\nhint: This error likely indicates that `forecast@0.5` "
    "depends on `pystan`, but doesn't declare it as a build dependency."
)


def test_a_package_that_imports_another_while_it_is_built_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "uv.toml").write_text('index-url = "https://index.example.org/simple"\n')
    monkeypatch.setenv("UV_CONFIG_FILE", str(tmp_path / "uv.toml"))
    calls: list[list[str]] = []
    told: list[str] = []

    def call(options: Sequence[str]) -> Said:
        calls.append(list(options))
        return Said(1, "", FAILED if not options else UNSAID) if "--config-file" not in options else Said(0, "done", "")

    assert old_builds.tried(call, str(tmp_path), "3.7.16", told.append).ok
    assert [len(each) for each in calls] == [0, 2, 4], "as it is, with tools of its time, with what it needs"
    settings = Path(calls[-1][3]).read_text()
    assert settings.splitlines() == [
        'index-url = "https://index.example.org/simple"',
        "[extra-build-dependencies]",
        'forecast = ["pystan<3"]',
    ]
    assert "forecast needs pystan<3 to be built, and does not say so" in told[-1]


def test_one_that_fails_all_the_same_is_told_as_it_failed_first(tmp_path: Path) -> None:
    said = old_builds.tried(
        lambda options: Said(1, "", f"{UNSAID} {options}"), str(tmp_path), "3.11.7", lambda line: None
    )
    assert said.complaints == f"{UNSAID} ()"


def test_what_is_no_build_is_not_tried_again(tmp_path: Path) -> None:
    calls: list[Sequence[str]] = []
    old_builds.tried(lambda options: (calls.append(options), Said(1, "", "no space"))[1], str(tmp_path), "3.9.1", print)
    assert calls == [()]

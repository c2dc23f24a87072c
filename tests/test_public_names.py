"""The page of public names tells the truth: each row is there, and each name of the public modules has a row."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "public-names.md"
ROWS = re.findall(r"^\| `lapis\.([a-z_.]+)\.(\w+)`", PAGE.read_text(), re.M)
MODULES = ["compute", "sweeps", "testing"]


@pytest.mark.parametrize(("module", "name"), ROWS, ids=lambda part: str(part))
def test_every_public_name_can_be_imported_where_the_page_says(module: str, name: str) -> None:
    assert hasattr(import_module(f"lapis.{module}"), name)


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_a_public_module_is_on_the_page(module: str) -> None:
    assert {name for home, name in ROWS if home == module} == set(import_module(f"lapis.{module}").__all__)

"""The rooms of the house: each package stands in the contract of layers, and light ones are light everywhere."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LAPIS = ROOT / "src" / "lapis"


def _contracts(name: str) -> dict[str, Any]:
    written = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (found,) = (contract for contract in written if contract["name"].startswith(name))
    return dict(found)


def test_every_package_and_module_of_lapis_stands_in_exactly_one_layer() -> None:
    listed = [room.strip() for layer in _contracts("The layers of the house")["layers"] for room in layer.split("|")]
    there = {path.stem for path in LAPIS.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert sorted(listed) == sorted(there - {"__init__"})


def test_light_packages_are_the_same_to_the_contract_and_to_the_checker_of_syntax() -> None:
    written = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["per-file-target-version"]
    assert set(written.values()) == {"py37"}
    of_syntax = {
        path.removesuffix("/**").removesuffix(".py").removeprefix("src/").replace("/", ".") for path in written
    }
    assert of_syntax - {"lapis.__init__"} == set(_contracts("Light packages")["source_modules"])


def test_every_package_says_in_one_sentence_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in LAPIS.rglob("__init__.py")
        if not path.read_text().startswith('"""') and "migrations" not in path.parts
    ]
    assert silent == []

"""In what order indexes are asked, and that a public package never comes in the place of a private one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lapis.environments import indexes, uv
from lapis.environments.resolve import resolve
from lapis.environments.values import Recipe
from lapis.errors import UserErrorException
from tests.environments.conftest import Shop, this_python
from tests.environments.test_resolve import Index
from tests.wheels import make_wheel

PYPI, MINE, TORCH = "https://pypi.org/simple", "https://mine.example/simple", "https://download.pytorch.org/whl/cpu"


@pytest.fixture(autouse=True)
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of whoever runs the tests."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    for name in ("UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_STRATEGY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)


def index_of(folder: Path, **versions: str) -> Index:
    for name, version in versions.items():
        wheel = make_wheel(folder / name, name, version, code=f"FROM = {folder.name!r}")
        (folder / name / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    return Index(folder)


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Index]:
    index = index_of(tmp_path / "private", secretlib="1.0")
    yield index
    index.close()


@pytest.fixture
def public(tmp_path: Path) -> Iterator[Index]:
    """Where somebody has published the name of the private package, with a higher version."""
    index = index_of(tmp_path / "public", secretlib="9.9", other="1.0")
    yield index
    index.close()


def locked(shop: Shop, *requirements: str, options: tuple[str, ...] = ()) -> str:
    recipe = Recipe(this_python().version, requirements, pip_options=options)
    return resolve(recipe, this_python(), shop.told.append, root=shop.root).packages


def test_a_public_package_does_not_beat_the_private_one_of_its_name(shop: Shop, private: Index, public: Index) -> None:
    options = (f"--index-url {public.url}", f"--extra-index-url {private.url}")
    found = locked(shop, "secretlib", "other", options=options)
    assert "secretlib==1.0" in found and "other==1.0" in found


def test_a_private_index_of_the_server_counts_beside_one_that_a_definition_names(
    shop: Shop, private: Index, public: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", private.url)
    third = index_of(shop.wheels.parent / "third", third="1.0")
    found = locked(shop, "secretlib", "third", options=(f"--index-url {public.url}", f"--extra-index-url {third.url}"))
    third.close()
    assert "secretlib==1.0" in found and "third==1.0" in found


def test_a_version_that_the_private_index_lacks_is_not_taken_from_the_public_one(
    shop: Shop, private: Index, public: Index
) -> None:
    options = (f"--index-url {public.url}", f"--extra-index-url {private.url}")
    with pytest.raises(UserErrorException, match="--index-strategy unsafe-best-match"):
        locked(shop, "secretlib>=2", options=options)
    said_so = (*options, "--index-strategy unsafe-best-match")
    assert "secretlib==9.9" in locked(shop, "secretlib>=2", options=said_so)


@pytest.mark.parametrize(
    ("arguments", "settings", "default", "more", "strategy"),
    [
        ([], {}, None, None, "unsafe-best-match"),
        (["--extra-index-url", MINE], {}, None, MINE, None),
        (["--extra-index-url", TORCH], {}, None, TORCH, "unsafe-best-match"),
        (["--extra-index-url", TORCH], {"UV_INDEX_URL": MINE}, MINE, TORCH, "unsafe-best-match"),
        (["--extra-index-url", TORCH], {"UV_EXTRA_INDEX_URL": MINE}, None, f"{TORCH} {MINE}", None),
        ([], {"UV_INDEX_URL": MINE, "UV_EXTRA_INDEX_URL": PYPI}, PYPI, MINE, None),
        (["--index-url", MINE], {"UV_EXTRA_INDEX_URL": PYPI}, PYPI, MINE, None),
        ([], {"UV_INDEX": f"mine={MINE}", "UV_DEFAULT_INDEX": PYPI}, PYPI, f"mine={MINE}", None),
        ([], {"UV_EXTRA_INDEX_URL": "file:///a file:///b"}, None, "file:///a file:///b", "unsafe-first-match"),
        (["--extra-index-url", MINE], {"UV_INDEX_STRATEGY": "first-index"}, None, MINE, "first-index"),
    ],
)
def test_private_indexes_are_asked_first_and_the_open_one_last(
    arguments: list[str],
    settings: dict[str, str],
    default: str | None,
    more: str | None,
    strategy: str | None,
) -> None:
    rest, found = indexes.arranged(["pip", "compile", *arguments, "x.txt"], {"XDG_CONFIG_HOME": "/none", **settings})
    assert rest == ["pip", "compile", "x.txt"]
    assert (found.get("UV_DEFAULT_INDEX"), found.get("UV_INDEX")) == (default, more)
    assert found.get("UV_INDEX_STRATEGY") == strategy
    assert not {"UV_INDEX_URL", "UV_EXTRA_INDEX_URL"} & set(found)


def test_who_wants_the_best_version_of_all_indexes_says_so() -> None:
    assert uv.options(["--index-strategy unsafe-best-match"]) == ["--index-strategy", "unsafe-best-match"]

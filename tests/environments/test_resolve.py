"""Resolving: every package pinned, conflicts told before anything is installed, and without a network if need be."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lapis.environments import uv
from lapis.environments.resolve import number_of_packages, resolve
from lapis.environments.values import Recipe
from lapis.errors import Unavailable, UserErrorException
from lapis.machine.commands import Stopped
from lapis.machine.interpreters import Interpreter
from tests.environments.conftest import Shop, this_python
from tests.wheels import make_wheel


class Index:
    """A package index on loopback."""

    def __init__(self, folder: Path) -> None:
        handler = functools.partial(_Quiet, directory=str(folder))
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")  # whoever has it asks again whether it is still so
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    folder = tmp_path / "index"
    for name in ("served", "other"):
        wheel = make_wheel(folder / name, name, "1.0")
        (folder / name / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    index = Index(folder)
    yield index
    index.close()


def refused(shop: Shop, *requirements: str) -> str:
    with pytest.raises(UserErrorException) as error:
        shop.lock(*requirements)
    assert not os.path.exists(shop.root) or not any(len(name) == 32 for name in os.listdir(shop.root))
    return error.value.message


def test_every_package_is_pinned_with_its_hash(shop: Shop) -> None:
    lock = shop.lock("toy<2")
    assert "toy==1.0 \\\n    --hash=sha256:" in lock.packages and "helper==2.1" in lock.packages
    assert number_of_packages(lock.packages) == 2
    assert lock.python == this_python().version and lock.platform.startswith("linux-")


def test_the_same_recipe_gives_the_same_hash_and_another_one_another(shop: Shop) -> None:
    assert shop.lock("toy==2.0").hash == shop.lock("toy>=2").hash != shop.lock("toy==1.0").hash


def test_what_lapis_adds_gives_way_to_what_was_asked_for(shop: Shop) -> None:
    def locked(*asked: str, **wished: tuple[str, ...]) -> str:
        recipe = replace(shop.recipe(*asked), **wished)
        return resolve(recipe, this_python(), shop.told.append, root=shop.root).packages

    assert "toy==1.0" in locked("toy", if_possible=("toy<2",))
    assert "toy==2.0" in locked("toy==2.0", if_possible=("toy<2",)), "a limit goes"
    assert "toy==1.0" in locked("toy", if_possible=("toy<2",), as_submitter=("toy==7.5",)), (
        "a version nobody has goes first"
    )
    assert "not-there" not in locked("toy", "not-there", optional=("not-there",)), "an addition goes"


def test_versions_of_the_submitting_python_are_told(shop: Shop) -> None:
    recipe = replace(shop.recipe("toy"), as_submitter=("toy==1.0", "unused==3.0"), if_possible=("toy<1",))
    lock = resolve(recipe, this_python(), shop.told.append, root=shop.root)
    assert "toy==1.0" in lock.packages
    assert lock.notices == ("As in the Python that submits, so that what it pickled can be read: toy 1.0.",)


def test_constraints_hold_without_installing_anything(shop: Shop) -> None:
    recipe = replace(shop.recipe("toy"), constraints=("toy<2", "served<1"))
    lock = resolve(recipe, this_python(), shop.told.append, root=shop.root)
    assert "toy==1.0" in lock.packages and "served" not in lock.packages


def test_what_an_environment_has_to_be_without_stays_out_whoever_requires_it(shop: Shop) -> None:
    recipe = replace(shop.recipe("toy==1.0"), without=("helper",))
    lock = resolve(recipe, this_python(), shop.told.append, root=shop.root)
    assert "toy==1.0" in lock.packages and "helper" not in lock.packages


def test_a_conflict_says_who_wants_what(shop: Shop) -> None:
    message = refused(shop, "toy==1.0", "helper<2")
    assert "do not fit together" in message
    for words in ("depends on helper>=2", "you require toy==1.0", "you require helper<2"):
        assert words in message


def test_a_package_that_no_index_has_is_named_with_those_like_it(shop: Shop, index: Index) -> None:
    recipe = Recipe(this_python().version, ("served",), pip_options=(f"--index-url {index.url}",))
    resolve(recipe, this_python(), shop.told.append, root=shop.root)
    with pytest.raises(UserErrorException) as error:
        wrong = Recipe(recipe.python, ("serveds",), pip_options=recipe.pip_options)
        resolve(wrong, this_python(), shop.told.append, root=shop.root)
    assert "no package named 'serveds'" in error.value.message and "Names like it: served." in error.value.message
    assert "no package named 'nobody-has-it'" in refused(shop, "nobody-has-it")


def test_a_version_that_is_not_there_is_named(shop: Shop) -> None:
    assert "has no toy==99" in refused(shop, "toy==99")


def test_a_line_that_is_no_requirement_is_shown(shop: Shop) -> None:
    assert "bla bla" in refused(shop, "bla bla")


def test_an_index_that_cannot_be_reached_is_named_at_once(shop: Shop) -> None:
    recipe = Recipe(this_python().version, ("toy",), pip_options=("--index-url http://127.0.0.1:9/simple",))
    with pytest.raises(Unavailable, match="http://127.0.0.1:9 cannot be reached"):
        resolve(recipe, this_python(), shop.told.append, root=shop.root)


def test_without_a_network_what_the_cache_knows_is_resolved(
    shop: Shop, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe(this_python().version, ("served",), pip_options=(f"--index-url {index.url}",))
    lock = resolve(recipe, this_python(), shop.told.append, root=shop.root)
    index.close()
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    assert resolve(recipe, this_python(), shop.told.append, root=shop.root) == lock
    assert any("cannot be reached; the cache" in line for line in shop.told)


def test_resolving_can_be_canceled(shop: Shop) -> None:
    with pytest.raises(Stopped):
        resolve(shop.recipe("toy"), this_python(), shop.told.append, lambda: True, shop.root)


def test_a_package_for_another_python_says_which_one_it_needs(shop: Shop) -> None:
    make_wheel(shop.wheels, "later", "1.0", requires_python=">=4.0")
    message = refused(shop, "later")
    assert "needs Python >=4.0" in message and f"has Python {this_python().version}" in message


# pip's options, and pip's settings


@pytest.mark.parametrize(
    "given, meant",
    [
        (["--extra-index-url https://a.b/simple"], ["--extra-index-url", "https://a.b/simple"]),
        (["-f", "/wheels", "--pre"], ["--find-links", "/wheels", "--prerelease", "allow"]),
        (["--index-url=https://a.b", "--no-cache-dir"], ["--index-url", "https://a.b"]),
        (["--trusted-host a.b"], ["--allow-insecure-host", "a.b"]),
    ],
)
def test_options_of_pip_become_those_of_uv(given: list[str], meant: list[str]) -> None:
    assert uv.options(given) == meant


def test_an_option_that_is_not_known_is_refused() -> None:
    with pytest.raises(UserErrorException, match="'--target' cannot be used"):
        uv.options(["--target /tmp"])
    with pytest.raises(UserErrorException, match="--index-url needs a value"):
        uv.options(["--index-url"])


def test_the_index_of_pips_settings_is_the_one_that_is_asked(
    shop: Shop, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text(f"[global]\nindex-url = {index.url}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    lock = resolve(Recipe(this_python().version, ("served",)), this_python(), shop.told.append, root=shop.root)
    assert "served==1.0" in lock.packages


def test_no_interpreter_at_that_path_is_an_error(shop: Shop) -> None:
    with pytest.raises(UserErrorException, match="/no/such/python"):
        resolve(shop.recipe("toy"), Interpreter("/no/such/python", "3.9.1"), shop.told.append, root=shop.root)

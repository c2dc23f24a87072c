"""What fetches and builds packages runs the code of strangers: apart from the server's secrets, held to its rule."""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from lapis.domain.addresses import rule_of
from lapis.environments import guarded_proxy, tools
from lapis.environments.build import build
from lapis.environments.resolve import resolve
from lapis.environments.values import Recipe
from lapis.errors import AzureMLException, ServiceException
from tests.environments.conftest import Shop, this_python
from tests.environments.test_resolve import Index
from tests.web import Web, serving
from tests.wheels import make_wheel

SECRETS = {
    "LAPIS_TOKEN": "of the server",
    "LAPIS_HOME": "/where/the/keys/are",
    "AZUREML_RUN_TOKEN": "of a run",
    "AWS_SECRET_ACCESS_KEY": "of a cloud",
    "AZURE_CLIENT_SECRET": "of a cloud",
    "GOOGLE_APPLICATION_CREDENTIALS": "/of/a/cloud.json",
    "DATABASE_URL": "postgres://user:password@host/db",
    "UV_PUBLISH_TOKEN": "of an index",
    "SSH_AUTH_SOCK": "/an/agent",
}
BACKEND = """
import json, os, sys
def _tell():
    with open({out!r}, "w") as file:
        json.dump({{"environ": dict(os.environ), "input": sys.stdin.read()}}, file)
def prepare_metadata_for_build_wheel(folder, settings=None):
    _tell()
    info = os.path.join(folder, "spy-1.0.dist-info")
    os.mkdir(info)
    open(os.path.join(info, "METADATA"), "w").write("Metadata-Version: 2.1\\nName: spy\\nVersion: 1.0\\n")
    open(os.path.join(info, "WHEEL"), "w").write("Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    return "spy-1.0.dist-info"
def build_wheel(folder, settings=None, metadata=None):
    raise SystemExit("not built")
"""


def index_naming(folder: Path, package: str, file: str, link: str) -> Index:
    (folder / "index" / package).mkdir(parents=True)
    (folder / "index" / package / "index.html").write_text(f'<a href="{link}">{file}</a>')
    return Index(folder / "index")


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as found:
        yield found


def add_spy(wheels: Path, out: Path) -> None:
    """A package whose metadata is told by its own code, which writes down what it sees."""
    files = {
        "pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n",
        "backend.py": BACKEND.format(out=str(out)),
    }
    wheels.mkdir(exist_ok=True)
    with tarfile.open(wheels / "spy-1.0.tar.gz", "w:gz") as archive:
        for file, text in files.items():
            entry = tarfile.TarInfo(f"spy-1.0/{file}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


def test_the_code_of_a_package_sees_no_secret_of_the_server(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    out = tmp_path / "seen.json"
    add_spy(shop.wheels, out)
    shop.lock("spy")
    seen = json.loads(out.read_text())
    assert not set(SECRETS) & set(seen["environ"])
    home = seen["environ"]["HOME"]
    assert home != os.path.expanduser("~") and not os.path.exists(home), "it was its own, and is gone"
    assert seen["input"] == ""


def test_a_tool_has_a_folder_of_its_own_that_goes_with_it(shop: Shop) -> None:
    said = tools.run([sys.executable, "-c", "import os; print(os.getcwd(), os.environ['HOME'])"], shop.root, {})
    folder, home = said.output.split()
    assert folder == home and not os.path.exists(home)


def test_what_is_compiled_is_made_beside_the_environments_and_installed_from_where_it_is_kept(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(shop.root).parent
    monkeypatch.setenv("LAPIS_HOME", str(home))
    workshop, wheel = Path(shop.root, ".horovod-1", "env"), home / "cache" / "wheels" / "horovod-1" / "horovod.whl"
    workshop.parent.mkdir(parents=True)
    wheel.parent.mkdir(parents=True)
    wheel.write_text("compiled")
    venv.create(workshop, symlinks=True)
    code = "import os, sys; os.mkdir(os.path.join(sys.prefix, 'tools')); print(open(sys.argv[1]).read())"
    said = tools.run([str(workshop / "bin" / "python"), "-c", code, str(wheel)], shop.root, {})
    assert (said.output, said.complaints) == ("compiled\n", "")
    assert (workshop / "tools").is_dir()


@pytest.mark.parametrize("name", ["direct", "redirect"])
def test_a_redirect_is_no_way_round_the_rule_of_addresses(
    shop: Shop, web: Web, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What uv follows by itself is held too: here a link of an index, and a redirect behind it."""
    wheel = make_wheel(tmp_path / "made", "far", "1.0")
    far = f"http://localhost:{web.port}/{wheel.name}"
    web.put(f"/{wheel.name}", wheel.read_bytes())
    web.put("/near/" + wheel.name, b"", leads_to=far)
    link = far if name == "direct" else web.url("/near/" + wheel.name)
    index = index_naming(tmp_path, "far", wheel.name, link)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    recipe = Recipe(this_python().version, ("far",), pip_options=(f"--index-url {index.url}",))

    def built(root: str) -> str:
        return build(resolve(recipe, this_python(), shop.told.append, root=root), this_python(), root, shop.told.append)

    assert os.path.isdir(built(shop.root)), "it works without a rule"
    fetched = len(web.gets(f"/{wheel.name}"))
    monkeypatch.setenv("LAPIS_FORBIDDEN_ADDRESSES", "localhost")
    with pytest.raises((AzureMLException, ServiceException)):
        built(str(tmp_path / "again" / "environments"))
    assert len(web.gets(f"/{wheel.name}")) == fetched > 0
    index.close()


def test_what_the_rule_allows_comes_through_the_proxy(
    shop: Shop, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path / "made", "near", "1.0")
    web.put(f"/{wheel.name}", wheel.read_bytes())
    index = index_naming(tmp_path, "near", wheel.name, web.url(f"/{wheel.name}"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("LAPIS_ALLOWED_ADDRESSES", "127.0.0.1")
    recipe = Recipe(this_python().version, ("near",), pip_options=(f"--index-url {index.url}",))
    lock = resolve(recipe, this_python(), shop.told.append, root=shop.root)
    assert os.path.isdir(build(lock, this_python(), shop.root, shop.told.append))
    index.close()


def test_the_proxy_serves_nobody_else(web: Web) -> None:
    import urllib.error
    import urllib.request

    web.put("/a", b"a")
    with guarded_proxy.guarding(rule_of({"LAPIS_FORBIDDEN_ADDRESSES": "localhost"})) as variables:
        address = variables["HTTP_PROXY"]
        ours = urllib.request.build_opener(urllib.request.ProxyHandler({"http": address}))
        with ours.open(web.url("/a")) as reply:
            assert reply.read() == b"a"
        with pytest.raises(urllib.error.HTTPError, match="localhost is among LAPIS_FORBIDDEN"):
            ours.open(f"http://localhost:{web.port}/a")
        stranger = "http://" + address.partition("@")[2]
        with pytest.raises(urllib.error.HTTPError, match="407"):
            urllib.request.build_opener(urllib.request.ProxyHandler({"http": stranger})).open(web.url("/a"))

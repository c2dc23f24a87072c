"""`lapis adopt`: a real pip finds Microsoft's packages installed, leaves Lapis alone, and can remove the stand-ins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import azureml
from lapis.errors import UserErrorException
from lapis.sdk.base import stand_ins
from lapis.sdk.base.conflicting_packages import _LEFTOVERS, microsoft_packages
from tests.wheels import built_lapis, make_wheel

ROOT = Path(__file__).parents[2]


class Client:
    """A fresh virtual environment with the wheel of Lapis and nothing else."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.bin = folder / "bin"
        self.pip("install", "--no-index", str(built_lapis()))
        (self.packages,) = (folder / "lib").glob("python*/site-packages")

    def pip(self, *arguments: str) -> str:
        return self.python("-m", "pip", "--disable-pip-version-check", "--no-input", *arguments)

    def python(self, *arguments: str) -> str:
        variables = {**os.environ, "PIP_NO_INDEX": "1"}
        said = subprocess.run([self.bin / "python", *arguments], capture_output=True, text=True, env=variables)
        assert said.returncode == 0, said.stdout + said.stderr
        return said.stdout + said.stderr

    def adopt(self, what: str = "lay") -> str:
        return self.python("-c", f"import sys; from lapis.sdk.base import stand_ins; stand_ins.{what}(sys.executable)")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    return Client(tmp_path_factory.mktemp("client") / "venv")


def test_pip_finds_them_satisfied_and_lists_them(client: Client) -> None:
    client.adopt()
    wanted = [
        "azureml-core",
        "azureml-sdk[notebooks]",
        "azureml-defaults>=1.40",
        "azureml-train-core~=1.62.0",
    ]
    said = client.pip("install", *wanted)
    assert said.count("Requirement already satisfied") == 4 and "WARNING" not in said
    assert "azureml-core" in client.pip("list") and "1.62.0+lapis" in client.pip("list")
    assert client.pip("check").strip() == "No broken requirements found."


def test_importing_says_nothing_about_stand_ins(client: Client) -> None:
    client.adopt()
    assert client.python("-W", "error", "-c", "import azureml.core; print(azureml.core.VERSION)") == "1.62.0\n"


def test_pip_removes_one_and_adopt_all(client: Client) -> None:
    client.adopt()
    client.pip("uninstall", "-y", "azureml-core")
    assert not list(client.packages.glob("azureml_core-*")) and list(client.packages.glob("azureml_sdk-*"))
    client.adopt("remove")
    assert [path.name for path in client.packages.glob("azureml*")] == ["azureml"]
    client.python("-W", "error", "-c", "from azureml.core import Workspace")


@pytest.fixture
def microsofts(tmp_path: Path) -> Path:
    """A wheel that, like theirs, writes over files of ours and has a folder that we do not have."""
    files = {
        "azureml/__init__.py": "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n",
        "azureml/core/__init__.py": "VERSION = 'theirs'\n",
        "azureml/_vendor/__init__.py": "",
    }
    return make_wheel(tmp_path, "azureml_core", "1.63.0", files=files)


def test_where_their_files_wrote_over_ours_the_next_import_says_so_and_how_to_mend_it(
    tmp_path: Path, microsofts: Path
) -> None:
    client = Client(tmp_path / "venv")
    client.pip("install", "--upgrade", str(microsofts))
    assert "Microsoft" not in client.python("-c", "import json"), "who does not import it is not bothered"
    said = client.python("-c", "import azureml.core; import azureml.data; print(azureml.core.VERSION)")
    assert "theirs" in said and said.count("RuntimeWarning") == 1
    assert "pip uninstall -y azureml-core\n" in said and "--force-reinstall --no-deps lapis-ml\n" in said
    client.pip("uninstall", "-y", "azureml-core")
    assert "Files of Lapis are gone" in client.python("-c", "import azureml")
    client.pip("install", "--force-reinstall", "--no-deps", str(built_lapis()))
    assert client.python("-c", "import azureml.core; print(azureml.core.VERSION)") == "1.62.0\n"


def test_what_tells_their_files_from_ours_is_not_among_ours() -> None:
    names = {path.name for path in Path(azureml.__path__[0]).iterdir()}
    assert names.isdisjoint(_LEFTOVERS)
    assert '_at("azureml", "_vendor")' in (ROOT / "src" / "lapis-azureml.pth").read_text() and "_vendor" in _LEFTOVERS


def test_beside_their_real_ones_it_refuses_and_says_what_to_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site-packages"
    (site / "azureml_core-1.61.0.dist-info").mkdir(parents=True)
    monkeypatch.setattr(stand_ins, "_package_folder", lambda python: str(site))
    with pytest.raises(UserErrorException, match="pip uninstall -y azureml-core\n"):
        stand_ins.lay(sys.executable)
    assert [path.name for path in site.iterdir()] == ["azureml_core-1.61.0.dist-info"]


def test_a_stand_in_is_not_taken_for_microsofts(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "azureml_core-1.62.0+lapis.dist-info").mkdir(parents=True)
    assert microsoft_packages(str(tmp_path / "azureml"), [str(site)]) == []

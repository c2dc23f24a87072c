"""Every name of SDK v1 is found where its users import it from."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import azureml
import azureml.core
from lapis.client import snapshot
from lapis.sdk.base.missing_names import NOT_THERE_YET, stand_in
from lapis.sdk.base.names import on_demand
from lapis.version import AZUREML_VERSION

NAMES_FILE = Path(__file__).parents[1] / "data" / "sdk_v1_names.txt"
AZUREML_FOLDER = Path(azureml.__path__[0])


def names_of_sdk_v1() -> dict[str, list[str]]:
    lines = [line for line in NAMES_FILE.read_text().splitlines() if not line.startswith("#")]
    return {module: names.split() for module, names in (line.split(": ") for line in lines)}


@pytest.mark.parametrize(("module", "names"), names_of_sdk_v1().items())
def test_every_name_is_found_in_its_module(module: str, names: list[str]) -> None:
    found = importlib.import_module(module)
    assert [name for name in names if not hasattr(found, name)] == []


def test_core_lists_exactly_the_names_of_sdk_v1_and_those_of_azure_only() -> None:
    azure_only = {
        "LinkedService",
        "PrivateEndPoint",
        "PrivateEndPointConfig",
        "SynapseWorkspaceLinkedServiceConfiguration",
    }
    assert set(azureml.core.__all__) == {*names_of_sdk_v1()["azureml.core"], *azure_only}
    assert set(azureml.core.__all__) <= set(dir(azureml.core))


def test_what_type_checkers_see_of_core_is_what_is_looked_up() -> None:
    tree = ast.parse((AZUREML_FOLDER / "core" / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {node.names[0].asname: node.module for node in block.body if isinstance(node, ast.ImportFrom)}
    assert seen == azureml.core._HOMES


def test_every_row_of_the_table_stands_at_its_path() -> None:
    rows = [(path, *path.rsplit(".", 1)) for path in NOT_THERE_YET]
    found = {path: getattr(importlib.import_module(module), name) for path, module, name in rows}
    assert [path for path in found if found[path] is not stand_in(path)] == []


def test_azureml_holds_names_and_no_code() -> None:
    code = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    for source in AZUREML_FOLDER.rglob("*.py"):
        tree = ast.parse(source.read_text())
        assert ast.get_docstring(tree), source
        assert not [node for node in ast.walk(tree) if isinstance(node, code)], source


def test_one_thing_under_two_paths_is_one_thing() -> None:
    from azureml.core import Run as short
    from azureml.core.compute import AmlCompute
    from azureml.core.compute.amlcompute import AmlCompute as same_compute
    from azureml.core.compute_target import ComputeTargetException
    from azureml.core.run import Run as long
    from azureml.exceptions import ComputeTargetException as same_exception

    assert short is long
    assert AmlCompute is same_compute
    assert ComputeTargetException is same_exception


@pytest.mark.parametrize(
    "expression",
    [
        "azureml.core.VERSION",
        "azureml.core.__version__",
        "azureml.data.__version__",
        "azureml.core.runconfig.RunConfiguration",
        "azureml.core.run._OfflineRun",
        "azureml.train.hyperdrive.exceptions.HyperDriveException",
        "azureml._restclient.constants.RunStatus.COMPLETED",
    ],
)
def test_a_submodule_needs_no_import_of_its_own(expression: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import azureml.core; {expression}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_core_says_which_release_of_sdk_v1_it_answers_for() -> None:
    assert azureml.core.VERSION == azureml.core.__version__ == AZUREML_VERSION


def test_everything_can_be_imported_at_once() -> None:
    everything: dict[str, object] = {}
    exec("from azureml.core import *", everything)
    assert set(azureml.core.__all__) <= set(everything)


def test_a_name_that_sdk_v1_does_not_have_is_missing_as_from_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'azureml.core' has no attribute 'Workspaces'"):
        azureml.core.Workspaces  # noqa: B018
    with pytest.raises(ImportError):
        from azureml.core import Workspaces  # noqa: F401
    assert not hasattr(azureml.core, "__wrapped__")


def test_a_submodule_that_cannot_be_loaded_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package_with_a_broken_part"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("import a_module_that_is_nowhere")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(package.name)
    find, _ = on_demand(package.name, {})
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_nowhere"):
        find("part")


@pytest.mark.parametrize("module", ["azureml._restclient.constants", "azureml._restclient.snapshots_client"])
def test_a_script_can_raise_the_limit_of_snapshots(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assigned_in = importlib.import_module(module)
    assert assigned_in.SNAPSHOT_MAX_SIZE_BYTES == 300 * 1024 * 1024
    monkeypatch.setattr(assigned_in, "SNAPSHOT_MAX_SIZE_BYTES", 10**9)
    assert snapshot.SNAPSHOT_MAX_SIZE_BYTES == 10**9


@pytest.mark.parametrize("package", ["azureml.train.hyperdrive", "azureml.core.compute", "azureml.core.webservice"])
def test_a_star_import_leaves_the_names_of_a_notebook_alone(package: str) -> None:
    names = {"run": "mine", "policy": "mine", "sampling": "mine", "local": "mine"}
    exec(f"from {package} import *", names)
    assert {names[name] for name in ("run", "policy", "sampling", "local")} == {"mine"}
    assert set(names_of_sdk_v1()[package]) <= set(names)

"""Where Microsoft's own packages are installed beside Lapis, importing azureml says so."""

import subprocess
import sys
from pathlib import Path

import azureml
from lapis.sdk.base.conflicting_packages import microsoft_packages


def import_azureml_with(folder: Path) -> str:
    environment = {"PYTHONPATH": str(folder), "PYTHONWARNINGS": ""}
    source = str(Path(azureml.__path__[0]).parent)
    code = f"import sys; sys.path.append({source!r}); import azureml.core, azureml.data"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr


def test_the_warning_names_the_packages_and_the_way_out(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    for name in ("azureml_core-1.61.0.post4", "azureml_sdk-1.62.0", "numpy-1.26.4"):
        (site / f"{name}.dist-info").mkdir(parents=True)
    said = import_azureml_with(site)
    assert said.count("RuntimeWarning") == 1
    assert "pip uninstall -y azureml-core azureml-sdk\n" in said


def test_nothing_is_said_where_there_are_none(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "numpy-1.26.4.dist-info").mkdir(parents=True)
    assert import_azureml_with(site) == ""


def test_folders_that_hold_no_packages_are_not_searched(tmp_path: Path) -> None:
    (tmp_path / "azureml_core-1.61.0.dist-info").mkdir()
    assert microsoft_packages(str(tmp_path / "lapis" / "azureml"), [str(tmp_path), ""]) == []


def test_files_among_our_own_are_found(tmp_path: Path) -> None:
    (tmp_path / "azureml" / "_vendor").mkdir(parents=True)
    (tmp_path / "azureml" / "core").mkdir()
    assert microsoft_packages(str(tmp_path / "azureml"), []) == ["azureml-core"]


def test_metadata_beside_our_own_folder_is_found_wherever_it_lies(tmp_path: Path) -> None:
    (tmp_path / "azureml").mkdir()
    (tmp_path / "azureml_train_core-1.2.0-py3.7.egg-info").mkdir()
    assert microsoft_packages(str(tmp_path / "azureml"), []) == ["azureml-train-core"]


def test_a_package_that_shares_no_file_with_lapis_is_left_alone(tmp_path: Path) -> None:
    site = tmp_path / "dist-packages"
    (site / "azureml_inference_server_http-1.5.1.dist-info").mkdir(parents=True)
    assert microsoft_packages(str(tmp_path / "azureml"), [str(site), str(tmp_path / "gone" / "site-packages")]) == []

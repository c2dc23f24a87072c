"""The packages of an environment, as a conda file in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from lapis.errors import UserErrorException
from lapis.sdk.environments.conda_dependencies import PYTHON_DEFAULT_VERSION, CondaDependencies


def test_new_dependencies_hold_one_python_and_the_sdk() -> None:
    assert CondaDependencies().as_dict() == {
        "name": "project_environment",
        "channels": ["anaconda", "conda-forge"],
        "dependencies": [f"python={PYTHON_DEFAULT_VERSION}", {"pip": ["azureml-defaults"]}],
    }


def test_create_takes_packages_index_and_python_version() -> None:
    made = CondaDependencies.create(
        pip_indexurl="https://example.org/simple",
        pip_packages=["azureml-sdk", "pandas==1.1"],
        conda_packages=["scikit-learn=0.22", "numpy"],
        python_version="3.6.2",
        pin_sdk_version=False,
    )
    assert made.get_python_version() == "3.6.2"
    assert made.conda_packages == ["python=3.6.2", "scikit-learn=0.22", "numpy"]
    assert made.pip_packages == ["azureml-sdk", "pandas==1.1"]
    assert made.pip_options == ["--index-url https://example.org/simple"]


def test_create_without_pip_packages_keeps_the_sdk() -> None:
    assert CondaDependencies.create(conda_packages=["numpy"]).pip_packages == ["azureml-defaults"]
    assert CondaDependencies.create(pip_packages=[]).pip_packages == []


@pytest.mark.parametrize("argument", ["pip_packages", "conda_packages"])
def test_one_text_in_place_of_a_list_of_packages_is_refused(argument: str) -> None:
    with pytest.raises(UserErrorException, match=r"must be a list, not one text: \['numpy'\]"):
        CondaDependencies.create(**{argument: "numpy"})  # type: ignore[arg-type]


def test_adding_a_package_again_replaces_it_at_the_end() -> None:
    made = CondaDependencies()
    for package in ("numpy=1.16", "conda-forge::pandas", "NumPy>=1.20"):
        made.add_conda_package(package)
    assert made.as_dict()["dependencies"][-1] == {"pip": ["azureml-defaults"]}
    for requirement in ("torch==1.6", "some_tool[extra]==1", "Torch==1.7.1", "some-tool==2"):
        made.add_pip_package(requirement)
    assert made.conda_packages[1:] == ["conda-forge::pandas", "NumPy>=1.20"]
    assert made.pip_packages == ["azureml-defaults", "Torch==1.7.1", "some-tool==2"]


def test_packages_that_only_start_alike_are_different_packages() -> None:
    made = CondaDependencies()
    for package in ("tensorflow==2.2", "tensorflow-gpu==2.2", "tensorflow_datasets"):
        made.add_pip_package(package)
    made.remove_pip_package("tensorflow")
    assert made.pip_packages == ["azureml-defaults", "tensorflow-gpu==2.2", "tensorflow_datasets"]


def test_removing_takes_away_any_version_and_what_is_not_there_is_not_missed() -> None:
    made = CondaDependencies.create(conda_packages=["numpy=1.16"], pip_packages=["six==1.0", "--pre"])
    made.remove_conda_package("numpy")
    made.remove_conda_package("scipy")
    made.remove_pip_package("six")
    made.remove_pip_option("--pre")
    made.remove_channel("anaconda")
    assert made.as_dict()["dependencies"] == [f"python={PYTHON_DEFAULT_VERSION}"]
    assert made.conda_channels == ["conda-forge"]


def test_what_the_properties_return_is_a_copy() -> None:
    made = CondaDependencies()
    for found in (
        made.conda_packages,
        made.pip_packages,
        made.conda_channels,
        made.as_dict()["dependencies"],
    ):
        found.append("changed")
    assert made == CondaDependencies()


def test_setting_python_index_and_the_pip_section_replaces_what_was_set_before() -> None:
    made = CondaDependencies()
    made.set_python_version("3.8.13")
    made.set_pip_index_url("https://one.example.org")
    made.set_pip_index_url("https://two.example.org")
    assert made.conda_packages == ["python=3.8.13"]
    assert made.pip_options == ["--index-url https://two.example.org"]
    made.set_pip_index_url(CondaDependencies.sdk_origin_url())
    assert made.pip_options == []
    made.set_pip_requirements(["a", "--pre"])
    assert (made.pip_packages, made.pip_options) == (["a"], ["--pre"])


def test_the_python_version_is_found_however_it_is_asked_for() -> None:
    for spelt, version in {
        "python=3.8": "3.8",
        "python==3.8.1": "3.8.1",
        "python>=3.7": ">=3.7",
        "python": None,
    }.items():
        made = CondaDependencies(_underlying_structure={"dependencies": [spelt]})
        assert made.get_python_version() == version
    assert CondaDependencies(_underlying_structure={}).get_python_version() is None


def test_frameworks_have_a_package_for_each_kind_of_machine() -> None:
    made = CondaDependencies.create(pip_packages=["tensorflow==1.0"])
    made.add_tensorflow_pip_package(core_type="gpu", version="1.13.1")
    made.add_tensorflow_conda_package(version="1.15")
    made.add_cntk_package(core_type="gpu")
    assert made.pip_packages == ["tensorflow-gpu==1.13.1", "cntk-gpu"]
    assert made.conda_packages[-1] == "tensorflow=1.15"
    with pytest.raises(UserErrorException, match="'cpu' or 'gpu', not 'tpu'"):
        made.add_tensorflow_pip_package(core_type="tpu")


def test_requirements_of_one_package_merge_into_one() -> None:
    merged = CondaDependencies.merge_requirements(
        ["numpy>=1.16", "six", "NumPy<2", "tool[a]", "tool[b]==1", "six", "x @ https://example.org/x.whl"]
    )
    assert merged == ["numpy>=1.16,<2", "six", "tool[a,b]==1", "x @ https://example.org/x.whl"]


def test_a_file_written_by_hand_is_read_changed_and_written(tmp_path: Path) -> None:
    file = tmp_path / "env.yml"
    file.write_text("channels: [conda-forge]\ndependencies:\n  - python=3.6.2\n  - pip:\n    - horovod # later\n")
    made = CondaDependencies(conda_dependencies_file_path=str(file))
    made.add_pip_package("tensorflow-gpu==2.2.0")
    made.add_channel("nvidia")
    assert yaml.safe_load(made.serialize_to_string()) == {
        "channels": ["conda-forge", "nvidia"],
        "dependencies": ["python=3.6.2", {"pip": ["horovod", "tensorflow-gpu==2.2.0"]}],
    }


def test_saving_and_reading_gives_equal_dependencies(tmp_path: Path) -> None:
    made = CondaDependencies.create(conda_packages=["numpy"])
    (tmp_path / "sub").mkdir()
    assert made.save_to_file(str(tmp_path)) == "conda_dependencies.yml"
    assert made.save_to_file(str(tmp_path), "sub/my.yml") == "sub/my.yml"
    assert made.save(str(tmp_path / "sub")) == str(tmp_path / "sub" / "conda_dependencies.yml")
    for name in ("conda_dependencies.yml", "sub/my.yml", "sub/conda_dependencies.yml"):
        assert CondaDependencies(str(tmp_path / name)) == made
    with pytest.raises(UserErrorException, match="There is no folder"):
        made.save_to_file(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- numpy\n", "must be a map"),
        ("dependencies: numpy\n", "'dependencies' must be a list"),
        ("dependencies:\n- 3.6\n", "must be text, such as 'numpy', not 3.6"),
        ("dependencies:\n- pip:\n  - {a: 1}\n", "a line of 'pip' must be text"),
        ("dependencies:\n\t- numpy\n", "Line 2: indented with a tab"),
    ],
)
def test_a_file_that_is_no_conda_file_is_refused_with_its_name(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "env.yml"
    file.write_text(text)
    with pytest.raises(UserErrorException) as caught:
        CondaDependencies(str(file))
    assert said in caught.value.message
    assert str(file) in caught.value.message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserErrorException, match="There is no conda file 'nowhere.yml'"):
        CondaDependencies("nowhere.yml")


@pytest.mark.parametrize("package", ["", None, 3, ["numpy"]])
def test_what_is_no_text_is_no_package(package: Any) -> None:
    made = CondaDependencies()
    for add in (made.add_pip_package, made.add_conda_package, made.add_channel, made.set_pip_option):
        with pytest.raises(UserErrorException, match="must be text"):
            add(package)
    assert made == CondaDependencies()


def test_a_bad_python_version_or_option_is_refused() -> None:
    with pytest.raises(UserErrorException, match="looks like '3.8'"):
        CondaDependencies.create(python_version="three")
    with pytest.raises(UserErrorException, match="starts with '-'"):
        CondaDependencies().set_pip_option("pre")

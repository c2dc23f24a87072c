"""Azure's names of curated environments lead to definitions that SDK v1 reads and Lapis can build."""

from __future__ import annotations

from typing import Any

import pytest

from lapis.environments.curated import curated, curated_names
from lapis.environments.recipe import recipe
from lapis.sdk.environments.environment import Environment

PYTHONS = ("3.7.16", "3.8.18", "3.9.18", "3.10.13", "3.11.7")


def pip_of(name: str) -> list[str]:
    definition: Any = curated(name)
    return list(definition["python"]["condaDependencies"]["dependencies"][-1]["pip"])


@pytest.mark.parametrize("name", curated_names())
def test_every_published_name_can_be_read_by_the_sdk_and_becomes_a_recipe(name: str) -> None:
    definition: Any = curated(name)
    environment = Environment._from_dict(definition)
    assert environment.name == name
    assert environment.python.conda_dependencies.pip_packages == pip_of(name)
    assert recipe(definition, pythons=PYTHONS, gpu=False, strict=False).python in PYTHONS


def test_the_notebooks_names_are_known_however_they_are_spelt() -> None:
    for name in (
        "AzureML-TensorFlow-2.2-GPU",
        "azureml-tensorflow-2.2-gpu",
        "AzureML-sklearn-1.5",
        "azureml-sklearn-1.5",
    ):
        assert curated(name) is not None, name
    assert curated("azureml-tensorflow-2.2-gpu") == curated("AzureML-TensorFlow-2.2-GPU")


def test_names_of_the_registry_need_no_prefix() -> None:
    assert curated("sklearn-1.5") == curated("AzureML-sklearn-1.5")


def test_the_packages_are_those_that_azure_had() -> None:
    assert {"tensorflow-gpu==2.2.0", "horovod==0.19.1", "azureml-defaults"} <= set(pip_of("AzureML-TensorFlow-2.2-GPU"))
    assert "tensorflow==2.2.0" in pip_of("AzureML-TensorFlow-2.2-CPU")
    assert "scikit-learn==0.20.3" in pip_of("AzureML-Scikit-learn-0.20.3")
    assert "tensorflow-gpu==2.4.*" in pip_of("AzureML-tensorflow-2.4-ubuntu18.04-py37-cuda11-gpu")


@pytest.mark.parametrize(
    ("name", "package", "python"),
    [
        ("AzureML-tensorflow-2.9-ubuntu20.04-py38-cuda11-gpu", "tensorflow-gpu==2.9.*", "python=3.8"),
        ("AzureML-tensorflow-2.17-cuda12", "tensorflow==2.17.*", None),
        ("AzureML-pytorch-1.12-ubuntu20.04-py3.9-cpu", "torch==1.12.*", "python=3.9"),
        ("AzureML-ACPT-pytorch-2.6-cuda12.4", "torch==2.6.*", None),
        ("AzureML-XGBoost-0.9-Inference-CPU", "xgboost==0.90.*", None),
    ],
)
def test_names_that_nobody_listed_are_read_by_their_pattern(name: str, package: str, python: str | None) -> None:
    definition: Any = curated(name)
    dependencies = definition["python"]["condaDependencies"]["dependencies"]
    assert package in pip_of(name)
    assert dependencies[0] == python or (python is None and isinstance(dependencies[0], dict))


def test_keras_2_stays_the_keras_of_tensorflow_2_16_as_in_azures_image() -> None:
    definition: Any = curated("AzureML-tensorflow-2.16-cuda12")
    assert definition["environmentVariables"] == {"TF_USE_LEGACY_KERAS": "1"}
    assert "tf-keras==2.16.*" in pip_of("AzureML-tensorflow-2.16-cuda12")


@pytest.mark.parametrize("name", ["my-env", "AzureML-Unheard-1.0", "AzureML-tensorflow", "tensorflow-2.9-cuda11", ""])
def test_other_names_are_nobodys(name: str) -> None:
    assert curated(name) is None


def test_a_definition_is_the_callers_own() -> None:
    first: Any = curated("AzureML-Minimal")
    first["python"]["condaDependencies"]["dependencies"].clear()
    assert pip_of("AzureML-Minimal") == ["azureml-core", "azureml-defaults"]

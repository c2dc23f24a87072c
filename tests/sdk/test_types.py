"""An editor knows what every call gives: the wheel says that it is typed, and mypy reads user code strictly."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import azureml
from tests.wheels import built_lapis

REPOSITORY = Path(__file__).parents[2]
USER_CODE = REPOSITORY / "tests" / "data" / "typed_user_code.py"

# Public calls that give what the user's own code gave, or what the user's own file holds.
GIVES_ANYTHING = {
    "AMLRequest.get_json",
    "AMLRequest.json",
    "AciWebservice.run",
    "AksWebservice.run",
    "ContainerImage.run",
    "InputDatasets.__getitem__",  # a path or a dataset: the script that was given it knows which
    "InputDatasets.get",
    "LocalWebservice.run",
    "UnknownWebservice.run",
    "Webservice.run",
    # pipelines: whatever was put in comes back
    "Edge.dest_port",
    "Edge.source_port",
    "Graph.submit",
    "Graph.validate",
    "InputPort.additional_transformations",
    "InputPort.connect",
    "InputPort.incoming_edge",
    "InputPort.node",
    "InputPort.overwrite",
    "InputPortBinding.additional_transformations",
    "InputPortBinding.bind_object",
    "InputPortDef.additional_transformations",
    "InputPortDef.default_overwrite",
    "ModuleDef.cloud_settings",
    "ModuleDef.runconfig",
    "Node.datasource_def",
    "Node.module_def",
    "OutputPort.connect",
    "OutputPort.dataset_output",
    "OutputPort.dataset_registration",
    "OutputPort.node",
    "OutputPort.overwrite",
    "OutputPortBinding.dataset_registration",
    "OutputPortDef.default_overwrite",
    "OutputPortDef.training_output",
    "Param.get_value",
    "PipelineDataset.dataset",
    "PipelineDataset.dataset_version",
    "PipelineDataset.workspace",
    "PipelineStep.get_source_directory",
    "PipelineStep.get_source_directory_and_hash_paths",
    "PipelineStep.run_after",
    "StepSequence.__getitem__",
}


@pytest.fixture(scope="module")
def wheel() -> Path:
    return built_lapis()


@pytest.fixture(scope="module")
def python_with_lapis(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has the wheel and nothing else, as a user's has it."""
    home = tmp_path_factory.mktemp("home")
    venv.create(home)
    (packages,) = home.glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(packages)
    return home / "bin" / "python"


def test_the_wheel_says_that_both_packages_are_typed(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"azureml/py.typed", "lapis/py.typed"} <= set(names)


def test_strict_user_code_is_accepted_with_real_types(python_with_lapis: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path)]
    command += ["--python-executable", str(python_with_lapis), str(USER_CODE)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "Success: no issues found in 1 source file\n", done.stdout + done.stderr


def test_every_public_call_says_what_it_gives() -> None:
    untold = {function.__qualname__ for function in public_functions() if gives(function) in ("Any", None)}
    assert untold == GIVES_ANYTHING


def gives(function: Any) -> str | None:
    told: str | None = function.__annotations__.get("return")
    return told


def public_functions() -> Iterator[Any]:
    """The functions and methods that user code reaches through `azureml`, those of base classes too."""
    for found in public_names():
        if inspect.isfunction(found):
            yield inspect.unwrap(found)
        elif inspect.isclass(found):
            for owner in found.__mro__:
                if owner.__module__.startswith("lapis."):
                    yield from public_methods(owner)


def public_methods(owner: type) -> Iterator[Any]:
    for name, member in vars(owner).items():
        if name.startswith("_") and name not in ("__call__", "__enter__", "__getitem__", "__iter__"):
            continue
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if inspect.isfunction(function):
            yield inspect.unwrap(function)


def public_names() -> Iterator[Any]:
    for module in pkgutil.walk_packages(azureml.__path__, "azureml."):
        for name, found in vars(importlib.import_module(module.name)).items():
            if not name.startswith("_") and getattr(found, "__module__", "").startswith("lapis."):
                yield found

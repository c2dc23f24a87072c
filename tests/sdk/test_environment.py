"""Environments as values: made, copied, written to a folder and read back."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lapis.errors import UserErrorException
from lapis.sdk.environments.conda_dependencies import CondaDependencies
from lapis.sdk.environments.container_registry import ContainerRegistry
from lapis.sdk.environments.environment import (
    DEFAULT_CPU_IMAGE,
    DEFAULT_GPU_IMAGE,
    DockerBuildContext,
    Environment,
    EnvironmentReference,
    RCranPackage,
    RSection,
    SparkPackage,
)
from lapis.sdk.environments.environment_builds import DockerImageDetails


@pytest.fixture
def conda_file(tmp_path: Path) -> str:
    file = tmp_path / "conda.yml"
    file.write_text("dependencies:\n- python=3.6.2\n- pip:\n  - tensorflow-gpu==2.2.0\n")
    return str(file)


def test_a_new_environment_has_the_defaults_of_sdk_v1() -> None:
    environment = Environment("myenv")
    assert environment.version is None
    assert environment.environment_variables == {"EXAMPLE_ENV_VAR": "EXAMPLE_VALUE"}
    assert environment.python.conda_dependencies.pip_packages == ["azureml-defaults"]
    assert environment.python.interpreter_path == "python"
    assert environment.python.user_managed_dependencies is False
    assert environment.docker.base_image == DEFAULT_CPU_IMAGE != DEFAULT_GPU_IMAGE
    assert (environment.docker.enabled, environment.docker.shm_size) == (False, "2g")
    assert environment.r is None


def test_conda_dependencies_are_never_none_and_nothing_else() -> None:
    environment = Environment("x")
    environment.python.conda_dependencies = None  # type: ignore[assignment]
    assert environment.python.conda_dependencies == CondaDependencies()
    with pytest.raises(UserErrorException, match="must be a CondaDependencies, not 'env.yml'"):
        environment.python.conda_dependencies = "env.yml"  # type: ignore[assignment]


def test_a_version_is_text() -> None:
    environment = Environment("x")
    environment.version = 3  # type: ignore[assignment]
    assert environment.version == "3"


@pytest.mark.parametrize("name", ["", "my env", "a/b", "ä", "a" * 256, None, 3])
def test_a_bad_name_is_refused(name: Any) -> None:
    with pytest.raises(UserErrorException):
        Environment(name)


def test_curated_names_are_not_refused() -> None:
    assert Environment("AzureML-TensorFlow-2.2-GPU").name == "AzureML-TensorFlow-2.2-GPU"


def test_a_misspelt_setting_is_refused_and_the_near_one_named() -> None:
    environment = Environment("x")
    with pytest.raises(AttributeError, match="DockerSection has no setting 'base_imge'. Did you mean 'base_image'"):
        environment.docker.base_imge = "ubuntu"
    with pytest.raises(AttributeError, match="Environment has no setting 'zebra'. Known: asset_id, "):
        environment.zebra = 1


def test_from_conda_specification_has_the_packages_of_the_file(conda_file: str) -> None:
    environment = Environment.from_conda_specification(name="tensorflow-2.2-gpu", file_path=conda_file)
    assert environment.name == "tensorflow-2.2-gpu"
    assert environment.python.conda_dependencies.get_python_version() == "3.6.2"
    assert environment.python.conda_dependencies.pip_packages == ["tensorflow-gpu==2.2.0"]


def test_from_pip_requirements_reads_comments_continuations_options_and_included_files(
    tmp_path: Path,
) -> None:
    (tmp_path / "base.txt").write_text("six\n")
    (tmp_path / "requirements.txt").write_text(
        "# what we need\n-r base.txt\nnumpy>=1.16, \\\n  <2   # not 2\n\n--extra-index-url https://example.org\n"
        "tool @ https://example.org/tool.whl#sha256=abc\n"
    )
    environment = Environment.from_pip_requirements("x", str(tmp_path / "requirements.txt"), pip_version="20.2.4")
    dependencies = environment.python.conda_dependencies
    assert dependencies.pip_packages == [
        "six",
        "numpy>=1.16,   <2",
        "tool @ https://example.org/tool.whl#sha256=abc",
    ]
    assert dependencies.pip_options == ["--extra-index-url https://example.org"]
    assert dependencies.conda_packages[-1] == "pip=20.2.4"


def test_requirements_that_include_themselves_or_are_missing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("-r b.txt\n")
    (tmp_path / "b.txt").write_text("-r a.txt\n")
    with pytest.raises(UserErrorException, match="includes itself"):
        Environment.from_pip_requirements("x", str(tmp_path / "a.txt"))
    with pytest.raises(UserErrorException, match="There is no requirements file"):
        Environment.from_pip_requirements("x", str(tmp_path / "c.txt"))


def test_from_docker_image_uses_the_images_packages_unless_others_are_given(conda_file: str) -> None:
    registry = ContainerRegistry()
    registry.address = "registry.example.org"
    plain = Environment.from_docker_image("x", "pytorch:1", container_registry=registry)
    assert plain.docker.base_image == "pytorch:1"
    assert plain.docker.base_image_registry.address == "registry.example.org"
    assert plain.python.user_managed_dependencies is True
    layered = Environment.from_docker_image("x", "pytorch:1", conda_specification=conda_file)
    assert layered.python.user_managed_dependencies is False
    assert layered.python.conda_dependencies.pip_packages == ["tensorflow-gpu==2.2.0"]
    with pytest.raises(UserErrorException, match="not both"):
        Environment.from_docker_image("x", "i", conda_specification=conda_file, pip_requirements=conda_file)


def test_a_dockerfile_is_given_as_text_or_as_a_file(tmp_path: Path) -> None:
    file = tmp_path / "Dockerfile"
    file.write_text("FROM ubuntu:22.04\nRUN true\n")
    assert Environment.from_dockerfile("x", str(file)).docker.base_dockerfile == "FROM ubuntu:22.04\nRUN true\n"
    from_text = Environment.from_dockerfile("x", "FROM ubuntu:22.04")
    assert from_text.docker.base_dockerfile == "FROM ubuntu:22.04"
    assert from_text.docker.base_image is None
    with pytest.raises(UserErrorException, match="There is no Dockerfile './Dockerfle'"):
        Environment.from_dockerfile("x", "./Dockerfle")


def test_image_dockerfile_and_build_context_exclude_each_other() -> None:
    docker = Environment("x").docker
    context = DockerBuildContext(DockerBuildContext.LocationType.Git, "https://example.org/repo.git")
    docker.base_dockerfile = "FROM ubuntu:22.04"
    assert (docker.base_image, docker.build_context) == (None, None)
    docker.build_context = context
    assert (docker.base_image, docker.base_dockerfile) == (None, None)
    docker.base_image = "ubuntu"
    assert (docker.base_dockerfile, docker.build_context) == (None, None)
    docker.base_dockerfile = None  # what code that knows the rule writes first
    assert docker.base_image == "ubuntu"
    made = Environment.from_docker_build_context("x", context)
    assert made.docker.build_context == context
    assert made.python.user_managed_dependencies is True


def test_a_clone_is_a_copy_without_a_version() -> None:
    environment = Environment("x")
    environment.version = "2"
    environment.python.conda_dependencies.add_pip_package("numpy")
    clone = environment.clone("y")
    clone.python.conda_dependencies.add_pip_package("scipy")
    assert (clone.name, clone.version) == ("y", None)
    assert environment.python.conda_dependencies.pip_packages == ["azureml-defaults", "numpy"]


def rich_environment() -> Environment:
    environment = Environment("rich")
    environment.version = "7"
    environment.environment_variables = {"A": "1", "B": 2}
    environment.python.conda_dependencies = CondaDependencies.create(pip_packages=["numpy==1.23.5"])
    environment.docker.base_dockerfile = "FROM ubuntu:22.04\nRUN echo 'ä'\n"
    environment.docker.arguments = ["--ipc", "host"]
    environment.docker.base_image_registry.username = "me"
    environment.docker.base_image_registry.password = "sesame"
    environment.spark.packages = [SparkPackage("group", "artifact", "0.12")]
    environment.r = RSection()
    package = RCranPackage()
    package.name = "ggplot2"
    environment.r.cran_packages = [package]
    environment.inferencing_stack_version = "latest"
    return environment


def test_a_saved_environment_loads_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    rich_environment().save_to_directory(str(folder))
    loaded = Environment.load_from_directory(str(folder))
    assert loaded == rich_environment()
    assert type(loaded) is Environment
    assert loaded.environment_variables == {"A": "1", "B": "2"}


def test_the_saved_folder_has_the_files_and_keys_of_sdk_v1(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    rich_environment().save_to_directory(str(folder))
    assert sorted(file.name for file in folder.iterdir()) == [
        "azureml_environment.json",
        "conda_dependencies.yml",
    ]
    definition = json.loads((folder / "azureml_environment.json").read_text())
    assert list(definition) == [
        "name", "version", "environmentVariables", "python", "docker", "spark", "databricks", "r",
        "inferencingStackVersion", "assetId",
    ]  # fmt: skip
    assert list(definition["python"]) == [
        "userManagedDependencies", "interpreterPath", "condaDependenciesFile", "baseCondaEnvironment",
    ]  # fmt: skip
    assert list(definition["docker"]) == [
        "enabled", "baseImage", "baseDockerfile", "buildContext", "sharedVolumes", "shmSize", "arguments",
        "baseImageRegistry", "platform",
    ]  # fmt: skip
    assert definition["python"]["condaDependenciesFile"] == "conda_dependencies.yml"


def test_an_existing_folder_is_written_only_when_asked(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        Environment("x").save_to_directory(str(tmp_path))
    assert not list(tmp_path.iterdir())
    Environment("x").save_to_directory(str(tmp_path), overwrite=True)
    assert Environment.load_from_directory(str(tmp_path)) == Environment("x")


def test_loading_from_a_folder_without_an_environment_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserErrorException, match="it has no azureml_environment.json"):
        Environment.load_from_directory(str(tmp_path))
    (tmp_path / "azureml_environment.json").write_text("{")
    with pytest.raises(UserErrorException, match="is not JSON"):
        Environment.load_from_directory(str(tmp_path))
    (tmp_path / "azureml_environment.json").write_text('{"version": "1"}')
    with pytest.raises(UserErrorException, match="has no name"):
        Environment.load_from_directory(str(tmp_path))


def test_the_definition_carries_the_packages_and_reads_back() -> None:
    definition = json.loads(json.dumps(rich_environment()._to_dict()))
    assert definition["python"]["condaDependencies"]["dependencies"][-1] == {"pip": ["numpy==1.23.5"]}
    assert Environment._from_dict(definition) == rich_environment()


def test_a_key_that_nobody_knows_is_left_out_with_a_warning_and_old_ones_in_silence() -> None:
    with pytest.warns(UserWarning, match="DockerSection does not know 'baseImge'.*Did you mean 'baseImage'"):
        Environment._from_dict({"name": "x", "docker": {"baseImge": "ubuntu"}})
    assert Environment._from_dict({"name": "x", "docker": {"gpuSupport": True}}) == Environment("x")


def test_a_conda_file_may_be_assigned_by_its_name(conda_file: str) -> None:
    environment = Environment("x")
    environment.python.conda_dependencies_file = conda_file
    assert environment.python.conda_dependencies_file == conda_file
    assert environment.python.conda_dependencies.pip_packages == ["tensorflow-gpu==2.2.0"]
    assert environment._to_dict()["python"]["condaDependenciesFile"] is None


def test_printing_shows_everything_but_passwords() -> None:
    environment = rich_environment()
    shown = (str(environment), repr(environment.docker), environment._repr_html_())
    assert all("sesame" not in text for text in shown)
    assert json.loads(str(environment))["docker"]["baseImageRegistry"]["password"] == "***"
    assert repr(Environment("x")) == "Environment(name='x')"
    assert "&lt;b&gt;" in Environment("x", environment_variables={"A": "<b>"})._repr_html_()


@pytest.mark.parametrize(
    "call",
    [
        lambda: Environment.get(None, "x"),
        lambda: Environment.list(None),
        lambda: Environment.label(None, "x", "1", []),
        lambda: Environment("x").register(None),
        lambda: Environment("x").build(None),
        lambda: Environment("x").build_local(None),
        lambda: Environment("x").get_image_details(None),
        lambda: EnvironmentReference("x").get_environment(None),
    ],
)
def test_what_needs_a_workspace_says_so(call: Callable[[], Any]) -> None:
    with pytest.raises(UserErrorException, match="workspace must be a Workspace, not NoneType"):
        call()


def test_without_conda_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CONDA_EXE", raising=False)
    with pytest.raises(UserErrorException, match="no conda .*from_conda_specification"):
        Environment.from_existing_conda_environment("mine", "base")


@pytest.fixture
def conda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that answers as conda does for one environment, 'lab'."""
    command = tmp_path / "conda"
    command.write_text(
        f"""#!{sys.executable}
import sys
if sys.argv[1:] != ["env", "export", "--name", "lab", "--no-builds"]:
    sys.exit("EnvironmentLocationNotFound: Not a conda environment")
print("name: lab\\nchannels:\\n- conda-forge\\ndependencies:\\n- python=3.8.13\\n- pip:\\n  - numpy==1.23.5")
print("prefix: /opt/conda/envs/lab")
"""
    )
    command.chmod(0o755)
    monkeypatch.setenv("CONDA_EXE", str(command))


def test_a_conda_environment_of_this_machine_is_taken_over(conda: None) -> None:
    environment = Environment.from_existing_conda_environment("mine", "lab")
    assert environment.name == "mine"
    assert environment.python.conda_dependencies.as_dict() == {
        "channels": ["conda-forge"],
        "dependencies": ["python=3.8.13", {"pip": ["numpy==1.23.5"]}],
    }


def test_what_conda_says_is_passed_on(conda: None) -> None:
    with pytest.raises(UserErrorException, match="--name gone.* failed: EnvironmentLocationNotFound"):
        Environment.from_existing_conda_environment("mine", "gone")


def test_image_details_are_read_from_what_the_service_says() -> None:
    details = DockerImageDetails(
        dockerImage={"name": "azureml/azureml_1", "registry": {"address": "example.org"}},
        imageExistsInRegistry=True,
        pythonEnvironment={"interpreterPath": "python", "condaEnvironmentPath": "/opt/env"},
        dockerfile="FROM x",
    )
    assert (details.repository, details.registry) == ("azureml/azureml_1", {"address": "example.org"})
    assert (details.image_exist, details.dockerfile) == (True, "FROM x")
    assert (details.interpreter_path, details.environment_path) == ("python", "/opt/env")
    assert DockerImageDetails().repository is None

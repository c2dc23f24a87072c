"""What becomes of a definition of SDK v1 on a machine of today."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lapis.environments import package_facts
from lapis.environments.recipe import recipe
from lapis.environments.values import NOBODY, Recipe, Submitter
from lapis.environments.versions import version
from lapis.errors import UserErrorException

ALL = ("3.7.16", "3.8.18", "3.9.18", "3.10.13", "3.11.7", "3.12.1", "3.13.0")


def made(
    *dependencies: Any,
    pip: Sequence[str] = (),
    pythons: Sequence[str] = ALL,
    gpu: bool = False,
    strict: bool = False,
    mpi: bool = False,
    horovod_in: str = "",
    submitter: Submitter = NOBODY,
) -> Recipe:
    conda = {"channels": ["conda-forge"], "dependencies": [*dependencies, {"pip": list(pip)}]}
    definition = {"name": "mine", "python": {"condaDependencies": conda}}
    how: dict[str, Any] = {"gpu": gpu, "strict": strict, "mpi": mpi, "horovod_in": horovod_in, "submitter": submitter}
    return recipe(definition, pythons=pythons, **how)


def refused(*dependencies: Any, **more: Any) -> str:
    with pytest.raises(UserErrorException) as error:
        made(*dependencies, **more)
    return error.value.message


def told(found: Recipe) -> dict[str, str]:
    return {substitution.asked: substitution.given for substitution in found.substitutions}


def reason(found: Recipe, asked: str) -> str:
    return next(substitution.reason for substitution in found.substitutions if substitution.asked == asked)


# What Lapis is


def test_packages_that_lapis_is_are_not_installed_and_that_is_no_substitution() -> None:
    found = made("python=3.11", pip=["azureml-defaults==1.0.45", "azureml-core", "azureml_telemetry"], strict=True)
    assert found.substitutions == () and not any(each.startswith("azureml") for each in found.requirements)


def test_nobody_else_brings_them_in_either() -> None:
    found = made("python=3.11", pip=["inference-schema"])
    assert {"azureml-core", "azureml-defaults"} <= set(found.without)


@pytest.mark.parametrize(
    ("asked", "brings"),
    [
        ("azureml-core", {"requests", "python-dateutil", "pytz"}),
        ("azureml-dataset-runtime[pandas,fuse]", {"pyarrow", "pandas", "numpy"}),
        ("azureml-dataprep[pandas]", {"pyarrow", "pandas"}),
        ("azureml-dataset-runtime", {"pyarrow", "numpy"}),
        ("azureml-defaults", {"pandas", "numpy", "pyarrow", "requests", "python-dateutil", "pytz", "dill", "flask"}),
        ("azureml-sdk", {"pyarrow", "pandas", "requests"}),
        ("azureml-mlflow", {"mlflow-skinny"}),
        ("azureml-tensorboard", {"tensorboard"}),
    ],
)
def test_what_came_along_with_them_is_installed(asked: str, brings: set[str]) -> None:
    found = made("python=3.11", pip=[asked])
    assert brings <= set(found.requirements)
    assert brings <= set(found.optional) and not set(package_facts.ALWAYS_THERE) & set(found.optional)


def test_a_package_that_the_user_asks_for_is_not_asked_for_twice() -> None:
    found = made("python=3.11", pip=["azureml-mlflow", "mlflow==2.9.2", "azureml-sdk", "pyarrow==15.0.0"])
    assert {"mlflow==2.9.2", "pyarrow==15.0.0"} <= set(found.requirements)
    assert not {"mlflow-skinny", "pyarrow"} & set(found.requirements) and "pyarrow==15.0.0" not in found.optional


def test_numpy_is_as_old_as_azures_packages_wanted_it_where_this_python_has_such_a_one_and_nobody_says_otherwise() -> (
    None
):
    assert "numpy<1.24" in made("python=3.9", "numpy", pip=["azureml-defaults"]).if_possible
    assert "numpy<1.24" not in made("python=3.12", "numpy", pip=["azureml-defaults"]).if_possible
    assert "numpy<1.24" not in made("python=3.9", "numpy=1.26", pip=["azureml-defaults"]).if_possible
    assert made("python=3.9", "numpy", pip=["azureml-core"]).if_possible == ()


SUBMITTER = Submitter("3.11.7", {"numpy": "2.1.3", "scikit-learn": "1.3.2", "pandas": "2.2.3", "six": "1.16.0"})


def test_what_is_not_pinned_comes_as_the_submitting_python_has_it_so_that_its_pickles_can_be_read() -> None:
    found = made("python=3.11", "scikit-learn", pip=["six"], submitter=SUBMITTER)
    assert found.as_submitter == ("numpy==2.1.3", "pandas==2.2.3", "scikit-learn==1.3.2")
    pinned = made("python=3.11", "scikit-learn", "pandas=1.5.3", submitter=SUBMITTER)
    assert pinned.as_submitter == ("scikit-learn==1.3.2",), "beside a pin, only what is named"
    assert made("python=3.11", "scikit-learn", submitter=SUBMITTER, strict=True).as_submitter == ()


def test_a_version_that_another_python_does_not_have_is_not_asked_for() -> None:
    assert made("python=3.8", "scikit-learn", submitter=SUBMITTER).as_submitter == ("scikit-learn==1.3.2",)


def test_without_a_python_named_it_is_the_submitters() -> None:
    assert made("six").python == "3.11.7"
    assert made("six", submitter=Submitter("3.9.1")).python == "3.9.18"
    assert made("python=3.8", "six", submitter=Submitter("3.9.1")).python == "3.8.18"


def test_pandas_beside_azureml_can_read_tables() -> None:
    assert "pyarrow" in made("python=3.11", pip=["azureml-defaults", "pandas"]).requirements
    assert "pyarrow" not in made("python=3.11", pip=["pandas"]).requirements


def test_packages_of_azure_that_lapis_does_not_have_are_named() -> None:
    found = made("python=3.11", pip=["azureml-train-automl==1.8.0", "azureml-interpret"])
    assert told(found) == {"azureml-train-automl==1.8.0": "", "azureml-interpret": ""}
    assert "a script that imports it fails" in reason(found, "azureml-interpret")


# Names


def test_conda_names_become_names_of_pypi() -> None:
    found = made("python=3.8", "pytorch=1.6", "py-xgboost", "matplotlib-base", "opencv=3.4.2", "pytables")
    assert {"torch==1.6.*", "xgboost", "matplotlib", "opencv-python-headless==3.4.2.*", "tables"} <= set(
        found.requirements
    )
    assert "pytorch is called torch on PyPI." in found.notices


def test_an_exact_version_of_opencv_means_all_its_builds() -> None:
    assert "opencv-python-headless==3.4.2.*" in made("python=3.7", "opencv==3.4.2").requirements


def test_conda_brings_tensorflow_with_keras_and_numpy_with_pytorch() -> None:
    assert "tensorflow-cpu" in made("python=3.11", "keras").requirements
    assert "numpy" in made("python=3.11", "pytorch").requirements


def test_what_conda_brings_gives_way_to_what_is_asked_for() -> None:
    found = made("python=3.7", "keras", pip=["tensorflow-gpu==1.13.1"])
    assert [each for each in found.requirements if each.startswith("tensorflow")] == ["tensorflow==1.13.1"]


def test_of_two_names_of_tensorflow_the_one_with_a_version_is_meant() -> None:
    found = made("python=3.7", pip=["tensorflow", "tensorflow-gpu==1.13.1"])
    assert [each for each in found.requirements if each.startswith("tensorflow")] == ["tensorflow==1.13.1"]


def test_other_conda_names_pass_as_they_are() -> None:
    assert "some-package==1.2.*" in made("python=3.11", "some_package=1.2").requirements


def test_libraries_that_wheels_bring_are_left_out_and_told() -> None:
    found = made("python=3.11", "mkl=2018.0.3", "cudatoolkit=10.1", "_libgcc_mutex=0.1=main", "pip=20.2.4", "openmpi")
    assert found.requirements == package_facts.ALWAYS_THERE
    assert [notice.split(" is not installed")[0] for notice in found.notices] == [
        "mkl=2018.0.3",
        "cudatoolkit=10.1",
        "_libgcc_mutex=0.1=main",
        "openmpi",
    ]


def test_programs_and_languages_are_an_error_that_lists_all_of_them() -> None:
    says = refused("python=3.8", "r-base=3.5.1", "numpy", "ffmpeg", "nodejs=12", "graphviz")
    assert "r-base=3.5.1, ffmpeg, nodejs=12, graphviz." in says
    assert "numpy" not in says and "Environment 'mine'" in says and "take them out" in says


def test_under_such_a_name_pip_means_a_python_package() -> None:
    assert "graphviz" in made("python=3.11", "python-graphviz", pip=["git+https://example.org/x.git"]).requirements
    assert "graphviz" in made("python=3.11", pip=["graphviz"]).requirements


def test_sklearn_is_scikit_learn() -> None:
    found = made("python=3.11", pip=["sklearn"], strict=True)
    assert "scikit-learn" in found.requirements and "sklearn" not in found.requirements


def test_pip_has_the_last_word_over_conda() -> None:
    assert "numpy==1.21.6" in made("python=3.8", "numpy=1.18", pip=["numpy==1.21.6"]).requirements
    assert "numpy==1.18.*" not in made("python=3.8", "numpy=1.18", pip=["numpy==1.21.6"]).requirements


def test_horovod_is_set_apart_for_mpi_jobs_in_its_last_release() -> None:
    found = made("python=3.11", pip=["horovod==0.19.5", "tensorflow-cpu"], strict=False, mpi=True)
    assert found.compiled == ("horovod==0.28.1",)
    assert not any(line.startswith("horovod") for line in found.requirements)
    assert {"cloudpickle", "psutil", "pyyaml"} <= set(found.requirements)
    assert "tensorflow-cpu<2.16" in found.constraints, "newer ones have a Keras that it does not know"
    assert told(found) == {"horovod==0.19.5": "horovod==0.28.1"}


@pytest.mark.parametrize("asked", ["horovod", "horovod[tensorflow]", "horovod>=0.20", "horovod==0.28.1"])
def test_a_horovod_that_may_be_the_last_one_is_no_substitution(asked: str) -> None:
    found = made("python=3.11", pip=[asked, "tensorflow-cpu==2.18.0"], strict=True, mpi=True)
    assert found.compiled == ("horovod==0.28.1",) and found.substitutions == ()
    assert not any(limit.startswith("tensorflow") for limit in found.constraints), "the user has chosen"


def test_an_mpi_job_whose_script_imports_horovod_gets_it_and_is_told() -> None:
    found = made("python=3.8", pip=["tensorflow-gpu==2.2.0"], mpi=True, horovod_in="train.py")
    assert found.compiled == ("horovod==0.28.1",) and "horovod is added: train.py imports it." in found.notices


def test_horovod_is_not_added_for_other_jobs_nor_without_a_framework_nor_where_nothing_may_differ() -> None:
    tensorflow = ["tensorflow-cpu==2.15.1"]
    for found in (
        made("python=3.11", pip=tensorflow, horovod_in="train.py"),
        made("python=3.11", pip=["six"], mpi=True, horovod_in="train.py"),
        made("python=3.11", pip=tensorflow, mpi=True, horovod_in="train.py", strict=True),
    ):
        assert found.compiled == () and not any("horovod" in each for each in found.notices)


def test_horovod_is_not_installed_and_the_reason_is_given() -> None:
    found = made("python=3.8", pip=["horovod==0.19.1", "tensorflow-cpu==2.2.0"])
    assert told(found) == {"horovod==0.19.1": ""}
    assert "MPI" in reason(found, "horovod==0.19.1")


def test_options_of_pip_are_kept_in_their_order() -> None:
    found = made("python=3.11", pip=["--extra-index-url https://example.org/a", "-f https://example.org/b", "six"])
    assert found.pip_options == ("--extra-index-url https://example.org/a", "-f https://example.org/b")


def test_an_error_in_a_line_names_the_environment_and_the_line() -> None:
    says = refused("python=3.8", pip=["-r requirements.txt"])
    assert says.startswith("Environment 'mine' cannot be built.") and "'-r requirements.txt'" in says


# Python


@pytest.mark.parametrize("asked", ["python=3.8", "python=3.8.13", "python==3.8.*", "python>=3.8,<3.9"])
def test_the_python_asked_for_is_used_where_the_machine_has_it(asked: str) -> None:
    found = made(asked, "six")
    assert (found.python, found.substitutions) == ("3.8.18", ())


def test_of_several_builds_of_it_the_exact_one_is_used_then_the_newest() -> None:
    assert made("python=3.8.13", pythons=["3.8.18", "3.8.13", "3.8.2"]).python == "3.8.13"
    assert made("python=3.8.9", pythons=["3.8.2", "3.8.18", "3.8.13"]).python == "3.8.18"


@pytest.mark.parametrize("asked", ["python=2.7", "python=3.5", "python=3.6.2"])
def test_pythons_older_than_lapis_become_the_oldest_that_it_runs_on(asked: str) -> None:
    found = made(asked, "six", pythons=["3.6.15", *ALL])
    assert found.python == "3.7.16" and told(found) == {asked: "python=3.7.16"}
    assert reason(found, asked) == "Lapis runs on Python 3.7 and later"


def test_a_python_that_the_machine_lacks_becomes_the_nearest_and_says_how_to_get_it() -> None:
    found = made("python=3.9", "six", pythons=["3.7.16", "3.10.13", "3.13.0"])
    assert told(found) == {"python=3.9": "python=3.10.13"}
    assert "`uv python install 3.9` adds the one asked for" in reason(found, "python=3.9")


def test_of_two_that_are_as_near_the_newer_is_taken() -> None:
    assert made("python=3.9", "six", pythons=["3.8.18", "3.10.13"]).python == "3.10.13"


def test_a_python_that_the_packages_exclude_becomes_one_that_they_are_made_for() -> None:
    found = made("python=3.11", pip=["tensorflow-cpu==2.2.0"])
    assert told(found) == {"python=3.11": "python=3.8.18"}
    assert reason(found, "python=3.11") == "tensorflow-cpu==2.2.0 is for Python 3.5 to 3.8"


def test_without_a_python_asked_for_the_packages_choose_and_nothing_is_substituted() -> None:
    assert made("scikit-learn=0.24").python == "3.9.18"
    assert made("six").python == "3.11.7"
    assert made("scikit-learn=0.24").substitutions == ()


def test_a_machine_without_a_usable_python_is_an_error_that_says_what_to_install() -> None:
    says = refused("python=3.6", pythons=["3.6.15"])
    assert "this machine has: 3.6.15" in says and "`uv python install 3.11`" in says


@pytest.mark.parametrize("name", sorted(package_facts.RELEASES))
def test_the_table_of_releases_is_in_order(name: str) -> None:
    rows = package_facts.RELEASES[name]
    assert rows[0][0] == "0" and rows[-1][2] == ""
    assert [version(row[0]) for row in rows] == sorted({version(row[0]) for row in rows})
    oldest = [version(row[1]) for row in rows]
    assert oldest == sorted(oldest)


# Versions that do not exist for any Python of the machine


def test_a_version_for_no_python_of_the_machine_becomes_the_next_newer_one() -> None:
    found = made("python=3.8", pip=["tensorflow-cpu==2.2.0", "scikit-learn==0.22.1"], pythons=["3.11.7"])
    assert {"tensorflow-cpu==2.12.*", "scikit-learn==1.1.*"} <= set(found.requirements)
    says = reason(found, "tensorflow-cpu==2.2.0")
    assert "Python 3.5 to 3.8" in says and "this machine has 3.11.7" in says and "`uv python install 3.8`" in says


def test_of_several_pythons_the_one_is_taken_that_changes_least() -> None:
    found = made("python=3.6", pip=["tensorflow-cpu==2.2.0"], pythons=["3.9.18", "3.11.7"])
    assert found.python == "3.9.18" and "tensorflow-cpu==2.5.*" in found.requirements


def test_where_no_newer_one_exists_the_last_older_one_is_taken() -> None:
    found = made("python=3.7", pip=["scikit-learn==1.5.1"], pythons=["3.7.16"])
    assert "scikit-learn>=1.0,<1.1" in found.requirements


def test_pins_of_what_follows_a_moved_framework_are_lifted() -> None:
    pins = ["keras<=2.3.1", "numpy==1.18.5", "h5py<=2.10", "matplotlib==3.8.0", "tensorflow-cpu==2.2.0"]
    found = made("python=3.8", pip=pins, pythons=["3.11.7"])
    assert {"keras", "numpy", "h5py", "matplotlib==3.8.0"} <= set(found.requirements)
    assert reason(found, "keras<=2.3.1") == "it follows tensorflow-cpu"


def test_torchvision_follows_torch_wherever_it_is_listed() -> None:
    found = made("python=3.8", pip=["torchvision==0.7.0", "torch==1.6.0"], pythons=["3.11.7"])
    assert {"torch==1.13.*", "torchvision"} <= set(found.requirements)
    assert told(found)["torchvision==0.7.0"] == "torchvision"


def test_versions_newer_than_the_table_are_left_to_the_resolver() -> None:
    found = made("python=3.13", pip=["tensorflow-cpu==9.1", "numpy==9.0"])
    assert {"tensorflow-cpu==9.1", "numpy==9.0"} <= set(found.requirements) and found.substitutions == ()


def test_a_pin_that_holds_only_somewhere_moves_nothing() -> None:
    found = made("python=3.11", pip=["numpy==1.18.5; python_version < '3.8'"])
    assert found.python == "3.11.7" and found.substitutions == ()


# TensorFlow


@pytest.mark.parametrize(
    ("asked", "python", "without_gpu", "with_gpu"),
    [
        ("tensorflow-gpu==1.13.1", "3.7", "tensorflow==1.13.1", "tensorflow-gpu==1.13.1"),
        ("tensorflow==2.0.0", "3.7", "tensorflow==2.0.0", "tensorflow-gpu==2.0.0"),
        ("tensorflow-gpu==2.1.0", "3.7", "tensorflow-cpu==2.1.0", "tensorflow==2.1.0"),
        ("tensorflow-gpu==2.2.0", "3.8", "tensorflow-cpu==2.2.0", "tensorflow==2.2.0"),
        ("tensorflow==2.14.0", "3.11", "tensorflow-cpu==2.14.0", "tensorflow==2.14.0"),
        ("tensorflow==2.15.1", "3.11", "tensorflow-cpu==2.15.1", "tensorflow[and-cuda]==2.15.1"),
        ("tensorflow-gpu", "3.11", "tensorflow-cpu", "tensorflow[and-cuda]"),
        ("tensorflow", "3.7", "tensorflow-cpu", "tensorflow"),
        ("tensorflow<2.1", "3.7", "tensorflow<2.1", "tensorflow-gpu<2.1"),
    ],
)
def test_tensorflow_comes_in_the_build_for_the_node(asked: str, python: str, without_gpu: str, with_gpu: str) -> None:
    assert without_gpu in made(f"python={python}", pip=[asked]).requirements
    assert with_gpu in made(f"python={python}", pip=[asked], gpu=True).requirements


def test_beside_its_small_build_the_large_one_is_kept_out() -> None:
    assert "tensorflow" in made("python=3.11", pip=["tensorflow", "tensorflow-hub"]).without
    assert "tensorflow" not in made("python=3.11", pip=["tensorflow"], gpu=True).without


def test_tensorboard_comes_with_every_tensorflow_that_may_be_of_before_it_was_left_out() -> None:
    assert "tensorboard" in made("python=3.11", pip=["tensorflow"]).requirements
    assert "tensorboard" not in made("python=3.11", pip=["tensorflow==2.15.0"]).requirements  # requires it itself
    assert "tensorboard" not in made("python=3.11", pip=["tensorflow==2.21.0"]).requirements


def test_the_user_is_told_which_cuda_an_old_tensorflow_looks_for() -> None:
    (notice,) = made("python=3.7", pip=["tensorflow-gpu==2.4.1"], gpu=True).notices
    assert notice == "tensorflow==2.4.1 looks for CUDA 11.0 on the node; where it finds none it uses the CPU."
    assert made("python=3.11", pip=["tensorflow==2.15.1"], gpu=True).notices == ()


# Limits


def limits(found: Recipe) -> dict[str, str]:
    return dict(constraint.split("<") for constraint in found.constraints)


def test_old_versions_limit_what_they_would_break_on() -> None:
    found = limits(made("python=3.7", pip=["tensorflow==1.13.1"]))
    assert (found["numpy"], found["protobuf"], found["h5py"], found["keras"]) == ("1.17", "3.21", "3", "2.4")
    assert limits(made("python=3.8", pip=["tensorflow==2.2.0"]))["keras"] == "2.5"
    assert limits(made("python=3.9", pip=["tensorflow==2.6.0"]))["keras"] == "2.7"
    assert limits(made("python=3.8", "scikit-learn=0.22"))["numpy"] == "1.24"
    assert limits(made("python=3.7", "pytorch=1.4"))["pillow"] == "7"


def test_new_versions_limit_nothing_but_setuptools() -> None:
    assert made("python=3.13", pip=["tensorflow==2.21.0", "scikit-learn", "pandas==3.0.1"]).constraints == (
        "setuptools<80.9",
    )


def test_a_limit_gives_way_to_what_the_user_asks_for() -> None:
    assert "numpy" not in limits(made("python=3.8", pip=["tensorflow==2.2.0", "numpy==1.19.5"]))
    assert limits(made("python=3.8", pip=["tensorflow==2.2.0", "numpy>=1.16"]))["numpy"] == "1.19"
    assert "setuptools" not in limits(made("python=3.8", pip=["six", "setuptools>=82"]))


def test_every_limit_in_the_table_can_be_read() -> None:
    for rows in package_facts.COMPANIONS.values():
        for below, others in rows:
            assert not below or version(below)
            for other in others:
                name, sign, limit = other.partition("<")
                assert name == name.lower() and sign and version(limit), other


def test_pip_and_setuptools_are_there_as_in_conda() -> None:
    assert made("python=3.11", "six").requirements == ("six", "pip", "setuptools")
    assert made("python=3.11").requirements == ("pip", "setuptools")
    assert made("python=3.11").constraints == ("setuptools<80.9",), "the last that has pkg_resources"


# Help for scripts


def test_an_environment_that_is_as_asked_for_gets_no_help() -> None:
    assert made("python=3.8", pip=["tensorflow-cpu==2.2.0", "numpy", "scikit-learn==0.24.2"]).shims == ()
    assert made("python=3.13", "numpy", "scikit-learn=1.7", "pytorch").shims == ()


def test_old_names_of_what_was_not_pinned_are_there() -> None:
    assert made("python=3.13", "scikit-learn").shims == ("sklearn_externals",)
    assert made("python=3.12", pip=["azureml-defaults"]).shims == ("numpy_aliases",)


def test_numpy_gets_its_old_names_back_where_a_newer_one_came_unasked() -> None:
    assert made("python=3.6", "numpy=1.16", pythons=["3.13.0"]).shims == ("numpy_aliases",)
    assert made("python=3.6", "numpy=1.16", pythons=["3.11.7"]).shims == ()  # 1.23 has them
    assert made("python=3.6", "numpy").shims == ()  # so has all that there is for 3.7


def test_lr_is_obeyed_wherever_keras_would_pass_over_it() -> None:
    assert made("python=3.8", pip=["tensorflow-cpu==2.13.0"]).shims == ("learning_rate",)
    assert made("python=3.11", pip=["tensorflow-cpu"]).shims == ("learning_rate",)
    assert made("python=3.11", "keras").shims == ("learning_rate",)
    assert made("python=3.8", pip=["tensorflow-cpu==2.10.0", "keras"]).shims == ()


def test_tensorflow_1_is_kept_alive_in_tensorflow_2() -> None:
    found = made("python=3.6", pip=["tensorflow==1.13.1"], pythons=["3.11.7"])
    assert "tensorflow_1" in found.shims and "tensorflow-cpu==2.12.*" in found.requirements
    assert "tensorflow_1" not in made("python=3.6", pip=["tensorflow==1.10"]).shims  # 1.13 is TensorFlow 1
    assert "tensorflow_1" not in made("python=3.8", pip=["tensorflow==2.2"], pythons=["3.11.7"]).shims


def test_keras_2_is_kept_where_only_keras_3_is_left() -> None:
    found = made("python=3.6", pip=["tensorflow==2.2.0", "keras<=2.3.1"], pythons=["3.12.1"])
    assert {"tensorflow-cpu==2.16.*", "tf-keras==2.16.*"} <= set(found.requirements)
    assert "legacy_keras" in found.shims and found.variables == {"TF_USE_LEGACY_KERAS": "1"}
    assert told(found)["keras<=2.3.1"] == "tf-keras==2.16.*"


def test_keras_has_its_optimizers_where_one_came_that_lacks_them() -> None:
    pins = ["tensorflow==2.2.0", "keras<=2.3.1"]
    assert made("python=3.6", pip=pins, pythons=["3.10.13"]).shims == ("keras_optimizers",)
    assert made("python=3.6", pip=pins, pythons=["3.9.18"]).shims == ()  # Keras 2.4 has them
    assert made("python=3.6", pip=pins[:1], pythons=["3.10.13"]).shims == ()


def test_keras_2_is_kept_for_a_script_that_pins_keras_alone() -> None:
    found = made("python=3.6", pip=["keras==2.3.1"], pythons=["3.13.0"])
    assert {"tensorflow-cpu", "tf-keras"} <= set(found.requirements) and "legacy_keras" in found.shims
    assert not any(requirement.startswith("keras") for requirement in found.requirements)


# Strict


def test_strict_lists_everything_that_would_be_substituted() -> None:
    says = refused("python=3.6.2", pip=["horovod==0.19.1", "azureml-interpret", "six"], strict=True)
    for asked in ("python=3.6.2 -> python=3.7.16", "horovod==0.19.1 -> not installed", "azureml-interpret -> not"):
        assert asked in says
    assert "six" not in says and "Environment 'mine'" in says


def test_strict_says_which_python_to_install() -> None:
    says = refused("python=3.8", pip=["tensorflow==2.2.0"], pythons=["3.11.7"], strict=True)
    assert "tensorflow==2.2.0 -> tensorflow==2.12.*" in says and "`uv python install 3.8`" in says


def test_strict_keeps_the_build_that_was_asked_for() -> None:
    assert "tensorflow==2.2.0" in made("python=3.8", pip=["tensorflow==2.2.0"], strict=True).requirements
    assert "tensorflow-gpu==2.2.0" in made("python=3.8", pip=["tensorflow-gpu==2.2.0"], strict=True).requirements


def test_strict_refuses_a_name_under_which_nothing_is_left() -> None:
    assert "tensorflow-gpu -> tensorflow-cpu" in refused("python=3.11", pip=["tensorflow-gpu"], strict=True)


def test_the_same_definition_gives_the_same_recipe() -> None:
    again = [made("python=3.6", "mkl", pip=["tensorflow-gpu==2.2.0", "keras"], pythons=["3.12.1"]) for _ in range(2)]
    assert again[0] == again[1]


def test_tensorflow_1_13_beside_horovod_becomes_the_version_that_it_compiles_for() -> None:
    definition = {
        "name": "estimator",
        "python": {
            "condaDependencies": {
                "dependencies": ["python=3.6.2", {"pip": ["tensorflow==1.13.1", "horovod==0.16.1"]}],
            }
        },
    }
    for mpi in (False, True):
        made = recipe(definition, pythons=["3.7.16", "3.11.7"], gpu=False, strict=False, mpi=mpi)
        assert any(each.startswith("tensorflow==1.15.5") for each in made.requirements), made.requirements
    alone = {"name": "x", "python": {"condaDependencies": {"dependencies": [{"pip": ["tensorflow==1.13.1"]}]}}}
    made = recipe(alone, pythons=["3.7.16"], gpu=False, strict=False)
    assert "tensorflow==1.13.1" in made.requirements

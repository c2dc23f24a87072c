"""The help that old scripts get: what it does, and that nobody else notices it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from lapis.environments import package_facts
from lapis.environments.old_code import SHIMS, shim_files
from tests.environments.scripts import DIGITS_AS_MNIST

ADD = "import site, sys; site.addsitedir(sys.argv[1]); "  # as Python itself treats site-packages when it starts


def lay(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in shim_files(names).items():
        (folder / name).write_text(text)
    return folder


def run(site: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ADD + code, str(site), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def printed(site: Path, code: str, *arguments: str) -> str:
    done = run(site, code, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_environment_that_needs_no_help_gets_no_files() -> None:
    assert shim_files([]) == {}


def test_only_the_files_of_the_shims_asked_for_are_laid() -> None:
    assert set(shim_files(["numpy_aliases"])) == {"lapis_old_code.py", "lapis_old_code.pth", "lapis_numpy_aliases.py"}


@pytest.mark.parametrize("name", sorted(SHIMS))
def test_the_files_can_be_read_by_the_oldest_python(name: str) -> None:
    oldest = tuple(int(part) for part in package_facts.OLDEST_PYTHON.split("."))
    for file, text in shim_files([name]).items():
        if file.endswith(".py"):
            ast.parse(text, feature_version=(oldest[0], oldest[1]))


def test_when_python_starts_nothing_is_imported_but_the_hook(tmp_path: Path) -> None:
    code = "print(sorted(sys.modules))"
    without = ast.literal_eval(printed(lay(tmp_path / "none"), code))
    with_all = ast.literal_eval(printed(lay(tmp_path / "all", *SHIMS), code))
    assert set(with_all) - set(without) - {"__future__"} == {"lapis_old_code"}


def test_a_module_that_is_not_there_is_missed_as_ever(tmp_path: Path) -> None:
    done = run(lay(tmp_path / "site", "learning_rate"), "import keras.optimizers.optimizer")
    assert "ModuleNotFoundError: No module named 'keras'" in done.stderr


def test_the_module_keeps_its_own_loader_and_spec(tmp_path: Path) -> None:
    code = "import numpy; print(type(numpy.__spec__.loader).__name__, numpy.__loader__ is numpy.__spec__.loader)"
    assert printed(lay(tmp_path / "site", "numpy_aliases"), code) == "SourceFileLoader True"


def test_help_that_fails_is_told_and_leaves_the_module_alone(tmp_path: Path) -> None:
    site = lay(tmp_path / "site", "numpy_aliases")
    (site / "lapis_numpy_aliases.py").write_text("def apply(module):\n    raise ValueError('oh')\n")
    done = run(site, "import numpy; print(numpy.arange(2).sum())")
    assert done.stdout.strip() == "1"
    assert "Lapis: the help for old code in numpy did not work: ValueError('oh')" in done.stderr


def test_numpy_has_its_old_names_back(tmp_path: Path) -> None:
    code = (
        "import numpy as np; "
        "print(np.array([1], dtype=np.float).dtype, np.int(2.5), np.array([0, 2]).astype(np.bool), np.object, np.Inf, "
        "np.float_(0.5), [np.float64(0.5)])"
    )
    assert printed(lay(tmp_path / "site", "numpy_aliases"), code) == (
        "float64 2 [False  True] <class 'object'> inf 0.5 [0.5]"
    )


def test_the_mnist_of_tensorflows_tutorials_is_stood_in_for(tmp_path: Path) -> None:
    """A package named tensorflow stands here: what is tried is the part that TensorFlow 2 does not have."""
    site = lay(tmp_path / "site", "tensorflow_1")
    (site / "tensorflow").mkdir()
    (site / "tensorflow" / "__init__.py").write_text("")
    data = tmp_path / "data"
    subprocess.run([sys.executable, "-c", DIGITS_AS_MNIST, str(data)], check=True)
    code = (
        "from tensorflow.examples.tutorials.mnist import input_data; "
        "mnist = input_data.read_data_sets(sys.argv[2], one_hot=True, validation_size=100); "
        "x, y = mnist.train.next_batch(50); print(x.shape, y.shape, x.dtype, y.sum(), float(x.max()) <= 1); "
        "mnist.train.next_batch(mnist.train.num_examples); "
        "print(mnist.train.epochs_completed, mnist.validation.num_examples, mnist.test.images.shape)"
    )
    assert printed(site, code, str(data)).splitlines() == ["(50, 784) (50, 10) float32 50.0 True", "1 100 (60, 784)"]


def test_externals_that_scikit_learn_still_has_are_its_own(tmp_path: Path) -> None:
    site = lay(tmp_path / "site", "sklearn_externals")
    package = site / "sklearn" / "externals"
    package.mkdir(parents=True)
    for file, text in (("../__init__.py", ""), ("__init__.py", ""), ("six.py", "own = True")):
        (package / file).write_text(text)
    done = run(site, "from sklearn.externals import six; print(six.own)")
    assert done.stdout == "True\n", done.stderr

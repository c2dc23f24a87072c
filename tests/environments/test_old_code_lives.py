"""Environments of then, really built, and scripts of then, really run: what the tables of `world` promise."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lapis.environments.curated import curated
from lapis.environments.recipe import recipe
from tests.environments import scripts
from tests.needs import lacking

# One at a time: each of them is a gigabyte or two.
pytestmark = [pytest.mark.full, pytest.mark.xdist_group("old code")]

ALL = ("3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13")


class Case(NamedTuple):
    python: str  # asked for
    pip: str
    script: str
    machine: Sequence[str] = ALL  # the Pythons that it has
    gets: str = ""  # a line of the lock, as a pattern


CASES = {
    # As asked for
    "TensorFlow 1.13 with Keras": Case("3.6.2", "tensorflow-gpu==1.13.1 keras", scripts.KERAS, gets=r"keras==2\.3\.1"),
    "TensorFlow 1.15": Case("3.7", "tensorflow==1.15.0", scripts.TENSORFLOW_1),
    "TensorFlow 2.0 with Keras": Case("3.6.2", "tensorflow-gpu==2.0.0 keras<=2.3.1", scripts.KERAS),
    "TensorFlow 2.2": Case("3.8", "tensorflow-gpu==2.2.0", scripts.TENSORFLOW_2, gets=r"tensorflow-cpu==2\.2\.0"),
    "TensorFlow 2.4": Case("3.7", "tensorflow==2.4.1", scripts.TENSORFLOW_2),
    "TensorFlow 2.6": Case("3.9", "tensorflow==2.6.0 keras", scripts.TENSORFLOW_2, gets=r"keras==2\.6\.0"),
    "TensorFlow 2.8": Case("3.10", "tensorflow==2.8.0", scripts.TENSORFLOW_2),
    "TensorFlow 2.11": Case("3.10", "tensorflow==2.11.0", scripts.TENSORFLOW_2),
    "TensorFlow 2.13": Case("3.8", "tensorflow==2.13.0", scripts.TENSORFLOW_2),
    "TensorFlow 2.15": Case("3.11", "tensorflow==2.15.0", scripts.TENSORFLOW_2),
    "TensorFlow of today": Case("3.11", "tensorflow", scripts.TENSORFLOW_2),
    "scikit-learn 0.20": Case("3.6.2", "scikit-learn==0.20.3 joblib pandas", scripts.SCIKIT_LEARN),
    "scikit-learn 0.22": Case("3.8", "scikit-learn==0.22.1 pandas", scripts.SCIKIT_LEARN),
    "scikit-learn 0.24 on 3.7": Case("3.7", "scikit-learn==0.24.1 pandas==1.1.5", scripts.SCIKIT_LEARN),
    "scikit-learn 0.24 on 3.8": Case("3.8", "scikit-learn==0.24.2 pandas", scripts.SCIKIT_LEARN),
    "PyTorch 1.4": Case("3.6.2", "torch==1.4.0 torchvision==0.5.0", scripts.TORCH),
    "PyTorch 1.6": Case("3.8", "torch==1.6.0 torchvision==0.7.0", scripts.TORCH),
    # On a machine that lacks the Python for it
    "TensorFlow 1 on Python 3.11": Case("3.6.2", "tensorflow==1.13.1", scripts.TENSORFLOW_1, ["3.11"]),
    "TensorFlow 1 on Python 3.12": Case("3.6.2", "tensorflow==1.13.1", scripts.TENSORFLOW_1, ["3.12"]),
    "Keras of 2019 on Python 3.10": Case("3.6.2", "tensorflow==2.0.0 keras<=2.3.1", scripts.KERAS, ["3.10"]),
    "Keras of 2019 on Python 3.11": Case("3.6.2", "tensorflow==2.0.0 keras<=2.3.1", scripts.KERAS, ["3.11"]),
    "Keras of 2019 on Python 3.12": Case(
        "3.6.2", "tensorflow==1.13.1 keras", scripts.KERAS, ["3.12"], r"tf-keras==2\.16"
    ),
    "scikit-learn of 2019 on Python 3.11": Case("3.6.2", "scikit-learn==0.22.1 pandas", scripts.SCIKIT_LEARN, ["3.11"]),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_network_of_then_trains_today(name: str, root: Path, tmp_path: Path) -> None:
    case = CASES[name]
    dependencies = [f"python={case.python}", {"pip": ["azureml-defaults", *case.pip.split()]}]
    definition = {"name": name, "python": {"condaDependencies": {"dependencies": dependencies}}}
    assert trained(definition, case.machine, case.script, root, tmp_path, case.gets) > 0.9


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("AzureML-TensorFlow-2.2-GPU", scripts.TENSORFLOW_2),
        ("AzureML-sklearn-0.24-ubuntu18.04-py37-cpu", scripts.SCIKIT_LEARN),
        ("AzureML-Scikit-learn-0.20.3", scripts.SCIKIT_LEARN.replace("import pandas as pd", "pd = None")),
    ],
)
def test_a_network_trains_in_an_environment_that_azure_had_ready(
    name: str, script: str, root: Path, tmp_path: Path
) -> None:
    script = script.replace("pd.DataFrame(test_x).values", "test_x")
    assert trained(curated(name), ALL, script, root, tmp_path, "") > 0.9


def test_lr_sets_the_learning_rate_of_the_keras_of_today(root: Path, tmp_path: Path) -> None:
    definition = {"name": "lr", "python": {"condaDependencies": {"dependencies": ["python=3.11", {"pip": ["keras"]}]}}}
    definition["python"]["condaDependencies"]["dependencies"][1]["pip"] += ["tensorflow"]  # type: ignore[index]
    code = "import keras; print('accuracy', keras.optimizers.Adam(lr=0.5).get_config()['learning_rate'])"
    assert trained(definition, ALL, code, root, tmp_path, "") == 0.5


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Environments that go with the test. Downloads stay in the developer's own cache."""
    if "UV_CACHE_DIR" not in os.environ:
        monkeypatch.setenv("UV_CACHE_DIR", os.path.expanduser("~/.cache/uv"))
    folder = tmp_path_factory.mktemp("environments")
    yield folder
    deadline = time.monotonic() + 60
    while folder.exists() and time.monotonic() < deadline:  # bytecode may still be on its way into it
        shutil.rmtree(folder, ignore_errors=True)


def trained(definition: Any, machine: Sequence[str], script: str, root: Path, folder: Path, gets: str) -> float:
    """Build the environment for a machine with these Pythons, run the script in it, and return the accuracy it says."""
    from lapis.environments.build import build
    from lapis.environments.resolve import resolve
    from lapis.machine.interpreters import interpreters

    there = [each for each in interpreters() if each.version.rpartition(".")[0] in machine]
    if not there:
        lacking(f"no Python {' or '.join(machine)} on this machine")
    made = recipe(definition, pythons=[each.version for each in there], gpu=False, strict=False)
    interpreter = next(each for each in there if each.version == made.python)
    lock = resolve(made, interpreter, print, root=str(root))
    assert re.search(gets, lock.packages), lock.packages
    python = os.path.join(build(lock, interpreter, str(root), print), "bin", "python")
    (folder / "train.py").write_text(script)
    variables = {**os.environ, **lock.variables, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run([python, "train.py"], cwd=folder, env=variables, capture_output=True, text=True, timeout=600)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr[-3000:]
    said = re.search(r"accuracy ([0-9.]+)", done.stdout)
    assert said, done.stdout
    return float(said.group(1))

"""Which runtime serves a model without code, and the environment that it needs. Pure: nothing is resolved or built."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

from lapis.environments import made_with
from lapis.errors import WebserviceException

ONNX, TENSORFLOW, KERAS, SKLEARN = "onnx", "tensorflow", "keras", "sklearn"
CONVERTIBLE = (TENSORFLOW, KERAS)

_FASTER_JSON = "orjson"
# tf2onnx imports packaging without asking for it. Which versions of it, of onnx and of protobuf fit a TensorFlow is
# for the resolver to find: there are some for every one from 1.13 on.
_CONVERTER = ("tf2onnx", "onnx", "packaging")
_KERAS_FILES = (".h5", ".hdf5", ".keras")
_PICKLES = (".pkl", ".pickle", ".joblib", ".sav", ".dill")
_SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")

Open = Callable[[str], BinaryIO]


def no_code(
    framework: str | None, version: str | None, files: Iterable[str], open: Open | None = None
) -> tuple[str, dict[str, Any]]:
    """The runtime that serves these files (see lapis.scoring.runtimes), and the definition of its environment.

    `framework` and `version` are the model's model_framework and model_framework_version; `files` its paths; `open`
    opens one, whose bytes tell the version where the model does not. Raises WebserviceException. The environment
    of "tensorflow" and "keras" holds the converter too: pass what comes of it to conversion.ready_to_serve.
    """
    paths = list(files)
    runtime = _runtime(framework, paths)
    version = version or _version_of(runtime, paths, open)
    packages = {
        ONNX: ["onnxruntime", "numpy"],
        SKLEARN: [_pinned("scikit-learn", version), "joblib", "dill", "numpy", "pandas"],
        TENSORFLOW: [_pinned("tensorflow", version), "numpy", *_CONVERTER],
        KERAS: [_pinned("tensorflow", version), "numpy", *_CONVERTER],
    }[runtime]
    name = f"no-code-{runtime}" + (f"-{version}" if version and runtime != ONNX else "")
    return runtime, definition(name, [*packages, _FASTER_JSON])


def definition(name: str, packages: Iterable[str]) -> dict[str, Any]:
    """An environment of pip packages, in SDK v1's form. Its packages say which Python."""
    dependencies = {"name": "project_environment", "dependencies": [{"pip": list(packages)}]}
    python = {"userManagedDependencies": False, "interpreterPath": "python", "condaDependencies": dependencies}
    return {"name": name, "environmentVariables": {}, "python": python}


def for_onnx() -> dict[str, Any]:
    """The environment that serves an ONNX file."""
    return no_code("Onnx", None, ["model.onnx"])[1]


def _runtime(framework: str | None, paths: list[str]) -> str:
    if framework == "Onnx":
        return _checked(ONNX, paths, [".onnx"], "An ONNX model is one .onnx file")
    if framework == "ScikitLearn":
        return _checked(SKLEARN, paths, _PICKLES, "A scikit-learn model is one file of joblib, pickle or dill")
    if framework in ("TensorFlow", "TfKeras"):
        if any(path.split("/")[-1] in _SAVED_MODEL for path in paths):
            return TENSORFLOW
        what = "a folder with saved_model.pb, or one Keras file (.h5, .keras)"
        return _checked(KERAS, paths, _KERAS_FILES, f"A {framework} model that is served without code is {what}")
    raise WebserviceException(
        f"A model of framework {framework!r} is not served without code: Onnx, TensorFlow, TfKeras and ScikitLearn "
        "are. Register it with its model_framework, or write an entry script."
    )


def _checked(runtime: str, paths: list[str], endings: Iterable[str], what: str) -> str:
    fitting = [path for path in paths if path.lower().endswith(tuple(endings))]
    if len(fitting) == 1 or (runtime == SKLEARN and len(paths) == 1):  # joblib writes files of any name
        return runtime
    raise WebserviceException(f"{what}. This one has {_some(fitting or paths)}. Write an entry script for it.")


def _some(paths: list[str]) -> str:
    shown = ", ".join(paths[:10])
    return f"{shown}, and {len(paths) - 10} more" if len(paths) > 10 else shown or "no files"


def _pinned(package: str, version: str | None) -> str:
    """2.15 and 2.15.0 are the same to a stored model: the last that repaired them is taken. 1.5.1 of scikit-learn is
    not: it warns about pickles of any other."""
    if not version:
        return package
    numbers = re.findall(r"\d+", version)
    if not numbers:
        raise WebserviceException(f"model_framework_version {version!r} is no version. Such as: '2.15'.")
    if package == "scikit-learn" and len(numbers) > 2:
        return f"{package}=={'.'.join(numbers[:3])}"
    return f"{package}=={'.'.join(numbers[:2])}.*"


_MADE_WITH = {
    TENSORFLOW: (("saved_model.pb",), made_with.tensorflow_of_saved_model),
    KERAS: (_KERAS_FILES, made_with.tensorflow_of_keras_file),
    SKLEARN: ((), made_with.scikit_learn_of_pickle),
}


def _version_of(runtime: str, paths: list[str], open: Open | None) -> str | None:
    if open is None or runtime not in _MADE_WITH:
        return None
    endings, version = _MADE_WITH[runtime]
    chosen = next((path for path in paths if not endings or path.lower().endswith(endings)), None)
    if chosen is None:
        return None
    with open(chosen) as file:
        return version(file)

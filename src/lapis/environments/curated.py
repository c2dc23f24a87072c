"""Azure's curated environments: the names that Azure published, and what was in them.

What only Azure's images held (MPI, CUDA, tools for the cloud) is left out, and so is mkl, which wheels bring.
"""

from __future__ import annotations

import re
from typing import Any

from lapis.environments.versions import version

PREFIX = "AzureML-"


def curated(name: str) -> dict[str, Any] | None:
    """The definition of a curated environment, in SDK v1's form; None where Azure had none of that kind.

    Letters may be small or large. Names that follow Azure's pattern are known without being listed: framework and
    version, then any of ubuntu18.04, py38, cuda11, cpu, gpu, inference.
    """
    listed = _LISTED.get(name.lower()) or _LISTED.get(f"{PREFIX}{name}".lower())
    if listed:
        return listed.definition()
    by_pattern = _by_pattern(name)
    return by_pattern.definition() if by_pattern else None


def curated_names() -> list[str]:
    """The names that Azure published, as it spelt them."""
    return sorted((each.name for each in _LISTED.values()), key=str.lower)


class _Curated:
    def __init__(
        self, name: str, python: str, pip: str, conda: str = "", variables: dict[str, str] | None = None
    ) -> None:
        self.name = name
        self.python = python
        self.pip = pip.split()
        self.conda = conda.split()
        self.variables = variables or {}

    def definition(self) -> dict[str, Any]:
        python = [f"python={self.python}"] if self.python else []
        return {
            "name": self.name,
            "environmentVariables": dict(self.variables),
            "python": {
                "userManagedDependencies": False,
                "interpreterPath": "python",
                "condaDependencies": {
                    "channels": ["conda-forge"],
                    "dependencies": [*python, *self.conda, {"pip": list(self.pip)}],
                    "name": "project_environment",
                },
            },
        }


# --- Until 2020: AzureML-TensorFlow-2.2-GPU --------------------------------------------------------------------------

_SDK = "azureml-core azureml-defaults azureml-telemetry azureml-train-restclients-hyperdrive azureml-train-core"
_AUTOML = (
    "azureml-core azureml-pipeline-core azureml-telemetry azureml-defaults azureml-interpret azureml-explain-model "
    "azureml-automl-core azureml-automl-runtime azureml-train-automl-client azureml-train-automl-runtime "
    "inference-schema"
)
_DASK = "azureml-core azureml-dataset-runtime adlfs dask[complete] dask-ml distributed fastparquet fsspec lz4 pyarrow"
_BOARD = "tensorboard==1.14.0 future==0.17.1"

# Framework and version -> on a node without a GPU. With one, TensorFlow was called tensorflow-gpu.
_OF_2020 = {
    "Chainer-5.1.0": "chainer==5.1.0",
    "PyTorch-1.0": "torch==1.0 torchvision==0.2.1 horovod==0.16.1",
    "PyTorch-1.1": f"torch==1.1 torchvision==0.2.1 horovod==0.16.1 {_BOARD}",
    "PyTorch-1.2": f"torch==1.2 torchvision==0.4.0 horovod==0.16.1 {_BOARD}",
    "PyTorch-1.3": f"torch==1.3 torchvision==0.4.1 horovod==0.18.1 {_BOARD}",
    "PyTorch-1.4": f"torch==1.4.0 torchvision==0.5.0 horovod==0.18.1 {_BOARD}",
    "PyTorch-1.5": f"torch==1.5.0 torchvision==0.6.0 horovod==0.19.1 {_BOARD}",
    "PyTorch-1.6": f"torch==1.6.0 torchvision==0.7.0 horovod==0.19.1 {_BOARD}",
    "TensorFlow-1.10": "tensorflow==1.10 horovod==0.15.2",
    "TensorFlow-1.12": "tensorflow==1.12 horovod==0.15.2",
    "TensorFlow-1.13": "tensorflow==1.13.1 horovod==0.16.1",
    "TensorFlow-2.0": "tensorflow==2.0 horovod==0.18.1",
    "TensorFlow-2.1": "tensorflow==2.1.0 horovod==0.19.1",
    "TensorFlow-2.2": "tensorflow==2.2.0 horovod==0.19.1",
    "TensorFlow-2.3": "tensorflow==2.3.0 horovod==0.19.5",
}
_DESIGNER = {
    "Designer": "azureml-designer-classic-modules spacy==2.1.7",
    "Designer-CV": "azureml-designer-cv-modules",
    "Designer-CV-Transform": "azureml-designer-cv-modules",
    "Designer-IO": "azureml-dataprep azureml-designer-dataio-modules",
    "Designer-NLP": "azureml-designer-classic-modules spacy==2.1.7",
    "Designer-PyTorch": "azureml-designer-pytorch-modules",
    "Designer-PyTorch-Train": "azureml-designer-pytorch-modules",
    "Designer-R": "azureml-designer-classic-modules",
    "Designer-Recommender": "azureml-designer-recommender-modules",
    "Designer-Score": "azureml-designer-score-modules",
    "Designer-Transform": "azureml-designer-datatransform-modules",
    "Designer-VowpalWabbit": "azureml-designer-vowpal-wabbit-modules",
}


def _until_2020() -> list[_Curated]:
    found = [
        _Curated("AutoML", "3.6.2", _AUTOML, "numpy scikit-learn pandas py-xgboost psutil"),
        _Curated("AutoML-DNN", "3.6.2", f"{_AUTOML} spacy", "numpy scikit-learn pandas py-xgboost pytorch psutil"),
        _Curated("AutoML-DNN-GPU", "3.6.2", f"{_AUTOML} spacy", "numpy scikit-learn pandas pytorch psutil"),
        _Curated(
            "AutoML-DNN-Vision-GPU", "3.7", f"{_AUTOML} azureml-dataset-runtime azureml-contrib-automl-dnn-vision"
        ),
        _Curated("AutoML-GPU", "3.6.2", _AUTOML, "numpy scikit-learn pandas psutil"),
        _Curated("Dask-CPU", "3.6.9", _DASK),
        _Curated("Dask-GPU", "3.6.9", f"{_DASK} azureml-defaults", "matplotlib"),
        _Curated("Hyperdrive-ForecastDNN", "3.7", f"{_AUTOML} azureml-contrib-automl-dnn-forecasting"),
        _Curated("Minimal", "3.6.2", "azureml-core azureml-defaults"),
        _Curated("PySpark-MmlSpark-0.15", "3.6.2", _SDK),
        _Curated("Scikit-learn-0.20.3", "3.6.2", f"{_SDK} scikit-learn==0.20.3 scipy==1.2.1 joblib==0.13.2"),
        _Curated("Sidecar", "3.6.2", ""),
        _Curated("Triton", "3.8", "azureml-core azureml-defaults tritonclient[http] numpy pillow"),
        _Curated(
            "Tutorial",
            "3.6.2",
            f"{_SDK} azureml-widgets azureml-pipeline-core azureml-pipeline-steps azureml-sdk azureml-tensorboard "
            "azureml-mlflow mlflow sklearn-pandas",
            "pandas numpy tqdm scikit-learn matplotlib",
        ),
        _Curated("VowpalWabbit-8.8.0", "3.6.2", "azureml-core azureml-defaults azureml-dataset-runtime[fuse,pandas]"),
    ]
    found += [_Curated(name, "3.6.8", pip) for name, pip in _DESIGNER.items()]
    for name, pip in _OF_2020.items():
        found.append(_Curated(f"{name}-CPU", "3.6.2", f"{_SDK} {pip}"))
        found.append(_Curated(f"{name}-GPU", "3.6.2", f"{_SDK} {pip}".replace(" tensorflow==", " tensorflow-gpu==")))
    return found


# --- Since 2021: AzureML-tensorflow-2.4-ubuntu18.04-py37-cuda11-gpu --------------------------------------------------

_SDK_2021 = "azureml-core azureml-defaults azureml-mlflow azureml-telemetry"
# What came with every framework, by the Python of the image.
_TOOLS_2021 = "matplotlib~=3.5.0 psutil~=5.8.0 ipykernel~=6.0"
_WITH_PYTHON = {
    "3.7": "pandas>=1.1,<1.2 scipy>=1.5,<1.6 numpy>=1.10,<1.20 matplotlib>=3.3,<3.4 psutil>=5.8,<5.9 tqdm>=4.59,<4.60 "
    "ipykernel~=6.0",
    "3.8": f"pandas~=1.3.0 scipy~=1.7.0 numpy~=1.21.0 tqdm~=4.62.0 {_TOOLS_2021}",
    "3.9": f"pandas~=1.3.0 scipy~=1.10.0 numpy~=1.22.0 tqdm~=4.66.3 {_TOOLS_2021}",
    "3.10": f"pandas~=1.5.3 scipy~=1.10.0 numpy~=1.22.0 tqdm~=4.66.3 {_TOOLS_2021}",
}
_WITH_ANY = "matplotlib psutil tqdm pandas scipy numpy ipykernel"
# Those that had others.
_WITH_FRAMEWORK = {
    "pytorch-2.2": _WITH_ANY,  # and whatever fits the PyTorch of later images
    "pytorch-2.8": _WITH_ANY,
    "tensorflow-2.5": f"pandas~=1.3.0 scipy~=1.7.0 numpy~=1.19.2 tqdm~=4.62.0 {_TOOLS_2021}",  # it takes no later NumPy
    "tensorflow-2.6": f"pandas~=1.3.0 scipy~=1.7.0 numpy~=1.19.2 tqdm~=4.62.0 {_TOOLS_2021}",
    "tensorflow-2.11": f"pandas~=1.3.0 scipy~=1.7.0 numpy~=1.22.0 tqdm~=4.62.0 {_TOOLS_2021}",
    "tensorflow-2.12": f"pandas~=1.3.0 scipy~=1.7.0 numpy~=1.22.0 tqdm~=4.62.0 {_TOOLS_2021}",
    "tensorflow-2.16": f"pandas==2.2.2 scipy~=1.14.0 numpy==1.23.5 tqdm~=4.66.3 {_TOOLS_2021}",
}
# Of what comes beside a framework, the versions that are known.
_BESIDE = {
    "sklearn-1.0": "joblib~=1.2.0",
    "sklearn-1.1": "joblib~=1.2.0",
    "sklearn-1.5": "joblib~=1.2.0",
    "tensorflow-2.11": "tensorboard~=2.11.0 tensorflow-datasets~=4.5.0 horovod[tensorflow]",
    "tensorflow-2.12": "tensorboard~=2.12.0 tensorflow-datasets~=4.5.0 horovod[tensorflow]",
    "tensorflow-2.16": "tensorboard~=2.16.0 tensorflow-datasets~=4.9.0",
}

# Framework -> what comes with it beside the framework itself.
_FRAMEWORKS = {
    "lightgbm": ("lightgbm", "scikit-learn xgboost dask[complete] distributed dask-ml"),
    "minimal": ("", ""),
    "onnxruntime": ("onnxruntime", ""),
    "pytorch": ("torch", "torchvision torchaudio tensorboard horovod[pytorch]"),
    "sklearn": ("scikit-learn", "joblib"),
    "scikit-learn": ("scikit-learn", "joblib"),
    "tensorflow": ("tensorflow", "tensorboard tensorflow-datasets horovod[tensorflow]"),
    "xgboost": ("xgboost", "scikit-learn"),
}
_KERAS_2 = {"TF_USE_LEGACY_KERAS": "1"}  # as Azure set it in its image for TensorFlow 2.16

_SINCE_2021 = """
lightgbm-3.2-ubuntu18.04-py37-cpu lightgbm-3.3
minimal-ubuntu18.04-py37-cpu-inference minimal-ubuntu20.04-py38-cpu-inference
onnxruntime-1.6-ubuntu18.04-py37-cpu-inference
pytorch-1.6-ubuntu18.04-py37-cpu-inference pytorch-1.7-ubuntu18.04-py37-cpu-inference
pytorch-1.7-ubuntu18.04-py37-cuda11-gpu pytorch-1.8-ubuntu18.04-py37-cuda11-gpu
pytorch-1.9-ubuntu18.04-py37-cuda11-gpu pytorch-1.10-ubuntu18.04-py38-cuda11-gpu
ACPT-pytorch-1.11-py38-cuda11.3-gpu ACPT-pytorch-1.11-py38-cuda11.5-gpu ACPT-pytorch-1.12-py38-cuda11.6-gpu
ACPT-pytorch-1.12-py39-cuda11.6-gpu ACPT-pytorch-1.13-py38-cuda11.7-gpu
acpt-pytorch-1.13-cuda11.7 acpt-pytorch-2.0-cuda11.7 acpt-pytorch-2.1-cuda12.1 acpt-pytorch-2.2-cuda12.1
acpt-pytorch-2.8-cuda12.6
sklearn-0.24-ubuntu18.04-py37-cpu sklearn-0.24-ubuntu18.04-py37-cuda11-gpu
sklearn-0.24.1-ubuntu18.04-py37-cpu-inference sklearn-1.0-ubuntu20.04-py38-cpu sklearn-1.0 sklearn-1.1 sklearn-1.5
tensorflow-1.15-ubuntu18.04-py37-cpu-inference tensorflow-2.4-ubuntu18.04-py37-cpu-inference
tensorflow-2.4-ubuntu18.04-py37-cuda11.0.3-gpu-inference tensorflow-2.4-ubuntu18.04-py37-cuda11-gpu
tensorflow-2.5-ubuntu20.04-py38-cuda11-gpu tensorflow-2.6-ubuntu20.04-py38-cuda11-gpu
tensorflow-2.7-ubuntu20.04-py38-cuda11-gpu tensorflow-2.8-ubuntu20.04-py38-cuda11-gpu
tensorflow-2.11-cuda11 tensorflow-2.12-cuda11 tensorflow-2.16-cuda12
xgboost-0.9-ubuntu18.04-py37-cpu-inference
""".split()
# The Python of those that do not say it. Where it is not known either, their packages decide.
_PYTHONS = {
    "lightgbm-3.3": "3.10",
    "pytorch-1.13": "3.8",
    "pytorch-2.0": "3.8",
    "pytorch-2.1": "3.10",
    "pytorch-2.2": "3.10",
    "pytorch-2.8": "3.10",
    "sklearn-1.0": "3.9",
    "sklearn-1.1": "3.9",
    "sklearn-1.5": "3.10",
    "tensorflow-2.11": "3.8",
    "tensorflow-2.12": "3.8",
    "tensorflow-2.16": "3.10",
}
_VERSIONS_ON_PYPI = {"xgboost-0.9": "0.90"}

_PATTERN = re.compile(
    r"(?:acpt-)?(?P<framework>[a-z][a-z-]*?)(?:-(?P<version>\d+(?:\.\d+)*))?"
    r"(?:-ubuntu[\d.]+|-py(?P<python>3\.?\d+)|-cuda[\d.]+|-cpu|-gpu|-inference|-profiler)*$"
)


def _by_pattern(name: str) -> _Curated | None:
    if not name.lower().startswith(PREFIX.lower()):
        return None
    found = _PATTERN.match(name[len(PREFIX) :].lower())
    if not found or found.group("framework") not in _FRAMEWORKS:
        return None
    framework, number = found.group("framework"), found.group("version") or ""
    package, others = _FRAMEWORKS[framework]
    others = _BESIDE.get(f"{framework}-{number}", others)
    if bool(number) != bool(package):
        return None  # a framework without a version, or a version of nothing
    python = _dotted(found.group("python") or _PYTHONS.get(f"{framework}-{number}", ""))
    variables = {}
    if package == "tensorflow" and version(number) >= version("2.16"):
        variables = _KERAS_2
        others += f" tf-keras=={number}.*"
    elif package == "tensorflow" and ("-gpu" in name.lower() or "-cuda" in name.lower()):
        package = "tensorflow-gpu"
    if package:
        key = f"{framework}-{number}"
        common = f"{_SDK_2021} {_WITH_FRAMEWORK.get(key) or _WITH_PYTHON.get(python, _WITH_ANY)}"
        number = _VERSIONS_ON_PYPI.get(f"{framework}-{number}", number)
        return _Curated(name, python, f"{common} {package}=={number}.* {others}", variables=variables)
    return _Curated(name, python, "azureml-defaults")


def _dotted(python: str) -> str:
    """Azure writes 3.8 as py38 and as py3.8."""
    digits = python.replace(".", "")
    return f"{digits[0]}.{digits[1:]}" if digits else ""


def _listed() -> dict[str, _Curated]:
    found = _until_2020()
    for each in found:
        each.name = f"{PREFIX}{each.name}"
    found += [known for name in _SINCE_2021 if (known := _by_pattern(f"{PREFIX}{name}"))]
    return {each.name.lower(): each for each in found}


_LISTED = _listed()

"""Whole packages of SDK v1 that Lapis has nothing of: any module and any name of them can be imported.

A notebook imports automated machine learning in its first cell and may never come to use it. As with a single name
(`missing_names`), only using something says that it is not there yet, and says so by its full name.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

from lapis.later import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable

PACKAGES = (
    "azureml._restclient.models",
    "azureml._run_impl",
    "azureml.automl",
    "azureml.contrib.automl",
    "azureml.contrib.dataset",
    "azureml.contrib.fairness",
    "azureml.contrib.functions",
    "azureml.contrib.interpret",
    "azureml.contrib.notebook",
    "azureml.contrib.pipeline",
    "azureml.datadrift",
    "azureml.dataprep",
    "azureml.fsspec",
    "azureml.interpret",
    "azureml.opendatasets",
    "azureml.train.automl",
)


class MissingPackages:
    """Finds the modules of those packages, after all other finders: a package that is installed comes first."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not any(name == package or name.startswith(package + ".") for package in PACKAGES):
            return None
        return ModuleSpec(name, cls, is_package=True)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType | None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        module.__doc__ = f"{module.__name__} of SDK v1. Not there yet in this release of Lapis."
        module.__dict__["__getattr__"] = _any_name_of(module)


def find_missing_packages() -> None:
    """Make them importable. Called by `azureml` itself."""
    if MissingPackages not in sys.meta_path:
        sys.meta_path.append(MissingPackages)


def _any_name_of(module: ModuleType) -> Callable[[str], Any]:
    from lapis.sdk.base.missing_names import missing_class  # late: `import azureml.core` does without it

    def find(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        value = missing_class(module.__name__, name)
        setattr(module, name, value)  # always the same object for the same path
        return value

    return find

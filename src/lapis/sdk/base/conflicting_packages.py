"""Finds Microsoft's own packages where they are installed beside Lapis, under the same import names."""

from __future__ import annotations

import os
import sys

from lapis.later import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Iterable, Sequence

PACKAGE_FOLDERS = ("site-packages", "dist-packages")
# How the entry of a stand-in ends that `lapis adopt` laid, behind its name and version.
STAND_IN = "+lapis.dist-info"
# Packages whose names begin like the others and whose files lie elsewhere.
_HARMLESS = {"azureml-inference-server-http"}
# Folders that Microsoft's packages put into `azureml`, and whose they are: they stay behind where files were
# copied or removed by hand.
_LEFTOVERS = {
    "_vendor": "azureml-core",
    "automl": "azureml-automl-core",
    "dataprep": "azureml-dataprep",
}


_told = False


def warn_of_microsoft_packages(azureml_folder: str) -> None:
    """Say once, in a RuntimeWarning, which of Microsoft's packages there are and how to be rid of them."""
    global _told
    found = [] if _told else microsoft_packages(azureml_folder, sys.path)
    _told = True
    if not found:
        return
    import warnings

    warnings.warn(
        "Microsoft's own packages are installed beside Lapis, under the same import names, so that either "
        f"may answer: {', '.join(found)}. {mending(found)}",
        RuntimeWarning,
        stacklevel=3,  # the line that imports azureml
    )


def mending(found: Sequence[str]) -> str:
    """How to have Lapis alone again."""
    remove = f"Remove them with\n    pip uninstall -y {' '.join(found)}\n"
    again = "and, because that also removes files which both have, install Lapis again with\n"
    return (
        (remove + again if found else "Install Lapis again with\n")
        + "    pip install --force-reinstall --no-deps lapis-ml\n"
        "So that `pip install azureml-core` changes nothing from then on:\n"
        "    lapis adopt"
    )


def microsoft_packages(azureml_folder: str, search_path: Iterable[str]) -> list[str]:
    """The names of Microsoft's packages in the package folders of `search_path` and in `azureml_folder`."""
    folders = {folder for folder in search_path if os.path.basename(folder) in PACKAGE_FOLDERS}
    folders.add(os.path.dirname(azureml_folder))
    found = {_distribution(entry) for folder in folders for entry in _entries(folder)}
    found.update(_LEFTOVERS.get(entry, "") for entry in _entries(azureml_folder))
    return sorted(found - _HARMLESS - {""})


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _distribution(entry: str) -> str:
    """The name of the package that `entry` holds the metadata of, if that is one of Microsoft's."""
    if not entry.startswith("azureml") or not entry.endswith((".dist-info", ".egg-info")) or entry.endswith(STAND_IN):
        return ""
    return entry.split("-", 1)[0].replace("_", "-")

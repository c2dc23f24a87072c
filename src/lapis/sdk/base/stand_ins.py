"""Stand-ins for Microsoft's packages: entries in the list of what is installed, so that pip leaves Lapis in place.

`pip install azureml-core` in a notebook finds it installed and does nothing. A stand-in is a `.dist-info` folder and
nothing else; pip lists it, and `pip uninstall` removes it.
"""

from __future__ import annotations

import os
import shutil

from lapis.errors import UserErrorException
from lapis.machine import own_sources
from lapis.sdk.base.conflicting_packages import PACKAGE_FOLDERS, STAND_IN, mending, microsoft_packages
from lapis.version import AZUREML_VERSION

# Those whose import names Lapis answers to, and the extras that people name with them.
_NAMES = {
    "azureml-contrib-services": "",
    "azureml-core": "",
    "azureml-dataprep": "fuse pandas parquet spark",
    "azureml-dataset-runtime": "fuse pandas parquet spark",
    "azureml-defaults": "async",
    "azureml-mlflow": "",
    "azureml-monitoring": "",
    "azureml-pipeline": "",
    "azureml-pipeline-core": "",
    "azureml-pipeline-steps": "",
    "azureml-sdk": "contrib databricks notebooks services tensorboard widgets",
    "azureml-telemetry": "",
    "azureml-tensorboard": "",
    "azureml-train": "",
    "azureml-train-core": "",
    "azureml-train-restclients-hyperdrive": "",
    "azureml-widgets": "",
}


def lay(python: str) -> tuple[str, list[str]]:
    """Lay all stand-ins where Lapis is installed for `python`. Gives that folder and the names. May be repeated."""
    folder = _package_folder(python)
    theirs = microsoft_packages(os.path.join(folder, "azureml"), [folder])
    if theirs:
        raise UserErrorException(
            f"Microsoft's own packages are installed in {folder}: {', '.join(theirs)}. {mending(theirs)}"
        )
    remove(python)
    for name, extras in _NAMES.items():
        _write(folder, name, extras.split())
    return folder, sorted(_NAMES)


def remove(python: str) -> tuple[str, list[str]]:
    """Remove them again, and nothing else. Gives the folder and the names of those that were there."""
    folder = _package_folder(python)
    there = [entry for entry in os.listdir(folder) if entry.startswith("azureml_") and entry.endswith(STAND_IN)]
    for entry in there:
        shutil.rmtree(os.path.join(folder, entry))
    return folder, sorted(entry.partition("-")[0].replace("_", "-") for entry in there)


def _package_folder(python: str) -> str:
    """Where Lapis itself is installed; for a checkout the folder that pip installs packages of `python` into."""
    beside = os.path.dirname(own_sources.real_folders()[0])
    if os.path.basename(beside) in PACKAGE_FOLDERS:
        return beside
    import subprocess

    question = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    return subprocess.check_output([python, "-I", "-c", question], universal_newlines=True).strip()


def _write(folder: str, name: str, extras: list[str]) -> None:
    info = f"{name.replace('-', '_')}-{AZUREML_VERSION}{STAND_IN}"
    facts = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {AZUREML_VERSION}+lapis",
        f"Summary: Stands in for {name}: Lapis answers to its import names. Made by `lapis adopt`.",
        *(f"Provides-Extra: {extra}" for extra in extras),
    ]
    texts = {"METADATA": "\n".join(facts) + "\n", "INSTALLER": "lapis\n"}
    texts["RECORD"] = "".join(f"{info}/{file},,\n" for file in (*texts, "RECORD"))
    os.makedirs(os.path.join(folder, info))
    for file, text in texts.items():
        with open(os.path.join(folder, info, file), "w", encoding="utf-8") as opened:
            opened.write(text)

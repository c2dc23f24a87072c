"""Run configurations on disk: .azureml/<name> in a project, with conda_dependencies.yml beside it."""

from __future__ import annotations

import os
from typing import Any

from lapis.domain import yaml_text
from lapis.errors import NotFound, RunConfigurationException, UserErrorException
from lapis.sdk.environments.conda_dependencies import CONDA_FILE_NAME, CondaDependencies

FOLDERS = (".azureml", "aml_config")
EXTENSION = ".runconfig"
ENVIRONMENT_FILE_NAME = "environment.yml"


def save(definition: dict[str, Any], path: str, name: str | None, separate_environment: bool) -> None:
    """Write `definition`. Its packages, and perhaps its environment, go to files of their own."""
    file = _file_to_write(path, name)
    folder = os.path.dirname(file) or os.curdir
    # Files in .azureml name each other from the project's root, files elsewhere from their own folder.
    prefix = os.path.basename(folder) + "/" if os.path.basename(folder) in FOLDERS else ""
    texts: dict[str, str] = {}
    python = _python_section(definition)
    if "condaDependencies" in python:
        texts[CONDA_FILE_NAME] = yaml_text.dumps(python.pop("condaDependencies"))
        python["condaDependenciesFile"] = prefix + CONDA_FILE_NAME
    if separate_environment:
        texts[ENVIRONMENT_FILE_NAME] = yaml_text.dumps(definition["environment"])
        definition["environment"] = prefix + ENVIRONMENT_FILE_NAME
    texts[os.path.basename(file)] = yaml_text.dumps(definition)
    os.makedirs(folder, exist_ok=True)
    for file_name, text in texts.items():
        with open(os.path.join(folder, file_name), "w", encoding="utf-8") as opened:
            opened.write(text)


def load(file: str) -> dict[str, Any]:
    """Return the definition in `file`, with what it keeps in other files put in its place."""
    definition = _read_map(file)
    if isinstance(definition.get("environment"), str):
        definition["environment"] = _read_map(_beside(file, definition["environment"]))
    python = _python_section(definition)
    conda_file = python.pop("condaDependenciesFile", None)
    if conda_file and not python.get("condaDependencies"):
        conda_path = _beside(file, conda_file)
        # Where the user manages the packages, nobody needs the file.
        if os.path.isfile(conda_path) or not python.get("userManagedDependencies"):
            python["condaDependencies"] = CondaDependencies(conda_path).as_dict()
    return definition


def delete(path: str, name: str | None) -> None:
    os.remove(find(path, name))


def find(path: str, name: str | None) -> str:
    """Return `path` if it is a file, else the file `name`, with or without its ending, of that project."""
    if not os.path.isdir(path):
        for file in (path, path + EXTENSION):
            if os.path.isfile(file):
                return file
        raise NotFound(f"There is no run configuration '{path}'.")
    known = _known(path)
    if not name:
        raise UserErrorException(f"'{path}' is a folder, so say which run configuration is meant. {known}")
    for folder in FOLDERS:
        for file_name in (name, name + EXTENSION):
            file = os.path.join(path, folder, file_name)
            if os.path.isfile(file):
                return file
    raise NotFound(f"There is no run configuration '{name}' in '{path}'. {known}")


def _file_to_write(path: str, name: str | None) -> str:
    if not os.path.isdir(path):
        folder = os.path.dirname(path) or os.curdir
        if not os.path.isdir(folder):
            raise UserErrorException(f"There is no folder '{folder}' to save the run configuration in.")
        return path
    if not name:
        raise UserErrorException(f"'{path}' is a folder, so the run configuration needs a name to be saved.")
    if os.path.basename(name) != name or name in (
        os.curdir,
        os.pardir,
        CONDA_FILE_NAME,
        ENVIRONMENT_FILE_NAME,
    ):
        raise UserErrorException(f"A run configuration cannot be saved under the name '{name}'.")
    there = [folder for folder in FOLDERS if os.path.isdir(os.path.join(path, folder))]
    return os.path.join(path, (there or FOLDERS)[0], name)


def _known(project: str) -> str:
    found: set[str] = set()
    for folder in FOLDERS:
        if os.path.isdir(os.path.join(project, folder)):
            found.update(name for name in os.listdir(os.path.join(project, folder)) if name.endswith(EXTENSION))
    return f"Known: {', '.join(sorted(found)) or 'none'}."


def _beside(file: str, named: str) -> str:
    """The path of a file that the one at `file` names, from the project's root or from its own folder."""
    folder = os.path.dirname(os.path.abspath(file))
    root = os.path.dirname(folder) if os.path.basename(folder) in FOLDERS else folder
    from_root, from_folder = (os.path.join(base, named.replace("\\", "/")) for base in (root, folder))
    return from_folder if os.path.isfile(from_folder) and not os.path.isfile(from_root) else from_root


def _read_map(file: str) -> dict[str, Any]:
    if not os.path.isfile(file):
        raise NotFound(f"There is no file '{file}', which the run configuration names.")
    with open(file, encoding="utf-8") as opened:
        text = opened.read()
    try:
        found = yaml_text.loads(text)
    except yaml_text.YamlError as error:
        raise UserErrorException(f"'{file}' is not understood. {error}", inner_exception=error)
    if not isinstance(found, dict):
        raise RunConfigurationException(f"'{file}' must be a map of settings, not {found!r}.")
    return found


def _python_section(definition: dict[str, Any]) -> dict[str, Any]:
    environment = definition.get("environment")
    python = environment.get("python") if isinstance(environment, dict) else None
    return python if isinstance(python, dict) else {}

"""Lays out the data of a run before its script starts, and takes back what it was asked to upload."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from typing import Any

from lapis.errors import UserErrorException
from lapis.sdk.file_sources import resolve
from lapis.sdk.laying import lay_out_files


def lay_out_inputs(job: Mapping[str, Any], code: str, folder: str, log: str) -> dict[str, str]:
    """Everything is there when this returns. The variables that tell the script where."""
    variables: dict[str, str] = {}
    names = []
    if job.get("url_mirrors"):
        os.environ["LAPIS_URL_MIRRORS"] = job["url_mirrors"]
    for wanted in job.get("inputs") or []:
        target = _target(wanted, code, folder)
        if wanted["type"] == "reference":
            variables[f"AZUREML_DATAREFERENCE_{wanted['name']}"] = _reference(wanted, target)
            continue
        names.append(wanted["name"])
        if wanted["mode"] == "direct":
            variables[wanted["name"]] = wanted["dataset_id"]
            continue
        variables[wanted["name"]] = _dataset(wanted, target, log)
    variables["AZUREML_DATASET_ENVIRONMENT_VARS"] = ",".join(names)
    variables["LAPIS_INPUTS"] = json.dumps({name: variables[name] for name in names})
    return variables


def take_back(job: Mapping[str, Any], code: str, folder: str) -> list[str]:
    """Copy what was written for upload to its datastore; what could not be copied, and why."""
    notices = []
    for wanted in job.get("inputs") or []:
        if wanted["type"] == "reference" and wanted["mode"] == "upload":
            try:
                _copy_tree(_target(wanted, code, folder), wanted["place"], wanted["overwrite"])
            except OSError as error:
                notices.append(f"'{wanted['name']}' could not be uploaded to its datastore: {error}")
    return notices


def _target(wanted: Mapping[str, Any], code: str, folder: str) -> str:
    """Where the script finds it: the place it asked for, or one of ours."""
    asked = wanted.get("path_on_compute")
    if not asked:
        return os.path.join(folder, "data", wanted["name"])
    return asked if os.path.isabs(asked) else os.path.join(code, asked)


def _dataset(wanted: Mapping[str, Any], target: str, log: str) -> str:
    files = resolve(wanted["definition"], lambda name: wanted["folders"][name])
    if not files:
        raise UserErrorException(f"Input '{wanted['name']}' holds no file.")

    def say(text: str) -> None:
        with open(log, "a") as file:
            file.write(f"Lapis: {text}\n")

    places = lay_out_files(files, target, copy=wanted["mode"] == "download", say=say)
    return places[0] if len(places) == 1 else target  # one file is given as that file, several as their folder


def _reference(wanted: Mapping[str, Any], target: str) -> str:
    place = wanted["place"]
    if wanted["mode"] == "mount":
        if not os.path.lexists(place):
            os.makedirs(place)  # a place that a script writes to need not be there before
        return str(place)
    if wanted["mode"] == "upload":
        os.makedirs(target, exist_ok=True)
        return target
    if os.path.isfile(place):
        os.makedirs(target, exist_ok=True)
        shutil.copyfile(place, os.path.join(target, os.path.basename(place)))
        return os.path.join(target, os.path.basename(place))
    if not os.path.isdir(place):
        raise UserErrorException(f"Data reference '{wanted['name']}' names a place that is not there.")
    _copy_tree(place, target, overwrite=True)
    return target


def _copy_tree(source: str, target: str, overwrite: bool) -> None:
    for where, _, names in os.walk(source):
        into = os.path.join(target, os.path.relpath(where, source))
        os.makedirs(into, exist_ok=True)
        for name in names:
            place = os.path.join(into, name)
            if overwrite or not os.path.exists(place):
                shutil.copyfile(os.path.join(where, name), place)

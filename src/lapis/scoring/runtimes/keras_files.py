"""Refuses a Keras file that holds code: loading it would run that code, whoever made the file.

Keras itself refuses such files from 2.13 on, with `safe_mode`, and not in all formats. This looks at the description of
the layers before any Keras sees it, so it holds for every version and format.
"""

from __future__ import annotations

import json
import os
import zipfile
from typing import Any, Iterator

from lapis.errors import UserErrorException

SWITCH = "LAPIS_KERAS_SAFE_MODE"
_CODE = ("Lambda", "__lambda__")
_OF_KERAS = ("keras", "tf_keras", "tensorflow", "builtins")


def safe_mode() -> bool:
    return os.environ.get(SWITCH) != "0"


def check(path: str) -> None:
    """Raise UserErrorException if the file holds code, unless the user has allowed that."""
    found = next(code_in(_description(path)), None) if safe_mode() else None
    if found is not None:
        raise UserErrorException(
            f"{os.path.basename(path)} holds code ({found}), which loading it would run, so it is not loaded. If it is "
            f"your own: an entry script may load it with safe_mode=False; or start the server with {SWITCH}=0, which "
            "allows it for every model."
        )


def code_in(description: Any) -> Iterator[str]:
    """What in the description of a model is code, or is named from elsewhere than Keras."""
    if isinstance(description, dict):
        kind, module = description.get("class_name"), description.get("module")
        if kind in _CODE:
            yield "a Lambda layer"
        if kind is not None and isinstance(module, str) and not _of_keras(module):
            yield f"{kind} of {module}"
        for each in description.values():
            yield from code_in(each)
    elif isinstance(description, list):
        for each in description:
            yield from code_in(each)


def _of_keras(module: str) -> bool:
    """Its utilities are not layers: they fetch and unpack files."""
    parts = module.split(".")
    return parts[0] in _OF_KERAS and "utils" not in parts


def _description(path: str) -> Any:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read("config.json"))
    import h5py  # comes with TensorFlow

    with h5py.File(path, "r") as file:
        written = file.attrs.get("model_config")
    if written is None:  # weights alone; Keras says so
        return None
    return json.loads(written.decode() if isinstance(written, bytes) else str(written))

"""Finds out which version of its framework wrote a model file, from its bytes: the framework need not be there.

A model may be larger than memory, so it is looked through a piece after the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import BinaryIO

from lapis.domain.limits import JSON_BODY
from lapis.files import archives

_OVERLAP = 256  # bytes: longer than anything that is looked for


def tensorflow_of_saved_model(file: BinaryIO) -> str | None:
    """saved_model.pb is a protobuf: field 5 of its meta information is the version, and field 6 follows."""
    for data in _overlapping(_pieces(file)):
        for found in re.finditer(rb"\*([\x05-\x14])([12]\.\d)", data):
            start = found.start(2)
            end = start + found.group(1)[0]
            whole = re.match(rb"\d+\.\d+\.\d+", data[start:end])
            if whole and data[end : end + 1] == b"2":
                return whole.group().decode()
    return None


def tensorflow_of_keras_file(file: BinaryIO) -> str | None:
    """The TensorFlow that had this Keras, if it was not today's. HDF5 keeps the version beside the word tensorflow."""
    file.seek(0)
    keras = _keras_of_zip(file) if file.read(2) == b"PK" else _keras_of_hdf5(file)
    numbers = re.match(r"(\d+)\.(\d+)", keras)
    if not numbers or numbers.group(1) != "2":
        return None  # Keras 3 goes with the newest
    minor = int(numbers.group(2))
    if minor <= 3:
        return "2.2" if minor == 3 and keras.endswith("-tf") else "1.15"
    return "2.5" if minor == 4 else f"2.{minor}"


def scikit_learn_of_pickle(file: BinaryIO) -> str | None:
    """Every estimator is stored with the version, also in the compressed files of joblib."""
    pattern = re.compile(rb"_sklearn_version.{1,8}?(\d+\.\d+(?:\.\d+)?)", re.DOTALL)
    return _first(pattern, archives.unpacked(file, "The pickled model"))


def _keras_of_zip(file: BinaryIO) -> str:
    found = archives.zip_member(file, "metadata.json", "the Keras file", JSON_BODY)
    try:
        return str(json.loads(found or b"")["keras_version"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return ""


def _keras_of_hdf5(file: BinaryIO) -> str:
    pattern = re.compile(rb"([23]\.\d{1,2}\.\d{1,2}(?:-tf)?).{0,40}?tensorflow", re.DOTALL)
    return _first(pattern, _pieces(file)) or ""


def _first(pattern: re.Pattern[bytes], pieces: Iterable[bytes]) -> str | None:
    found = next(filter(None, map(pattern.search, _overlapping(pieces))), None)
    return found.group(1).decode() if found else None


def _pieces(file: BinaryIO) -> Iterable[bytes]:
    file.seek(0)
    return iter(lambda: file.read(archives.PIECE), b"")


def _overlapping(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """Each piece with the end of the one before, so that nothing is missed where two meet."""
    end = b""
    for piece in pieces:
        whole = end + piece
        yield whole
        end = whole[-_OVERLAP:]

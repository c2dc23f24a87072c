"""Finds out which version of its framework wrote a model file, from its bytes: the framework need not be there."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import zipfile
import zlib


def tensorflow_of_saved_model(data: bytes) -> str | None:
    """saved_model.pb is a protobuf: field 5 of its meta information is the version, and field 6 follows."""
    for found in re.finditer(rb"\*([\x05-\x14])([12]\.\d)", data):
        start = found.start(2)
        end = start + found.group(1)[0]
        whole = re.match(rb"\d+\.\d+\.\d+", data[start:end])
        if whole and data[end : end + 1] == b"2":
            return whole.group().decode()
    return None


def tensorflow_of_keras_file(data: bytes) -> str | None:
    """The TensorFlow that had this Keras, if it was not today's. HDF5 keeps the version beside the word tensorflow."""
    if data.startswith(b"PK"):
        try:
            keras = json.loads(zipfile.ZipFile(io.BytesIO(data)).read("metadata.json"))["keras_version"]
        except (KeyError, ValueError, zipfile.BadZipFile):
            return None
    else:
        found = re.search(rb"([23]\.\d{1,2}\.\d{1,2}(?:-tf)?).{0,40}?tensorflow", data, re.DOTALL)
        keras = found.group(1).decode() if found else ""
    numbers = re.match(r"(\d+)\.(\d+)", str(keras))
    if not numbers or numbers.group(1) != "2":
        return None  # Keras 3 goes with the newest
    minor = int(numbers.group(2))
    if minor <= 3:
        return "2.2" if minor == 3 and keras.endswith("-tf") else "1.15"
    return "2.5" if minor == 4 else f"2.{minor}"


def scikit_learn_of_pickle(data: bytes) -> str | None:
    """Every estimator is stored with the version, also in the compressed files of joblib."""
    found = re.search(rb"_sklearn_version.{1,8}?(\d+\.\d+(?:\.\d+)?)", _unpacked(data), re.DOTALL)
    return found.group(1).decode() if found else None


def _unpacked(data: bytes) -> bytes:
    """What joblib.dump(..., compress=...) packs with the standard library; anything else as it is."""
    for unpack in (zlib.decompress, gzip.decompress, bz2.decompress, lzma.decompress):
        try:
            return unpack(data)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
            continue
    return data

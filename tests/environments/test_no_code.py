"""Which runtime serves a model without code, and in which environment."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import pickle
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest

from lapis.environments.made_with import scikit_learn_of_pickle, tensorflow_of_keras_file, tensorflow_of_saved_model
from lapis.environments.no_code import no_code
from lapis.environments.recipe import recipe
from lapis.errors import UserErrorException, WebserviceException
from lapis.files.archives import PIECE

PYTHONS = ["3.7.16", "3.8.18", "3.9.18", "3.10.13", "3.11.7", "3.13.0"]
SAVED_MODEL = ["model/saved_model.pb", "model/variables/variables.index"]


def packages(definition: dict[str, Any]) -> list[str]:
    found: list[str] = definition["python"]["condaDependencies"]["dependencies"][0]["pip"]
    return found


@pytest.mark.parametrize(
    "framework, files, runtime",
    [
        ("Onnx", ["model.onnx"], "onnx"),
        ("Onnx", ["export/model.onnx", "export/labels.txt"], "onnx"),
        ("TensorFlow", SAVED_MODEL, "tensorflow"),
        ("TensorFlow", ["model.h5"], "keras"),
        ("TfKeras", ["model.keras"], "keras"),
        ("TfKeras", SAVED_MODEL, "tensorflow"),
        ("ScikitLearn", ["model.pkl"], "sklearn"),
        ("ScikitLearn", ["outputs"], "sklearn"),
    ],
)
def test_framework_and_files_choose_the_runtime(framework: str, files: list[str], runtime: str) -> None:
    assert no_code(framework, None, files)[0] == runtime


@pytest.mark.parametrize(
    "framework, files, why",
    [
        (None, ["model.pkl"], "A model of framework None is not served without code: Onnx, TensorFlow, TfKeras and"),
        ("PyTorch", ["model.pt"], "A model of framework 'PyTorch' is not served without code"),
        ("Onnx", ["a.onnx", "b.onnx"], "An ONNX model is one .onnx file. This one has a.onnx, b.onnx."),
        ("TensorFlow", ["model.ckpt.meta"], "a folder with saved_model.pb, or one Keras file .* has model.ckpt.meta"),
        ("ScikitLearn", ["a.txt", "b.txt"], "is one file of joblib, pickle or dill. This one has a.txt, b.txt"),
    ],
)
def test_what_cannot_be_served_is_told_with_the_files_that_are_there(
    framework: str | None, files: list[str], why: str
) -> None:
    with pytest.raises(WebserviceException, match=why):
        no_code(framework, "2.15", files)


def test_an_onnx_file_needs_no_framework() -> None:
    _, definition = no_code("Onnx", "1.3", ["model.onnx"])
    assert packages(definition) == ["onnxruntime", "numpy", "orjson"]


def test_scikit_learn_is_the_version_that_pickled_and_tensorflow_the_last_of_its_kind() -> None:
    assert packages(no_code("ScikitLearn", "0.22.2", ["m.pkl"])[1])[0] == "scikit-learn==0.22.2"
    assert packages(no_code("ScikitLearn", "1.5", ["m.pkl"])[1])[0] == "scikit-learn==1.5.*"
    assert packages(no_code("TensorFlow", "2.15.0", SAVED_MODEL)[1])[0] == "tensorflow==2.15.*"
    assert packages(no_code("TensorFlow", None, SAVED_MODEL)[1])[0] == "tensorflow"
    with pytest.raises(WebserviceException, match="'latest' is no version"):
        no_code("TensorFlow", "latest", SAVED_MODEL)


@pytest.mark.parametrize("version, python", [("1.15", "3.7.16"), ("2.2", "3.8.18"), ("2.15", "3.11.7")])
def test_the_environment_is_on_a_python_that_has_the_framework(version: str, python: str) -> None:
    _, definition = no_code("TensorFlow", version, SAVED_MODEL)
    plan = recipe(definition, pythons=PYTHONS, gpu=False, strict=False)
    assert plan.python == python and not [each for each in plan.substitutions if "tf2onnx" in each.asked]


def test_files_tell_the_version_where_the_model_does_not() -> None:
    saved = b'\x88\x01\x01"\x05serve*\x062.15.12\x17v2.15.0-11-g63f5a65'
    read = {"m/saved_model.pb": BytesIO(saved), "m/variables/variables.index": BytesIO()}.__getitem__
    assert packages(no_code("TensorFlow", None, ["m/saved_model.pb", "m/variables/variables.index"], read)[1])[0] == (
        "tensorflow==2.15.*"
    )
    pickled = b"\x8c\x10_sklearn_version\x94\x8c\x051.3.2\x94ub."
    assert packages(no_code("ScikitLearn", None, ["m.pkl"], lambda _: BytesIO(pickled))[1])[0] == "scikit-learn==1.3.2"


def test_a_saved_model_says_its_tensorflow() -> None:
    assert tensorflow_of_saved_model(BytesIO(b'"\x05serve*\x052.2.32\x17v2.2.2-246-gcfe0c8')) == "2.2.3"
    assert tensorflow_of_saved_model(BytesIO(b'"\x05serve*\x0a2.21.0-rc12\x17v2')) == "2.21.0"
    assert tensorflow_of_saved_model(BytesIO(b"*\x051.5.9 is nothing of the kind")) is None


def keras_zip(version: str) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": version}))
    return file.getvalue()


@pytest.mark.parametrize(
    "keras, tensorflow",
    [
        ("2.2.4-tf", "1.15"),
        ("2.3.0-tf", "2.2"),
        ("2.3.1", "1.15"),
        ("2.4.0", "2.5"),
        ("2.15.0", "2.15"),
        ("3.15.1", None),
    ],
)
def test_a_keras_file_says_its_keras_which_says_the_tensorflow(keras: str, tensorflow: str | None) -> None:
    heap = b"\x08\0\0\0\0\0\0\0" + keras.encode() + b"\x02\0\0\0\0\0\0\0\n\0\0\0\0\0\0\0tensorflow\0\0"
    assert tensorflow_of_keras_file(BytesIO(b"\x89HDF\r\n" + heap)) == tensorflow
    assert tensorflow_of_keras_file(BytesIO(keras_zip(keras))) == tensorflow
    assert tensorflow_of_keras_file(BytesIO(b"PK damaged")) is None


@pytest.mark.parametrize("pack", [zlib.compress, gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_pickle_tells_its_version_too(pack: Callable[[bytes], bytes]) -> None:
    stored = pickle.dumps({"_sklearn_version": "1.3.2"})
    assert scikit_learn_of_pickle(BytesIO(stored)) == scikit_learn_of_pickle(BytesIO(pack(stored))) == "1.3.2"
    assert scikit_learn_of_pickle(BytesIO(b"x\x9c\x01\x02")) is None


def packed_zeros(make: Callable[[], Any], pieces: int) -> bytes:
    """So many megabytes of nothing, without ever having them."""
    pack = make()
    return b"".join([*(pack.compress(bytes(1 << 20)) for _ in range(pieces)), pack.flush()])


@pytest.mark.parametrize("make", [zlib.compressobj, bz2.BZ2Compressor, lzma.LZMACompressor])
def test_a_small_file_that_unfolds_without_end_is_read_a_piece_at_a_time_and_refused(make: Callable[[], Any]) -> None:
    bomb = packed_zeros(make, 80)
    assert len(bomb) < 1 << 20
    tracemalloc.start()
    with pytest.raises(UserErrorException, match="unfolds to more than 64 MiB"):
        scikit_learn_of_pickle(BytesIO(bomb))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 24 << 20


def test_a_zip_is_not_believed_what_it_says_of_its_sizes() -> None:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.json", bytes(40 << 20))
    with pytest.raises(UserErrorException, match=r"'metadata.json' in the Keras file unfolds to more than 16 MiB"):
        tensorflow_of_keras_file(file)


def test_a_version_where_two_pieces_meet_is_found() -> None:
    stored = bytes(PIECE - 10) + b"\x8c\x10_sklearn_version\x94\x8c\x051.3.2\x94ub."
    assert scikit_learn_of_pickle(BytesIO(stored)) == "1.3.2"
    assert scikit_learn_of_pickle(BytesIO(zlib.compress(stored))) == "1.3.2"

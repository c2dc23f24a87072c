"""Stands in for tensorflow.examples.tutorials.mnist, whose input_data so many first scripts read MNIST with."""

from __future__ import annotations

import collections
import gzip
import os
import urllib.request
from typing import Any

import numpy

SOURCE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_Datasets = collections.namedtuple("_Datasets", ["train", "validation", "test"])


def stand_in(name: str, module: Any) -> Any:
    if name.endswith(".mnist"):
        module.read_data_sets = read_data_sets
    if name.endswith(".input_data"):
        module.read_data_sets = read_data_sets
        module.DataSet = DataSet
    return module


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = numpy.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = SOURCE_URL,
) -> Any:
    """The images and labels of MNIST in `train_dir`, which gets the files if it lacks them."""
    images, labels, test_images, test_labels = [_read(_file(train_dir, name, source_url)) for name in _FILES]
    split = validation_size
    return _Datasets(
        DataSet(images[split:], labels[split:], one_hot, dtype, reshape, seed),
        DataSet(images[:split], labels[:split], one_hot, dtype, reshape, seed),
        DataSet(test_images, test_labels, one_hot, dtype, reshape, seed),
    )


class DataSet:
    """Images and labels that are handed out in batches, in a new order for each epoch."""

    def __init__(
        self,
        images: Any,
        labels: Any,
        one_hot: bool = False,
        dtype: Any = numpy.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        images = images[..., numpy.newaxis]
        if reshape:
            images = images.reshape(len(images), -1)
        if dtype in (numpy.float32, "float32") or getattr(dtype, "name", "") == "float32":
            images = images.astype(numpy.float32) / 255
        self.images = images
        self.labels = numpy.eye(10)[labels] if one_hot else labels
        self.num_examples = len(images)
        self.epochs_completed = 0
        self._next = 0
        self._random = numpy.random.RandomState(seed)

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> Any:
        if self._next == 0 and self.epochs_completed == 0 and shuffle:
            self._shuffle()
        start, end = self._next, self._next + batch_size
        if end <= self.num_examples:
            self._next = end
            return self.images[start:end], self.labels[start:end]
        rest = self.images[start:], self.labels[start:]
        self.epochs_completed += 1
        if shuffle:
            self._shuffle()
        self._next = end - self.num_examples
        first = self.images[: self._next], self.labels[: self._next]
        return numpy.concatenate([rest[0], first[0]]), numpy.concatenate([rest[1], first[1]])

    def _shuffle(self) -> None:
        order = self._random.permutation(self.num_examples)
        self.images, self.labels = self.images[order], self.labels[order]


def _file(folder: str, name: str, source_url: str) -> str:
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        urllib.request.urlretrieve(_mirrored(source_url) + name, path + ".part")
        os.rename(path + ".part", path)
    return path


def _mirrored(url: str) -> str:
    """Lapis knows of files that have moved: LAPIS_URL_MIRRORS holds old-prefix=new-prefix pairs."""
    for pair in os.environ.get("LAPIS_URL_MIRRORS", "").split(","):
        old, _, new = pair.strip().partition("=")
        if old and url.startswith(old):
            return new + url[len(old) :]
    return url


def _read(path: str) -> Any:
    with gzip.open(path, "rb") as file:
        data = file.read()
    dimensions = data[3]
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(dimensions)]
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * dimensions).reshape(shape)

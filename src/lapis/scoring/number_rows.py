"""Rows of plain numbers as an array, a third of what numpy needs, which has to find their type and shape first.

Nothing is decided here: what is not quickly such an array is None, and goes the long way, which says what is wrong.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

import numpy

from lapis.scoring.tensors import Tensor

_CODES = {"float32": "f", "float64": "d", "int32": "i", "int64": "q"}


def array_of(values: Any, tensor: Tensor) -> Any:
    """`values` as an array of the tensor's type with a row for each, or None."""
    shape = tensor.shape
    if not values or shape is None or len(shape) != 2 or shape[1] is None or tensor.dtype not in _CODES:
        return None
    width, dtype = shape[1], tensor.dtype
    pack = _packer(width, dtype).pack
    try:
        if any([type(row) is not list or type(row[0]) is bool for row in values]):  # true and false are no numbers
            return None
        packed = pack(*values[0]) if len(values) == 1 else b"".join([pack(*row) for row in values])
    except (struct.error, OverflowError, TypeError, IndexError):
        return None
    return numpy.frombuffer(packed, _little(dtype)).reshape(len(values), width)


@lru_cache(maxsize=64)
def _packer(width: int, dtype: str) -> struct.Struct:
    return struct.Struct(f"<{width}{_CODES[dtype]}")  # with "<" it says so where a number is too large


@lru_cache(maxsize=None)
def _little(dtype: str) -> Any:
    return numpy.dtype(dtype).newbyteorder("<")

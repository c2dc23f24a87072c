"""How the values of one column are packed into bytes: what metric points are kept as and sent as.

The first byte says the form. Numbers are eight bytes each, little-endian; whole numbers that count up evenly, as most
steps do, are two of them however many there are; anything else is JSON. How many values there are is known beside it.
"""

from __future__ import annotations

import json
import sys
from array import array
from typing import Any, Sequence

FLOATS, WHOLES, EVEN, NOTHING, JSON = b"d", b"q", b"r", b"n", b"j"
_SWAPPED = sys.byteorder == "big"


def pack(values: Sequence[Any]) -> bytes:
    kinds = set(map(type, values))
    if kinds == {float}:
        return FLOATS + _bytes(array("d", values))
    if kinds == {int}:
        try:
            return _pack_wholes(values)
        except OverflowError:
            pass  # more than 64 bits
    if kinds == {type(None)}:
        return NOTHING
    return JSON + json.dumps(list(values), separators=(",", ":")).encode()


def unpack(data: bytes, count: int) -> Sequence[Any]:
    """What was packed, as something that can be indexed, cut and iterated."""
    form, packed = data[:1], data[1:]
    values: Sequence[Any]
    if form == FLOATS:
        values = _array("d", packed)
    elif form == WHOLES:
        values = _array("q", packed)
    elif form == EVEN:
        first, stride = _array("q", packed)
        values = range(first, first + stride * count, stride) if stride else [first] * count
    elif form == NOTHING:
        values = [None] * count
    elif form == JSON:
        values = json.loads(packed)
    else:
        raise ValueError(f"No column is packed as {form!r}.")
    if len(values) != count:
        raise ValueError(f"A column of {count} values has {len(values)}.")
    return values


def _pack_wholes(values: Sequence[int]) -> bytes:
    if len(values) > 2:
        first, stride = values[0], values[1] - values[0]
        if values[-1] == first + stride * (len(values) - 1) and _is_even(values, first, stride):
            return EVEN + _bytes(array("q", (first, stride)))
    return WHOLES + _bytes(array("q", values))


def _is_even(values: Sequence[int], first: int, stride: int) -> bool:
    if not stride:
        return min(values) == max(values)
    return list(values) == list(range(first, first + stride * len(values), stride))


def _bytes(numbers: array[Any]) -> bytes:
    if _SWAPPED:
        numbers.byteswap()
    return numbers.tobytes()


def _array(kind: str, packed: bytes) -> array[Any]:
    numbers: array[Any] = array(kind)
    numbers.frombytes(packed)
    if _SWAPPED:
        numbers.byteswap()
    return numbers

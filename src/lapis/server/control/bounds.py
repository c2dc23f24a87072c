"""The types of what stands in addresses, with their bounds: an error names the word and the bound."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from lapis.domain import limits


class Bounds(NamedTuple):
    """What a number may be, how long a text, and how many there may be."""

    least: float
    most: float


Name = Annotated[str, Bounds(0, limits.NAME)]
DisplayName = Annotated[str, Bounds(0, limits.DISPLAY_NAME)]
Number = Annotated[int, Bounds(-limits.STEP, limits.STEP)]  # a revision
Version = Annotated[int, Bounds(0, limits.WHOLE)]
Offset = Annotated[int, Bounds(0, limits.WHOLE)]  # in bytes
Seconds = Annotated[float, Bounds(-limits.SECONDS, limits.SECONDS)]
Filters = Annotated[list[DisplayName], Bounds(0, limits.FILTERS)]

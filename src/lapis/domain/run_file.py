"""A file of a run, without its bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunFile:
    name: str
    size: int
    created_at: float
    hash: str | None = None  # None while it still grows
    alias_of: str | None = None  # the name under which it is stored, where that is another one

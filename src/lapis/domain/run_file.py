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


def beside(name: str) -> str:
    """Where a collected file is stored whose name somebody has uploaded another one under."""
    folder, slash, leaf = name.rpartition("/")
    stem, dot, extension = leaf.rpartition(".")
    leaf = f"{stem}~collected.{extension}" if dot and stem else f"{leaf}~collected"
    return f"{folder}{slash}{leaf}"


def stored_beside(name: str) -> str:
    return f"'{name}' was uploaded, and what lay there in the end is another file: it is stored as '{beside(name)}'"

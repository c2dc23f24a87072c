"""Reads a requirements file of pip into the lines that a pip section holds."""

from __future__ import annotations

import os
import re

from lapis.errors import NotFound, UserErrorException


def read_pip_requirements(path: str) -> list[str]:
    """Return the requirements and options of the file at `path`, and in place those of files it includes."""
    return _read(path, including=())


def _read(path: str, including: tuple[str, ...]) -> list[str]:
    where = os.path.abspath(path)
    if where in including:
        raise UserErrorException(f"The requirements file '{path}' includes itself.")
    if not os.path.isfile(path):
        raise NotFound(f"There is no requirements file '{path}'.")
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"\\\r?\n", "", file.read())  # a line that ends in a backslash goes on
    found: list[str] = []
    for line in text.splitlines():
        requirement = re.sub(r"(^|\s)#.*$", "", line).strip()
        include = re.match(r"(?:-r|--requirement)[\s=]*(?P<path>.+)$", requirement)
        if include:
            nested = os.path.join(os.path.dirname(path), include.group("path"))
            found += _read(nested, (*including, where))
        elif requirement:
            found.append(requirement)
    return found

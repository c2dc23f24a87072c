"""Where the source of `lapis` and `azureml` lies, and how other interpreters get it without what lies beside it."""

from __future__ import annotations

import os

import lapis

PACKAGES = ("azureml", "lapis")


def folder() -> str:
    """The folder that this process has `lapis` and `azureml` from. It may be one of links."""
    return os.path.dirname(os.path.dirname(os.path.abspath(lapis.__file__)))


def real_folders() -> list[str]:
    """The folders of the packages themselves, wherever links to them lie."""
    return [os.path.realpath(os.path.join(folder(), package)) for package in PACKAGES]


def link_into(place: str) -> str:
    """Make `place` a folder with `azureml` and `lapis` alone, and give it back. May be repeated, and by two at once."""
    os.makedirs(place, exist_ok=True)
    for package, source in zip(PACKAGES, real_folders()):
        try:
            os.symlink(source, os.path.join(place, package))
        except FileExistsError:
            pass
    return place

"""What the server needs beside Lapis itself. The package needs none of it: the server has an environment of its own."""

from __future__ import annotations

import os
import sys
from typing import Mapping

from lapis.machine.installed_packages import installed_versions

OLDEST_PYTHON = (3, 11)
# The least version of each that has no known hole, of what others bring along too. The extra `server` in pyproject.toml
# says the same; a test holds the two together.
NEEDED = {
    "alembic": "1.13",
    "anyio": "4.14.2",
    "cryptography": "48.0.1",
    "h11": "0.16",
    "httptools": "0.6",
    "idna": "3.15",
    "jinja2": "3.1.6",
    "mako": "1.3.12",
    "optuna": "4.4",
    "psutil": "5.9",
    "py-spy": "0.4",
    "pydantic": "2.4",
    "pygments": "2.20",
    "rich": "13",
    "sqlalchemy": "2.0.30",
    "starlette": "1.3.1",
    "tqdm": "4.66.3",
    "typer": "0.15",
    "uv": "0.11.28",
    "uvicorn": "0.30",
    "uvloop": "0.20",
}
# What the server may have beside: the extras of pyproject.toml that are a matter of the server.
EXTRAS = {
    "azure": (
        "adlfs>=2024.7",
        "aiohttp>=3.14.3",
        "requests>=2.33",
        "urllib3>=2.7",
    ),
    "gcs": (
        "gcsfs>=2024.9",
        "aiohttp>=3.14.3",
        "requests>=2.33",
        "urllib3>=2.7",
    ),
    "kubernetes": (
        "kubernetes>=31",
        "requests>=2.33",
        "urllib3>=2.7",
    ),
    "postgres": ("psycopg[binary]>=3.2",),
    "ray": (
        "ray[default]>=2.54",
        "aiohttp>=3.14.3",
        "requests>=2.33",
        "urllib3>=2.7",
    ),
    "s3": (
        "s3fs>=2026",
        "aiohttp>=3.14.3",
        "urllib3>=2.7",
    ),
    "smb": (
        "smbprotocol>=1.15",
        "cryptography>=48.0.1",
    ),
}
# Exact versions of all that, and of what it needs in turn; `make requirements` writes it.
PINNED_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "server_requirements.txt")


def pinned() -> str:
    with open(PINNED_FILE, encoding="utf-8") as file:
        return file.read()


def pinned_version(name: str) -> str:
    (line,) = (line for line in pinned().splitlines() if line.startswith(name + "=="))
    return line.partition("==")[2].partition(";")[0].strip()


def are_here() -> bool:
    """Whether this interpreter can be the server's: new enough, and it has all that is needed."""
    return sys.version_info >= OLDEST_PYTHON and not lacking(installed_versions(sys.path))


def lacking(installed: Mapping[str, str]) -> list[str]:
    """Which of the packages are not there, or too old."""
    return [name for name, least in NEEDED.items() if name not in installed or _older(installed[name], least)]


def _older(version: str, least: str) -> bool:
    return _numbers(version) < _numbers(least)


def _numbers(version: str) -> list[int]:
    """2.0.30 of 2.0.30rc1: what comes behind the numbers is as good as nothing here."""
    found = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits))
    return found

"""Tokens of servers other than this user's own: each is kept for its address, and goes nowhere else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lapis.machine import json_files

if TYPE_CHECKING:
    from lapis.domain.settings import Settings

_PORTS = {"http": "80", "https": "443"}


def origin(address: str) -> str:
    """The scheme, host and port of an address, written in one way only: what a token belongs to."""
    scheme, _, rest = address.strip().lower().partition("://")
    place = rest.rstrip("/")
    host, colon, port = place.rpartition(":")
    if not colon or not port.isdigit():  # no port, or the colons of an IPv6 address
        host, port = place, _PORTS.get(scheme, "")
    return f"{scheme}://{host}:{port}"


def token_for(settings: Settings, address: str) -> str | None:
    found = (json_files.read(_file(settings)) or {}).get(origin(address))
    return found if isinstance(found, str) else None


def keep(settings: Settings, address: str, token: str) -> None:
    os.makedirs(settings.home, mode=0o700, exist_ok=True)
    json_files.write(_file(settings), {**(json_files.read(_file(settings)) or {}), origin(address): token})


def forget(settings: Settings, address: str) -> bool:
    """Whether there was one."""
    kept = json_files.read(_file(settings)) or {}
    if kept.pop(origin(address), None) is None:
        return False
    json_files.write(_file(settings), kept)
    return True


def _file(settings: Settings) -> str:
    return os.path.join(settings.home, "logins.json")

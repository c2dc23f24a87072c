"""Every setting, read from LAPIS_* variables when asked for. docs/settings.md explains each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Mapping

from lapis.domain.data import AUTO, DOWNLOAD, STREAM
from lapis.errors import UserErrorException

WEB = ("LAPIS_URL_MIRRORS", "LAPIS_ALLOWED_ADDRESSES", "LAPIS_FORBIDDEN_ADDRESSES")


@dataclass(frozen=True)
class Settings:
    home: str
    server: str | None
    token: str | None
    host: str
    port: int
    max_runs: int
    idle_seconds: float
    hang_seconds: float
    node_network: str
    environments: str
    python: str | None
    strict: bool
    environments_max_gb: float
    web: Mapping[str, str]  # what is set about fetching from the network, by its variables: it goes to every agent
    mount: str
    ray_python: str | None
    keep_runs_days: float  # 0: for ever
    isolation: str
    open_folders: tuple[str, ...] | None  # that code of runs may use as the server may; None: all but the system's

    @property
    def token_file(self) -> str:
        return os.path.join(self.home, "token")

    @property
    def address_file(self) -> str:
        return os.path.join(self.home, "server.json")

    @property
    def door(self) -> str:
        """Where files are handed over. Its folder is shown to scripts that see nothing else of this home."""
        return os.path.join(self.home, "door", "files")


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    return Settings(
        home=home(environ),
        server=(environ.get("LAPIS_SERVER") or "").rstrip("/") or None,
        token=environ.get("LAPIS_TOKEN") or None,
        host=environ.get("LAPIS_HOST") or "127.0.0.1",
        port=int(_number(environ, "LAPIS_PORT", 0, 0, 65535)),
        max_runs=int(_number(environ, "LAPIS_MAX_RUNS", max(2, os.cpu_count() or 1), 1, 100000)),
        idle_seconds=_number(environ, "LAPIS_IDLE_SECONDS", 1800, 0, 1e9),
        hang_seconds=_number(environ, "LAPIS_HANG_SECONDS", 600, 0, 1e9),
        node_network=_choice(environ, "LAPIS_NODE_NETWORK", "", ("", "namespaces")),
        environments=_choice(environ, "LAPIS_ENVIRONMENTS", "", ("", "host", "venv", "container")),
        python=environ.get("LAPIS_PYTHON") or None,
        strict=_choice(environ, "LAPIS_STRICT", "0", ("0", "1")) == "1",
        environments_max_gb=_number(environ, "LAPIS_ENVIRONMENTS_MAX_GB", 50, 0, 1e9),
        web={name: environ[name] for name in WEB if environ.get(name)},
        mount=_choice(environ, "LAPIS_MOUNT", AUTO, (AUTO, DOWNLOAD, STREAM)),
        ray_python=environ.get("LAPIS_RAY_PYTHON") or None,
        keep_runs_days=_number(environ, "LAPIS_KEEP_RUNS_DAYS", 0, 0, 1e6),
        isolation=_choice(environ, "LAPIS_ISOLATION", "auto", ("auto", "required", "off")),
        open_folders=_folders(environ, "LAPIS_OPEN_FOLDERS"),
    )


def home(environ: Mapping[str, str] = os.environ) -> str:
    return os.path.abspath(os.path.expanduser(environ.get("LAPIS_HOME") or os.path.join("~", ".lapis")))


def _number(environ: Mapping[str, str], name: str, default: float, low: float, high: float) -> float:
    text = environ.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise UserErrorException(f"{name}={text!r} cannot be used: a number from {low:g} to {high:g} is needed.")
    return value


def _folders(environ: Mapping[str, str], name: str) -> tuple[str, ...] | None:
    text = environ.get(name)
    if not text:
        return None
    found = tuple(filter(None, text.split(os.pathsep))) if text != "none" else ()
    wrong = [path for path in found if not os.path.isabs(path)]
    if wrong:
        raise UserErrorException(f"{name} cannot be used: {wrong[0]!r} is not a whole path. `none` opens no folder.")
    return found


def _choice(environ: Mapping[str, str], name: str, default: str, known: tuple[str, ...]) -> str:
    value = environ.get(name) or default
    if value not in known:
        raise UserErrorException(f"{name}={value!r} cannot be used. Known: {', '.join(filter(None, known))}.")
    return value

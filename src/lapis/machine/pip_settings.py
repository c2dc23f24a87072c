"""What the user told pip about indexes, in uv's words: uv reads neither pip's variables nor its files."""

from __future__ import annotations

import configparser
import os
import re
import sys
from typing import Mapping

_OF_UV = ("UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX")
# A line of uv.toml that says where packages come from. Old Pythons have no reader of TOML, and one word is enough.
_NAMES_INDEXES = re.compile(
    r"^\s*(?:\[\[(?:pip\.)?index\]\]|(?:index|index-url|extra-index-url|find-links|no-index)\s*=)", re.M
)
# pip's setting, uv's variable, what separates several values there
_MEANS = (
    ("index-url", "UV_INDEX_URL", " "),
    ("extra-index-url", "UV_EXTRA_INDEX_URL", " "),
    ("find-links", "UV_FIND_LINKS", ","),
    ("trusted-host", "UV_INSECURE_HOST", " "),
)


def variables_for_uv(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that make uv ask where pip would. None about indexes where uv has settings of its own for them."""
    of_pip = _settings_of_pip(environ)
    found: dict[str, str] = {}
    if of_pip.get("cert"):
        found["SSL_CERT_FILE"] = of_pip["cert"]
    if of_pip.get("proxy"):
        found["ALL_PROXY"] = of_pip["proxy"]
    if any(environ.get(name) for name in _OF_UV) or uv_file_names_indexes(environ):
        return found
    for setting, variable, separator in _MEANS:
        values = of_pip.get(setting, "").split()
        if values:
            found[variable] = separator.join(values)
    if of_pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        found["UV_NO_INDEX"] = "1"
    return found


def _settings_of_pip(environ: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in _files_of_pip(environ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # pip itself will complain about it
        for section in ("global", "install"):
            if parser.has_section(section):
                found.update({key.replace("_", "-"): value for key, value in parser.items(section)})
    for setting in ("cert", "proxy", "no-index", *(each[0] for each in _MEANS)):
        value = environ.get("PIP_" + setting.upper().replace("-", "_"))
        if value:
            found[setting] = value
    return found


def _files_of_pip(environ: Mapping[str, str]) -> list[str]:
    """Later ones count more. PIP_CONFIG_FILE=/dev/null means none at all."""
    named = environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    home = os.path.expanduser("~")
    of_system = [os.path.join(folder, "pip", "pip.conf") for folder in _folders(environ, "XDG_CONFIG_DIRS", "/etc/xdg")]
    of_user = [os.path.join(home, ".pip", "pip.conf"), os.path.join(_config_home(environ), "pip", "pip.conf")]
    of_interpreter = [os.path.join(environ.get("VIRTUAL_ENV") or sys.prefix, "pip.conf")]
    return [*of_system, "/etc/pip.conf", *of_user, *of_interpreter, *([named] if named else [])]


def uv_file_names_indexes(environ: Mapping[str, str]) -> bool:
    named = environ.get("UV_CONFIG_FILE", "")
    for path in [named] if named else [os.path.join(_config_home(environ), "uv", "uv.toml"), "/etc/uv/uv.toml"]:
        try:
            with open(path, encoding="utf-8") as file:
                content = file.read()
        except (OSError, UnicodeDecodeError):
            continue
        if _NAMES_INDEXES.search(content):
            return True
    return False


def _config_home(environ: Mapping[str, str]) -> str:
    return environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")


def _folders(environ: Mapping[str, str], name: str, default: str) -> list[str]:
    return [folder for folder in (environ.get(name) or default).split(os.pathsep) if folder]

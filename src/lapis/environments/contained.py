"""Commands that run the code of packages and models, started apart from what is the server's.

They see of its folder what they are given: the environment that is being built, uv's cache, and what their own command
line and variables name. Every one has a user, or namespaces, of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from lapis.domain import settings
from lapis.machine import apart, own_sources, uv
from lapis.machine.interpreters import prefixes
from lapis.machine.paths import is_within

_SOURCES = ("setup.py", "pyproject.toml")
_PACKAGES = (".whl", ".tar.gz", ".tgz", ".zip", ".tar.bz2", ".txt")
_PATH = re.compile(r"(?:^|[\s=@]|file://)(/[^\s;#'\"]+)", re.M)
_GIVEN = ("stores", os.path.join("cache", "wheels"))
_OF_USER = (".netrc", ".config/uv", ".config/pip", ".pip", ".gitconfig", ".condarc")


def building(argv: Sequence[str], root: str, variables: Mapping[str, str], folder: str) -> list[str]:
    """`argv`, which installs packages into environments of `root`, as it is to be started in `folder`."""
    root = os.path.abspath(root)
    kept = os.path.dirname(root)
    writable = [uv.cache_folder(kept), *_built(argv, root)]
    places = (folder, variables.get("HOME", ""))
    writable += [place for place in places if os.path.isabs(place) and place != root and is_within(place, kept)]
    writable += [path for name, path in variables.items() if name == "CONDA_PKGS_DIRS"]
    for place in writable:
        os.makedirs(place, exist_ok=True)
    named = [*_named(argv), *_named(_paths_in(variables))]
    home = os.path.expanduser("~")
    readable = [folder, os.path.dirname(argv[0]), *named, *(os.path.join(home, name) for name in _OF_USER)]
    return command(argv, [*readable, *apart.named_by(os.environ)], writable)


def command(argv: Sequence[str], readable: Sequence[str], writable: Sequence[str]) -> list[str]:
    """`argv` as it is to be started, with nothing of the server's but what is given."""
    found = apart.allowed(settings.home())
    programs = [path for word in argv for path in prefixes(word)]
    programs += [own_sources.folder(), *own_sources.real_folders()]  # ours to read, and nobody's to write
    written = (*writable, *(settings.load().open_folders or ()))
    # an interpreter in a folder that is written to is mounted with it: a mount of its own would be read-only
    read = (path for path in (*readable, *programs) if not any(is_within(path, folder) for folder in writable))
    reach = apart.Reach(os.urandom(16).hex(), (settings.home(),), tuple(read), written)
    return apart.command(reach, found.kind, argv)


def _built(argv: Sequence[str], root: str) -> Iterator[str]:
    """The environments that the command names. It may name one by its interpreter, which is a link out of it."""
    for word in argv:
        if os.path.isabs(word) and word != root and is_within(os.path.dirname(word), root):
            yield os.path.join(root, os.path.relpath(word, root).split(os.sep)[0])


def _named(words: Sequence[str]) -> Iterator[str]:
    """Files and folders that a command line names, and packages that lie where its files of requirements say.

    What is in the server's folder is named by nobody but us: an environment, which `_built` finds, a wheel in the
    stores of a workspace, or one that was compiled here.
    """
    kept = settings.home()
    for word in words:
        path = word.partition("=")[2] if word.startswith("-") else word
        if not os.path.isabs(path) or not (os.path.isfile(path) or os.path.isdir(path)):  # no path, or /dev/null
            continue
        if not _is_the_servers(path, kept):
            yield path
        if path.endswith(".txt") and os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                found = filter(_is_package, _PATH.findall(file.read()))
            yield from (package for package in found if not _is_the_servers(package, kept))


def _is_the_servers(path: str, kept: str) -> bool:
    return is_within(path, kept) and not any(is_within(path, os.path.join(kept, name)) for name in _GIVEN)


def _is_package(path: str) -> bool:
    if os.path.isdir(path):
        return any(os.path.exists(os.path.join(path, name)) for name in _SOURCES)
    return path.endswith(_PACKAGES) and os.path.isfile(path)


def _paths_in(variables: Mapping[str, str]) -> list[str]:
    """Of indexes on the disk, settings and certificates."""
    told = [value for name, value in variables.items() if name.startswith(("UV_", "PIP_", "SSL_", "NETRC", "CONDARC"))]
    return [word.replace("file://", "") for value in told for word in re.split(r"[\s,]+", value)]

"""Runs uv for the environments of runs, and says pip's options in its words."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from lapis.domain import settings
from lapis.environments import indexes, tools
from lapis.errors import UserErrorException
from lapis.machine import commands, uv
from lapis.machine.commands import Canceled, Said, Tell

# pip's options of a requirements file, and uv's name for each. With a value:
_VALUED = {
    "-i": "--index-url",
    "--index-url": "--index-url",
    "--extra-index-url": "--extra-index-url",
    "-f": "--find-links",
    "--find-links": "--find-links",
    "--no-binary": "--no-binary",
    "--only-binary": "--only-binary",
    "--trusted-host": "--allow-insecure-host",
    "--index-strategy": "--index-strategy",  # uv's own: who wants pip's way says so
}
_FLAGS = {"--no-index": ["--no-index"], "--pre": ["--prerelease", "allow"], "--no-deps": ["--no-deps"]}
# What uv does anyway, or what changes nothing about the packages.
_NEEDLESS = {"--no-cache-dir", "--upgrade", "-U", "--prefer-binary", "--process-dependency-links", "--require-hashes"}
_NEEDLESS |= {"--disable-pip-version-check", "--no-warn-script-location", "--quiet", "-q", "--verbose", "-v", "--user"}
_NEEDLESS |= {"--ignore-installed", "-I", "--force-reinstall", "--no-build-isolation"}
_NEEDLESS_VALUED = {"--use-feature", "--use-deprecated", "--timeout", "--default-timeout", "--retries"}


def find() -> str:
    found = uv.found()
    if found is None:
        raise UserErrorException(
            f"uv builds the environments, and there is none beside {sys.executable} or on the PATH. Install it there: "
            "pip install uv."
        )
    return found


def default_root() -> str:
    """Where this machine's environments lie."""
    return os.path.join(settings.home(), "environments")


def cache_folder(root: str) -> str:
    return uv.cache_folder(os.path.dirname(os.path.abspath(root)))


def run(
    arguments: Sequence[str],
    root: str,
    tell: Tell = commands.silent,
    canceled: Canceled = commands.never,
    keep_open: Sequence[int] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
    image: str = "",
) -> Said:
    """Run uv with the cache that belongs to `root`, in a container if there is an `image`.

    `variables` count where the user has not set them.
    """
    os.makedirs(root, exist_ok=True)
    environment = {**variables, **uv.environment_for(os.environ, cache_folder(root))}
    arguments, environment = indexes.arranged(arguments, environment)
    command = [find(), *arguments]
    if image:
        command = _in_container(image, command, environment, root)
    return tools.run(command, root, environment, tell, canceled, keep_open, of_a_container=bool(image))


def _in_container(image: str, command: Sequence[str], environment: Mapping[str, str], root: str) -> list[str]:
    """With the folders where they are outside, so that what is built there can be used there."""
    from lapis.environments import containers, guarded_proxy

    runtime = containers.runtime()
    if runtime is None:
        raise UserErrorException("The environment is one of an image, and neither Docker nor Podman answers now.")
    os.makedirs(cache_folder(root), exist_ok=True)
    together = os.path.commonpath([root, cache_folder(root)])
    folders = [together] if together.count(os.sep) > 1 else [root, cache_folder(root)]
    folders.append(os.path.dirname(command[0]))
    folders += [word for word in command if os.path.isabs(word) and os.path.isdir(word)]
    known = [name for name in environment if name.startswith(("UV_", "PIP_", "SSL_"))]
    named = [word for name in known for word in environment[name].replace(",", " ").split()]  # wheels, certificates
    known += guarded_proxy.VARIABLES  # the user's, or ours
    folders += [word for word in named if os.path.isabs(word) and os.path.exists(word)]
    return containers.inside(runtime, image, command, [*known, "HOME=/tmp"], folders, root)


def options(pip_options: Sequence[str]) -> list[str]:
    """A definition's pip options as uv takes them. One that is not known is an error: it may matter."""
    words = [word for line in pip_options for word in shlex.split(line)]
    found: list[str] = []
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name in _FLAGS:
            found += _FLAGS[name]
        elif name in _VALUED or name in _NEEDLESS_VALUED:
            if not equals:
                if not words:
                    raise UserErrorException(f"The pip option {name} needs a value.")
                value = words.pop(0)
            found += [_VALUED[name], value] if name in _VALUED else []
        elif name not in _NEEDLESS:
            known = ", ".join(sorted(name for name in {*_FLAGS, *_VALUED} if name.startswith("--")))
            raise UserErrorException(f"The pip option '{name}' cannot be used in an environment. Known: {known}.")
    return found

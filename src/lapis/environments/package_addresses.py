"""Where a definition has packages fetched from besides the server's own indexes, and whether it may."""

from __future__ import annotations

import re
import shlex
import socket
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from lapis.domain.addresses import Rule, refusal
from lapis.domain.data import shown_url
from lapis.errors import Forbidden, UserErrorException

_OPTIONS = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--trusted-host")
_VERSION_CONTROL = re.compile(r"^(?:git|hg|svn|bzr)\+")
_OF_SSH = re.compile(r"^(?:[\w.-]+@)?([\w.-]+):(?!/)")  # git@host:path
_CREDENTIALS = re.compile(r"//[^/@\s]+@")
_CHANNELS = "https://conda.anaconda.org/"  # what a channel's bare name is below
_REGISTRY = "docker.io"
_FROM = re.compile(r"(?im)^\s*FROM\s+(?:--\S+\s+)*(\S+)")
# Options of a container that reach nothing of the machine.
_HARMLESS = re.compile(r"--(?:shm-size|ulimit|cpus|memory|memory-swap|env|label|init|gpus)(?:=|$)|[^-]")


def of_requirements(requirements: Iterable[str]) -> list[str]:
    """The addresses in lines of a requirements file, of a recipe or of a lock."""
    found = []
    for line in requirements:
        text = re.split(r"\s+(?:;|\\|--hash)", re.sub(r"^-e\s+|^--editable[=\s]", "", line.strip()))[0]
        name, at, address = text.partition(" @ ")
        if at:
            found.append(address.strip())
        elif "://" in text or text.startswith(("/", ".", "~")) or _VERSION_CONTROL.match(text):
            found.append(text)
    return found


def of_options(pip_options: Iterable[str]) -> list[str]:
    words = [word for line in pip_options for part in shlex.split(line) for word in _halves(part)]
    return [value for name, value in zip(words, words[1:], strict=False) if name in _OPTIONS and "-" != value[:1]]


def of_channels(channels: Iterable[str], packages: Iterable[str]) -> list[str]:
    """Conda's: of the list, and those before a package (`channel::numpy`)."""
    named = [*channels, *(each.partition("::")[0] for each in packages if "::" in each)]
    return [each if "://" in each or each.startswith(("/", ".", "~")) else _CHANNELS + each for each in named]


def of_images(image: str | None, dockerfile: str | None) -> list[str]:
    """The registries that images come from: the one that is named, or those that a Dockerfile begins with."""
    images = [*([image] if image and not dockerfile else []), *_FROM.findall(dockerfile or "")]
    return [f"https://{_registry(each)}" for each in images if each != "scratch"]


def check(addresses: Iterable[str], rule: Rule, may_name_files: bool) -> None:
    """Raise if one of them may not be fetched from, or is a place on the server's disk that this asker cannot name."""
    for address in dict.fromkeys(addresses):
        host = _host(address)
        if host is None:
            if not may_name_files:
                raise Forbidden(
                    f"An environment that a run asks for cannot name a place on the server's disk: {address}. Give an "
                    "address (https://...), or submit with the user's token."
                )
            continue
        reason = refusal(rule, host, _found(host))
        if reason is not None:
            shown = shown_url(_CREDENTIALS.sub("//", address))
            raise UserErrorException(f"No package is fetched from {shown}: {reason}.")


def check_container(arguments: Sequence[str], may_name_files: bool) -> None:
    """The same of options for the container: a folder of the machine is not for a run to open."""
    wrong = [each for each in arguments if not _HARMLESS.match(each)]
    if wrong and not may_name_files:
        raise Forbidden(
            f"An environment that a run asks for cannot have the container options {' '.join(wrong)}. Submit with the "
            "user's token."
        )


def _halves(word: str) -> list[str]:
    return word.split("=", 1) if word.startswith("--") and "=" in word else [word]


def _registry(image: str) -> str:
    first, slash, _ = image.partition("/")
    return first if slash and (first == "localhost" or "." in first or ":" in first) else _REGISTRY


def _host(address: str) -> str | None:
    """None for a place on this machine's disk."""
    plain = _VERSION_CONTROL.sub("", address)
    if "://" not in plain:
        of_ssh = _OF_SSH.match(plain)
        if of_ssh:
            return of_ssh[1]
        return None if "/" in plain or plain.startswith((".", "~")) else plain  # of --trusted-host, a bare name
    parts = urlsplit(plain)
    return None if parts.scheme == "file" else parts.hostname or ""


def _found(host: str) -> list[str] | None:
    """What its name leads to; None if nobody knows: a proxy may."""
    try:
        return [str(each[4][0]) for each in socket.getaddrinfo(host, None, 0, socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        return None

"""Reads the lines of a conda file: what conda writes and what pip writes, both as packages of PyPI's kind."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lapis.environments import world
from lapis.environments.versions import Span, span
from lapis.errors import UserErrorException


@dataclass(frozen=True)
class Package:
    """A package as pip takes it, and as the user wrote it."""

    name: str  # normalised; empty for a bare address
    limits: str = ""  # '==2.2.0', '>=1.16,<2'
    extras: tuple[str, ...] = ()
    marker: str = ""  # of where it is wanted at all: python_version < '3.8'
    address: str = ""  # where it comes from, if not from an index
    written: str = ""

    @property
    def requirement(self) -> str:
        marker = f" ; {self.marker}" if self.marker else ""
        if self.address:
            return (f"{self._head} @ {self.address}" if self.name else self.address) + marker
        return f"{self._head}{self.limits}{marker}"

    @property
    def span(self) -> Span:
        """The versions it may be. One from an address, or not wanted everywhere, may be any."""
        return Span() if self.address or self.marker else span(self.limits)

    @property
    def _head(self) -> str:
        return self.name + (f"[{','.join(self.extras)}]" if self.extras else "")


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).strip("-").lower()


_CONDA = re.compile(r"(?:[\w./:-]+::)?(?P<name>[A-Za-z0-9_][\w.-]*)\s*(?P<rest>.*)$")
_CONDA_BRACKETS = re.compile(r"\[\s*version\s*=\s*['\"]?(?P<version>[^'\"\]]+)['\"]?.*\]$")
_CONDA_LIMIT = re.compile(r"(==|=|~=|!=|<=|>=|<|>)?\s*([0-9][\w.!+-]*(?:\.?\*)?|\*)$")


def conda_package(line: str) -> Package:
    """Read 'numpy', 'numpy=1.18.1=py36_0', 'conda-forge::numpy >=1.16,<2'. One '=' is a prefix: =1.18 is 1.18.*."""
    found = _CONDA.match(line.strip())
    if not found:
        raise UserErrorException(f"The conda package {line!r} is not understood. One looks like 'numpy=1.18'.")
    rest = found.group("rest").strip()
    brackets = _CONDA_BRACKETS.match(rest)
    if brackets:
        rest = brackets.group("version")
    limits = [_conda_limit(limit.strip(), line) for limit in _without_build(rest).split(",") if limit.strip()]
    return Package(normalised(found.group("name")), ",".join(filter(None, limits)), written=line.strip())


def _without_build(rest: str) -> str:
    """'=1.18.1=py36_0' and '1.18.1 py36_0' end in a build of conda's, which means nothing to pip."""
    parts = re.split(r"(?<=[\w*])(?:=(?!=)|\s+(?=[\w*]))", rest.strip(), maxsplit=1)
    return parts[0]


def _conda_limit(limit: str, line: str) -> str:
    found = _CONDA_LIMIT.match(limit)
    if not found:
        raise UserErrorException(
            f"The version in the conda package {line!r} is not understood. "
            "Write it as '=1.18', '==1.18.1' or '>=1.16,<2'."
        )
    operator, number = found.group(1) or "==", found.group(2)
    if number == "*":
        return ""
    prefix = number.rstrip("*").rstrip(".")
    if operator == "=" or number.endswith("*"):
        return f"=={prefix}.*" if operator in ("=", "==") else f"{operator}{prefix}"
    return f"{operator}{number}"


_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[(?P<extras>[^\]]*)\])?\s*"
    r"(?:@\s*(?P<address>\S+)|\(?(?P<limits>(?:(?:===|==|~=|!=|<=|>=|<|>)\s*[\w.!+*-]+\s*,?\s*)*)\)?)\s*"
    r"(?:;\s*(?P<marker>.+))?$"
)
_ADDRESS = re.compile(r"(?:(?:git|hg|svn|bzr)\+)?[a-z]+://|git\+", re.IGNORECASE)
_EGG = re.compile(r"#(?:.*&)?egg=(?P<name>[\w.-]+)(?:\[(?P<extras>[^\]]*)\])?")


def pip_package(line: str) -> Package:
    """Read what PEP 508 and pip allow: 'numpy==1.18', 'a[b]>=1; python_version < "3"', addresses, 'git+https://...'."""
    text = re.sub(r"\s--hash[= ]\S+", "", line).strip()
    if _ADDRESS.match(text):
        egg = _EGG.search(text)
        if egg:
            return Package(
                normalised(egg.group("name")),
                "",
                _extras(egg.group("extras")),
                address=text.split("#")[0],
                written=line,
            )
        return Package("", address=text, written=line)
    if text.startswith("/"):
        return Package("", address=text, written=line)
    if text.startswith((".", "~")) or re.fullmatch(r"\S+\.(whl|zip|tar\.gz)", text):
        raise UserErrorException(
            f"The pip line {line!r} names a file beside the notebook, which the machine that builds does not have. "
            "Give its address (https://..., git+https://...) or its whole path there."
        )
    found = _REQUIREMENT.match(text)
    if not found:
        hint = " To pin a version, pip wants two '='." if re.match(r"[\w.-]+\s*=\s*[\w.]+$", text) else ""
        raise UserErrorException(f"The pip line {line!r} is not understood.{hint} One looks like 'numpy==1.18.1'.")
    return Package(
        normalised(found.group("name")),
        re.sub(r"\s+", "", found.group("limits") or "").rstrip(","),
        _extras(found.group("extras")),
        (found.group("marker") or "").strip(),
        found.group("address") or "",
        line,
    )


def _extras(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip().lower() for part in (text or "").split(",") if part.strip())


@dataclass(frozen=True)
class PipLine:
    """One line of a pip section: a package, an option that travels on, or neither."""

    package: Package | None = None
    option: str = ""
    notice: str = ""


def pip_line(line: str) -> PipLine:
    text = re.sub(r"(^|\s)#.*$", "", line).strip()
    if not text:
        return PipLine()
    if not text.startswith("-"):
        return PipLine(package=pip_package(text))
    name, value = _option(text)
    if name in ("-e", "--editable"):
        return PipLine(package=pip_package(value))
    if name in world.PIP_OPTIONS:
        long_name = world.PIP_OPTIONS[name]
        return PipLine(option=f"{long_name} {value}" if value else long_name)
    if name in world.PIP_OPTIONS_WITHOUT_EFFECT:
        return PipLine(notice=f"pip's option {name} changes nothing here.")
    if name in world.PIP_OPTIONS_OF_FILES:
        raise UserErrorException(
            f"The pip section says {text!r}, a file that is not part of the environment. Put its lines in its place, "
            "or read it with Environment.from_pip_requirements(name, file_path)."
        )
    known = ", ".join(sorted(set(world.PIP_OPTIONS.values())))
    raise UserErrorException(f"The pip section has the option {name!r}, which Lapis does not know. Known: {known}.")


def _option(text: str) -> tuple[str, str]:
    """'--index-url=X', '--index-url X', '-i X' and '-iX'."""
    if text.startswith("--"):
        name, _, value = re.sub(r"[= ]\s*", " ", text, count=1).partition(" ")
        return name, value.strip()
    return text[:2], text[2:].strip()

"""What uv says, in words that tell what to do now."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from itertools import takewhile

from lapis.errors import StorageFull, Unavailable, UserErrorException

_AWAY = ("Failed to fetch", "error sending request", "dns error", "operation timed out", "Could not connect")
_OFFLINE = ("network was disabled", "Network connectivity is disabled")
_URL = re.compile(r"https?://[^\s/`'\")]+")
_CREDENTIALS = re.compile(r"//[^/@\s]+@")  # https://user:password@host
_DECORATION = re.compile(r"^\s*(?:error:|cause:|Caused by:|[×│├╰╭─▶]+)?\s*")


def network_is_away(complaints: str) -> bool:
    return any(sign in complaints for sign in _AWAY)


def no_solution(complaints: str) -> bool:
    """Whether no versions fit together."""
    return "No solution found" in complaints


def build_failed(complaints: str) -> bool:
    """Whether a package that has to be built from its source could not be."""
    return "Failed to build" in complaints or "build backend returned an error" in complaints


def error(complaints: str, python: str, doing: str, cache: str) -> Exception:
    """The error for uv's complaint, met while `doing` something for an environment on Python `python`."""
    lines = _lines(complaints)
    whole = " ".join(lines)
    if "No space left on device" in whole or "os error 28" in whole:
        return StorageFull(
            f"The disk is full: {doing} stopped, and what was half done is removed. Free some space, for instance with "
            "`lapis env prune`, and try again."
        )
    if network_is_away(whole) or any(sign in whole for sign in _OFFLINE):
        return _unreachable(whole, doing)
    if no_solution(whole):
        return UserErrorException(_no_solution(lines, python, cache))
    if build_failed(whole):
        return UserErrorException(_failed_build(lines, whole, python))
    if "Hash mismatch" in whole or "hash mismatch" in whole:
        return UserErrorException(
            f"A package is not the one that was locked: {_from('ismatch', lines)} The index has changed since: resolve "
            "the environment again."
        )
    said = " ".join(line for line in lines if not _is_progress(line)) or "it said nothing"
    return UserErrorException(f"{doing[0].upper()}{doing[1:]} failed. uv says: {said}")


def _lines(complaints: str) -> list[str]:
    plain = _CREDENTIALS.sub("//", complaints)
    found = (_DECORATION.sub("", line).rstrip() for line in plain.splitlines())
    return [line for line in found if line]


def _is_progress(line: str) -> bool:
    begins = ("Using ", "Creating virtual", "Activate with", "Resolved ", "Prepared ", "Building ", "Downloading ")
    return line.startswith((*begins, "Downloaded ", "Built ", "warning:"))


def _unreachable(whole: str, doing: str) -> Exception:
    hosts = sorted(set(_URL.findall(whole)))
    where = f"The package index {' and '.join(hosts)}" if hosts else "The package index"
    reasons = ("dns error", "timed out", "Connection refused", "certificate", "network was disabled", "disabled")
    reason = next((f" ({each})" for each in reasons if each in whole), "")
    return Unavailable(
        f"{where} cannot be reached{reason}, and the cache of this machine lacks some of the packages: {doing} "
        "stopped, nothing was changed. Check the network or the proxy, or name an index that can be reached in "
        "UV_INDEX_URL, PIP_INDEX_URL or pip.conf."
    )


def _no_solution(lines: list[str], python: str, cache: str) -> str:
    start = next(at for at, line in enumerate(lines) if "No solution found" in line)
    because = " ".join(lines[start + 1 :])
    unknown = re.findall(r"Because (\S+) was not found in the (?:package registry|provided package)", because)
    if unknown:
        near = _near(unknown[0], _seen(cache))
        names = f" Names like it: {', '.join(near)}." if near else ""
        return (
            f"The package index knows no package named '{unknown[0]}'.{names} Correct the name, or say which index has "
            f"it with --extra-index-url. In full: {because}"
        )
    missing = re.findall(r"there (?:is|are) no version[s]? of (\S+?),? and", because)
    if missing and "depends on" not in because:
        return (
            f"The package index has no {missing[0]} for this machine. Ask for a version that it has. In full: {because}"
        )
    needs = re.search(r"does not satisfy Python ?([^\s,]+)|requires Python ?([^\s,]+)", because)
    if needs:
        return (
            f"A package needs Python {needs[1] or needs[2]}, and the environment has Python {python}. Ask for another "
            f"Python or another version of the package. In full: {because}"
        )
    return (
        f"These packages do not fit together on Python {python}: {because} Nothing was downloaded. Loosen one of the "
        "requirements named here."
    )


def _failed_build(lines: list[str], whole: str, python: str) -> str:
    named = re.search(r"Failed to (?:download and )?build:? `([^`]+)`", whole)
    what = named[1] if named else "A package"
    lines = list(takewhile(lambda line: not line.startswith("hint:"), lines))
    reasons = [line for line in lines if re.match(r"[\w.]*(?:Error|Exception|error)\b.*:|fatal", line)]
    reason = reasons[-1] if reasons else lines[-1]
    return (
        f"{what} has no ready-made wheel for Python {python} on this machine, and building it from its source failed: "
        f"{reason} Ask for a version that has one, or for the Python of its time. In full: {' '.join(lines[-12:])}"
    )


def _from(sign: str, lines: list[str]) -> str:
    at = next((at for at, line in enumerate(lines) if sign in line), 0)
    return " ".join(lines[at : at + 6])


def _near(name: str, known: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(name, [each for each in known if each != name], n=3, cutoff=0.8)


def _seen(cache: str) -> set[str]:
    """The names of packages that this machine has asked its indexes about before."""
    found: set[str] = set()
    for folder, _, files in os.walk(cache):
        depth = os.path.relpath(folder, cache).split(os.sep)
        if depth[0] != "." and not depth[0].startswith("simple-"):
            continue
        found.update(name.removesuffix(".rkyv") for name in files if name.endswith(".rkyv"))
    return found

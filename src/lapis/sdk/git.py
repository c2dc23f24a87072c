"""Which commit a folder of code stands at, as properties of the run."""

from __future__ import annotations

import os
import re

_PREFIX = "azureml.git."


def facts(folder: str) -> dict[str, str]:
    """Repository, branch, commit and whether something is uncommitted; nothing outside a repository.

    AZUREML_GIT_REPOSITORY_URI and its kin win over what is found, as in SDK v1.
    """
    found = {**_from_files(folder), **_from_environment()}
    if not found:
        return {}
    named = {_PREFIX + key: value for key, value in found.items()}
    for ours, theirs in (("repository_uri", "repoURL"), ("branch", "branch"), ("commit", "commit")):
        if ours in found:
            named[f"mlflow.source.git.{theirs}"] = found[ours]
    return named


def _from_environment() -> dict[str, str]:
    names = ("repository_uri", "branch", "commit", "dirty", "build_id", "build_uri")
    given = {name: os.environ.get("AZUREML_GIT_" + name.upper()) for name in names}
    return {name: value for name, value in given.items() if value}


def _from_files(folder: str) -> dict[str, str]:
    top = _repository_of(folder)
    if top is None:
        return {}
    store = os.path.join(top, ".git")
    try:
        with open(os.path.join(store, "HEAD")) as file:
            head = file.read().strip()
    except OSError:
        return {}
    found = {}
    branch = head[len("ref: refs/heads/") :] if head.startswith("ref: refs/heads/") else None
    commit = _resolve(store, head[5:]) if head.startswith("ref: ") else head
    if branch:
        found["branch"] = branch
    if commit:
        found["commit"] = commit
    address = _origin(store)
    if address:
        found["repository_uri"] = address
    dirty = _dirty(folder)
    if dirty is not None:
        found["dirty"] = str(dirty)
    return found


def _repository_of(folder: str) -> str | None:
    while not os.path.isdir(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def _resolve(store: str, reference: str) -> str | None:
    try:
        with open(os.path.join(store, *reference.split("/"))) as file:
            return file.read().strip()
    except OSError:
        pass
    try:
        with open(os.path.join(store, "packed-refs")) as file:
            for line in file:
                if line.rstrip().endswith(" " + reference):
                    return line.split(" ", 1)[0]
    except OSError:
        pass
    return None


def _origin(store: str) -> str | None:
    try:
        with open(os.path.join(store, "config")) as file:
            found = re.search(r'\[remote "origin"\][^\[]*?url\s*=\s*(\S+)', file.read())
    except OSError:
        return None
    return re.sub(r"//[^/@]*@", "//", found[1]) if found else None  # an address may hold a password


def _dirty(folder: str) -> bool | None:
    import subprocess

    try:
        said = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=2,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return bool(said.stdout.strip()) if said.returncode == 0 else None

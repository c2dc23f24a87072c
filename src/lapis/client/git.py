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
    store = _store_of(folder)
    if store is None:
        return {}
    head = _text(store, "HEAD")
    if not head:
        return {}
    shared = os.path.join(store, _text(store, "commondir"))  # of a worktree: the repository's own
    found = {}
    branch = head[len("ref: refs/heads/") :] if head.startswith("ref: refs/heads/") else None
    commit = _resolve(store, head[5:]) or _resolve(shared, head[5:]) if head.startswith("ref: ") else head
    if branch:
        found["branch"] = branch
    if commit:
        found["commit"] = commit
    address = _origin(shared)
    if address:
        found["repository_uri"] = address
    dirty = _dirty(folder)
    if dirty is not None:
        found["dirty"] = str(dirty)
    return found


def _store_of(folder: str) -> str | None:
    """The .git folder that `folder` belongs to; a worktree and a submodule have a file there that says where."""
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    store = os.path.join(folder, ".git")
    if os.path.isdir(store):
        return store
    pointer = _text(folder, ".git")
    return os.path.join(folder, pointer[len("gitdir: ") :]) if pointer.startswith("gitdir: ") else None


def _text(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _resolve(store: str, reference: str) -> str | None:
    loose = _text(store, reference)
    if loose:
        return loose
    packed = [line.split(" ", 1) for line in _text(store, "packed-refs").splitlines() if " " in line]
    return next((commit for commit, name in packed if name == reference), None)


def _origin(store: str) -> str | None:
    found = re.search(r'\[remote "origin"\][^\[]*?url\s*=\s*(\S+)', _text(store, "config"))
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

"""From a recipe to a lock: which version of which package, known by its hashes, before anything is installed."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence

from lapis.environments import explain, old_builds, progress, uv
from lapis.environments.values import Lock, Recipe
from lapis.machine.commands import Canceled, Said, Tell, never
from lapis.machine.interpreters import Interpreter

# To find out at once that the network is away: two tries, seconds each. What the user has set counts instead.
_IMPATIENT = {"UV_HTTP_TIMEOUT": "15", "UV_HTTP_CONNECT_TIMEOUT": "5", "UV_HTTP_RETRIES": "1"}


def resolve(
    recipe: Recipe, interpreter: Interpreter, tell: Tell, canceled: Canceled = never, root: str | None = None
) -> Lock:
    """Pin every package of `recipe` for this machine and `interpreter`. Conflicts are told here, nothing is installed.

    Without the network it works as far as the cache of `root` knows the packages. Raises UserErrorException,
    Unavailable if the index cannot be reached, StorageFull, or Stopped.
    """
    root = root or uv.default_root()
    began = time.monotonic()
    count = len(recipe.requirements)
    tell(f"Resolving {count} {'requirement' if count == 1 else 'requirements'} for Python {interpreter.version}")
    packages, as_submitter = _pinned(recipe, interpreter, root, tell, canceled) if recipe.requirements else ("", ())
    tell(f"Resolved {number_of_packages(packages)} packages in {time.monotonic() - began:.1f} s")
    return Lock(
        python=interpreter.version,
        platform=this_platform(),
        packages=packages,
        pip_options=recipe.pip_options,
        shims=recipe.shims,
        variables=dict(recipe.variables),
        compiled=recipe.compiled,
        substitutions=recipe.substitutions,
        notices=(*recipe.notices, *_told(as_submitter, packages)),
    )


def this_platform() -> str:
    return f"{sys.platform}-{platform.machine()}"


def packages_in(lock: Lock) -> int:
    """Pip's and conda's."""
    return number_of_packages(lock.packages) + len(lock.conda)


def brings(lock: Lock, name: str) -> bool:
    """Whether a package is among those of a lock, pip's or conda's."""
    lines = (*lock.packages.splitlines(), *(each.replace("=", "==", 1) for each in lock.conda))
    return any(line.startswith((f"{name}==", f"{name} @")) for line in lines)


def number_of_packages(packages: str) -> int:
    return sum(1 for line in packages.splitlines() if line and not line.startswith((" ", "#", "-")))


def _pinned(
    recipe: Recipe, interpreter: Interpreter, root: str, tell: Tell, canceled: Canceled
) -> tuple[str, tuple[str, ...]]:
    """Every package; and the versions of the submitting Python that were kept to.

    What nobody asked for gives way where it makes a solution impossible: what the user pinned never does.
    """
    tries = _tries(recipe)
    for last, (requirements, constraints) in enumerate(tries, 1 - len(tries)):
        said = _compiled(recipe, requirements, constraints, interpreter, root, tell, canceled)
        if said.ok:
            return said.output, tuple(each for each in recipe.as_submitter if each in constraints)
        if last == 0 or not (explain.no_solution(said.complaints) or explain.build_failed(said.complaints)):
            break
    raise explain.error(said.complaints, interpreter.version, "resolving the packages", uv.cache_folder(root))


def _tries(recipe: Recipe) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Requirements and constraints, from what is wished for to what was asked for."""
    named = {each.split("==")[0] for each in recipe.as_submitter}
    rest = tuple(each for each in recipe.if_possible if each.split("<")[0] not in named)
    needed = tuple(each for each in recipe.requirements if each not in recipe.optional)
    tries = [
        (recipe.requirements, (*recipe.constraints, *recipe.as_submitter, *rest)),
        (recipe.requirements, (*recipe.constraints, *recipe.if_possible)),
        (recipe.requirements, recipe.constraints),
        (needed, recipe.constraints),
    ]
    return list(dict.fromkeys(tries))


def _told(as_submitter: Sequence[str], packages: str) -> list[str]:
    found = [each.replace("==", " ") for each in as_submitter if f"\n{each} " in f"\n{packages}"]
    if not found:
        return []
    return [f"As in the Python that submits, so that what it pickled can be read: {', '.join(found)}."]


def _compiled(
    recipe: Recipe, requirements: Sequence[str], constraints: Sequence[str], interpreter: Interpreter, root: str,
    tell: Tell, canceled: Canceled,
) -> Said:  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="lapis-resolve-") as folder:
        wanted = _file(folder, "requirements", requirements)
        elsewhere = interpreter.source in ("image", "conda channel")  # it cannot be asked: its version has to do
        which = ["--python-version", interpreter.version] if elsewhere else ["--python", interpreter.path]
        command = ["pip", "compile", wanted, *which, *uv.options(recipe.pip_options)]
        command += ["--constraint", _file(folder, "constraints", constraints)] if constraints else []
        nowhere = [f"{name}; python_version < '0'" for name in recipe.without]  # wanted on no Python that there is
        command += ["--override", _file(folder, "overrides", nowhere)] if nowhere else []
        command += ["--generate-hashes", "--no-header", "--no-annotate"]

        def compile_with(more: Sequence[str]) -> Said:
            said = uv.run([*command, *more], root, progress.of_uv(tell), canceled, variables=_IMPATIENT)
            if said.ok or not explain.network_is_away(said.complaints):
                return said
            offline = uv.run([*command, *more, "--offline"], root, canceled=canceled)
            if offline.ok:
                tell("The package index cannot be reached; the cache of this machine knows all the packages.")
            return offline if offline.ok else said

        return old_builds.tried(compile_with, folder, interpreter.version, tell)


def _file(folder: str, name: str, lines: Sequence[str]) -> str:
    path = os.path.join(folder, f"{name}.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path

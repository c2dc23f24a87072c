"""Commands about the environments of this machine: list, show, build, diff, verify, prune."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lapis.cli import choice, screen
from lapis.cli.options import Json, WorkspaceName
from lapis.domain import in_words

if TYPE_CHECKING:
    from lapis.environments.cache import Built
    from lapis.environments.differences import Contents
    from lapis.sdk.environments.environment import Environment

Hash = Annotated[str, typer.Argument(metavar="HASH", help="The hash of an environment, or how it begins.")]
_SHOWN_HASH = 12
_SHOWN_FILES = 20


def list_environments(
    curated: Annotated[
        bool, typer.Option("--curated", help="The names of curated environments instead, which every workspace has.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the environments that are built on this machine, the last used first."""
    from lapis.environments.cache import built

    if curated:
        _list_curated()
        return
    found = built(_root())

    def show() -> None:
        if not found:
            screen.notice(f"No environment is built in {_root()} yet.")
            return
        screen.table(
            ["HASH", "PYTHON", "PACKAGES", "SIZE", "LAST USED", "USED BY"],
            [
                (
                    each.hash[:_SHOWN_HASH],
                    each.python,
                    str(each.packages),
                    in_words.size(each.size),
                    screen.ago(each.last_used),
                    _users(each),
                )
                for each in found
            ],
            right=["PACKAGES", "SIZE"],
        )

    screen.answer({"root": _root(), "environments": [_document(each) for each in found]}, show)


def show(
    environment: Hash,
    log: Annotated[bool, typer.Option("--log", help="What was told while it was built.")] = False,
    as_json: Json = False,
) -> None:
    """Show one environment: its packages, and what was put in the place of what was asked for."""
    from lapis.environments.build import about
    from lapis.environments.cache import lock_of, pins

    found = _find(environment)
    lock, known = lock_of(found.folder), about(found.folder)
    with open(os.path.join(found.folder, "build.log"), encoding="utf-8") as file:
        told = file.read()
    packages = pins(lock)
    changes = [str(each) for each in lock.substitutions]

    def show() -> None:
        if log:
            screen.said(told)
            return
        screen.facts(
            [
                ("Hash", found.hash),
                ("Folder", found.folder),
                ("Python", f"{found.python}, from {known['interpreter']}"),
                ("Size", in_words.size(found.size)),
                ("Built", f"{screen.moment(found.created)}, in {screen.duration(known['seconds'])}"),
                ("Last used", screen.ago(found.last_used)),
                ("Used by", _users(found)),
                ("Help for old code", ", ".join(lock.shims)),
                ("Variables", ", ".join(f"{name}={value}" for name, value in sorted(lock.variables.items()))),
                *(("Substituted", each) for each in changes),
                *(("Note", each) for each in lock.notices),
            ]
        )
        print()
        screen.table(["PACKAGE", "VERSION"], sorted(packages.items()))

    document = {**_document(found), "seconds": known["seconds"], "interpreter": known["interpreter"], "log": told}
    document |= {"packages": packages, "substitutions": changes, "notices": list(lock.notices)}
    screen.answer(document, show)


def build(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="A conda file (.yml), a requirements file (.txt), or the name of a registered or curated environment.",
        ),
    ],
    python: Annotated[
        str | None, typer.Option(metavar="VERSION", help="The Python, in place of the one that WHAT names: 3.8")
    ] = None,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Build an environment on this machine, before a run needs it."""
    from lapis.cli import progress
    from lapis.domain import settings
    from lapis.environments import bytecode
    from lapis.environments.build import build as build_it
    from lapis.environments.environment_builds import EnvironmentBuilds, preface
    from lapis.environments.tidy import tidy_later

    environment = _defined(what, workspace)
    if python is not None:
        environment.python.conda_dependencies.set_python_version(python)
    screen.notice(f"Resolving environment '{environment.name}'")
    resolved = EnvironmentBuilds(_root(), lambda: None).resolve(environment._to_dict(), settings.load().strict)
    screen.notice(preface(environment.name, resolved).rstrip())
    with progress.of_builds() as tell:
        folder = build_it(resolved.lock, None, _root(), tell)
        tell("Compiling bytecode")
        bytecode.compile_now(folder, _root())
        tidy_later(_root())
    screen.answer(
        {"hash": resolved.lock.hash, "folder": folder, "python": resolved.lock.python},
        lambda: print(f"Environment {resolved.lock.hash} is in {folder}"),
    )


def diff(
    one: Annotated[str, typer.Argument(metavar="A", help="An environment's hash, a lock file, or the id of a run.")],
    other: Annotated[str, typer.Argument(metavar="B", help="What it is compared with.")],
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Say what differs between two environments, or between those of two runs."""
    from lapis.environments.differences import differences

    found = differences(_contents(one, workspace), _contents(other, workspace))

    def show() -> None:
        if not found:
            print("They are the same.")
            return
        screen.table(["WHAT", "A", "B"], [(name, before or "-", after or "-") for name, before, after in found])

    rows = [{"name": name, "a": before or None, "b": after or None} for name, before, after in found]
    screen.answer({"differences": rows}, show)


def verify(
    environment: Annotated[
        str, typer.Argument(metavar="[HASH]", help="The hash of an environment, or how it begins; all, if left out.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Read every file of an environment, or of all, and say which are not as they were built."""
    from lapis.environments.build import OURS
    from lapis.environments.cache import built
    from lapis.environments.integrity import changed

    chosen = [_find(environment)] if environment else built(_root(), sizes=False)
    found = {each.hash: changed(each.folder, OURS, thoroughly=True) for each in chosen}

    def show() -> None:
        if not found:
            print(f"No environment is built in {_root()}.")
        for name, files in found.items():
            print(f"{name[:_SHOWN_HASH]} is as it was built." if not files else f"{name[:_SHOWN_HASH]} was changed:")
            for path in files[:_SHOWN_FILES]:
                print(f"  {path}")
            if len(files) > _SHOWN_FILES:
                print(f"  and {len(files) - _SHOWN_FILES} more")

    screen.answer({"environments": found}, show)
    if any(found.values()):
        screen.notice("`lapis env prune --keep 0` removes what nothing runs in; the next run builds it again.")
        raise typer.Exit(1)


def prune(
    keep: Annotated[
        float | None,
        typer.Option(metavar="GB", min=0, help="How much may stay, in GB; LAPIS_ENVIRONMENTS_MAX_GB by default."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Remove the environments that were not used for longest. One in which something runs stays."""
    from lapis.domain import settings
    from lapis.environments.cache import prune as prune_them

    allowed = settings.load().environments_max_gb if keep is None else keep
    done = prune_them(_root(), int(allowed * 1e9), screen.notice)
    count = len(done.removed)
    said = f"{count} {'environment' if count == 1 else 'environments'} removed, {in_words.size(done.freed)} freed"
    screen.answer(
        {"removed": list(done.removed), "freed": done.freed, "kept": done.kept},
        lambda: print(f"{said}, {in_words.size(done.kept)} in use."),
    )


def _root() -> str:
    from lapis.environments.uv import default_root

    return default_root()


def _list_curated() -> None:
    from lapis.environments.curated import curated_names

    names = sorted(curated_names())
    screen.answer({"curated": names}, lambda: print("\n".join(names)))


def _users(each: Built) -> str:
    return ", ".join(f"process {pid}" for pid in each.used_by)


def _document(each: Built) -> dict[str, Any]:
    from lapis.sdk.base.display import when

    return {
        "hash": each.hash,
        "folder": each.folder,
        "python": each.python,
        "packages": each.packages,
        "size": each.size,
        "created_at": when(each.created),
        "last_used_at": when(each.last_used),
        "used_by": list(each.used_by),
    }


def _find(given: str) -> Built:
    from lapis.environments.cache import built
    from lapis.errors import NotFound, UserErrorException

    known = built(_root())
    found = [each for each in known if each.hash.startswith(given)] if given else []
    if len(found) == 1:
        return found[0]
    if found:
        raise UserErrorException(
            f"Several environments begin with '{given}': {', '.join(each.hash for each in found)}."
        )
    names = ", ".join(each.hash[:_SHOWN_HASH] for each in known[:10]) or "none"
    raise NotFound(f"No environment whose hash begins with '{given}' is built in {_root()}. There are: {names}.")


def _defined(what: str, workspace: str | None) -> Environment:
    from lapis.errors import NotFound
    from lapis.sdk.environments.environment import Environment

    name, kind = os.path.splitext(os.path.basename(what))
    if kind not in (".yml", ".yaml", ".txt"):
        return Environment.get(choice.workspace(workspace), what)
    if not os.path.isfile(what):
        raise NotFound(f"There is no file '{what}'.")
    if kind == ".txt":
        return Environment.from_pip_requirements(name, what)
    return Environment.from_conda_specification(name, what)


def _contents(given: str, workspace: str | None) -> Contents:
    """What is in an environment, however it is named."""
    import tempfile

    from lapis.environments.cache import built, lock_of
    from lapis.environments.differences import of_lock, of_text

    if os.path.isfile(given):
        with open(given, encoding="utf-8") as file:
            return of_text(file.read())
    if any(each.hash.startswith(given) for each in built(_root(), sizes=False)):
        return of_lock(lock_of(_find(given).folder))
    run = choice.run(given, workspace)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lock.txt")
        run.download_file("azureml-logs/environment.lock.txt", path)
        with open(path, encoding="utf-8") as file:
            return of_text(file.read())

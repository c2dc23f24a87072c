"""From a lock to a folder with `bin/python`: built once, however many ask, and either whole or not there."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Any

from lapis.environments import bytecode, conda, explain, in_use, integrity, old_builds, own_open_mpi, progress, uv
from lapis.environments.interpreter_of_lock import interpreter_of
from lapis.environments.old_code import shim_files
from lapis.environments.resolve import number_of_packages, packages_in
from lapis.environments.turns import IN_IMAGE, MARKER, ready, turn
from lapis.environments.values import Lock
from lapis.errors import StorageFull, UserErrorException
from lapis.machine import whole_files
from lapis.machine.commands import Canceled, Said, Tell, never
from lapis.machine.interpreters import Interpreter

OURS = frozenset({MARKER, IN_IMAGE, "lock.json", "build.log", "requirements.txt"})  # not the environment itself


def build(lock: Lock, interpreter: Interpreter | None, root: str, tell: Tell, canceled: Canceled = never) -> str:
    """The folder of the environment, built if it is not there yet. Of many who ask at once one builds, the rest wait.

    Without an `interpreter` the machine's own of that version is looked for, if something has to be built. Raises
    UserErrorException, Unavailable, StorageFull or Stopped; nothing half done stays then.
    """
    folder = os.path.join(root, lock.hash)
    if ready(folder):
        return folder
    if interpreter is not None and interpreter.version != lock.python:
        raise UserErrorException(
            f"The environment is locked for Python {lock.python}, and {interpreter.path} is {interpreter.version}. "
            "Resolve it again for a Python of this machine."
        )
    file = turn(root, lock.hash, tell, canceled)
    if file is not None:
        build_in_turn(lock, interpreter, root, tell, canceled, file)
    return folder


def build_in_turn(
    lock: Lock, interpreter: Interpreter | None, root: str, tell: Tell, canceled: Canceled, file: int
) -> None:
    """As `build`, by whoever has the turn: `file`, which is closed."""
    folder = os.path.join(root, lock.hash)
    try:
        _build(lock, interpreter or interpreter_of(lock), root, folder, tell, canceled, file)
        in_use.share(file)
        if not lock.image:
            bytecode.compile_later(folder, root, file)
    finally:
        os.close(file)


def build_and_hold(
    lock: Lock, interpreter: Interpreter | None, root: str, tell: Tell, canceled: Canceled = never
) -> tuple[str, int]:
    """As `build`, and in use until the returned file is closed here and in all that was forked: none removes it."""
    while True:
        folder = build(lock, interpreter, root, tell, canceled)
        file = in_use.hold(root, lock.hash)
        if ready(folder):
            os.utime(os.path.join(folder, MARKER))
            return folder, file
        os.close(file)  # removed in between


def abandon_if_changed(folder: str, file: int) -> bool:
    """Whether somebody changed what was built, and it counts no more: the next who wants it builds it.

    `file` holds it, and is closed. While others hold it too it stays: the last of them does this.
    """
    try:
        if not integrity.changed(folder, OURS) or not in_use.become_alone(file):
            return False
        os.unlink(os.path.join(folder, MARKER))
        return True
    except OSError:
        return False  # removed already
    finally:
        os.close(file)


def about(folder: str) -> dict[str, Any]:
    with open(os.path.join(folder, MARKER), encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def site_packages(folder: str, python: str) -> str:
    return os.path.join(folder, "lib", "python" + ".".join(python.split(".")[:2]), "site-packages")


def _build(
    lock: Lock, interpreter: Interpreter, root: str, folder: str, tell: Tell, canceled: Canceled, file: int
) -> None:
    began = time.monotonic()
    log: list[str] = []

    def say(line: str) -> None:
        log.append(f"{time.monotonic() - began:7.2f} s  {line}\n")
        tell(line)

    shutil.rmtree(folder, ignore_errors=True)  # what a build that was killed has left
    count = packages_in(lock)
    say(f"Building environment {lock.hash}: Python {lock.python}, {count} packages")
    try:
        install_packages(lock, interpreter, root, folder, say, canceled, file)
        if lock.compiled:
            from lapis.environments import horovod

            horovod.install(lock, interpreter, root, folder, say, canceled, file)
        _place_shims(lock, site_packages(folder, lock.python))
        integrity.seal(folder, OURS, same_time=not lock.conda)
        seconds = time.monotonic() - began
        say(f"Environment {lock.hash} is ready after {seconds:.1f} s")
        _write(folder, "lock.json", json.dumps(lock.to_json(), indent=2))
        _write(folder, "build.log", "".join(log))
        marker = {"hash": lock.hash, "python": lock.python, "interpreter": interpreter.path, "packages": count}
        _write(folder, MARKER, json.dumps({**marker, "created": began, "seconds": round(seconds, 3)}))
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(
                f"The disk of {root} is full; what was half done is removed. Free some space, for instance with "
                "`lapis env prune`, and try again."
            ) from error
        raise


def install_packages(
    lock: Lock, interpreter: Interpreter, root: str, folder: str, say: Tell, canceled: Canceled, file: int
) -> None:
    """A virtual environment in `folder` with exactly what the lock names."""

    def checked(said: Said, doing: str) -> None:
        if not said.ok:
            raise explain.error(said.complaints, lock.python, doing, uv.cache_folder(root))

    image = lock.image
    if image:
        _write(folder, IN_IMAGE, image)
        if not number_of_packages(lock.packages):
            return  # the image's own Python, as it is
    if lock.conda:
        conda.create(lock, folder, say, canceled, file)
    else:
        command = ["venv", "--quiet", "--no-project", "--allow-existing", "--python", interpreter.path, folder]
        checked(uv.run(command, root, canceled=canceled, keep_open=[file], image=image), "making the environment")
    if not number_of_packages(lock.packages):
        return
    wanted = os.path.join(folder, "requirements.txt")
    _write(folder, "requirements.txt", lock.packages)
    install = ["install", "--no-deps", "--requirement"] if lock.conda else ["sync"]  # which removes what is not named
    command = ["pip", *install, wanted, "--python", os.path.join(folder, "bin", "python")]
    command += [
        option for option in uv.options(lock.pip_options) if option != "--no-deps"
    ]  # none are looked for anyway
    command += ["--require-hashes"] if _all_hashed(lock.packages) else []

    def sync(more: Sequence[str]) -> Said:
        return uv.run([*command, *more], root, progress.of_uv(say), canceled, [file], variables, image)

    def online() -> None:
        checked(old_builds.tried(sync, folder, lock.python, say), "installing the packages")

    variables: Mapping[str, str] = {}
    if not sync(["--offline"]).ok:  # else the cache had it all: no question to any index
        variables = own_open_mpi.to_build_with(lock, root, say, canceled)
        online()
    spoilt = integrity.not_as_packed(folder)
    if spoilt:
        command += _anew(spoilt, root, say)
        online()


def _anew(spoilt: Mapping[str, str], root: str, say: Tell) -> list[str]:
    """What makes uv fetch these packages again: somebody has changed them in its cache."""
    for name, path in spoilt.items():
        say(f"{name} is fetched again: {path} in the cache of packages is not what the package was packed with")
    again = [word for name in spoilt for word in ("--reinstall-package", name)]
    if os.environ.get("UV_CACHE_DIR"):
        return [*again, "--no-cache"]  # the user's own to clean
    uv.run(["cache", "clean", *spoilt], root)
    return again


def _all_hashed(packages: str) -> bool:
    """Sources of version control and folders have no hash; a commit names the former as exactly."""
    lines = packages.splitlines()
    starts = [at for at, line in enumerate(lines) if line and not line.startswith((" ", "#", "-"))]
    return all(lines[at].rstrip().endswith("\\") or "--hash" in lines[at] for at in starts) and "-e " not in packages


def _place_shims(lock: Lock, site: str) -> None:
    for name, text in shim_files(lock.shims).items():
        _write(site, name, text)


def _write(folder: str, name: str, text: str) -> None:
    """Whole or not at all."""
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    whole_files.write(path, text.encode())

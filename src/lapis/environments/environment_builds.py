"""Where environments are resolved and built: a lock for each definition, a process for each lock not built yet."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from lapis.domain.addresses import Rule, rule_of
from lapis.domain.environment import called_first
from lapis.domain.limits import RESOLVE_SECONDS
from lapis.environments import conda, containers, horovod, package_addresses
from lapis.environments.recipe import recipe
from lapis.environments.resolve import packages_in, resolve
from lapis.environments.turns import ready
from lapis.environments.values import NOBODY, Lock, Recipe, Submitter
from lapis.errors import NotFound, UserErrorException
from lapis.machine.commands import Canceled, Stopped, Tell
from lapis.machine.interpreters import Interpreter, interpreters

_HASH = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Resolved:
    lock: Lock
    said: tuple[str, ...]  # what the resolver told


@dataclass(frozen=True)
class Container:
    wish: containers.ContainerWish
    image: str
    interpreter: Interpreter  # the one inside


class EnvironmentBuilds:
    """Keeps everything in files, so that the next server finds it: locks/ and resolved/ beside the environments."""

    def __init__(self, root: str, when_done: Callable[[], None], seconds: float = RESOLVE_SECONDS) -> None:
        self.root = root
        self._seconds = seconds  # that resolving one environment may take
        self._when_done = when_done
        self._by_hand: set[str] = set()  # asked for by a user, not by a run
        self._builders: dict[str, subprocess.Popen[bytes]] = {}
        self._resolving: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        for folder in (root, os.path.join(root, "locks"), os.path.join(root, "resolved")):
            os.makedirs(folder, exist_ok=True)

    # -- resolved

    def resolve(
        self,
        definition: Mapping[str, Any],
        strict: bool,
        in_container: bool = False,
        mpi: bool = False,
        horovod_in: str = "",
        submitter: Submitter = NOBODY,
        may_name_files: bool = True,
    ) -> Resolved:
        """The lock of a definition. What was resolved once stays so: the same definition, the same packages.

        Where it has packages fetched from is checked first; only who `may_name_files` may name the server's disk.
        """
        deadline = time.monotonic() + self._seconds
        try:
            how = (strict, in_container, mpi, horovod_in, submitter, may_name_files)
            return self._resolved(definition, *how, lambda: time.monotonic() > deadline)
        except Stopped:
            raise UserErrorException(
                f"{called_first(definition.get('name'))} could not be resolved within {self._seconds:g} s: an index or "
                "a package does not answer, or its requirements have too many solutions. Pin more of its versions."
            ) from None

    def _resolved(
        self, definition: Mapping[str, Any], strict: bool, in_container: bool, mpi: bool, horovod_in: str,
        submitter: Submitter, may_name_files: bool, canceled: Canceled,
    ) -> Resolved:  # fmt: skip
        said: list[str] = []
        rule = rule_of(os.environ)
        container, ignored = self._container(definition, in_container, said, rule, may_name_files, canceled)
        machine = interpreters() if container is None else [container.interpreter]
        if container is not None and container.wish.user_managed:
            plan = Recipe(python=container.interpreter.version)
        else:
            tool = conda.command() if container is None and conda.wanted(definition) else None
            pythons = [each.version for each in machine]
            how: dict[str, Any] = {"gpu": has_gpu(), "strict": strict, "mpi": mpi, "horovod_in": horovod_in}
            how["submitter"] = submitter
            plan = conda.plan(definition, **how) if tool else recipe(definition, pythons=pythons, **how)
        channels = package_addresses.of_channels(plan.channels, plan.conda) if plan.conda else []
        named = package_addresses.of_requirements(plan.requirements) + package_addresses.of_options(plan.pip_options)
        package_addresses.check([*named, *channels], rule, may_name_files)
        plan = horovod.with_open_mpi(replace(plan, notices=(*plan.notices, *ignored)))
        image = container.image if container is not None else ""
        key = hashlib.sha256(json.dumps([asdict(plan), image], sort_keys=True).encode()).hexdigest()[:32]
        path = os.path.join(self.root, "resolved", f"{key}.json")
        with _turn(self._resolving[key], canceled):  # twenty runs that ask at once wait for one answer
            known = _read(path)
            if known is not None:
                lock = self.lock(known["lock"])
                _check_lock(lock, rule, may_name_files)
                return Resolved(lock, tuple(known["said"]))
            lock = self._locked(plan, machine, said.append, canceled)
            _check_lock(lock, rule, may_name_files)
            lock = replace(lock, notices=(*lock.notices, *horovod.check(lock)))
            horovod.check_machine(lock, self.root)
            if container is not None:
                inside, options = container.interpreter.path, _options(container.wish)
                lock = replace(lock, image=image, interpreter=inside, container=options)
            _write(self.lock_file(lock.hash), lock.to_json())
            _write(path, {"lock": lock.hash, "said": said})
            return Resolved(lock, tuple(said))

    def _locked(self, plan: Recipe, machine: Sequence[Interpreter], tell: Tell, canceled: Canceled) -> Lock:
        if not plan.conda:
            interpreter = next(each for each in machine if each.version == plan.python)
            return resolve(plan, interpreter, tell, canceled, self.root)
        exact, interpreter = conda.solve(plan, self.root, tell, canceled)
        limits = (*plan.constraints, *conda.python_packages(exact))
        lock = resolve(replace(plan, constraints=limits), interpreter, tell, canceled, self.root)
        return replace(lock, conda=exact, channels=plan.channels)

    def _container(
        self,
        definition: Mapping[str, Any],
        forced: bool,
        said: list[str],
        rule: Rule,
        may_name_files: bool,
        canceled: Canceled,
    ) -> tuple[Container | None, list[str]]:
        """The container to build and run in, if one is asked for and there can be one; and what is ignored."""
        wanted, ignored = containers.wish(definition, forced)
        if wanted is None:
            return None, ignored
        package_addresses.check(package_addresses.of_images(wanted.image, wanted.dockerfile), rule, may_name_files)
        package_addresses.check_container(wanted.arguments, may_name_files)
        runtime = containers.runtime()
        if runtime is not None:
            return Container(wanted, *containers.prepared(runtime, wanted, said.append, canceled)), ignored
        none = "neither Docker nor Podman answers on this machine"
        if forced or wanted.user_managed:
            raise UserErrorException(
                f"{called_first(definition.get('name'))} takes its Python from {wanted.shown}, and {none}. Start one; "
                "or name the packages (conda_specification=..., or python.user_managed_dependencies = False), and they "
                "are installed without a container; or set LAPIS_ENVIRONMENTS=host."
            )
        return None, [f"{wanted.shown} is ignored: {none}. The packages are installed in a virtual environment."]

    def lock(self, lock_hash: str) -> Lock:
        found = _read(self.lock_file(lock_hash))
        if found is None:
            raise NotFound(f"There is no lock '{lock_hash}' here. Submit again: the environment is resolved anew.")
        return Lock.from_json(found)

    def lock_file(self, lock_hash: str) -> str:
        if not _HASH.fullmatch(lock_hash):
            raise NotFound(f"{lock_hash!r} is not the hash of a lock.")
        return os.path.join(self.root, "locks", f"{lock_hash}.json")

    # -- built

    def ready(self, lock_hash: str) -> bool:
        return ready(os.path.join(self.root, lock_hash))

    def start(self, lock_hash: str, by_hand: bool = False) -> None:
        """See to it that somebody builds it. A failure of an earlier time is forgotten."""
        if by_hand:
            self._by_hand.add(lock_hash)
        builder = self._builders.get(lock_hash)
        if self.ready(lock_hash) or (builder is not None and builder.poll() is None):
            return
        _remove(self._failure_file(lock_hash))
        self.lock(lock_hash)  # a lock that is not there is the caller's fault, not the builder's
        with open(self.log_file(lock_hash), "wb") as log:
            builder = subprocess.Popen(
                [sys.executable, "-m", "lapis.environments", self.lock_file(lock_hash), self.root],
                env={name: value for name, value in os.environ.items() if name != "LAPIS_TOKEN"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._builders[lock_hash] = builder
        threading.Thread(target=lambda: (builder.wait(), self._when_done()), daemon=True).start()

    def started(self, lock_hash: str) -> bool:
        return lock_hash in self._builders

    def failure(self, lock_hash: str) -> str | None:
        """Why it could not be built, once that is certain."""
        builder = self._builders.get(lock_hash)
        if builder is None or builder.poll() is None or self.ready(lock_hash):
            return None
        told = _read(self._failure_file(lock_hash))
        if told is not None:
            return str(told["message"])
        return (
            f"The process that built it ended with {builder.returncode}. Its last words: {self._last_words(lock_hash)}"
        )

    def keep_only(self, wanted: Iterable[str]) -> None:
        """End the builders that nobody waits for any more; what they had downloaded stays in uv's cache."""
        for lock_hash in set(self._builders) - set(wanted) - self._by_hand:
            builder = self._builders.pop(lock_hash)
            if builder.poll() is None:
                builder.terminate()

    def log_file(self, lock_hash: str) -> str:
        return os.path.join(self.root, f"{lock_hash}.log")

    def log(self, lock_hash: str, offset: int = 0) -> bytes:
        try:
            with open(self.log_file(lock_hash), "rb") as file:
                file.seek(offset)
                return file.read()
        except FileNotFoundError:
            return b""

    def _last_words(self, lock_hash: str) -> str:
        return self.log(lock_hash)[-500:].decode("utf-8", "replace").strip() or "none"

    def _failure_file(self, lock_hash: str) -> str:
        return os.path.join(self.root, f"{lock_hash}.failed.json")


@contextmanager
def _turn(lock: threading.Lock, canceled: Canceled) -> Iterator[None]:
    while not lock.acquire(timeout=1.0):
        if canceled():
            raise Stopped("Canceled while the same environment was being resolved.")
    try:
        yield
    finally:
        lock.release()


def _check_lock(lock: Lock, rule: Rule, may_name_files: bool) -> None:
    """Before anything of it is installed: a package may want others from addresses that no definition named."""
    package_addresses.check(package_addresses.of_requirements(lock.packages.splitlines()), rule, may_name_files)


def _options(wish: containers.ContainerWish) -> tuple[str, ...]:
    return (*(("--shm-size", wish.shm_size) if wish.shm_size else ()), *wish.arguments)


def preface(name: str | None, resolved: Resolved) -> str:
    """How the build log of a run begins: what was asked for, what it became, and why."""
    lock = resolved.lock
    count = packages_in(lock)
    lines = [f"{called_first(name)}: Python {lock.python}, {count} packages, lock {lock.hash}", *resolved.said]
    lines += [f"Substituted: {each}" for each in lock.substitutions]
    lines += [f"Note: {each}" for each in lock.notices]
    return "".join(f"{line}\n" for line in lines)


def has_gpu() -> bool:
    return shutil.which("nvidia-smi") is not None


def _read(path: str) -> dict[str, Any] | None:
    try:
        with open(path) as file:
            found: dict[str, Any] = json.load(file)
            return found
    except FileNotFoundError:
        return None


def _write(path: str, value: object) -> None:
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
    with open(temporary, "w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())  # a run names it, and it is never made again
    os.replace(temporary, path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass

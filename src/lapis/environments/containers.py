"""Containers: which runtime is there, what an image holds, and how a command runs inside one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lapis.errors import UserErrorException
from lapis.machine import commands
from lapis.machine.commands import Canceled, Tell, never
from lapis.machine.interpreters import Interpreter

_AZURES_OWN = "mcr.microsoft.com/azureml/"  # base images that add nothing to a virtual environment but their size
_ANSWER_WITHIN = 10.0
_ASK_AGAIN_AFTER = 30.0
_QUESTION = "import sys; print(sys.executable, '.'.join(map(str, sys.version_info[:3])))"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_runtime: tuple[float, str | None] = (0.0, None)


@dataclass(frozen=True)
class ContainerWish:
    """The container that a definition asks for."""

    image: str | None
    dockerfile: str | None
    user_managed: bool  # the image's own Python, nothing installed
    python: str  # how the image's interpreter is called
    arguments: tuple[str, ...] = ()
    shm_size: str | None = None

    @property
    def shown(self) -> str:
        return f"image '{self.image}'" if self.image else "its Dockerfile"


def wish(definition: Mapping[str, Any], forced: bool) -> tuple[ContainerWish | None, list[str]]:
    """What a definition asks for, and what is ignored of it. Azure's own base images are needed only if `forced`."""
    docker, python = definition.get("docker") or {}, definition.get("python") or {}
    image, dockerfile = docker.get("baseImage"), docker.get("baseDockerfile")
    managed = bool(python.get("userManagedDependencies"))
    found = ContainerWish(
        image,
        dockerfile,
        managed,
        str(python.get("interpreterPath") or "python"),
        tuple(docker.get("arguments") or ()),
        docker.get("shmSize"),
    )
    named = bool(dockerfile) or bool(image and not image.startswith(_AZURES_OWN))
    if forced or named:
        return found, []
    if docker.get("enabled"):
        return None, ["docker.enabled: the packages are installed in a virtual environment; no container is needed."]
    return None, []


def runtime() -> str | None:
    """Docker or Podman, if one is installed and answers."""
    global _runtime
    asked, found = _runtime
    if time.monotonic() - asked < _ASK_AGAIN_AFTER and asked:
        return found
    for name in ("docker", "podman"):
        path = shutil.which(name)
        if path is not None and _said(path, "version", "--format", "{{.Server.Version}}") is not None:
            _runtime = (time.monotonic(), path)
            return path
    _runtime = (time.monotonic(), None)
    return None


def prepared(
    runtime_path: str, wanted: ContainerWish, tell: Tell, canceled: Canceled = never
) -> tuple[str, Interpreter]:
    """The image's id, pulled or built if it is not there, and the Python inside."""
    name = wanted.image or ""
    if wanted.dockerfile:
        name = _built(runtime_path, wanted.dockerfile, tell, canceled)
    found = _image_id(runtime_path, name)
    if found is None:
        tell(f"Pulling image {name}")
        said = commands.run([runtime_path, "pull", name], dict(os.environ), "/", tell, canceled)
        found = _image_id(runtime_path, name) if said.ok else None
        if found is None:
            raise UserErrorException(
                f"The image '{name}' is not on this machine and could not be pulled: {said.complaints.strip()[-500:]} "
                "Pull or build it yourself under that name, or leave the image out: the packages are then installed "
                "in a virtual environment."
            )
    return found, _python_inside(runtime_path, name, found, wanted.python)


def inside(
    runtime_path: str,
    image: str,
    argv: Sequence[str],
    variables: Sequence[str],
    folders: Sequence[str],
    cwd: str,
    name: str = "",
    more: Sequence[str] = (),
    read_only: Sequence[str] = (),
) -> list[str]:
    """The command that runs `argv` in a container: as this user, on this network, with these folders where they are.

    Folders and files that are not there are left out, and of one that is named twice the right to write counts.

    `variables` are names, or NAME=value. Those without a value must be in the environment of whoever runs it: what
    they hold does not stand on the command line.
    """
    command = [runtime_path, "run", "--rm", "--init", "--network=host", "--user", f"{os.getuid()}:{os.getgid()}"]
    command += ["--name", name] if name else []
    command += ["--gpus", "all"] if shutil.which("nvidia-smi") and runtime_path.endswith("docker") else []
    shown = {**dict.fromkeys(read_only, ":ro"), **dict.fromkeys(folders, "")}
    for folder in sorted(filter(os.path.exists, shown)):  # what holds another comes before it
        command += ["--volume", f"{folder}:{folder}{shown[folder]}"]
    for variable in variables:
        command += ["--env", variable]
    return [*command, "--workdir", cwd, *more, "--entrypoint", argv[0], image, *argv[1:]]


def path_with(folder: str) -> str:
    return f"{folder}/bin:{_PATH}"


def remove(runtime_path: str, name: str) -> None:
    """End a container, however it lives; one that is gone is not an error."""
    _said(runtime_path, "rm", "--force", name)


def _built(runtime_path: str, dockerfile: str, tell: Tell, canceled: Canceled) -> str:
    name = "lapis/" + hashlib.sha256(dockerfile.encode()).hexdigest()[:24]
    if _image_id(runtime_path, name) is not None:
        return name
    import tempfile

    tell("Building the image of its Dockerfile")
    with tempfile.TemporaryDirectory(prefix="lapis-image-") as folder:
        with open(os.path.join(folder, "Dockerfile"), "w") as file:
            file.write(dockerfile)
        environment = {**os.environ, "DOCKER_BUILDKIT": "0"} if runtime_path.endswith("docker") else dict(os.environ)
        argv = [runtime_path, "build", "--network=host", "--tag", name, folder]
        said = commands.run(argv, environment, folder, tell, canceled)
    if not said.ok:
        last = (said.complaints.strip() or said.output.strip())[-1000:]
        raise UserErrorException(f"The Dockerfile of the environment could not be built: {last}")
    return name


def _python_inside(runtime_path: str, name: str, image: str, wanted: str) -> Interpreter:
    for python in dict.fromkeys((wanted, "python3", "python")):
        said = _said(runtime_path, "run", "--rm", "--network=none", "--entrypoint", python, image, "-c", _QUESTION)
        if said is not None and len(said.split()) == 2:
            path, version = said.split()
            return Interpreter(path, version, "image")
    raise UserErrorException(
        f"The image '{name}' has no Python that runs as '{wanted}'. Set environment.python.interpreter_path to the one "
        "that it has, or choose another image."
    )


def _image_id(runtime_path: str, name: str) -> str | None:
    said = _said(runtime_path, "image", "inspect", name)
    if said is None:
        return None
    return str(json.loads(said)[0]["Id"]).removeprefix("sha256:")


def _said(*argv: str) -> str | None:
    """What a quick command printed; None if it failed."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=_ANSWER_WITHIN * 3, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None

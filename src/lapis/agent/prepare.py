"""Gets everything ready for the script: its code, its command line, its environment variables."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence

from lapis.agent.blobs import Blobs
from lapis.client.http_client import Client
from lapis.client.snapshot import lay_out
from lapis.domain.job import InputName, Word
from lapis.domain.launch import Launch, Place, Work
from lapis.errors import SnapshotException, UserErrorException
from lapis.machine import own_sources


def code_folder(folder: str) -> str:
    """The script's working folder in a run's folder. A folder further down, so that a script may remove it."""
    return os.path.join(folder, "own", "code")


def lay_out_code(launch: Launch, code: str, client: Client, place: Place) -> None:
    """The snapshot's copy, every file checked against its hash. May be repeated after a crash half way.

    `outputs` and `logs` are the head's on every node: scripts wait for each other through them. A node that has no
    file system in common with the head has its own, which nobody collects.
    """
    shutil.rmtree(code, ignore_errors=True)
    os.makedirs(code)
    snapshot = f"/workspaces/{launch.workspace.id}/snapshots/{launch.code.id}"
    with Blobs(client, snapshot, launch.blobs, launch.packs) as blobs:
        try:
            lay_out(launch.code, blobs.open, code)
        except SnapshotException:
            lay_out(
                launch.code, blobs.fetch, code
            )  # what is damaged in the folder, the server finds too, and says which
    head = code_folder(place.head) if place.index and place.head else code
    for folder in ("outputs", "logs"):  # scripts write there without making them
        if head == code:
            os.makedirs(os.path.join(code, folder), exist_ok=True)
        else:
            _share(os.path.join(head, folder), os.path.join(code, folder))


def _share(theirs: str, ours: str) -> None:
    """Let a folder here be the head's, which may be about to be made."""
    if os.path.isdir(ours) and not os.path.islink(ours):
        shutil.rmtree(ours)  # came with the snapshot: the head has the same
    os.symlink(theirs, ours)


def command(work: Work, code: str, folder: str, variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    job = work.job
    python = job.python or sys.executable
    environment = {**surroundings(work, code, folder, python), **variables}
    if job.command is not None:
        shell = "/bin/sh" if work.container else shutil.which("bash") or "/bin/sh"
        return [shell, "-c", _line(job.command, environment)], environment
    if job.script is None:
        raise UserErrorException("The run has neither a script nor a command.")
    here = (os.path.isfile(python) and os.access(python, os.X_OK)) or shutil.which(python)
    if not here and not work.container:
        raise UserErrorException(f"The interpreter {python} is not on this machine.")
    arguments = [_word(argument, environment) for argument in job.arguments]
    script = expand(job.script, environment)
    run_by = ["-m", "lapis.sdk.runs.notebook_script"] if script.endswith(".ipynb") else []
    return [python, *run_by, script, *arguments], environment


def _line(given: str | Sequence[Word], environment: Mapping[str, str]) -> str:
    """For the shell. A list is joined with spaces, as SDK v1 did: only the paths of inputs are kept in one piece."""
    if isinstance(given, str):
        return given
    return " ".join(part if isinstance(part, str) else shlex.quote(_word(part, environment)) for part in given)


def _word(part: Word, environment: Mapping[str, str]) -> str:
    """An argument as the script gets it; one that names an input becomes the input's path."""
    if isinstance(part, InputName):
        if part.input not in environment:
            raise UserErrorException(f"An argument stands for '{part.input}', and the run has no such input or output.")
        return environment[part.input]
    return expand(part, environment)


_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def expand(text: str, environment: Mapping[str, str]) -> str:
    """`$NAME` and `${NAME}` of the job's variables; a name that is none of them stays as it is."""
    return _VARIABLE.sub(lambda found: environment.get(found[1] or found[2], found[0]), text)


def write_notices(notices: Sequence[str], log: str) -> None:
    """What the user should know before the script's first line."""
    if notices:
        with open(log, "a") as file:
            file.writelines(f"Lapis: {notice}\n" for notice in notices)


def surroundings(work: Work, code: str, folder: str, python: str) -> dict[str, str]:
    """The variables that a script finds."""
    job, launch = work.job, work.launch
    workspace, experiment = launch.workspace, launch.experiment
    ours = {
        "AZUREML_RUN_ID": launch.run_id,
        "AZUREML_ROOT_RUN_ID": launch.root_id or launch.run_id,
        "AZUREML_ARM_SUBSCRIPTION": workspace.subscription_id,
        "AZUREML_ARM_RESOURCEGROUP": workspace.resource_group,
        "AZUREML_ARM_WORKSPACE_NAME": workspace.name,
        "AZUREML_ARM_PROJECT_NAME": experiment.name,
        "AZUREML_EXPERIMENT_ID": experiment.id,
        "AZUREML_WORKSPACE_ID": workspace.id,
        "AZUREML_RUN_TOKEN": launch.run_token,
        "AZUREML_RUN_TOKEN_EXPIRY": str(int(launch.run_token_expires)),
        "AZUREML_RUN_TOKEN_RAND": "",
        "AZUREML_RUN_TOKEN_PASS": "",
        "AZUREML_SERVICE_ENDPOINT": launch.server,
        "AZUREML_DISCOVERY_SERVICE_ENDPOINT": launch.server + "/discovery",
        "AZUREML_FRAMEWORK": job.framework or "Python",
        "AZUREML_COMMUNICATOR": job.communicator or "None",
        "AZUREML_TARGET_TYPE": "local",
        "AZUREML_OUTPUT_DIRECTORY": os.path.join(code, "outputs"),
        "AZUREML_LOGDIRECTORY_PATH": os.path.join(code, "logs"),
        "AZUREML_NODE_COUNT": "1",
        "AZUREML_PROCESS_NAME": "main",
        "AZUREML_SCRIPT_DIRECTORY_NAME": code,
        "LAPIS_RUN_FOLDER": folder,
        "LAPIS_ADDRESS_FILE": launch.address_file or "",
        "PYTHONUNBUFFERED": "1",
    }
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "LAPIS_TOKEN")}
    environment.update(job.environment_variables)
    environment.update(ours)
    paths = [code, light_packages(folder), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    if os.path.dirname(python):  # so that `python` in a command is the same interpreter
        environment["PATH"] = os.pathsep.join([os.path.dirname(python), environment.get("PATH", os.defpath)])
    return environment


def share_of_node(surroundings: dict[str, str], place: Place) -> None:
    """Only the GPUs that are this node's are seen, and of the network only its device."""
    if place.network:
        surroundings.update(GLOO_SOCKET_IFNAME="eth0", NCCL_SOCKET_IFNAME="eth0", LAPIS_ADDRESS_FILE="")
    if place.gpus is not None:
        surroundings.setdefault("CUDA_VISIBLE_DEVICES", ",".join(map(str, place.gpus)))


def light_packages(folder: str) -> str:
    """A folder with `azureml` and `lapis` alone, so that no other package of ours enters the script's interpreter."""
    return own_sources.link_into(os.path.join(folder, "packages"))

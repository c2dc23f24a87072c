"""From a configuration to a run on the server: checked whole before anything is sent."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Iterator, NamedTuple
from uuid import uuid4

from lapis.domain import frames
from lapis.domain import settings as settings_module
from lapis.domain.run import SCRIPT_RUN, check_labels, check_run_id, check_text
from lapis.domain.tree import Tree, check_path
from lapis.errors import (
    ComputeTargetException,
    ExperimentExecutionException,
    NotThereYet,
    SnapshotException,
    UserErrorException,
)
from lapis.sdk import display, run_data, snapshot
from lapis.sdk.config_data import named_in
from lapis.sdk.script_run_config import ScriptRunConfig, get_run_config_from_script_run
from lapis.sdk.shipping import read_chunks

if TYPE_CHECKING:
    from lapis.sdk.experiment import Experiment
    from lapis.sdk.run_family import RunFamily
    from lapis.sdk.runconfig import RunConfiguration
    from lapis.sdk.workspace import Workspace

_PACK_BYTES = 2 << 20
_KNOWN = {"run_id", "display_name", "description", "properties"}
_PLAIN = (str, int, float, bool)


def submit(experiment: Experiment, config: Any, tags: Any, parent: RunFamily | None, more: dict[str, Any]) -> Any:
    from lapis.sdk.run import rehydrate

    if not isinstance(config, ScriptRunConfig):
        raise _cannot_submit(config)
    unknown = sorted(set(more) - _KNOWN)
    if unknown:
        raise UserErrorException(
            f"submit() of a script does not know {', '.join(unknown)}. Known: tags, {', '.join(sorted(_KNOWN))}."
        )
    checked_tags = check_labels("tags", tags or {})
    properties = check_labels("properties", more.get("properties") or {})
    display_name = check_text("display_name", more.get("display_name"))
    description = check_text("description", more.get("description"))
    run_config = get_run_config_from_script_run(config)
    folder = _checked_folder(config.source_directory)
    job, warnings = _checked_job(run_config, folder)
    given = [*(run_config.arguments or []), *(run_config.command if isinstance(run_config.command, list) else [])]
    run_id = check_run_id(more.get("run_id") or _new_id(experiment.name))
    given += named_in(run_config, experiment.workspace)
    data = run_data.collect(given, run_config.data_references, experiment.workspace, run_id)
    for part in ("arguments", "command"):
        if isinstance(job[part], list):
            job[part] = run_data.with_names(job[part], data)
    job.update(inputs=data.inputs, outputs=data.outputs, url_mirrors=run_data.checked_mirrors())
    target = _checked_target(run_config.target)
    snapshot_id, said = send_snapshot(experiment.workspace, folder)
    body = {
        "experiment": experiment.name,
        "run_id": run_id,
        "nonce": uuid4().hex,
        "type": SCRIPT_RUN,
        "parent_id": parent._run_id if parent is not None else None,
        "display_name": display_name,
        "description": description,
        "tags": checked_tags,
        "properties": {
            "_azureml.ComputeTargetType": target,
            "ContentSnapshotId": snapshot_id,
            **_git_facts(folder),
            **properties,
        },
        "definition": _definition(run_config, target),
        "snapshot_id": snapshot_id,
        "target": target,
        "job": job,
        "uses": data.uses,
        "warnings": warnings,
        "accepted": f"Accepted with a snapshot of {said}",
        "created_by": _user_name(),
    }
    workspace = experiment.workspace
    view = workspace._client.call("POST", workspace._base + "/runs", {"runs": [body]})["runs"][0]
    return rehydrate(experiment, view)


class Sent(NamedTuple):
    id: str
    said: str  # what went, and what was left out without being asked to


def send_snapshot(workspace: Workspace, path: str) -> Sent:
    """Store a folder's content; only what the server lacks is sent."""
    folder = os.path.abspath(path)
    if os.path.isfile(folder):
        plan = snapshot.scan(os.path.dirname(folder))
        only = [file for file in plan.files if file.path == os.path.basename(folder)]
        plan = snapshot.Plan(plan.folder, only, [])
    elif os.path.isdir(folder):
        plan = snapshot.scan(folder)
    else:
        raise SnapshotException(f"There is no file or folder {folder} to take a snapshot of.")
    said = snapshot.warning_for(plan)
    if said:
        print(f"Lapis: {said}", file=sys.stderr)
    cache = os.path.join(settings_module.load().home, "cache", "hashes")
    tree = snapshot.hash_plan(plan, _cache_file(folder, cache))
    sources = {entry.hash: file.source for entry, file in zip(tree, plan.files)}
    return Sent(_send_tree(workspace, tree, sources), _summary(plan))


def _summary(plan: snapshot.Plan) -> str:
    what = f"{len(plan.files)} file{'' if len(plan.files) == 1 else 's'}, {display.size(plan.total_size)}"
    unasked = [path for path, reason in plan.skipped if "by default" in reason or reason.startswith("link")]
    if not unasked:
        return what
    more = f" and {len(unasked) - 8} more" if len(unasked) > 8 else ""
    return f"{what}; left out by default: {', '.join(unasked[:8])}{more}"


def _send_tree(workspace: Workspace, tree: Tree, sources: dict[str, str]) -> str:
    path, body = workspace._base + "/snapshots", {"files": tree.to_json()}
    reply = workspace._client.call("POST", path, body)
    if reply["missing"]:
        sizes = {entry.hash: entry.size for entry in tree}
        _send_blobs(workspace, [(digest, sources[digest], sizes[digest]) for digest in reply["missing"]])
        reply = workspace._client.call("POST", path, body)
        if reply["missing"]:
            raise SnapshotException(f"{len(reply['missing'])} files did not arrive. Submit again.")
    return str(reply["id"])


def _send_blobs(workspace: Workspace, blobs: list[tuple[str, str, int]]) -> None:
    """Small ones packed together, large ones streamed, with progress where a person would wonder.

    Two packs are under way at a time, so that one is read here while the server writes the other.
    """
    from concurrent.futures import ThreadPoolExecutor

    progress = show_progress("Sending the snapshot", sum(size for _, _, size in blobs))
    small = [blob for blob in blobs if blob[2] <= _PACK_BYTES]
    with ThreadPoolExecutor(2) as threads:
        for sent in threads.map(lambda pack: _send_pack(workspace, pack), _packs(small)):
            progress.add(sent)
    for digest, source, size in blobs:
        if size > _PACK_BYTES:
            workspace._client.upload(
                f"/blobs/{digest}",
                lambda source=source, size=size: _counted(read_chunks(source, size), progress),  # type: ignore[misc]
                size,
            )
    progress.end()


def _packs(blobs: list[tuple[str, str, int]]) -> list[list[tuple[str, str]]]:
    """Hash and path of what travels together."""
    packs: list[list[tuple[str, str]]] = [[]]
    held = 0
    for digest, source, size in blobs:
        if held + size > _PACK_BYTES and packs[-1]:
            packs.append([])
            held = 0
        packs[-1].append((digest, source))
        held += size
    return packs if packs[-1] else []


def _send_pack(workspace: Workspace, pack: list[tuple[str, str]]) -> int:
    """How many bytes that were."""
    contents = []
    for _, source in pack:
        with open(source, "rb", buffering=0) as file:
            contents.append(file.readall())
    body = frames.encode({"hashes": [digest for digest, _ in pack]}, contents)
    workspace._client.call("POST", "/blobs", data=body)
    return sum(map(len, contents))


def _counted(chunks: Iterator[bytes], progress: Any) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        progress.add(len(chunk))


class _Progress:
    """A bar in a terminal, a line now and then elsewhere; nothing for what takes no time."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done, self._told = what, total, 0, 0.0
        self._shown = False
        self._noisy = total > 32 << 20

    def add(self, size: int) -> None:
        self._done += size
        if not self._noisy:
            return
        part = min(1.0, self._done / max(1, self._total))
        if part < min(1.0, self._told + (0.01 if sys.stderr.isatty() else 0.1)):
            return
        self._told = part
        text = f"{self._what}: {self._done / 1e6:.0f} of {self._total / 1e6:.0f} MB ({part:.0%})"
        if sys.stderr.isatty():
            bar = "#" * int(part * 30)
            sys.stderr.write(f"\r[{bar:<30}] {text}")
        else:
            sys.stderr.write(f"Lapis: {text}\n")
        sys.stderr.flush()
        self._shown = True

    def end(self) -> None:
        if self._shown and sys.stderr.isatty():
            sys.stderr.write("\n")


show_progress: Callable[[str, int], Any] = _Progress  # the command line puts a bar of its own here


def _cannot_submit(config: Any) -> Exception:
    known = {"Estimator", "TensorFlow", "Keras", "PyTorch", "SKLearn", "HyperDriveConfig", "Pipeline", "AutoMLConfig"}
    if type(config).__name__ in known:
        return NotThereYet(f"Experiment.submit({type(config).__name__})")
    return UserErrorException(f"submit() takes a ScriptRunConfig, not {type(config).__name__} ({config!r}).")


def _checked_folder(source_directory: str) -> str:
    folder = os.path.abspath(source_directory)
    if not os.path.isdir(folder):
        raise UserErrorException(f"source_directory {folder} is not a folder. Nothing was submitted.")
    return folder


def _checked_job(run_config: RunConfiguration, folder: str) -> tuple[dict[str, Any], list[str]]:
    script, command = run_config.script, run_config.command
    if command:
        script = None
        command = command if isinstance(command, str) else [_argument("command", part) for part in command]
    elif script:
        script = _checked_script(script, folder)
    else:
        raise UserErrorException("There is nothing to run: give ScriptRunConfig a script or a command.")
    if int(run_config.node_count or 1) > 1 or (run_config.communicator or "None") not in ("None", "none"):
        raise NotThereYet(
            f"Distributed training (communicator '{run_config.communicator}' on {run_config.node_count} nodes) is not "
            "there yet in this release of Lapis."
        )
    environment = run_config.environment
    if not hasattr(environment, "python"):
        raise NotThereYet(
            f"Environment '{environment.name}' is named by reference, and registered environments are not there yet in "
            "this release of Lapis."
        )
    python, notices = _interpreter(run_config)
    return {
        "script": script,
        "command": command,
        "arguments": [_argument("arguments", each) for each in run_config.arguments or []],
        "python": python,
        "environment_variables": _variables(environment.environment_variables or {}),
        "max_seconds": run_config.max_run_duration_seconds,
        "framework": run_config.framework,
        "communicator": run_config.communicator,
        "node_count": run_config.node_count or 1,
        "watch": [_watched(folder) for folder in run_config.history.directories_to_watch or []],
        "collect_outputs": bool(run_config.history.output_collection),
        "notices": notices,
    }, notices


def _checked_script(script: str, folder: str) -> str:
    path = os.path.abspath(os.path.join(folder, script))
    if not path.startswith(folder.rstrip(os.sep) + os.sep):
        raise UserErrorException(
            f"Script {script!r} lies outside source_directory {folder}. Only what is in that folder goes with the run."
        )
    if not os.path.isfile(path):
        near = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
        raise UserErrorException(
            f"There is no script {script!r} in {folder}. Python files there: {', '.join(near[:10]) or 'none'}."
        )
    return check_path(os.path.relpath(path, folder).replace(os.sep, "/"))


def _watched(folder: Any) -> str:
    """A folder below the working folder whose files are streamed while they grow."""
    if not isinstance(folder, str):
        raise UserErrorException(f"history.directories_to_watch holds names of folders, not {folder!r}.")
    return check_path(folder[2:] if folder.startswith("./") else folder)


def _variables(given: Any) -> dict[str, str]:
    checked = {}
    for name, value in dict(given).items():
        text = "" if value is None else str(value)
        if not isinstance(name, str) or not name or "=" in name or "\0" in name + text:
            raise UserErrorException(
                f"Environment variable {name!r} cannot be set: a name is text without '=', and neither name nor value "
                "holds a null character."
            )
        checked[name] = text
    return checked


def _argument(where: str, value: Any) -> Any:
    if run_data.is_data(value):
        return run_data.as_argument(value)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, _PLAIN):
        if "\0" in str(value):
            raise ExperimentExecutionException(f"{where} cannot hold a null character ({value!r}).")
        return str(value)
    if hasattr(value, "item") and callable(value.item):  # a number of numpy's
        return str(value.item())
    raise ExperimentExecutionException(f"{where} can hold text and numbers, not {type(value).__name__} ({value!r}).")


def _checked_target(target: Any) -> str:
    name = getattr(target, "name", target)
    if name in (None, "", "local"):
        return "local"
    raise ComputeTargetException(f"No compute target named '{name}' in this workspace. Known: local.")


def _interpreter(run_config: RunConfiguration) -> tuple[str, list[str]]:
    """Which Python runs the script, and what the user should know about the choice."""
    environment = run_config.environment
    section = environment.python
    if section.user_managed_dependencies:
        chosen = section.interpreter_path
        return (sys.executable if chosen in (None, "", "python") else str(chosen)), []
    asked = _asked_for(environment)
    if not asked:
        return sys.executable, []
    if settings_module.load().environments == "host":
        return sys.executable, [
            f"LAPIS_ENVIRONMENTS=host: environment '{environment.name}' is not built; the script runs in "
            f"{sys.executable}."
        ]
    raise NotThereYet(
        f"Building environments is not there yet in this release of Lapis, and environment '{environment.name}' asks "
        f"for {', '.join(asked[:5])}{' and more' if len(asked) > 5 else ''}.",
        "Set environment.python.user_managed_dependencies = True, or LAPIS_ENVIRONMENTS=host, to run in this "
        "interpreter.",
    )


def _asked_for(environment: Any) -> list[str]:
    """Packages beyond what every environment has."""
    dependencies = environment.python.conda_dependencies
    asked = [str(package) for package in dependencies.conda_packages if not str(package).startswith("python")]
    asked += [str(package) for package in dependencies.pip_packages if not str(package).startswith("azureml-")]
    docker = environment.docker
    if docker.base_dockerfile or getattr(docker, "enabled", False):
        asked.append("a Docker image")
    return asked


def _definition(run_config: RunConfiguration, target: str) -> dict[str, Any]:
    from lapis.sdk.runconfig import to_run_definition

    return dict(_without_secrets(to_run_definition(run_config)), target=target)


_SECRETS = {"password", "sasToken", "accountKey", "authToken", "githubToken"}


def _without_secrets(value: Any) -> Any:
    """What a run shows of itself never holds a credential."""
    if isinstance(value, dict):
        return {k: "********" if k in _SECRETS and v else _without_secrets(v) for k, v in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value


def _git_facts(folder: str) -> dict[str, str]:
    from lapis.sdk.git import facts

    return facts(folder)


def _cache_file(folder: str, cache: str) -> str | None:
    try:
        os.makedirs(cache, exist_ok=True)
    except OSError:
        return None  # it only saves time
    return snapshot.cache_path_for(folder, cache)


def _new_id(experiment: str) -> str:
    import time

    return f"{experiment[:200]}_{int(time.time())}_{uuid4().hex[:8]}"


def _user_name() -> str:
    from lapis.sdk.interactive import user_name

    return user_name()

"""The front of a service, as its agent starts and follows it: models laid out, service.json written, news passed on.

Below the run's folder, as a scoring script finds them in Azure:

    app/                         the working folder
      azureml-models/NAME/VERSION/...
      <name of the source folder>/score.py, or score.py itself where it came alone
    front/                       service.json, state.json: what the front is told, and what it tells
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from typing import Any

from lapis.agent import prepare, reach
from lapis.agent.blobs import Blobs
from lapis.agent.crew import Canceled, Member
from lapis.client.http_client import Client
from lapis.domain import settings
from lapis.domain.job import ServedModel, ServicePart
from lapis.domain.launch import Place, Work
from lapis.domain.log_names import STD_LOG
from lapis.domain.tree import resolve_under
from lapis.environments.build import build_and_hold
from lapis.environments.values import Lock
from lapis.errors import UserErrorException
from lapis.machine import apart, json_files, own_sources
from lapis.machine.commands import Stopped

_MODELS = "azureml-models"
# What makes a run of a process: a scoring script is none, so that Run.get_context() does not take it for one.
_OF_RUNS = ("AZUREML_RUN_", "AZUREML_ROOT_RUN_ID", "AZUREML_EXPERIMENT_ID", "AZUREML_ARM_PROJECT_NAME",
            "AZUREML_OUTPUT_DIRECTORY", "AZUREML_LOGDIRECTORY_PATH", "LAPIS_RUN_FOLDER",
            "LAPIS_ADDRESS_FILE")  # fmt: skip

_NOT_OURS = ("PYTHONHOME", "LAPIS_TOKEN")


class FrontProcess:
    def __init__(self, work: Work, part: ServicePart, folder: str) -> None:
        self._work = work
        self._part = part
        self._folder = folder
        self._app = os.path.join(folder, "app")
        self._front = os.path.join(folder, "front")
        self._description = os.path.join(self._front, "service.json")
        self._state = os.path.join(self._front, "state.json")
        self._seen = 0
        self._python = work.job.python or sys.executable
        self._ready: Any = None
        self._held: Any = None

    # -- started

    def member(
        self, work: Work, code: str, log: str, client: Client, place: Place, canceled: Callable[[], bool]
    ) -> Member:
        """Everything laid out; the one process to start. `work` is what it became with its environment."""
        self._work, self._python = work, work.job.python or sys.executable
        if work.container:
            raise UserErrorException("A service runs without a container: name its packages, they are installed.")
        os.makedirs(self._front, exist_ok=True)
        self._lay_out_app(code)
        self._lay_out_models(client)
        variables = self._variables(code)
        load = self._load(log, variables, canceled)
        description = self._describe(place, variables, load)
        json_files.write(self._description, description)
        argv = [self._front_python(log, canceled), "-m", "lapis.serving", self._description]
        own = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
        own.update(LAPIS_MEMBER=self._member, PYTHONPATH=own_sources.folder())
        reserved = [os.path.dirname(description["listen"]["handover"])]
        starts = [self._python]  # of a model that was converted, in another environment than the service's
        return Member("", self._folder, log, STD_LOG, argv, own, self._app, reserved=reserved, starts=starts)

    def _front_python(self, log: str, canceled: Callable[[], bool]) -> str:
        """Ours; where Lapis is not installed, that of an environment made for the front."""
        front, root = self._work.launch.front, self._work.launch.environments
        if front is None or front.lock is None or root is None:
            return sys.executable
        lock = Lock.from_json(front.lock)
        try:
            folder, self._held = build_and_hold(lock, None, root, lambda line: _say(log, line), canceled)
        except Stopped:
            raise Canceled("while the environment of its front was being built") from None
        return os.path.join(folder, "bin", "python")

    @property
    def _member(self) -> str:
        return self._work.launch.run_id

    def _lay_out_app(self, code: str) -> None:
        shutil.rmtree(self._app, ignore_errors=True)
        os.makedirs(self._app)
        if self._part.folder:
            os.symlink(code, os.path.join(self._app, self._part.folder))
            return
        for name in os.listdir(code):
            if name not in ("outputs", "logs"):
                os.symlink(os.path.join(code, name), os.path.join(self._app, name))

    def _lay_out_models(self, client: Client) -> None:
        """Copies of their own, checked: whoever writes to one, or swaps it, changes no stored model."""
        launch = self._work.launch
        for model in self._part.models:
            address = f"/workspaces/{launch.workspace.id}/models/{model.name}/{model.version}"
            with Blobs(client, address, launch.blobs, launch.packs) as blobs:
                for file in model.files:
                    target = resolve_under(self._model_folder(model), file.path)
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    blobs.copy(file.hash, target)
                    os.chmod(target, 0o444)  # replicas share it

    def _model_folder(self, model: ServedModel) -> str:
        return os.path.join(self._app, _MODELS, model.name, str(model.version))

    def _variables(self, code: str) -> dict[str, str]:
        """What a scoring script finds, as Azure sets it."""
        found = prepare.surroundings(self._work, code, self._folder, self._python)
        found = {name: value for name, value in found.items() if not name.startswith(_OF_RUNS)}
        if reach.level().kind != apart.SHARED:
            found.update(reach.own_variables(self._folder))
        models, folder = self._part.models, self._part.folder
        if models:
            root = os.path.join(self._app, _MODELS)
            found["AZUREML_MODEL_DIR"] = self._model_folder(models[0]) if len(models) == 1 else root
        source = os.path.join(self._app, folder) if folder else self._app
        found.update(
            {
                "AML_APP_ROOT": self._app,
                "AZUREML_SOURCE_DIRECTORY": folder or "",
                "AZUREML_ENTRY_SCRIPT": os.path.join(folder or "", self._part.entry_script or ""),
                "SERVICE_NAME": self._part.name,
                "WORKSPACE_NAME": self._work.launch.workspace.name,
                "LAPIS_MEMBER": self._member,
                "PYTHONPATH": os.pathsep.join(
                    filter(None, [self._app, source, prepare.light_packages(self._folder), self._given_path()])
                ),
            }
        )
        return found

    def _given_path(self) -> str:
        return self._work.job.environment_variables.get("PYTHONPATH", "")

    def _load(self, log: str, variables: dict[str, str], canceled: Callable[[], bool]) -> dict[str, Any]:
        """What the workers load. A model that is served without code may become another one first."""
        plan, launch = self._part.no_code, self._work.launch
        if plan is None:
            return {"script": os.path.join(self._app, self._part.folder or "", self._part.entry_script or "")}
        model = os.path.join(self._model_folder(self._part.models[0]), plan.model)
        if launch.lock is None or launch.environments is None:
            return {"runtime": plan.runtime, "model": model, "sample": None}
        from lapis.environments import conversion  # late: most services have code

        lock, root = Lock.from_json(launch.lock), launch.environments
        try:
            ready = conversion.ready_to_serve(
                plan.runtime, model, lock, root, lambda line: _say(log, line), canceled, into=self._app
            )
        except Stopped:
            raise Canceled("while its model was being converted") from None
        self._ready = ready  # holds its environment as long as this process and the keeper it forks live
        self._python = ready.python
        variables.update(ready.variables)
        return {"runtime": ready.runtime, "model": ready.model, "sample": None}

    def _describe(self, place: Place, variables: Mapping[str, str], load: Mapping[str, Any]) -> dict[str, Any]:
        part, front, host = self._part, self._work.launch.front, self._host(place)
        assert front is not None
        return {
            "live": front.mark,
            "service": {"id": part.id, "name": part.name, "revision": part.revision},
            "listen": {"host": host, "port": part.port, "handover": _handover(part, host)},
            **self._live(front.live),
            "cors": _origins(variables),
            "worker": {
                "argv": [self._python, "-m", "lapis.scoring.worker"],
                "cwd": self._app,
                "environ": dict(variables),
            },
            "load": dict(load),
            "replicas": part.replicas,
            "limits": part.limits,
            "probe": part.probe,
            "app_insights": part.app_insights,
            "batch": {"largest": 64, "wait_ms": 0},
            "collect": os.path.join(os.path.dirname(_handover(part, host)), "collected") if part.collect else None,
            "report": {"file": self._state},
        }

    def _host(self, place: Place) -> str:
        return self._part.host or place.address or "127.0.0.1"

    # -- told while it runs

    def take_up(self, live: Mapping[str, Any]) -> None:
        """New keys or routes: written where the front looks every second."""
        description = _read(self._description)
        if not description:
            return
        if description.get("live") != live["mark"]:
            json_files.write(self._description, {**description, **self._live(live), "live": live["mark"]})

    def _live(self, live: Mapping[str, Any]) -> dict[str, Any]:
        auth, secret = dict(live["auth"]), os.path.join(self._front, "token_secret")
        value = auth.pop("token_secret")
        if value:
            with open(os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(value)
        return {"auth": {**auth, "token_secret_file": secret if value else None}, "routes": live["routes"]}

    # -- what it tells

    def changed(self) -> bool:
        """Whether the front has said something since it was last passed on."""
        return _stamp(self._state) != self._seen

    def told(self) -> dict[str, Any]:
        self._seen = _stamp(self._state)
        front = _read(self._state)
        described = _read(self._description).get("listen") or {}
        return {"front": front or None, "live": front.get("live"), "host": described.get("host")}


def _origins(variables: Mapping[str, str]) -> list[str]:
    """Which pages may ask from a browser: none, as in Azure, unless the environment says so."""
    return [each.strip() for each in variables.get("AML_CORS_ORIGINS", "").split(",") if each.strip()]


def _say(log: str, line: str) -> None:
    with open(log, "a") as file:
        file.write(f"Lapis: {line}\n")


def _handover(part: ServicePart, host: str) -> str:
    """A socket that is the same for every revision of a service at this address."""
    folder = part.sockets or os.path.join(settings.home(), "services")
    folder = os.path.join(folder, part.id)  # the service's own: no other one gets in
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return os.path.join(folder, f"{part.place}-{host}.sock")


def _stamp(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _read(path: str) -> dict[str, Any]:
    return json_files.read(path) or {}

"""Models with their code as a folder that serves them without Lapis: on any machine with Python, or in a container."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from lapis.client.fetching import fetch
from lapis.client.http_client import quoted
from lapis.domain.service_content import Content
from lapis.domain.tree import resolve_under
from lapis.errors import NotFound, WebserviceException
from lapis.sdk.environments.container_registry import ContainerRegistry
from lapis.sdk.models import deployment

if TYPE_CHECKING:
    from lapis.sdk.workspace.workspace import Workspace

_PARTS = ("azureml", "lapis/__init__.py", "lapis/version.py", "lapis/errors.py", "lapis/later.py", "lapis/py.typed",
          "lapis/domain", "lapis/machine", "lapis/files", "lapis/tables", "lapis/client", "lapis/sdk",
          "lapis/scoring", "lapis/serving")  # fmt: skip
_OF_THE_FRONT = ("httptools>=0.6", "uvloop>=0.20")
_FRONT_PYTHON = "3.11"


def package(
    workspace: Workspace,
    models: Any,
    inference_config: Any = None,
    generate_dockerfile: bool = False,
    image_name: str | None = None,
    image_label: str | None = None,
) -> ModelPackage:
    """Keep what a service would serve; `save()` writes it to a folder."""
    body = {
        "name": image_name or "package",
        "content": deployment.content(workspace, models, inference_config),
        "properties": {"label": str(image_label or "latest"), "dockerfile": str(bool(generate_dockerfile))},
    }
    view = workspace._client.call("POST", workspace._base + "/packages", body, timeout=deployment.LONGEST)
    return ModelPackage(workspace, view["id"], getattr(inference_config, "environment", None))


class ModelPackage:
    """What `Model.package` made: complete as soon as it is there."""

    def __init__(self, workspace: Workspace, operation_id: str, environment: Any) -> None:
        self.workspace = workspace
        self.environment = environment
        self.state: str | None = None
        self.error: str | None = None
        self.package_build_log_uri: str | None = None
        self._id = operation_id
        self.update_creation_state()

    def update_creation_state(self) -> None:
        """Read it again, in place."""
        name, _, version = self._id.rpartition(":")
        try:
            self._view = self.workspace._client.call("GET", f"{self.workspace._base}/packages/{quoted(name)}/{version}")
        except NotFound as error:
            raise WebserviceException(error.message, status_code=404)
        properties = self._view["properties"]
        self.generate_dockerfile = properties["dockerfile"] == "True"
        self.location = f"lapis/{name}:{properties['label']}" if not self.generate_dockerfile else None
        self.state = "Succeeded"

    def wait_for_creation(self, show_output: bool = False) -> None:
        """Return at once: there is nothing to wait for."""
        self.update_creation_state()
        if show_output:
            print(f"Package creation {self.state}")

    def get_logs(self, decode: bool = True, offset: int = 0) -> str | bytes:
        """What the package is made of, a line for each part."""
        text = "".join(f"{line}\n" for line in self._parts())[offset:]
        return text if decode else text.encode()

    def save(self, output_directory: str) -> None:
        """Write the folder: models, code, the list of packages, the server, a Dockerfile, and README.txt."""
        if os.path.isdir(output_directory) and os.listdir(output_directory):
            raise WebserviceException(f"The folder '{output_directory}' is not empty. Choose another one.")
        content = Content.from_json(self._view["content"])
        app = os.path.join(output_directory, "app")
        os.makedirs(app, exist_ok=True)
        self._save_code(content, app)
        for model in self._view["files"]:
            for file in model["files"]:
                folder = os.path.join("azureml-models", model["name"], str(model["version"]))
                whose = f"models/{model['name']}/{model['version']}"
                self._save_blob(whose, file["hash"], app, f"{folder}/{file['path']}")
        _save_server(os.path.join(output_directory, "server"))
        lock = self._view["lock"]
        python = lock["python"] if lock else ".".join(map(str, sys.version_info[:2]))
        _write(
            output_directory, "requirements.txt", lock["packages"] if lock else "# none beside the standard library\n"
        )
        _write(output_directory, "server-requirements.txt", "".join(f"{line}\n" for line in _OF_THE_FRONT))
        _write(output_directory, "serve.py", _SERVE)
        _write(output_directory, "package.json", json.dumps(self._about(content, python), indent=4) + "\n")
        _write(output_directory, "Dockerfile", _dockerfile(python))
        _write(output_directory, "README.txt", _README.format(python=python))
        print(f"Saved to {os.path.abspath(output_directory)}. README.txt there says how to run it.")

    def pull(self) -> None:
        """Build the image with Docker or Podman of this machine, under the name in `location`."""
        import shutil
        import subprocess
        import tempfile

        tool = shutil.which("docker") or shutil.which("podman")
        if tool is None:
            raise WebserviceException(
                "Neither Docker nor Podman is on this machine, so there is no image to pull. save('folder') writes "
                "what runs without one."
            )
        with tempfile.TemporaryDirectory() as folder:
            self.save(os.path.join(folder, "package"))
            done = subprocess.run([tool, "build", "--tag", str(self._image_name()), os.path.join(folder, "package")])
        if done.returncode:
            raise WebserviceException(f"The image could not be built: {tool} ended with {done.returncode}.")

    def get_container_registry(self) -> ContainerRegistry:
        """Images are built on this machine: there is no registry to log in to."""
        return ContainerRegistry()

    def serialize(self) -> dict[str, Any]:
        return {
            "operationId": self._id,
            "state": self.state,
            "error": self.error,
            "location": self.location,
            "modelIds": self._view["models"],
            "generateDockerfile": self.generate_dockerfile,
        }

    def _image_name(self) -> str:
        return self.location or f"lapis/{self._id.rpartition(':')[0]}:latest"

    def _parts(self) -> list[str]:
        content, lock = Content.from_json(self._view["content"]), self._view["lock"]
        lines = [f"Model {each}" for each in self._view["models"]]
        lines.append(f"Entry script {content.entry_script}" if content.entry_script else "No entry script")
        lines.append(f"Python {lock['python']}" if lock else "Python of whoever runs it")
        lines += [line for line in (lock["packages"].splitlines() if lock else []) if "==" in line]
        return lines

    def _save_code(self, content: Content, app: str) -> None:
        snapshot = f"snapshots/{content.snapshot_id}"
        files = self.workspace._client.call("GET", f"{self.workspace._base}/{snapshot}")["files"]
        for path, digest, *_ in files:
            self._save_blob(snapshot, digest, app, f"{content.folder}/{path}" if content.folder else path)

    def _save_blob(self, whose: str, digest: str, folder: str, name: str) -> None:
        address = f"{self.workspace._base}/{whose}/blobs/{digest}"
        fetch(self.workspace._client, address, resolve_under(folder, name), digest, f"'{name}'")

    def _about(self, content: Content, python: str) -> dict[str, Any]:
        return {
            "name": self._id.rpartition(":")[0],
            "python": python,
            "models": [{"name": model["name"], "version": model["version"]} for model in self._view["files"]],
            "entry_script": content.entry_script,
            "folder": content.folder,
            "no_code": None if content.no_code is None else content.no_code.to_json(),
            "environment_variables": dict(content.environment_variables),
        }

    def __repr__(self) -> str:
        return f"ModelPackage(workspace={self.workspace!r}, id={self._id!r}, state={self.state!r})"


def _save_server(target: str) -> None:
    """Our own packages, without what only a notebook or a server of ours needs."""
    import shutil

    from lapis.machine import own_sources

    source = own_sources.folder()
    for part in _PARTS:
        place = os.path.join(target, *part.split("/"))
        found = os.path.join(source, *part.split("/"))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if os.path.isdir(found):
            shutil.copytree(found, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(found, place)


def _write(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def _dockerfile(python: str) -> str:
    own = ".".join(python.split(".")[:2])
    lines = [f"FROM python:{own}-slim"]
    if tuple(map(int, own.split("."))) < (3, 11):  # the models' Python is older than the server's
        lines += [
            f"COPY --from=python:{_FRONT_PYTHON}-slim /usr/local /opt/front",
            "ENV LD_LIBRARY_PATH=/opt/front/lib",
        ]
        front = "/opt/front/bin/python3"
    else:
        front = "python"
    lines += [
        "WORKDIR /service",
        "COPY requirements.txt server-requirements.txt ./",
        "RUN python -m pip install --no-cache-dir --requirement requirements.txt",
        f"RUN {front} -m pip install --no-cache-dir --requirement server-requirements.txt",
        "COPY . .",
        "EXPOSE 5001",
        f'CMD ["{front}", "serve.py", "--host", "0.0.0.0", "--port", "5001", "--python", "python"]',
    ]
    return "\n".join(lines) + "\n"


_SERVE = '''"""Serves the models of this folder: python serve.py [--port 5001] [--host 127.0.0.1] [--python PYTHON]

PYTHON is the interpreter that has the packages of requirements.txt; the one that runs this, unless given.
Keys come from the variable SERVICE_KEYS, separated by commas; without it the service is open to whoever reaches it.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=5001)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--replicas", type=int, default=1)
    given = parser.parse_args()
    with open(os.path.join(HERE, "package.json")) as file:
        about = json.load(file)
    app, server = os.path.join(HERE, "app"), os.path.join(HERE, "server")
    models = [os.path.join(app, "azureml-models", each["name"], str(each["version"])) for each in about["models"]]
    folder = os.path.join(app, about["folder"] or "")
    variables = dict(about["environment_variables"], AML_APP_ROOT=app)
    variables["PYTHONPATH"] = os.pathsep.join([app, folder, server])
    if models:
        variables["AZUREML_MODEL_DIR"] = models[0] if len(models) == 1 else os.path.join(app, "azureml-models")
    if about["no_code"]:
        model = os.path.join(models[0], about["no_code"]["model"])
        load = {"runtime": about["no_code"]["runtime"], "model": model, "sample": None}
    else:
        load = {"script": os.path.join(folder, about["entry_script"])}
    keys = [key.strip() for key in os.environ.pop("SERVICE_KEYS", "").split(",") if key.strip()]
    description = {
        "service": {"id": about["name"], "name": about["name"], "revision": 1},
        "listen": {"host": given.host, "port": given.port, "anywhere": True, "handover": None},
        "auth": {"keys": [hashlib.sha256(key.encode()).hexdigest() for key in keys], "token_secret_file": None},
        "cors": ["*"],
        "worker": {"argv": [given.python, "-m", "lapis.scoring.worker"], "cwd": app, "environ": variables},
        "load": load,
        "replicas": {"min": given.replicas, "max": given.replicas},
        "report": {"file": None},
    }
    path = os.path.join(tempfile.mkdtemp(prefix="service-"), "service.json")
    with open(path, "w") as file:
        json.dump(description, file)
    os.environ["PYTHONPATH"] = server
    os.execv(sys.executable, [sys.executable, "-m", "lapis.serving", path])


if __name__ == "__main__":
    main()
'''

_README = """What Model.package wrote: a service that runs without Lapis.

In a container:

    docker build -t my-service . && docker run -p 5001:5001 my-service

Without one: requirements.txt lists what the models need (Python {python}), server-requirements.txt what the server
needs (Python 3.11 or later). With both in one environment:

    python serve.py --port 5001

Where the models need an older Python, the server starts it:

    python3.11 serve.py --port 5001 --python /path/to/the/older/python

Then: curl -d '{{"data": [...]}}' http://127.0.0.1:5001/score

Set SERVICE_KEYS=key1,key2 to let in only whoever sends "Authorization: Bearer key1".
"""

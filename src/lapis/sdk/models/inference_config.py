"""How models are served: the scoring script, what goes with it, and the environment it runs in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from lapis.domain.service_content import Origin
from lapis.domain.tree import check_path
from lapis.errors import NotThereYet, UserErrorException, WebserviceException

if TYPE_CHECKING:
    from lapis.sdk.workspace.workspace import Workspace

_RUNTIMES = ("python", "spark-py")


class InferenceConfig:
    """A scoring script with init() and run(), and its environment; or, as in 2019, a runtime and a conda file."""

    def __init__(
        self,
        entry_script: str,
        runtime: str | None = None,
        conda_file: str | None = None,
        extra_docker_file_steps: str | None = None,
        source_directory: str | None = None,
        enable_gpu: bool | None = None,
        description: str | None = None,
        base_image: str | None = None,
        base_image_registry: Any = None,
        cuda_version: str | None = None,
        environment: Any = None,
    ) -> None:
        self.entry_script = entry_script
        self.runtime = runtime
        self.conda_file = conda_file
        self.extra_docker_file_steps = extra_docker_file_steps
        self.source_directory = source_directory
        self.enable_gpu = enable_gpu
        self.description = description
        self.base_image = base_image
        self.base_image_registry = base_image_registry
        self.cuda_version = cuda_version
        self.environment = environment
        self._beside: list[str] = []  # further files of a configuration of 2019
        self.validate_configuration()

    @property
    def entry_script_path(self) -> str:
        """Where the script is."""
        return os.path.join(self.source_directory or "", self.entry_script)

    def validate_configuration(self) -> None:
        """Raise WebserviceException if nothing could be served so."""
        if self.source_directory is not None and not os.path.isdir(self.source_directory):
            raise WebserviceException(f"source_directory {os.path.abspath(self.source_directory)} is not a folder.")
        if not isinstance(self.entry_script, str) or not self.entry_script:
            raise WebserviceException(f"entry_script is the name of the scoring script, not {self.entry_script!r}.")
        if not os.path.isfile(self.entry_script_path):
            folder = os.path.dirname(self.entry_script_path) or "."
            near = sorted(n for n in os.listdir(folder) if n.endswith(".py")) if os.path.isdir(folder) else []
            raise WebserviceException(
                f"There is no entry script {os.path.abspath(self.entry_script_path)}. Python files there: "
                f"{', '.join(near[:10]) or 'none'}."
            )
        if not self.entry_script.endswith(".py"):
            raise WebserviceException(f"entry_script {self.entry_script!r} must be a Python file (.py).")
        if self.runtime is not None and str(self.runtime).lower() not in _RUNTIMES:
            raise WebserviceException(f"runtime cannot be {self.runtime!r}. Known: {', '.join(_RUNTIMES)}.")
        if self.environment is not None and (self.runtime or self.conda_file):
            raise WebserviceException("Give an environment, or runtime and conda_file; not both.")
        for what in ("conda_file", "extra_docker_file_steps"):
            path = getattr(self, what)
            if path is not None and not os.path.isfile(self._beside_script(path)):
                raise WebserviceException(f"There is no file {self._beside_script(path)!r}, which {what} names.")

    def validation_script_content(self) -> None:
        """Raise WebserviceException if the script cannot be read as Python, or has no run()."""
        import ast

        with open(self.entry_script_path, "rb") as file:
            text = file.read()
        try:
            tree = ast.parse(text, self.entry_script)
        except (SyntaxError, ValueError) as error:
            raise WebserviceException(f"{self.entry_script} is not Python that can be read: {error}.")
        if not _binds(tree, "run"):
            raise WebserviceException(
                f"{self.entry_script} has no function run(): a scoring script has init(), called once, and "
                "run(data), called for each request."
            )

    def build_create_payload(self, workspace: Any, name: str, model_ids: Any) -> dict[str, Any]:
        """What SDK v1 shows of a configuration; deploying sends what `_content` gives."""
        return {
            "name": name,
            "description": self.description,
            "modelIds": list(model_ids or []),
            "entryScript": self.entry_script,
            "sourceDirectory": self.source_directory,
            "targetRuntime": {"runtimeType": self.runtime or "python", "condaFile": self.conda_file},
            "environment": None if self.environment is None else self.environment._to_dict_without_secrets(),
        }

    def build_profile_payload(
        self,
        profile_name: str,
        input_data: Any = None,
        workspace: Any = None,
        models: Any = None,
        dataset_id: str | None = None,
        container_resource_requirements: Any = None,
        description: str | None = None,
    ) -> dict[str, Any]:
        resources = container_resource_requirements
        return {
            **self.build_create_payload(workspace, profile_name, [model.id for model in models or []]),
            "description": description or self.description,
            "inputData": input_data,
            "inputDatasetId": dataset_id,
            "containerResourceRequirements": None if resources is None else resources.serialize(),
        }

    def _content(self, workspace: Workspace, model_ids: list[str]) -> dict[str, Any]:
        """Send the code; what the server is to serve."""
        from lapis.sdk.runs.submission import interpreter

        self.validate_configuration()
        self.validation_script_content()
        environment, notices = self._environment(workspace)
        if str(self.runtime).lower() == "spark-py":
            raise NotThereYet("InferenceConfig(runtime='spark-py')")
        python, wanted, told = interpreter(workspace, environment)
        snapshot_id, script, folder = self._send(workspace)
        return {
            "models": model_ids,
            "snapshot_id": snapshot_id,
            "entry_script": script,
            "folder": folder,
            "python": python,
            "environment": wanted and wanted.to_json(),
            "environment_variables": {
                str(name): str(value) for name, value in (environment.environment_variables or {}).items()
            },
            "definition": environment._to_dict_without_secrets(),
            "notices": [*notices, *told],
            "description": self.description,
            "origin": self._origin().to_json(),
        }

    def _origin(self) -> Origin:
        """Where the code came from, for `LocalWebservice.reload`."""
        folder = None if self.source_directory is None else os.path.abspath(self.source_directory)
        return Origin(self.entry_script, os.getcwd(), folder, tuple(self._beside))

    def _environment(self, workspace: Workspace) -> tuple[Any, list[str]]:
        """Its own copy, without the container that Azure would have built; and what is therefore not used."""
        from lapis.sdk.environments.environment import Environment

        environment = self.environment
        if hasattr(environment, "get_environment"):  # named by reference
            environment = environment.get_environment(workspace)
        if environment is None:
            environment = Environment("inference")
            if self.conda_file is not None:
                environment = Environment.from_conda_specification("inference", self._beside_script(self.conda_file))
        if not hasattr(environment, "python"):
            raise WebserviceException(f"environment must be an Environment, not {environment!r}.")
        unused = [what for what in ("extra_docker_file_steps", "base_image", "cuda_version") if getattr(self, what)]
        copy = environment.clone(str(environment.name))
        image = copy.docker.base_image
        if copy.docker.base_dockerfile or (image and not image.startswith("mcr.microsoft.com/azureml/")):
            if copy.python.user_managed_dependencies:
                raise WebserviceException(
                    f"Environment '{copy.name}' takes its Python from an image, and a service runs without a "
                    "container. Name its packages (CondaDependencies), and they are installed."
                )
            unused.append("the environment's image")
        copy.docker.base_image = copy.docker.base_dockerfile = None
        said = [f"{', '.join(unused)}: not used, the service runs without a container."] if unused else []
        return copy, said

    def _send(self, workspace: Workspace, top: str | None = None) -> tuple[str, str, str | None]:
        """The snapshot, the script's path in it, and what the folder is called."""
        from lapis.client.snapshot_sending import send_listed, send_snapshot

        if self.source_directory is None:
            sources = [self.entry_script, *self._beside]
            files = {_name_of(source, top): os.path.abspath(source) for source in sources}
            return send_listed(workspace, _with_folders(files)), _name_of(self.entry_script, top), None
        folder = os.path.abspath(self.source_directory)
        script = os.path.relpath(os.path.join(folder, self.entry_script), folder).replace(os.sep, "/")
        sent = send_snapshot(workspace, folder, ignore_files=())
        return sent.id, check_path(script), os.path.basename(folder)

    def _beside_script(self, path: str) -> str:
        inside = os.path.join(self.source_directory or "", path)
        return inside if os.path.isfile(inside) else path


def sent_again(workspace: Workspace, origin: Origin) -> dict[str, Any]:
    """The code as it is now where it came from: snapshot, script and folder."""
    top = origin.source_directory or origin.cwd
    if not os.path.isdir(top):
        raise WebserviceException(f"The code came from {top}, which is not there. Use update(inference_config=...).")
    script = origin.entry_script if origin.source_directory is not None else os.path.join(top, origin.entry_script)
    config = InferenceConfig(script, source_directory=origin.source_directory)
    config._beside = [os.path.join(origin.cwd, path) for path in origin.beside]
    config.validation_script_content()
    snapshot_id, entry_script, folder = config._send(workspace, origin.cwd)
    return {"snapshot_id": snapshot_id, "entry_script": entry_script, "folder": folder}


def _binds(tree: Any, name: str) -> bool:
    """Whether something in the script may be called `name`; what it imports whole may hold it."""
    import ast

    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
            return True
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name:
            return True
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if any((each.asname or each.name) in (name, "*") for each in node.names):
                return True
    return False


def _name_of(path: str, top: str | None = None) -> str:
    """Below the working folder it keeps its place; from elsewhere it comes alone."""
    relative = os.path.relpath(os.path.abspath(path), top).replace(os.sep, "/")
    return os.path.basename(path) if relative.startswith("../") else check_path(relative)


def _with_folders(files: dict[str, str]) -> dict[str, str]:
    """Folders that are named stand for the files below them."""
    found: dict[str, str] = {}
    for name, path in files.items():
        if os.path.isfile(path):
            found[name] = path
            continue
        if not os.path.isdir(path):
            raise UserErrorException(f"There is no file or folder {path!r} to send with the scoring script.")
        for folder, _, leaves in os.walk(path):
            for leaf in leaves:
                full = os.path.join(folder, leaf)
                found[f"{name}/{os.path.relpath(full, path).replace(os.sep, '/')}"] = full
    return found

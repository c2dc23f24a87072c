"""Builds of environments that a user asks for: started, followed, and what became of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Dict

from lapis.domain.environment import called
from lapis.domain.terminal_escapes import Colours, plain
from lapis.errors import ActivityFailedException, UserErrorException

if TYPE_CHECKING:
    from lapis.sdk.environments.environment import Environment
    from lapis.sdk.workspace.workspace import Workspace

RUNNING, FAILED = "Running", "Failed"
_LOOK_EVERY = 0.25  # seconds; a build takes some


def build(workspace: Workspace, environment: Environment) -> ImageBuildDetails:
    """Have the server build it, if it is not built yet; returns once the packages are resolved."""
    started = _ask(workspace, environment, "/environments/builds")
    return ImageBuildDetails(workspace, f"{workspace._base}/environments/builds/{started['id']}", None, started["id"])


def image_details(workspace: Workspace, environment: Environment) -> DockerImageDetails:
    return DockerImageDetails(_ask(workspace, environment, "/environments/details"))


def _ask(workspace: Workspace, environment: Environment, path: str) -> Any:
    from lapis.sdk.environments.environment_resolution import resolve, wish

    if not hasattr(workspace, "subscription_id"):
        raise UserErrorException(f"workspace must be a Workspace, not {type(workspace).__name__}.")
    if environment.python.user_managed_dependencies:
        raise UserErrorException(
            f"There is nothing to build for {called(environment.name)}: its user_managed_dependencies is True, "
            "so runs take the interpreter as it is."
        )
    resolve(workspace, environment)  # what takes long, and says so; from here on it is known
    return workspace._client.call("POST", workspace._base + path, wish(environment))


class ImageBuildDetails:
    """A build of an environment that was started. It goes on whether or not somebody waits for it."""

    def __init__(
        self,
        environment_client: Any = None,
        location: str | None = None,
        log_url: str | None = None,
        build_id: str | None = None,
    ) -> None:
        self.environment_client = environment_client  # the workspace
        self.location = location
        self.log_url = log_url
        self.build_id = build_id

    @property
    def status(self) -> str:
        """Running, Succeeded or Failed."""
        return str(self._look()["status"])

    def get_log(self) -> str:
        """What the build has said so far."""
        return self._log(0).decode("utf-8", "replace")

    def wait_for_completion(self, show_output: bool = True) -> ImageBuildDetails:
        """Return when it has succeeded, showing its log as it grows; a failure raises ActivityFailedException."""
        import time
        from codecs import getincrementaldecoder

        decoder = getincrementaldecoder("utf-8")("replace")  # a letter may arrive in two halves
        colours = Colours()  # what the setup of a package prints is no order to the terminal
        offset = 0
        try:
            while True:
                seen = self._look()
                if show_output and seen["log_length"] > offset:
                    piece = self._log(offset)
                    offset += len(piece)
                    sys.stdout.write(colours.feed(decoder.decode(piece)))
                    sys.stdout.flush()
                if seen["status"] != RUNNING:
                    break
                time.sleep(_LOOK_EVERY)
        except KeyboardInterrupt:
            print(f"\nNo longer waiting. The build {self.build_id} goes on.", file=sys.stderr)
            raise
        if show_output:
            print(f"{colours.end()}Image Build Status: {seen['status']}")
        if seen["status"] == FAILED:
            raise ActivityFailedException(plain(f"The environment could not be built: {seen['error']}"))
        return self

    def _look(self) -> dict[str, Any]:
        found: dict[str, Any] = self.environment_client._client.call("GET", self.location)
        return found

    def _log(self, offset: int) -> bytes:
        pieces: list[bytes] = []
        self.environment_client._client.download(f"{self.location}/log", pieces.append, {"offset": offset})
        return b"".join(pieces)

    def __repr__(self) -> str:
        return f"ImageBuildDetails(build_id={self.build_id!r})"


class DockerImageDetails(Dict[str, Any]):
    """What is known of the image of an environment; in Lapis, of the folder that stands for it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    @property
    def image(self) -> dict[str, Any] | None:
        return self.get("dockerImage")

    @property
    def image_exist(self) -> bool:
        return bool(self.get("imageExistsInRegistry"))

    @property
    def dockerfile(self) -> str | None:
        return self.get("dockerfile")

    @property
    def registry(self) -> dict[str, Any] | None:
        return (self.image or {}).get("registry")

    @property
    def repository(self) -> str | None:
        return (self.image or {}).get("name")

    @property
    def interpreter_path(self) -> str | None:
        return (self.get("pythonEnvironment") or {}).get("interpreterPath")

    @property
    def environment_path(self) -> str | None:
        return (self.get("pythonEnvironment") or {}).get("condaEnvironmentPath")

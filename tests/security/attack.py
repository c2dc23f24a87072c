"""What an attacker has: bytes on a socket, the tokens that could be had, and names that lead elsewhere."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from azureml.core import Experiment, Run, Workspace
from lapis.server.control.access import Access
from lapis.testing import Home

TRAVERSALS = [
    "../../token", "../token", "..", ".", "/etc/passwd", "//etc/passwd", "outputs/../../../token", "file:///etc/passwd",
    "outputs/\x00/../token", "....//....//token", "./token", "outputs//../token", "~/.ssh/id_rsa", "\u202e/../../token",
]  # fmt: skip
"""Names that lead out of a folder, where somebody joins paths without thinking."""

ENCODED = [
    *(quote(name, safe="") for name in TRAVERSALS),
    *(quote(quote(name, safe=""), safe="") for name in TRAVERSALS),
    "..%c0%af..%c0%aftoken", "%uff0e%uff0e%u2215token", "\uff0e\uff0e/token", "..%5c..%5ctoken", "..\\..\\token",
    "C:\\windows\\win.ini", "C%3A%5Cwindows", "\\\\host\\share\\x", "outputs/..;/token", "%2e%2e;/token",
]  # fmt: skip
"""The same, encoded once, twice, in ways of other systems and of broken decoders."""


def files_with(folder: Path, content: bytes) -> list[Path]:
    """The files below a folder that hold these bytes. Others come and go meanwhile."""
    found = []
    for path in folder.rglob("*"):
        try:
            if path.is_file() and content in path.read_bytes():
                found.append(path)
        except OSError:
            pass
    return found


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Site:
    """A server, a workspace on it with a run under way, another workspace with another run, and all their tokens."""

    def __init__(self, home: Home, workspace: Workspace) -> None:
        self.home, self.workspace = home, workspace
        self.elsewhere = home.workspace()
        self.run: Run = Experiment(workspace, "site").start_logging(snapshot_directory=None)
        self.foreign: Run = Experiment(self.elsewhere, "site").start_logging(snapshot_directory=None)
        access = Access(str(home.path))
        self.user, self.viewer = access.user_token, access.viewer_key
        self.token = access.run_token("run", workspace._workspace_id, self.run.id)
        self.stranger = access.run_token("run", self.elsewhere._workspace_id, self.foreign.id)
        self.api = f"/api/v1/workspaces/{workspace._workspace_id}"
        self.runs = f"{self.api}/runs/{self.run.id}"
        self.pages = f"/studio/{workspace._workspace_id}/runs/{self.run.id}"

    def ask(
        self, method: str, path: str, token: str | None = None, body: Any = None, url: str = "", **more: str
    ) -> Reply:
        """One request, sent as it is: nobody tidies the path. What is not bytes goes as JSON."""
        address = urlsplit(url or self.home.address)
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {
            "Content-Type": "application/json",
            **{name.replace("_", "-"): value for name, value in more.items()},
        }
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        line = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        line._validate_path = lambda url: None  # type: ignore[attr-defined]
        line._encode_request = lambda request: request.encode("utf-8", "surrogatepass")  # type: ignore[attr-defined]
        try:
            line.request(method, path, raw, headers)
            answer = line.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            line.close()

    def end(self) -> None:
        for run in (self.run, self.foreign):
            run.cancel()

"""A real server in a home of its own, which leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lapis.client import local_server
from lapis.domain import settings as settings_module
from lapis.machine import mounts
from lapis.machine.processes import started
from lapis.sdk.workspace.workspace import Workspace
from lapis.testing.waiting import until


class Home:
    """A LAPIS_HOME: the folder of a server, of its runs and of their files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def settings(self) -> settings_module.Settings:
        return settings_module.load({"LAPIS_HOME": str(self.path)})

    @property
    def server_pid(self) -> int | None:
        about = local_server.running(self.settings)
        return None if about is None else int(about["pid"])

    @property
    def address(self) -> str:
        """Where the server of this home listens, such as http://127.0.0.1:43975. It is started if it does not run."""
        return local_server.ensure_server(self.settings)[0]

    def start(self) -> None:
        local_server.ensure_server(self.settings)

    def kill_server(self) -> None:
        """As if its power was cut. Runs go on, and the next call of a client starts another one."""
        pid = self.server_pid
        assert pid is not None, f"no server of {self.path} runs"
        os.kill(pid, signal.SIGKILL)
        until(lambda: started(pid) is None)

    def workspace(self, name: str = "") -> Workspace:
        """A new workspace, for a process whose LAPIS_HOME this is. Without a name, one that nobody else uses."""
        return Workspace.create(name or f"test-{os.urandom(4).hex()}", show_output=False)

    def end(self, keep_files: bool = False) -> None:
        """End the server, agents and scripts of this home at once, wait until they are gone, and remove its files."""
        self._kill_all()
        mounts.detach_below(str(self.path))
        until(self._kill_all, lambda: f"These processes of {self.path} stay: {processes_of(str(self.path))}")
        if not keep_files:
            shutil.rmtree(self.path, ignore_errors=True)

    def _kill_all(self) -> bool:
        """Whether there was nobody left to be killed. One that was just being started may not have been seen."""
        found = processes_of(str(self.path))
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return not found


@contextmanager
def running_server(folder: Path | str | None = None) -> Iterator[Home]:
    """A server on a free port of this machine, which ends with the block, and with it all that runs on it.

    In the block LAPIS_HOME is set, so that `Workspace` and the `lapis` command, in this process and in those it starts,
    find this server and no other. Its home is always a new folder, for at the end every process that names it is
    killed; below `folder` its files stay, else they go too.
    """
    home = Home(Path(tempfile.mkdtemp(prefix="lapis-home-", dir=folder)))
    before = os.environ.get("LAPIS_HOME")
    os.environ["LAPIS_HOME"] = str(home.path)
    try:
        home.start()
        yield home
    finally:
        if before is None:
            os.environ.pop("LAPIS_HOME", None)
        else:
            os.environ["LAPIS_HOME"] = before
        home.end(keep_files=folder is not None)


def processes_of(home: str) -> list[int]:
    """Server, agents and scripts of a home: their command line or their environment names it."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if home.encode() in command or f"LAPIS_HOME={home}".encode() in environment:
            found.append(int(entry.name))
    return found

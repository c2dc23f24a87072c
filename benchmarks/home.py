"""A Lapis home that lives as long as a measurement: its own server, two slots, its own working folder."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from measure import adopt_orphans

from lapis.client import local_server
from lapis.domain import settings as settings_module
from lapis.machine.processes import started
from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.workspace.workspace import Workspace

for _name in [name for name in os.environ if name.startswith(("LAPIS_", "AZUREML_"))]:
    del os.environ[_name]  # whatever the shell says does not count here


class Home:
    """`with Home() as home:` the working folder is `home.work`; the server ends with the block."""

    def __init__(self) -> None:
        self._root = tempfile.mkdtemp(prefix="home-")
        self.work = Path(self._root, "work")
        self._before = os.getcwd()

    @property
    def settings(self) -> settings_module.Settings:
        return settings_module.load()

    def __enter__(self) -> Home:
        adopt_orphans()
        self.work.mkdir()
        os.chdir(self.work)
        os.environ.update(LAPIS_HOME=os.path.join(self._root, "home"), LAPIS_MAX_RUNS="2", LAPIS_IDLE_SECONDS="600")
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        os.chdir(self._before)

    def start(self) -> None:
        local_server.ensure_server(self.settings)

    def stop(self) -> None:
        """Ask the server to leave, and wait until its process is gone: what comes next has the machine to itself."""
        about = local_server.running(self.settings)
        if about is None:
            return
        local_server.stop(self.settings, about)
        deadline = time.monotonic() + 15.0
        while started(int(about["pid"])) is not None:
            assert time.monotonic() < deadline, f"The server of {self._root} does not leave."
            time.sleep(0.01)

    def experiment(self, name: str = "bench") -> Experiment:
        return Experiment(Workspace.create("bench", show_output=False, exist_ok=True), name)

    def source(self, code: str) -> str:
        """A folder with `code` as train.py."""
        folder = self.work / "source"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(code)
        return str(folder)

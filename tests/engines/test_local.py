"""The local engine keeps every engine's promises, and ends whole process trees."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lapis.engines import registry
from lapis.engines.base import Engine, JobSpec, JobState
from lapis.engines.local import LocalEngine
from lapis.errors import ComputeTargetException
from lapis.machine import processes
from lapis.testing import until, until_written
from lapis.testing.engine_contract import EngineContract


class TestLocal(EngineContract):
    @pytest.fixture
    def engine(self, tmp_path: Path) -> Iterator[Engine]:
        engine = LocalEngine(str(tmp_path / "work"))
        yield engine
        for agent in (tmp_path / "work").glob("*/agent.json"):
            engine.stop({"job": agent.parent.name, "agents": [json.loads(agent.read_text())]}, hard=True)
        engine.close()

    @pytest.fixture
    def another(self, tmp_path: Path) -> Callable[[], Engine]:
        return lambda: LocalEngine(str(tmp_path / "work"))

    def test_an_agent_outlives_the_engine_that_launched_it(self, tmp_path: Path, job: JobSpec) -> None:
        engine = LocalEngine(str(tmp_path / "work"))
        handle = engine.launch(job)
        engine.close()
        assert engine.poll([handle]) == [JobState.ALIVE]
        engine.stop(handle, hard=True)

    def test_a_fork_server_that_was_killed_is_replaced(self, tmp_path: Path, job: JobSpec) -> None:
        engine = LocalEngine(str(tmp_path / "work"))
        first = engine.launch(job)
        assert engine._fork_server is not None
        os.kill(engine._fork_server.pid, signal.SIGKILL)
        engine._fork_server.wait()
        second = engine.launch(JobSpec("run-2", job.work))
        assert engine.poll([first, second]) == [JobState.ALIVE, JobState.ALIVE]
        for handle in (first, second):
            engine.stop(handle, hard=True)
        engine.close()

    def test_agents_are_forked_ahead_each_for_one_job_and_go_with_the_fork_server(
        self, tmp_path: Path, job: JobSpec
    ) -> None:
        engine = LocalEngine(str(tmp_path / "work"))
        first = engine.launch(job)
        assert engine._fork_server is not None
        fork_server = engine._fork_server.pid
        until(lambda: len(_agents_below(fork_server)) == 2)
        ahead = _agents_below(fork_server) - {first["agents"][0]["pid"]}
        second = engine.launch(JobSpec("run-2", job.work))
        assert {second["agents"][0]["pid"]} == ahead
        until(lambda: len(_agents_below(fork_server)) == 3)
        waiting = processes.below(fork_server)
        for handle in (first, second):
            engine.stop(handle, hard=True)
        engine.close()
        until(lambda: not any(processes.started(pid) for pid in waiting))


def _agents_below(fork_server: int) -> set[int]:
    return {pid for pid in processes.below(fork_server) if _parent(pid) == fork_server}


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except FileNotFoundError:
        return 0


def test_an_unknown_engine_is_named_with_the_known_ones() -> None:
    with pytest.raises(ComputeTargetException, match="No engine named 'lokal'. Known: local"):
        registry.make("lokal", "")


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) > 1:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open(sys.argv[1] + "/daemon", "w").write(str(os.getpid()) + chr(10))
            time.sleep(600)
        os._exit(0)
    open(sys.argv[1] + "/main", "w").write(str(os.getpid()) + chr(10))
time.sleep(600)
"""


def test_a_tree_is_ended_with_its_daemons_even_if_it_ignores_sigterm(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUBBORN, str(tmp_path)], env={**os.environ, "AZUREML_RUN_ID": "stubborn-1"}
    )
    until_written(tmp_path / "main")
    daemon = int(until_written(tmp_path / "daemon"))
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    processes.end_tree("AZUREML_RUN_ID=stubborn-1", [process.pid], grace=0.2)
    process.wait(timeout=10)
    assert processes.started(daemon) is None
    assert bystander.poll() is None, "only what belongs to the tree is ended"
    bystander.kill()
    bystander.wait()


def test_a_process_without_grace_is_not_asked_first(tmp_path: Path) -> None:
    code = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: pathlib.Path(sys.argv[1]).touch())\n"
        "print('here', flush=True)\n"
        "while True: time.sleep(0.001)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "asked")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"here\n"
        processes.end_tree("", [process.pid], grace=0.0)
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "asked").exists()


def test_a_pid_that_was_used_again_is_not_taken_for_the_same_process() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    assert processes.alive(process.pid, processes.started(process.pid))
    assert not processes.alive(process.pid, "1")
    process.kill()
    process.wait()
    assert not processes.alive(process.pid, "1")

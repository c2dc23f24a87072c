"""Ray's own autoscaler brings a machine up for a run and lets it go; the cluster is named by its own address."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from azureml.core import ComputeTarget, Experiment, ScriptRunConfig, Workspace
from lapis.sdk.compute.attached_compute import RayCompute
from lapis.testing import Home, until
from tests.needs import lacking
from tests.ray_cluster import _python_with_ray

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("ray")]
SOON = 120.0  # seconds
# Ray's provider for its own tests: a node is some processes on this machine.
CLUSTER: dict[str, Any] = {
    "cluster_name": "scaling",
    "max_workers": 2,
    "idle_timeout_minutes": 0.1,
    "provider": {
        "type": "fake_multinode",
        "use_node_id_as_ip": True,
        "disable_node_updaters": True,
        "disable_launch_config_check": True,
    },
    "head_node_type": "head",
    "available_node_types": {
        "head": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
        "small": {"resources": {"CPU": 2}, "node_config": {}, "min_workers": 0, "max_workers": 2},
    },
    **{key: {} for key in ("auth", "docker", "file_mounts")},
    **{
        key: []
        for key in (
            *("initialization_commands", "setup_commands", "head_setup_commands", "worker_setup_commands"),
            *("head_start_ray_commands", "worker_start_ray_commands", "cluster_synced_files"),
            *("rsync_exclude", "rsync_filter"),
        )
    },
}


def test_a_run_brings_a_machine_up_and_when_it_is_idle_ray_lets_it_go(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        lacking("a network of its own for Ray needs root and ip")
    python = _python_with_ray()
    failed: list[BaseException] = []

    def apart() -> None:
        try:
            _leave_the_network()
            _scales(tmp_path, python)
        except BaseException as error:  # of a thread: to be raised in the test
            failed.append(error)

    thread = threading.Thread(target=apart)  # whose network ends with it
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def _scales(folder: Path, python: str) -> None:
    source = folder / "source"
    source.mkdir()
    (source / "train.py").write_text("print('trained')\n")
    home = Home(folder / "home")
    names = {"LAPIS_HOME": str(home.path), "LAPIS_RAY_PYTHON": python, "RAY_AUTH_MODE": "disabled"}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        with _cluster(folder, python) as nodes:
            workspace = Workspace.create("scaling", show_output=False)
            shape = RayCompute.attach_configuration("127.0.0.1:6379", vm_size="STANDARD_D2_V2", max_nodes=2)
            ComputeTarget.attach(workspace, "ray", shape)
            assert nodes() == 1
            run = Experiment(workspace, "trial").submit(ScriptRunConfig(str(source), "train.py", compute_target="ray"))
            run.wait_for_completion()
            assert "trained" in run._text_of("user_logs/std_log.txt")
            assert nodes() == 2
            until(lambda: nodes() == 1, seconds=SOON)
    finally:
        home.end()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def _cluster(folder: Path, python: str) -> Iterator[Callable[[], int]]:
    """A head without CPUs. Yields what counts the cluster's nodes."""
    ray = str(Path(python).with_name("ray"))
    (folder / "cluster.json").write_text(json.dumps(CLUSTER))  # which is YAML too
    place = tempfile.mkdtemp(prefix="lray-")  # short: Ray's sockets are in it
    log = folder / "head.log"
    command = [
        ray, "start", "--head", "--block", "--num-cpus=0", "--node-ip-address=127.0.0.1", "--port=6379",
        "--include-dashboard=false", "--disable-usage-stats", f"--temp-dir={place}",
        "--object-store-memory=80000000", f"--autoscaling-config={folder}/cluster.json",
    ]  # fmt: skip
    kept = {**os.environ, "PATH": f"{Path(python).parent}:{os.environ['PATH']}", "AUTOSCALER_UPDATE_INTERVAL_S": "1"}
    apart = ["unshare", "--pid", "--fork", "--mount", "--mount-proc", "--kill-child"]  # so that all end with it
    with open(log, "wb") as file:
        head = subprocess.Popen(
            [*apart, *command],
            env={**kept, "RAY_FAKE_CLUSTER": "1"},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )

    def nodes() -> int:
        code = "import ray; ray.init('127.0.0.1:6379'); print('nodes:', sum(n['Alive'] for n in ray.nodes()))"
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        return int(re.findall(r"nodes: (\d+)", done.stdout)[0])  # the autoscaler has more to say

    try:
        until(lambda: b"Ray runtime started" in log.read_bytes() or head.poll() is not None, seconds=SOON)
        assert head.poll() is None, log.read_text()[-2000:]
        yield nodes
    finally:
        head.send_signal(signal.SIGKILL)
        head.wait()
        shutil.rmtree(place, ignore_errors=True)


def _leave_the_network() -> None:
    """This thread, and what it starts, has a loopback interface and nothing else."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000):  # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

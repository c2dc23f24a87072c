"""The Ray engine: from submit to the script's first line, beside `ray job submit` on the same cluster.

The cluster is one node in a network of its own that has loopback and nothing else, since Ray listens everywhere. Needs
root.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import peers
from home import Home
from measure import Asked, Figure, Options, Reading, alone
from servers import free_port

from azureml.core import ScriptRunConfig
from azureml.core.compute import ComputeTarget
from lapis.sdk.compute.attached_compute import RayCompute

ROUNDS = 5
SCRIPT = 'import time\nprint("first line", time.time(), flush=True)\n'
# What `ray job submit` does, without the seconds that its command line needs to import Ray.
_JOBS = """
import sys, time
from ray.job_submission import JobSubmissionClient
address, command, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
client = JobSubmissionClient(address)
for number in range(rounds + 1):
    began = time.time()
    job = client.submit_job(entrypoint=command)
    while client.get_job_status(job).value not in ("SUCCEEDED", "FAILED", "STOPPED"):
        time.sleep(0.02)
    line = [each for each in client.get_job_logs(job).splitlines() if each.startswith("first line")][0]
    if number:  # the first one warms up
        print(float(line.split()[-1]) - began, flush=True)
"""


def measure(options: Options) -> list[Figure]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise SystemExit("A network of its own for Ray needs root and the command ip.")
    python = peers.ray_interpreter()
    if python is None:
        raise SystemExit("There is no Ray to compare with.")
    _leave_the_network()
    os.environ["RAY_AUTH_MODE"] = "disabled"  # nobody else is in this network
    with Home() as home, _cluster(python) as (client, dashboard):
        os.environ["LAPIS_RAY_PYTHON"] = python
        experiment, folder = home.experiment(), home.source(SCRIPT)
        shape = RayCompute.attach_configuration(client, vm_size="STANDARD_DS1_V2", max_nodes=1)
        ComputeTarget.attach(experiment.workspace, "ray", shape)
        lapis = [_submitted(experiment, folder) for _ in range(ROUNDS + 1)][1:]
        jobs = _jobs(python, dashboard, f"{folder}/train.py")
    readings = [Reading("Lapis", lapis), Reading("ray job submit", jobs, bare=True)]
    return [Figure("Ray engine: submit to the script's first line", "s", readings, Asked(times_bare=1.5))]


def _submitted(experiment: Any, folder: str) -> float:
    began = time.time()
    run = experiment.submit(ScriptRunConfig(folder, "train.py", compute_target="ray"))
    run.wait_for_completion()
    text = str(run._text_of("user_logs/std_log.txt"))
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith("first line")) - began


def _jobs(python: str, dashboard: str, script: str) -> list[float]:
    command = [python, "-c", _JOBS, dashboard, f"{python} {script}", str(ROUNDS)]
    deadline = time.monotonic() + 120  # until the node takes jobs
    while True:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            return [float(line) for line in done.stdout.split()]
        if time.monotonic() > deadline:
            raise SystemExit(f"ray job submit does not work here: {done.stderr[-500:]}")
        time.sleep(1.0)


@contextmanager
def _cluster(python: str) -> Iterator[tuple[str, str]]:
    """A node with two CPUs: the addresses for clients and for jobs."""
    gcs, client, dashboard = free_port(), free_port(), free_port()
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # Ray's sockets bear no long path
    command = [
        str(Path(python).with_name("ray")), "start", "--head", "--block", "--num-cpus=2", "--disable-usage-stats",
        "--node-ip-address=127.0.0.1", f"--port={gcs}", f"--ray-client-server-port={client}",
        "--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard}", f"--temp-dir={folder}",
        "--object-store-memory=80000000",
    ]  # fmt: skip
    with open(os.path.join(folder, "head.log"), "wb") as log:
        head = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait_for(client, head)
        yield f"ray://127.0.0.1:{client}", f"http://127.0.0.1:{dashboard}"
    finally:
        head.terminate()
        head.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(port: int, head: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if head.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("Ray does not start here.") from None
            time.sleep(0.1)


def _leave_the_network() -> None:
    """This process and those it starts have a loopback interface and nothing else."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000):  # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


if __name__ == "__main__":
    alone(measure)

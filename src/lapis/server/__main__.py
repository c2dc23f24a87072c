"""`python -m lapis.server`: serves one LAPIS_HOME until told to stop or, when started by itself, until idle."""

from __future__ import annotations

import argparse
import errno
import fcntl
import gc
import logging
import os
import signal
import socket
import stat
import sys
import threading
import time
from dataclasses import replace
from types import FrameType
from typing import IO

from lapis.domain import settings as settings_module
from lapis.domain.settings import Settings
from lapis.errors import AzureMLException, UserErrorException
from lapis.machine import json_files, listening, processes
from lapis.version import VERSION

_SECRETS = ("token", "secrets.key", "logins.json")
ALREADY_SERVED = 3  # exit status: another server has this home


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="lapis.server")
    parser.add_argument("--idle-seconds", type=float, default=0.0, help="leave after so long without work; 0: never")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    given = parser.parse_args(argv)
    try:
        settings = settings_module.load()
        settings = replace(
            settings,
            host=given.host or settings.host,
            port=given.port if given.port is not None else settings.port,
            idle_seconds=given.idle_seconds,
        )
        return serve(settings)
    except AzureMLException as error:
        print(error.message, file=sys.stderr)
        return 1


def serve(settings: Settings) -> int:
    address = listening.address_of(settings.host, f"LAPIS_HOST={settings.host!r}", "the server")
    settings = replace(settings, host=address)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    _make_home(settings.home)
    lock = _lock(settings.home)
    if lock is None:
        return ALREADY_SERVED
    gc.disable()  # until it is up: what it makes meanwhile stays, and looking through it takes a tenth of its start
    listener = _listen(settings)
    port = listener.getsockname()[1]
    url = f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"

    import uvicorn  # late: whoever lost the race for the lock need not pay for it

    from lapis.server.app import make_app, make_system
    from lapis.server.connections import BoundedProtocol
    from lapis.server.rest import Server, leave_in_time

    system = make_system(settings, url, time.time, lambda: server.leave())
    lifetime = system.control.lifetime

    def ready() -> None:
        gc.freeze()
        gc.enable()
        lifetime.asked()  # from here on it can be
        _publish(settings, url)
        threading.Thread(target=leave_in_time, args=(lifetime, lock, settings.idle_seconds), daemon=True).start()

    app = make_app(system, settings.host, ready)
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=2,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        lifespan="on",
    )
    server = Server(config)

    def on_signal(number: int, frame: FrameType | None) -> None:
        lifetime.stop()

    # uvicorn would install handlers of its own and raise the signal again at the end; we just leave
    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    import asyncio

    runner = asyncio.Runner(loop_factory=config.get_loop_factory())
    try:
        runner.run(server._serve(sockets=[listener]))
    finally:
        _withdraw(settings)
        lock.close()
    return 0


def _make_home(home: str) -> None:
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        _close_home(home)
        probe = os.path.join(home, f".probe-{os.getpid()}")
        with open(probe, "w") as file:
            file.write("can this folder be written?")
        os.remove(probe)
    except OSError as error:
        what = "is on a full disk" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "cannot be written"
        raise UserErrorException(
            f"LAPIS_HOME {home} {what} ({error.strerror}). Set LAPIS_HOME to a folder that can be."
        ) from error


def _close_home(home: str) -> None:
    """For its owner alone, and that is us: whoever may write to a folder may put another file in a file's place."""
    about = os.stat(home)
    if about.st_uid != os.getuid():
        raise UserErrorException(
            f"LAPIS_HOME {home} belongs to another user (number {about.st_uid}; the server runs as {os.getuid()}), who "
            "could read and replace what is in it. Set LAPIS_HOME to a folder of your own, or have it given to you."
        )
    for path in (home, *(os.path.join(home, name) for name in _SECRETS)):
        try:
            mode = os.stat(path, follow_symlinks=False).st_mode
        except FileNotFoundError:
            continue
        if mode & 0o077 and not stat.S_ISLNK(mode):
            os.chmod(path, stat.S_IMODE(mode) & 0o700)
            logging.getLogger("lapis.server").warning("%s was open to other users. It is closed to them now.", path)


def _lock(home: str) -> IO[str] | None:
    """Held for as long as the server lives; the kernel lets go of it however the server ends."""
    lock = open(os.path.join(home, "server.lock"), "a")  # noqa: SIM115
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def _listen(settings: Settings) -> socket.socket:
    """On the port asked for, else on the last one if it is free, so that agents and pages need not look for us."""
    for port in dict.fromkeys([settings.port or _last_port(settings), 0]):
        listener = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, port))
        except OSError as error:
            listener.close()
            if settings.port:
                raise UserErrorException(
                    f"Port {settings.port} of {settings.host} cannot be used ({error.strerror}). Choose another with "
                    "--port or LAPIS_PORT."
                ) from error
            continue
        listener.listen(2048)
        return listener
    raise UserErrorException(f"No port of {settings.host} is free.")


def _last_port(settings: Settings) -> int:
    try:
        with open(os.path.join(settings.home, "port")) as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _publish(settings: Settings, url: str) -> None:
    with open(os.path.join(settings.home, "port"), "w") as file:
        file.write(url.rsplit(":", 1)[1])
    about = {"url": url, "pid": os.getpid(), "version": VERSION, "started_at": time.time()}
    about.update(started=processes.started(os.getpid()), seen_from=processes.seen_from(), door=settings.door)
    json_files.write(settings.address_file, about, mode=0o644)


def _withdraw(settings: Settings) -> None:
    try:
        os.remove(settings.address_file)
    except FileNotFoundError:
        pass


if __name__ == "__main__":
    sys.exit(main())

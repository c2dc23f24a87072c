"""Finds the local server of this user, and starts it when none runs."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from lapis.client import logins
from lapis.client.http_client import Client, Endpoint, job_endpoint, vouched
from lapis.domain import settings as settings_module
from lapis.domain.settings import Settings
from lapis.errors import AuthenticationException, ServiceException, Unavailable, UserErrorException
from lapis.machine import rotation
from lapis.version import VERSION

_START_LIMIT = 60.0
_ALREADY_SERVED = 3


class LocalEndpoint(Endpoint):
    """The server of LAPIS_HOME, wherever it listens now; started if it is not there."""

    patience = 60.0
    by_address = False

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: tuple[str, str] | None = None

    def find(self, again: bool = False) -> tuple[str, str]:
        if self._known is None or again:
            self._known = ensure_server(self._settings)
        return self._known

    def confirm(self, url: str) -> None:
        _confirm(self._settings, url)

    def door(self) -> str | None:
        return (running(self._settings) or {}).get("door")

    def describe(self) -> str:
        return f"The local server of {self._settings.home} does not answer. Its log is server.log in that folder."


class LocalByAddress(Endpoint):
    """The server of LAPIS_HOME where somebody named its address. None is started in its place."""

    def __init__(self, settings: Settings, url: str) -> None:
        super().__init__(url, _token(settings))
        self._settings = settings

    def confirm(self, url: str) -> None:
        _confirm(self._settings, url)

    def door(self) -> str | None:
        return (running(self._settings) or {}).get("door")


def _confirm(settings: Settings, url: str) -> None:
    about = running(settings)
    if about is None or logins.origin(about["url"]) != logins.origin(url):
        raise ConnectionRefusedError("The server that listened there has left.")


def client() -> Client:
    """A client of the server that this process should talk to: in a job the job's, else the one configured, else
    the local one."""
    job = job_endpoint()
    if job is not None:
        return Client(job)
    settings = settings_module.load()
    return Client(endpoint_at(settings, settings.server) if settings.server else LocalEndpoint(settings))


def endpoint_at(settings: Settings, server: str) -> Endpoint:
    """The way to the server at that address, with the token that was given for it and no other."""
    about = running(settings)
    if about is not None and logins.origin(about["url"]) == logins.origin(server):
        return LocalByAddress(settings, server)
    return Endpoint(server, token_for(settings, server))


def token_for(settings: Settings, server: str) -> str:
    """What opens the server at that address: a token belongs to the address that it was made for.

    So a config.json that came with somebody's repository cannot have ours sent to a place that it names.
    """
    named_by_user = settings.server and logins.origin(settings.server) == logins.origin(server)
    token = settings.token if named_by_user and settings.token else logins.token_for(settings, server)
    if token is None:
        raise AuthenticationException(
            f"You are not logged in to the server at {server}, and the tokens of other servers are not sent there. If "
            f"you trust it, `lapis login {server}` asks for its token and keeps it; or set LAPIS_SERVER to this "
            "address and LAPIS_TOKEN to its token."
        )
    return token


def running(settings: Settings) -> dict[str, Any] | None:
    """What the running server wrote about itself; None if there is none."""
    try:
        with open(settings.address_file) as file:
            about: dict[str, Any] = json.load(file)
        return about if vouched(about) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def ensure_server(settings: Settings) -> tuple[str, str]:
    """The address and token of this user's server. Two that start one at once both get the one that won."""
    about = running(settings)
    if about is not None and _newer(VERSION, str(about.get("version", ""))):
        stop(settings, about)
        about = None
    if about is None or not _answers(about["url"]):
        about = _start(settings)
    return about["url"], _token(settings)


def stop(settings: Settings, about: dict[str, Any]) -> bool:
    """Ask the server to leave, and wait until it has. Its runs carry on."""
    try:
        Client(Endpoint(about["url"], _token(settings)), timeout=10.0).call("POST", "/stop", {})
    except (ServiceException, UserErrorException):
        return False
    deadline = time.monotonic() + 15.0
    while time.monotonic() < deadline:
        if running(settings) is None:
            return True
        time.sleep(0.02)
    return False


def _start(settings: Settings) -> dict[str, Any]:
    from lapis.client import server_python  # only who starts a server needs to know how one is made

    _check_home(settings.home)
    log_path = os.path.join(settings.home, "server.log")
    command = [server_python.chosen(settings), "-m", "lapis.server", "--idle-seconds", str(settings.idle_seconds)]
    variables = server_python.environment(settings)
    process, began = _spawn(settings, command, variables, log_path)
    began_at, told = time.monotonic(), False
    try:
        while time.monotonic() - began_at < _START_LIMIT:
            about = running(settings)
            if about is not None and _answers(about["url"]):
                return about
            status = process.poll()
            if status == _ALREADY_SERVED and about is None:
                time.sleep(0.1)  # another one starts, or was just leaving: then it is our turn
                process, began = _spawn(settings, command, variables, log_path)
            elif status not in (None, _ALREADY_SERVED):
                raise Unavailable(f"The local server could not start: {_tail(log_path, began)}{_advice(settings)}")
            if not told and time.monotonic() - began_at > 3.0:
                print(f"Lapis: starting the local server of {settings.home} ...", file=sys.stderr)
                told = True
            time.sleep(0.02)
        raise Unavailable(
            f"The local server of {settings.home} did not answer within {_START_LIMIT:.0f} s. Its log: {log_path}."
        )
    finally:
        process.returncode = 0  # it is not ours to wait for, and Python need not warn that it lives on


def _spawn(settings: Settings, command: list[str], variables: dict[str, str], log_path: str) -> tuple[Any, int]:
    """A server process, and where in the log it begins."""
    import subprocess

    rotation.rotate(log_path)
    with open(log_path, "ab") as log:
        process = subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=settings.home,
            start_new_session=True,  # it outlives us, and Ctrl-C in our terminal passes it by
        )
        return process, log.tell()


def _check_home(home: str) -> None:
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        with open(os.path.join(home, "server.log"), "ab"):
            pass
    except OSError as error:
        raise UserErrorException(
            f"LAPIS_HOME {home} cannot be written ({error.strerror}). Set LAPIS_HOME to a folder that can be."
        ) from error


def _advice(settings: Settings) -> str:
    if not settings.python:
        return ""
    return f" (LAPIS_PYTHON names {settings.python}: it must be Python 3.11 or later with lapis-ml[server] in it.)"


def _answers(url: str) -> bool:
    import socket

    host, _, port = url.partition("://")[2].rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=5.0):
            return True
    except OSError:
        return False


def _token(settings: Settings) -> str:
    with open(settings.token_file) as file:
        return file.read().strip()


def _newer(ours: str, theirs: str) -> bool:
    def key(version: str) -> list[int]:
        return [int(part) for part in version.split(".") if part.isdigit()]

    return key(ours) > key(theirs)


def _tail(path: str, since: int) -> str:
    with open(path, "rb") as file:
        file.seek(since)
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"it said nothing. Its log: {path}."

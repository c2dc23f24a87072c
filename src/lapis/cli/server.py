"""Commands about the server: serve, prepare-server, status, stop, open."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lapis.cli import choice, screen
from lapis.cli.options import Json, WorkspaceName
from lapis.client.command_line import ABOUT_EXTRA, ABOUT_FIND_LINKS

if TYPE_CHECKING:
    from lapis.domain.settings import Settings

_ALREADY_SERVED = 3  # the server's exit status when another one has its home


def serve(
    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Where to listen; 127.0.0.1 by default.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The port; the one of the last time by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the server in this terminal until Ctrl-C.

    Nobody has to: a local server starts by itself when one is needed, and leaves when idle.
    """
    import signal
    import subprocess

    from lapis.client import local_server, server_python
    from lapis.domain import settings as settings_module

    settings = settings_module.load()
    _refuse_second(settings)
    command = [sys.executable, "-P", "-m", "lapis.server"]  # -P: what lies in this folder is none of its modules
    command += ["--host", host] if host is not None else []
    command += ["--port", str(port)] if port is not None else []
    environment = server_python.environment(settings)
    server = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: server.terminate())  # it leaves, and we stay to see it off
    about = None
    while about is None and server.poll() is None:
        found = local_server.running(settings)
        about = found if found is not None and found["pid"] == server.pid else None
        time.sleep(0.02)
    if about is not None:
        address = about["url"]
        screen.answer(
            {"address": address, "home": settings.home, "pid": server.pid},
            lambda: print(f"Lapis serves {settings.home} at {address}. Ctrl-C stops it; runs carry on.", flush=True),
        )
    status = server.wait()
    if status == _ALREADY_SERVED:
        _refuse_second(settings)
    if about is None and status != 0:  # the server has said why on stderr
        message = "The server could not start."
        screen.answer({"error": {"code": "Unavailable", "message": message}}, lambda: None)
    raise typer.Exit(1 if status else 0)


def prepare(
    find_links: Annotated[str, typer.Option(metavar="DIR", help=ABOUT_FIND_LINKS)] = "",
    extra: Annotated[list[str] | None, typer.Option(metavar="NAME", help=ABOUT_EXTRA)] = None,
    as_json: Json = False,
) -> None:
    """Make the environment of the local server ahead of time.

    It is made by itself when a server is first needed; a machine without a network needs a folder of wheels for it.
    """
    from lapis.client.command_line import prepare_server

    python = prepare_server(extra or [], find_links)
    screen.answer({"python": python}, lambda: print(f"The local server runs with {python}."))


def status(as_json: Json = False) -> None:
    """Say whether a server runs, where, and what it does. Starts none."""
    from lapis.domain import settings as settings_module

    choice.use_configured_server()
    settings = settings_module.load()
    address, about = _ask(settings)
    if about is None:
        where = f"at {settings.server}" if settings.server else f"for {settings.home}"
        remark = f"No server runs {where}. " + (
            "Is the address right?" if settings.server else "One starts by itself when it is needed."
        )
        screen.answer({"running": False, "address": settings.server, "home": settings.home}, lambda: print(remark))
        return
    uptime = max(0.0, time.time() - about["started_at"])
    from lapis.sdk.base.display import when

    screen.answer(
        {
            "running": True,
            "address": address,
            "version": about["version"],
            "home": about["home"],
            "pid": about["pid"],
            "started_at": when(about["started_at"]),
            "uptime_seconds": round(uptime, 1),
            "active_runs": about["active_runs"],
            "services": about.get("services", 0),
            "failed_services": about.get("failed_services", 0),
            "isolation": about.get("isolation"),
        },
        lambda: screen.facts(
            [
                ("Server", f"running at {address}"),
                ("Version", about["version"]),
                ("Home", about["home"]),
                ("Uptime", f"{screen.duration(uptime)} (process {about['pid']})"),
                ("Active runs", str(about["active_runs"])),
                ("Services", _services(about)),
                ("Isolation", about.get("isolation_says") or "not known: the server is of an older release"),
            ]
        ),
    )


def stop(as_json: Json = False) -> None:
    """Stop the local server. Its runs carry on, and the next server finds them."""
    from lapis.client import local_server
    from lapis.domain import settings as settings_module
    from lapis.errors import Unavailable

    settings = settings_module.load()
    told = local_server.running(settings)
    if told is None:
        screen.answer(
            {"stopped": False, "address": None}, lambda: print(f"No server runs for {settings.home}: nothing to stop.")
        )
        return
    about = _about(told["url"], local_server._token(settings))
    if not local_server.stop(settings, told):
        raise Unavailable(
            f"The server at {told['url']} (process {told['pid']}) did not stop. Its log: "
            f"{os.path.join(settings.home, 'server.log')}."
        )
    told_of = about or {"active_runs": 0}
    active, services, failed = (told_of.get(key, 0) for key in ("active_runs", "services", "failed_services"))
    answering = services - failed
    runs = "No run is under way" if active == 0 else "1 run carries on" if active == 1 else f"{active} runs carry on"
    if answering:
        runs += (
            f", and {answering} service{' goes' if answering == 1 else 's go'} on answering (`lapis service delete`)"
        )
    if failed:
        runs += f"; {failed} service{' has' if failed == 1 else 's have'} failed (`lapis service list`)"
    screen.answer(
        {
            "stopped": True,
            "address": told["url"],
            "active_runs": active,
            "services": services,
            "failed_services": failed,
        },
        lambda: print(
            f"Stopped the server at {told['url']}. {runs}; the next command starts a server when it needs one."
        ),
    )


def open_page(
    run_id: Annotated[str | None, typer.Argument(metavar="[RUN_ID]", help="The run; without one, all runs.")] = None,
    only_print: Annotated[bool, typer.Option("--print", help="Print the address, open nothing.")] = False,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Print the address of a run's page and open it in a browser, where there is a display.

    The address holds the key to your pages: whoever has it can look at your runs.
    """
    from lapis.sdk.workspace.portal import portal_url_with_key

    ws = choice.workspace(workspace)
    address = portal_url_with_key(ws, "/runs" if run_id is None else f"/runs/{choice.run_of(ws, run_id).id}")
    opened = not only_print and _open_in_browser(address)
    screen.answer({"address": address, "opened": opened}, lambda: print(address))


def _services(about: dict[str, Any]) -> str:
    failed = about.get("failed_services", 0)
    return str(about.get("services", 0)) + (f", of which {failed} failed (`lapis service list`)" if failed else "")


def _refuse_second(settings: Settings) -> None:
    from lapis.client import local_server
    from lapis.errors import Conflict

    about = local_server.running(settings)
    if about is not None:
        raise Conflict(
            f"A server of {settings.home} runs already, at {about['url']} (process {about['pid']}). "
            "`lapis stop` stops it; its runs carry on."
        )


def _ask(settings: Settings) -> tuple[str, dict[str, Any] | None]:
    """The address of the server that commands would talk to, and what it says of itself; None if none answers."""
    from lapis.client import local_server

    if settings.server:
        return settings.server, _about(*local_server.endpoint_at(settings, settings.server).find())
    told = local_server.running(settings)
    if told is None:
        return "", None
    return told["url"], _about(told["url"], local_server._token(settings))


def _about(address: str, token: str) -> dict[str, Any] | None:
    from lapis.client.http_client import Client, Endpoint
    from lapis.errors import Unavailable

    try:
        found: dict[str, Any] = Client(Endpoint(address, token), timeout=10.0).call("GET", "/about", patience=0.0)
    except Unavailable:
        return None
    return found


def _open_in_browser(address: str) -> bool:
    """Through a page that only this user can read: a browser's command line is there for everybody to see."""
    if sys.platform not in ("darwin", "win32") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    import webbrowser
    from html import escape

    from lapis.domain import settings as settings_module

    page = os.path.join(settings_module.load().home, "open.html")
    os.makedirs(os.path.dirname(page), mode=0o700, exist_ok=True)
    with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(address)}">\n')
    return webbrowser.open(f"file://{page}")

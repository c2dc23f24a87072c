"""Commands about tokens of other servers: login, logout."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from lapis.cli import screen
from lapis.cli.options import Json, given_secret

Server = Annotated[str, typer.Argument(metavar="ADDRESS", help="The server's address, such as http://10.0.0.5:8787.")]


def login(
    server: Server,
    token_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Read the token from a file; without it, it is asked for.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Keep the token of a server that somebody else runs, for that address alone.

    The token is asked for, or read from standard input where that is no terminal. It is tried before it is kept.
    """
    from lapis.client import logins
    from lapis.client.http_client import Client, Endpoint
    from lapis.domain import settings as settings_module
    from lapis.errors import UserErrorException

    address = _checked(server)
    token = given_secret(f"Token of {address}: ", token_file).strip()
    if not re.fullmatch("[!-~]+", token):
        raise UserErrorException("That is no token: one is a word, in the file `token` of the server's LAPIS_HOME.")
    Client(Endpoint(address, token), timeout=10.0).call("GET", "/workspaces")  # raises unless it lets us in
    logins.keep(settings_module.load(), address, token)
    screen.answer({"address": address, "kept": True}, lambda: print(f"Logged in to {address}."))


def logout(server: Server, as_json: Json = False) -> None:
    """Forget the token of a server."""
    from lapis.client import logins
    from lapis.domain import settings as settings_module

    address = _checked(server)
    forgotten = logins.forget(settings_module.load(), address)
    said = f"Logged out of {address}." if forgotten else f"You were not logged in to {address}."
    screen.answer({"address": address, "forgotten": forgotten}, lambda: print(said))


def _checked(server: str) -> str:
    from lapis.errors import UserErrorException

    if not re.fullmatch("https?://[^/]+/?", server):
        raise UserErrorException(f"{server!r} is no address of a server. One looks like http://HOST:PORT.")
    return server.rstrip("/")

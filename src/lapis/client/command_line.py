"""The command `lapis`: needs nothing but Lapis itself, and runs `lapis.cli` where that finds what it needs.

That is here, if the extra `server` is installed here, else in the server's environment. Making that environment is the
one command that works before it is there.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Sequence

from lapis.client import server_environment, server_python, server_requirements, submitting_python
from lapis.domain import settings as settings_module
from lapis.errors import AzureMLException, ServiceException, UserErrorException
from lapis.version import VERSION


def main() -> int:
    """The exit status of the command, as `lapis.cli` says it."""
    arguments = sys.argv[1:]
    if server_requirements.are_here():
        return int(importlib.import_module("lapis.cli.__main__").main())  # by name: it is above us, and not light
    if arguments == ["--version"]:
        print(f"lapis {VERSION}")
        return 0
    try:
        if arguments[:1] == ["prepare-server"]:
            return _prepare(arguments[1:])
        settings = settings_module.load()
        python = server_python.chosen(settings)
        command = [python, "-P", "-m", "lapis.cli.for_client", submitting_python.describe(), *arguments]
        os.execve(python, command, server_python.environment(settings))
    except (AzureMLException, ServiceException) as error:
        print(f"Error: {error.message}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"Error: {error.filename}: {error.strerror or error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def prepare_server(extras: Sequence[str], wheels: str) -> str:
    """Make the environment that the next server runs in, with these extras. Gives its interpreter."""
    settings = settings_module.load()
    if settings.python or server_requirements.are_here():
        python = settings.python or sys.executable
        if extras:
            raise UserErrorException(
                f"The server runs with {python}, which has its own packages. Install there what is missing: "
                f"pip install 'lapis-ml[server,{','.join(extras)}]'."
            )
        return python
    return server_environment.ensure(server_environment.plan(settings.home, extras, wheels), server_environment.say)


def _prepare(arguments: Sequence[str]) -> int:
    import argparse

    parser = argparse.ArgumentParser(prog="lapis prepare-server", description=ABOUT_PREPARE)
    parser.add_argument("--find-links", metavar="DIR", default="", help=ABOUT_FIND_LINKS)
    parser.add_argument("--extra", metavar="NAME", action="append", default=[], help=ABOUT_EXTRA)
    parser.add_argument("--json", action="store_true", help="Print one JSON document, for programs.")
    given = parser.parse_args(list(arguments))
    python = prepare_server(given.extra, given.find_links)
    print(json.dumps({"python": python}) if given.json else f"The local server runs with {python}.")
    return 0


ABOUT_PREPARE = "Make the environment of the local server ahead of time."
ABOUT_FIND_LINKS = "Take the packages from this folder of wheels, not from the network."
ABOUT_EXTRA = f"Give the server this too: {', '.join(server_requirements.EXTRAS)}. Repeat it."

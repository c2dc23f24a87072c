"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from lapis.cli import screen

Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document, for programs.", callback=screen.use_json, is_eager=True),
]
WorkspaceName = Annotated[
    str | None,
    typer.Option("--workspace", "-w", metavar="NAME", help="The workspace, if not the one that config.json names."),
]
RunId = Annotated[str, typer.Argument(metavar="RUN_ID", help="The id of the run or how it begins; `latest`.")]
RunIds = Annotated[list[str], typer.Argument(metavar="RUN_ID...", help="The id of a run or how it begins; several.")]


def labels(pairs: list[str] | None, option: str, value_needed: bool = False) -> dict[str, str | None]:
    """`key=value` and, where a value is not needed, `key` alone."""
    found: dict[str, str | None] = {}
    for pair in pairs or []:
        key, sign, value = pair.partition("=")
        if not key or (value_needed and not sign):
            raise typer.BadParameter(f"{pair!r} is not of the form NAME=VALUE", param_hint=option)
        found[key] = value if sign else None
    return found


def given_secret(prompt: str, file: str | None = None) -> str:
    """From a file, the keyboard unseen, or standard input: never from the command line, which others can read."""
    import sys

    from lapis.errors import UserErrorException

    try:
        if file is not None:
            with open(file, encoding="utf-8") as opened:
                return opened.read()
        if not sys.stdin.isatty():
            return sys.stdin.read()
    except OSError as error:
        raise UserErrorException(f"{file} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise UserErrorException(f"{file or 'Standard input'} is not text: it has bytes that are not UTF-8.") from None
    import getpass

    return getpass.getpass(prompt)

"""Commands that keep a home in order: gc."""

from __future__ import annotations

from typing import Annotated

import typer

from lapis.cli import choice, screen
from lapis.cli.options import Json
from lapis.domain import in_words

_LONGEST = 3600.0  # seconds that a collection may take


def collect(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go; remove nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Remove what nobody needs any more: blobs that nothing names, runs past their time, old environments.

    Safe beside runs and uploads: what came or was asked for within a day stays.
    """
    from lapis.client.local_server import client

    choice.use_configured_server()
    done = client().call("POST", "/gc", {"dry_run": dry_run}, timeout=_LONGEST)
    found = [each for each in done["collected"] if each["count"]]
    freed = sum(each["freed"] for each in found)

    def show() -> None:
        rows = [
            [each["what"], str(each["count"]), in_words.size(each["bytes"]), in_words.size(each["freed"])]
            for each in found
        ]
        screen.table(["WHAT", "COUNT", "SIZE", "FREED"], rows, right=["COUNT", "SIZE", "FREED"])
        if not found:
            print("There is nothing that nobody needs.")
        elif dry_run:
            print(f"Nothing was removed: {in_words.size(sum(each['bytes'] for each in found))} would be freed.")
        else:
            print(f"{in_words.size(freed)} freed.")

    screen.answer({"dry_run": dry_run, "freed": freed, "collected": done["collected"]}, show)

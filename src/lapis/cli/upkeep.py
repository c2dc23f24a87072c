"""Commands that keep a home in order: gc, backup, restore, doctor."""

from __future__ import annotations

from typing import Annotated, Any

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


def back_up(
    place: Annotated[str, typer.Argument(metavar="PLACE", help="A folder, or a file that ends with .tar.")],
    as_json: Json = False,
) -> None:
    """Write a backup of the local server's home, while it is at work.

    Into a folder that holds an earlier backup, only what is new is copied. A backup holds your token and the key of all
    stored credentials: keep it like a password.
    """
    from lapis.upkeep import backup

    done = backup.back_up(_own_home("backup"), place, screen.notice)
    for digest in done.missing[:5]:
        screen.notice(f"Blob {digest} is named but not there, so the backup lacks it too. `lapis doctor` says by whom.")
    said = f"{len(done.files)} files, {in_words.size(done.size)}; {in_words.size(done.copied)} copied"
    screen.answer(
        {"place": place, "files": len(done.files), "size": done.size, "copied": done.copied, "missing": done.missing},
        lambda: print(f"{place}: {said}."),
    )


def restore(
    place: Annotated[str, typer.Argument(metavar="PLACE", help="The folder or file of a backup.")],
    as_json: Json = False,
) -> None:
    """Bring a backup back into LAPIS_HOME, which must be empty. Every file is checked against its hash first."""
    from lapis.upkeep.restore import restore as bring_back

    home = _own_home("restore")
    done = bring_back(place, home, screen.notice)
    said = f"{done.files} files, {in_words.size(done.size)}"
    if done.interrupted:
        said += f"; {done.interrupted} runs that were under way have failed"
    screen.answer(
        {"home": home, "files": done.files, "size": done.size, "interrupted": done.interrupted},
        lambda: print(f"{home}: {said}."),
    )


def examine(
    deep: Annotated[bool, typer.Option("--deep", help="Read every blob and check it against its hash.")] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Repair what can be repaired safely.")] = False,
    as_json: Json = False,
) -> None:
    """Look over the home of the local server: what is wrong, and what to do now. Starts no server."""
    from lapis.domain import settings as settings_module
    from lapis.upkeep import doctor

    _own_home("doctor")
    told = []
    for finding in doctor.examine(settings_module.load(), deep, screen.notice):
        done = doctor.mended(finding) if fix else None
        told.append({**{name: getattr(finding, name) for name in ("subject", "level", "what", "now")}, "done": done})
        if not screen.wants_json():
            advice = done or finding.now
            print(
                f"{finding.level:<5}  {finding.subject}: {finding.what}" + (f" {advice}" if advice else ""), flush=True
            )
    wrong = [each for each in told if each["level"] == doctor.WRONG and not _repaired(each)]
    screen.answer({"findings": told, "wrong": len(wrong)}, lambda: None)
    raise typer.Exit(1 if wrong else 0)


def _repaired(told: dict[str, Any]) -> bool:
    return told["done"] is not None and not str(told["done"]).startswith("Not repaired")


def _own_home(command: str) -> str:
    from lapis.domain import settings as settings_module
    from lapis.errors import UserErrorException

    settings = settings_module.load()
    if settings.server:
        raise UserErrorException(
            f"LAPIS_SERVER names {settings.server}, and `lapis {command}` works on the files of a home: run it on the "
            "machine of that server, with LAPIS_SERVER unset."
        )
    return settings.home

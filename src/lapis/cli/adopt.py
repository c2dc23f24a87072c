"""`lapis adopt`: lets pip believe that Microsoft's packages are installed, so that it does not install them."""

from __future__ import annotations

from typing import Annotated

import typer

from lapis.cli import screen
from lapis.cli.options import Json


def adopt(
    remove: Annotated[bool, typer.Option("--remove", help="Take the stand-ins away again.")] = False,
    as_json: Json = False,
) -> None:
    """Stand in for Microsoft's packages here, so that `pip install azureml-core` leaves Lapis in place.

    Entries in the list of installed packages, no files to import. `pip uninstall` removes one, --remove all.
    """
    from lapis.client.submitting_python import submitting_python
    from lapis.sdk.base import stand_ins

    python = submitting_python().path
    folder, names = stand_ins.remove(python) if remove else stand_ins.lay(python)

    def show() -> None:
        if remove:
            print(f"Removed {len(names)} stand-ins from {folder}.")
        else:
            print(f"pip finds these installed in {folder} now, and leaves Lapis in place: {', '.join(names)}.")

    screen.answer({"folder": folder, "removed" if remove else "adopted": names}, show)

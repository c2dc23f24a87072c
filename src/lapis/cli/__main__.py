"""`lapis`: runs one command, and says in one line what went wrong when something did."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from lapis.cli import screen
from lapis.cli.app import app

_INTERRUPTED = 130
# Typer brought its own Click along from some release on: the class of usage errors is found through one of them.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 fine, 1 it did not work, 2 the command line cannot be understood, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    screen.begin()
    if os.environ.get("_LAPIS_COMPLETE"):  # a shell asks: commands without --install-completion do not know the shells
        from typer._completion_classes import completion_init

        completion_init()
    try:
        result = app(args=given, prog_name="lapis", standalone_mode=False)
    except _UsageError as error:
        return screen.fail("Usage", _usage(error), status=2, as_json="--json" in given)
    except (typer.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return screen.fail("System", f"{where}{error.strerror or error}.")
    except Exception as error:
        if not _is_deliberate(error):
            raise
        return screen.fail(str(error.code), str(error.message))  # type: ignore[attr-defined]
    return result if isinstance(result, int) else 0


def _usage(error: Exception) -> str:
    said = str(error.format_message())  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    end = "" if said.endswith((".", "?")) else "."
    return f"{said}{end} See `{context.command_path if context else 'lapis'} --help`."


def _is_deliberate(error: Exception) -> bool:
    from lapis.errors import AzureMLException, ServiceException

    return isinstance(error, (AzureMLException, ServiceException))


if __name__ == "__main__":
    sys.exit(main())

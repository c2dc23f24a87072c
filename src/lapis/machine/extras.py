"""How a package that Lapis can do without gets into the interpreter that lacks it."""

from __future__ import annotations

import os
import sys

SERVER_ENVIRONMENTS = "server-environments"  # the folder of LAPIS_HOME that the server's own environments lie in


def how_to_get(extra: str) -> str:
    """The command to type: the server's own environment is Lapis' to fill, any other is the user's."""
    environment = os.path.dirname(os.path.dirname(os.path.abspath(sys.executable)))
    if os.path.basename(os.path.dirname(environment)) == SERVER_ENVIRONMENTS:
        return f"`lapis prepare-server --extra {extra}`, then `lapis stop`"
    return f"pip install 'lapis-ml[{extra}]'"

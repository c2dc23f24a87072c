"""Which interpreter the server runs in, and with what on its path: ours alone, whoever starts it."""

from __future__ import annotations

import hashlib
import os
import sys

from lapis.client import server_environment, server_requirements
from lapis.domain.settings import Settings
from lapis.machine import own_sources
from lapis.machine.commands import Tell

# What would bring something of the asking interpreter along, or change how the server's finds its modules.
_OF_THE_ASKER = ("PYTHONPATH", "PYTHONHOME", "PYTHONSAFEPATH", "PYTHONPLATLIBDIR", "__PYVENV_LAUNCHER__")


def chosen(settings: Settings, tell: Tell = server_environment.say) -> str:
    """The one that LAPIS_PYTHON names, else this one if it has what the server needs, else that of the server's own
    environment, which is made when it is not there."""
    if settings.python:
        return settings.python
    if server_requirements.are_here():
        return sys.executable
    return server_environment.ensure(server_environment.plan(settings.home), tell)


def environment(settings: Settings) -> dict[str, str]:
    """The variables that it is started with. Both sides run the same source of Lapis: the one that asks."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THE_ASKER}
    return {**kept, "PYTHONPATH": _sources(settings.home)}


def _sources(home: str) -> str:
    """Links to `azureml` and `lapis`: what lies beside them is the asker's, and not the server's."""
    name = hashlib.sha256(os.fsencode(own_sources.real_folders()[0])).hexdigest()[:16]
    return own_sources.link_into(os.path.join(home, "sources", name))

"""Runs the tools that fetch and build packages apart from the server: they run the code of strangers.

Every such tool is started here and nowhere else. It sees no variable but those it needs, has a home and a working
folder of its own that go when it ends, and no input. Where the server has a rule of addresses, it goes through a proxy
that holds it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from lapis.domain.addresses import rule_of
from lapis.environments import contained, guarded_proxy
from lapis.machine import commands
from lapis.machine.commands import Canceled, Said, Tell


def run(
    argv: Sequence[str],
    root: str,
    variables: Mapping[str, str],
    tell: Tell = commands.silent,
    canceled: Canceled = commands.never,
    keep_open: Sequence[int] = (),
    folder: str | None = None,
    of_a_container: bool = False,
) -> Said:
    """As commands.run, with `variables`, of which machine.surroundings lets through what is harmless; in `folder`, else
    in the tool's own home. That lies beside `root`, the machine's environments.

    What runs in a container is apart anyway: its runtime finds its own settings.
    """
    place = os.path.join(os.path.dirname(os.path.abspath(root)), "cache", "homes")
    os.makedirs(place, mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as home, _proxy() as through:
        environment = {**_files_of_the_user(), **variables, **through, "HOME": home, "GIT_TERMINAL_PROMPT": "0"}
        if of_a_container:
            environment.update({name: value for name, value in os.environ.items() if _is_of_runtime(name)})
        else:
            argv = contained.building(argv, root, environment, folder or home)
        return commands.run(argv, environment, folder or home, tell, canceled, keep_open)


def _proxy() -> guarded_proxy.Proxied:
    rule = rule_of(os.environ)
    if (rule.allowed is None and not any(rule.forbidden)) or guarded_proxy.is_behind_another(os.environ):
        return nullcontext({})
    return guarded_proxy.guarding(rule)


def _is_of_runtime(name: str) -> bool:
    return name in ("HOME", "XDG_RUNTIME_DIR") or name.startswith("DOCKER_")


def _files_of_the_user() -> dict[str, str]:
    """Where the tools find what the user told them, now that their home is another."""
    found = {"UV_CONFIG_FILE": settings_of_uv() or ""}
    found.update(NETRC=os.path.expanduser("~/.netrc"), CONDARC=os.path.expanduser("~/.condarc"))
    return {name: path for name, path in found.items() if not os.environ.get(name) and os.path.isfile(path)}


def settings_of_uv() -> str | None:
    """The file of uv's own settings, if there is one."""
    of_user = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "uv", "uv.toml")
    known = (os.environ.get("UV_CONFIG_FILE"), of_user, "/etc/uv/uv.toml")
    return next((path for path in known if path and os.path.isfile(path)), None)

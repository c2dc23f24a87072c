"""Starts code of others apart from what is ours: as a user of its own, else in namespaces of its own.

A script, a model and the `setup.py` of a package run whatever their authors wrote. Where this process is root they get
a user that nobody else is, who sees of the hidden folders only what it is given. Where it is not, they stay the same
user, in namespaces in which the hidden folders, the server and all other processes are not there.

As a program: `apart.py REACH COMMAND...` becomes the command (`command` makes such lines).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import stat
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Mapping, Sequence

if TYPE_CHECKING:
    from lapis.machine.namespaces import UsersAhead

if __name__ == "__main__":  # started by its path, in an interpreter that does not know our packages
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

OWN_USER, OWN_NAMESPACES, SHARED = "own user", "own namespaces", "shared user"
AUTO, REQUIRED, OFF = "auto", "required", "off"
SETTING = "LAPIS_ISOLATION"
# Users that no distribution, no container and no directory service gives to anybody.
_FIRST_USER, _USERS = 0x70000000, 0x0FFFFFFF
_PATHS = (
    "PYTHONPATH", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"
)  # fmt: skip
_OF_THE_SYSTEM = frozenset(
    "bin boot dev etc lib lib32 lib64 libx32 lost+found nix proc run sbin snap sys usr var".split()
)
_DEVICES = ("/dev/dri", "/dev/kfd")  # of GPUs that are for the members of a group


@dataclass(frozen=True)
class Reach:
    """What code of others may reach of what is hidden from it. Of what is not there, nothing comes."""

    owner: str  # each one's code runs as a user of its own
    hidden: tuple[str, ...]
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Reach:
        return Reach(value["owner"], *(tuple(value[name]) for name in ("hidden", "readable", "writable")))


@dataclass(frozen=True)
class Level:
    kind: str
    why: str = ""  # why it is not more


_levels: dict[tuple[str, str], Level] = {}


def level(home: str, environ: Mapping[str, str] = os.environ) -> Level:
    """How far apart code of others runs from what lies in `home`. Tried out once in a process."""
    wish = environ.get(SETTING) or AUTO
    if wish == OFF:
        return Level(SHARED, f"{SETTING}=off")
    key = (home, wish)
    if key not in _levels:
        _levels[key] = _tried(home)
    return _levels[key]


def refused(found: Level, environ: Mapping[str, str] = os.environ) -> str:
    """Why no code of others is run at all; empty where it is."""
    if environ.get(SETTING) != REQUIRED or found.kind != SHARED:
        return ""
    return f"{SETTING}=required, and on this machine code cannot be run apart from the server's secrets: {found.why}."


def allowed(home: str) -> Level:
    """`level`, where code of others is run at all; else a UserErrorException says why it is not."""
    from lapis.errors import UserErrorException

    found = level(home)
    why_not = refused(found)
    if why_not:
        raise UserErrorException(why_not)
    return found


def said(found: Level) -> str:
    """In one line, for who asks."""
    return {
        OWN_USER: "runs, builds and services have a user of their own, and see nothing of the server's",
        OWN_NAMESPACES: "runs, builds and services have the server's user in namespaces of their own, without its files"
        " and processes",
        SHARED: "code and secrets share a user: a run, a build or a service can read all that the server can",
    }[found.kind] + (f" ({found.why})" if found.why else "")


def enter(reach: Reach, kind: str, ahead: UsersAhead | None = None) -> None:
    """This process is apart from now on, as is all that it starts. Raises OSError; it must not go on then.

    With users `ahead`, which this process has begun with, it is quicker.
    """
    from lapis.machine import namespaces

    if kind == SHARED:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    wanted = {**dict.fromkeys(reach.readable, False), **dict.fromkeys(reach.writable, True)}
    if kind == OWN_USER:
        user, printed = user_of(reach.owner), _files_printed_to()
        users = (ahead or namespaces.UsersAhead()).open(user)
        namespaces.own_mounts()
        namespaces.lay_out(reach.hidden, wanted, users, _accounts(user))
        os.close(users)
        os.chdir("/")  # nobody stays in what is hidden
        os.setgroups(_groups_of_devices())
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        namespaces.no_more_privileges()
        _print_to(printed)
        return
    namespaces.own_users()
    namespaces.own_mounts()
    namespaces.lay_out(reach.hidden, wanted, None)
    os.chdir("/")
    namespaces.no_more_privileges()
    namespaces.own_processes()


def _files_printed_to() -> dict[int, str]:
    """Of stdout and stderr: the files that they are."""
    found = {}
    for stream in (1, 2):
        with contextlib.suppress(OSError):
            if stat.S_ISREG(os.fstat(stream).st_mode):
                found[stream] = os.readlink(f"/proc/self/fd/{stream}")
    return found


def _print_to(files: Mapping[int, str]) -> None:
    """The same files by the paths that they have now: who opens /dev/stderr opens them by these."""
    for stream, path in files.items():
        with contextlib.suppress(OSError):
            opened = os.open(path, os.O_WRONLY | os.O_APPEND)
            os.dup2(opened, stream)
            os.close(opened)


def _accounts(user: int) -> dict[str, str]:
    """With a name for the user: there are programs that ask for it, and end without one."""
    home = os.environ.get("HOME") or "/"
    added = {"/etc/passwd": f"lapis:x:{user}:{user}:Lapis:{home}:/bin/sh\n", "/etc/group": f"lapis:x:{user}:\n"}
    found = {}
    for path, line in added.items():
        with open(path, errors="surrogateescape") as file:
            found[path] = file.read().rstrip("\n") + "\n" + line
    return found


def user_of(owner: str) -> int:
    """The same on every node and after every restart, without a list: two of many seldom meet."""
    return _FIRST_USER + int.from_bytes(hashlib.sha256(owner.encode()).digest()[:8], "big") % _USERS


def command(reach: Reach, kind: str, argv: Sequence[str]) -> list[str]:
    """The command that becomes `argv`, apart."""
    if kind == SHARED:
        return list(argv)
    told = json.dumps({"reach": reach.to_json(), "kind": kind})
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), told, *argv]


def folders_of_people() -> tuple[str, ...]:
    """Where people keep what is theirs: all at the top but what belongs to the system."""
    found = (os.path.join("/", name) for name in sorted(os.listdir("/")) if name not in _OF_THE_SYSTEM)
    return tuple(path for path in found if os.path.isdir(path) and not os.path.islink(path))


def named_by(environ: Mapping[str, str]) -> list[str]:
    """Libraries and certificates that our own variables name. Those of a run open nothing."""
    return [path for name in _PATHS for path in environ.get(name, "").split(os.pathsep) if os.path.isabs(path)]


def _tried(home: str) -> Level:
    """By doing it, in a process that ends at once."""
    if sys.platform != "linux":
        return Level(SHARED, "only Linux can")
    kind = OWN_USER if os.geteuid() == 0 else OWN_NAMESPACES
    told, tell = os.pipe()
    trial = os.fork()
    if trial == 0:
        try:
            enter(Reach("trial", (home,)), kind)
            os.write(tell, b"ok")
        except BaseException as error:
            os.write(tell, str(getattr(error, "strerror", None) or error).encode()[:500])
        os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as file:
        answer = file.read().decode("utf-8", "replace")
    os.waitpid(trial, 0)
    if answer != "ok":
        lacking = "root may not mount here" if kind == OWN_USER else "user namespaces are not allowed here"
        return Level(SHARED, f"{lacking}: {answer or 'it was killed'}")
    if kind == OWN_USER and not _maps_users(home):
        return Level(SHARED, f"the file system of {home} cannot show files as another user's")
    return Level(kind)


def _maps_users(home: str) -> bool:
    from lapis.machine import namespaces

    users = namespaces.UsersAhead().open(user_of("trial"))
    try:
        return namespaces.can_map_users(home, users)
    except OSError:
        return False
    finally:
        os.close(users)


def _groups_of_devices() -> list[int]:
    """Whoever may use the GPUs of this machine is in these groups."""
    found = set()
    for place in _DEVICES:
        names = [os.path.join(place, name) for name in os.listdir(place)] if os.path.isdir(place) else [place]
        for name in filter(os.path.exists, names):
            about = os.stat(name)
            if stat.S_ISCHR(about.st_mode) and about.st_gid:
                found.add(about.st_gid)
    return sorted(found)


def main(told: str, *argv: str) -> None:
    """Become the command, apart. Whoever started us hears why not."""
    given, folder = json.loads(told), os.getcwd()
    try:
        enter(Reach.from_json(given["reach"]), given["kind"])
        os.chdir(folder)
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.exit(f"{argv[0]} could not be started apart from the server's files: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])

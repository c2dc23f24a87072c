"""What the processes of a run may reach of this machine: what is theirs to write, what they read, and nothing of ours.

Job and token of the agent, the verdict and other runs' folders are never among it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lapis.agent import prepare
from lapis.agent.crew import Member
from lapis.domain import settings
from lapis.domain.job import DatasetInput, Output
from lapis.domain.launch import Work
from lapis.errors import UserErrorException
from lapis.machine import apart, json_files, own_sources
from lapis.machine.apart import Level, Reach
from lapis.machine.interpreters import prefixes
from lapis.machine.paths import is_within

_THEIRS = ("own", "files", "data", "resume-from", "home", "app", "front")  # in the run's folder: to write
_FILES = ("journal.jsonl", "stored.jsonl")  # and files beside these, which are there before it starts
_SHOWN = ("packages", "streams", "address")  # and to read
_SINGLE_FILES = 200  # as many are shown one by one; of more, the folders that they lie in


def apart_from_server(work: Work, members: Sequence[Member], folder: str, head: str | None) -> list[Member]:
    """The members, each with what it may reach; as they are where code and secrets share a user."""
    found = apart.allowed(settings.home())
    if found.kind == apart.SHARED:
        return list(members)
    made = [replace(member, apart=found.kind) for member in with_own_variables(members, folder)]
    given = of_run(work, made, folder, head).to_json()
    return [replace(member, reach=given) for member in made]


def get_ready(folder: str) -> None:
    """Before nodes meet: each shows the others' processes what is there by then."""
    if level().kind != apart.SHARED:
        make_folders(folder)


def _owner(work: Work) -> str:
    """Revisions of a service hand over to each other, and processes of a run share memory: each is one user."""
    return work.job.service.id if work.job.service is not None else work.launch.run_id


def level() -> Level:
    return apart.level(settings.home())


def make_folders(folder: str) -> None:
    """What has to be there before its place is given to the run."""
    for name in ("files", "home", "address"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    for name in _FILES:
        open(os.path.join(folder, name), "ab").close()


def with_own_variables(members: Sequence[Member], folder: str) -> list[Member]:
    own = own_variables(folder)
    noted = {**own, "LAPIS_ADDRESS_FILE": address_file(folder)}

    def own_of(member: Member) -> dict[str, str]:
        """In a network of its own the server is where it always is, and no file says so."""
        return noted if member.variables.get("LAPIS_ADDRESS_FILE") else own

    return [replace(member, variables={**member.variables, **own_of(member)}) for member in members]


def own_variables(folder: str) -> dict[str, str]:
    """Folders and names in place of those of the server's user, which are not there for it."""
    home = os.path.join(folder, "home")
    own = {"LAPIS_HOME": os.path.join(home, ".lapis")}
    if level().kind == apart.OWN_USER:
        own.update({name: os.environ.get(name) or "lapis" for name in ("USER", "LOGNAME")})
        if not any(is_within(os.path.expanduser("~"), each) for each in _open_folders()):
            own["HOME"] = home
    return own


def address_file(folder: str) -> str:
    """Where the server is, as the run's processes are told: kept up by the agent."""
    return os.path.join(folder, "address", "server.json")


class AddressNote:
    """The server's own note lies among what is hidden, so its address is passed on."""

    def __init__(self, source: str | None, folder: str) -> None:
        self._source, self._target = source, address_file(folder)
        self._seen = 0

    def keep(self) -> None:
        if not self._source or not os.path.isdir(os.path.dirname(self._target)):
            return
        try:
            stamp = os.stat(self._source).st_mtime_ns
        except OSError:
            return  # it is on its way back
        if stamp != self._seen:
            about = json_files.read(self._source) or {}
            if about.get("url"):
                json_files.write(self._target, about, mode=0o644)
                self._seen = stamp


def of_container(work: Work, members: Sequence[Member], folder: str, head: str | None = None) -> Reach:
    """As `of_run`, with no more of the user's files than he named: in what a container has, nothing is hidden."""
    return _reach(work, members, folder, head, settings.load().open_folders or ())


def of_run(work: Work, members: Sequence[Member], folder: str, head: str | None = None) -> Reach:
    return _reach(work, members, folder, head, _open_folders())


def _reach(work: Work, members: Sequence[Member], folder: str, head: str | None, open_folders: Sequence[str]) -> Reach:
    writable = [*_to_write(work, members, folder, head), *open_folders]
    wanted = [each.path_on_compute for each in (*work.job.inputs, *work.job.outputs) if each.path_on_compute]
    data = [os.path.join(folder, "data"), *(os.path.join(prepare.code_folder(folder), each) for each in wanted)]
    linked = [path for path in _linked(data) if _may_be_data(path, work, folder)]
    readable = [*_to_read(work, members, folder, head), *linked]
    hidden = dict.fromkeys((settings.home(), os.path.dirname(os.path.abspath(folder))))
    return Reach(_owner(work), tuple(hidden), tuple(dict.fromkeys(readable)), tuple(dict.fromkeys(writable)))


def _to_write(work: Work, members: Sequence[Member], folder: str, head: str | None) -> Iterator[str]:
    for place in (folder, head or folder):  # outputs are the head's, and MPI starts ranks of other nodes in its folder
        yield from (os.path.join(place, name) for name in (*_THEIRS, *_FILES))
    if work.job.service is None:
        yield _stores(work)  # scripts use the datastores of their workspace by name too
    for member in members:
        yield from (member.log, *member.logs.values(), *member.reserved)
    for wanted in (*work.job.inputs, *work.job.outputs):
        if isinstance(wanted, DatasetInput) or wanted.mode != "mount":
            continue
        if isinstance(wanted.place, str):
            check_data(wanted.place, work, folder)
            made = isinstance(wanted, Output) and wanted.made_by_script
            yield os.path.dirname(wanted.place) if made else wanted.place
        else:
            from lapis.agent.objects import stand_in

            yield stand_in(folder, wanted)


def _to_read(work: Work, members: Sequence[Member], folder: str, head: str | None) -> Iterator[str]:
    for place in (folder, head or folder):
        yield from (os.path.join(place, name) for name in _SHOWN)
    yield os.path.dirname(settings.load().door)
    yield own_sources.folder()
    yield from own_sources.real_folders()
    started = (program for member in members for program in (member.argv[0], *member.starts))
    for program in {sys.executable, work.job.python or "", *started}:
        yield from prefixes(program)
    if work.mpirun:
        yield os.path.dirname(os.path.dirname(work.mpirun))
    yield from apart.named_by(os.environ)


def check_data(path: str, work: Work, folder: str) -> None:
    """Data of a run comes from where data lies: of the server's own folder, from its workspace's stores."""
    if not _may_be_data(path, work, folder):
        raise UserErrorException(f"{path} lies in a folder of the server itself, and is no data of this workspace.")


def _may_be_data(path: str, work: Work, folder: str) -> bool:
    home = settings.home()
    caches = [os.path.join(home, "cache", name) for name in ("web", "objects")]
    return not is_within(path, home) or any(is_within(path, each) for each in (_stores(work), *caches, folder))


def _stores(work: Work) -> str:
    """The folders of a workspace's own datastores."""
    return os.path.join(settings.home(), "stores", work.launch.workspace.id)


def _linked(places: Sequence[str]) -> list[str]:
    """Where links in the run's data lead to."""
    inside = (
        os.path.join(where, name)
        for place in places
        for where, folders, names in os.walk(place)
        for name in (*folders, *names)
    )
    found = dict.fromkeys(os.path.realpath(path) for path in (*places, *inside) if os.path.islink(path))
    if len(found) <= _SINGLE_FILES:
        return list(found)
    return list(dict.fromkeys(path if os.path.isdir(path) else os.path.dirname(path) for path in found))


def _open_folders() -> tuple[str, ...]:
    """The user's own files are open to his own scripts, unless he says otherwise, as if he had started them himself."""
    wanted = settings.load().open_folders
    return apart.folders_of_people() if wanted is None else wanted

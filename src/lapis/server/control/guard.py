"""Permission is asked here and nowhere else: what each call of control needs, and control with a guard in front of it.

Routes get control guarded for whoever asks. A call that is not in the table is refused to everybody, so a call that is
added tomorrow has to be thought about before a route can make it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NewType, cast

from lapis.domain.run import RunRecord
from lapis.domain.run_filter import RunFilter
from lapis.errors import Forbidden
from lapis.server.control.access import Actor
from lapis.server.control.computes import Computes
from lapis.server.control.control import Control
from lapis.server.control.data import Data, NewDataset
from lapis.server.control.environments import Environments
from lapis.server.control.files import Files
from lapis.server.control.images import Images
from lapis.server.control.lifetime import Lifetime
from lapis.server.control.metrics import Metrics
from lapis.server.control.models import Models
from lapis.server.control.pipelines import Pipelines
from lapis.server.control.profiles import Profiles
from lapis.server.control.run_views import RunViews
from lapis.server.control.runs import NewRun, Runs
from lapis.server.control.secrets import Secrets
from lapis.server.control.services import Services
from lapis.server.control.sweeps import Sweeps
from lapis.server.control.upkeep import Upkeep
from lapis.server.control.workspaces import Workspaces

# -- the rights: each raises unless the actor has it. They are given what the call is given, and name what they look at.


def let_in(control: Control, actor: Actor, *_: Any, **__: Any) -> None:
    """Whoever the gate let in."""
    actor.may_come_in()


def upload(control: Control, actor: Actor, *_: Any, **__: Any) -> None:
    """Whoever may add anything anywhere: blobs belong to no workspace."""
    actor.may_upload()


def read_everything(control: Control, actor: Actor, *_: Any, **__: Any) -> None:
    """To read what belongs to no workspace in particular."""
    actor.may_come_in()
    actor.may_read_everything()


def read(control: Control, actor: Actor, workspace_id: str, *_: Any, **__: Any) -> None:
    """To look at what is in a workspace."""
    actor.may_read(workspace_id)
    control.workspaces.check(workspace_id)


def add(control: Control, actor: Actor, workspace_id: str, *_: Any, **__: Any) -> None:
    """To add to a workspace, and to use what it keeps for its runs: users and runs, not those who only look."""
    read(control, actor, workspace_id)
    actor.may_upload()


def manage(control: Control, actor: Actor, *_: Any, **__: Any) -> None:
    """To change and remove what others rely on: the user alone."""
    actor.may_change_workspace()


def manage_in(control: Control, actor: Actor, workspace_id: str, *_: Any, **__: Any) -> None:
    """The same in a workspace."""
    actor.may_change_workspace()
    control.workspaces.check(workspace_id)


def change_run(control: Control, actor: Actor, workspace_id: str, run_id: str, *_: Any, **__: Any) -> None:
    """To change one run. The store is asked only where the answer hangs on who the run's parents are."""
    above: tuple[str, ...] = ()
    if actor.kind not in ("user", "viewer") and actor.run_id != run_id:
        actor.may_read(workspace_id)
        above = control.runs.above(workspace_id, run_id)
    actor.may_write(workspace_id, run_id, above)
    control.workspaces.check(workspace_id)


def report_run(control: Control, actor: Actor, workspace_id: str, run_id: str, *_: Any, **__: Any) -> None:
    """As `change_run`; an agent whose run has ended may say again what it said: the reply may have been lost."""
    if not actor.may_repeat(workspace_id, run_id):
        change_run(control, actor, workspace_id, run_id)


def make_runs(control: Control, actor: Actor, workspace_id: str, many: list[NewRun], *_: Any, **__: Any) -> None:
    """To make runs: below another one for whoever may change that, else in their own workspace."""
    for new in many:
        if new.parent_id is not None:
            change_run(control, actor, workspace_id, new.parent_id)
            continue
        read(control, actor, workspace_id)
        if actor.kind not in ("user", "run"):
            actor.may_write(workspace_id, new.run_id)


def find_runs(control: Control, actor: Actor, where: RunFilter, *_: Any, **__: Any) -> None:
    """To look for runs, in a workspace that one may read."""
    actor.may_read(where.workspace_id)
    control.workspaces.check(where.workspace_id)


def show_run(control: Control, actor: Actor, run: RunRecord, *_: Any, **__: Any) -> None:
    actor.may_read(run.workspace_id)


def add_dataset(control: Control, actor: Actor, workspace_id: str, new: NewDataset, *_: Any, **__: Any) -> None:
    """As `add`; what a run wrote is told by whoever may change that run."""
    add(control, actor, workspace_id)
    if new.run_id is not None:
        change_run(control, actor, workspace_id, new.run_id)


Right = Callable[..., None]

TABLE: Mapping[Callable[..., Any], Right] = {
    Lifetime.now: let_in,
    Lifetime.is_stopping: let_in,
    Lifetime.about: let_in,
    Lifetime.stop: manage,
    Upkeep.collect: manage,
    Workspaces.create: manage,
    Workspaces.find: let_in,  # finds those that the actor may read
    Workspaces.get: read,
    Workspaces.update: manage_in,
    Workspaces.delete: manage_in,
    Workspaces.add_experiment: add,
    Workspaces.experiments: read,
    Workspaces.newest_experiments: read,
    Workspaces.change_experiment: manage_in,
    Workspaces.delete_experiment: manage_in,
    Runs.create: make_runs,
    Runs.get: read,
    Runs.find: find_runs,
    Runs.descendants: read,
    Runs.follow: read,
    Runs.metrics: read,
    Runs.values: read,
    Runs.log_length: read,
    Runs.change: change_run,
    Runs.start: change_run,
    Runs.complete: change_run,
    Runs.fail: change_run,
    Runs.cancel: change_run,
    Runs.report: report_run,
    Runs.delete: manage_in,
    RunViews.of: show_run,
    Files.missing: let_in,  # a run is told of what it has itself
    Files.open_blob: read_everything,
    Files.put_blobs: upload,
    Files.blob_writer: upload,
    Files.copy_in_blob: upload,
    Files.add_snapshot: add,
    Files.snapshot: read,
    Files.open_in_snapshot: read,
    Files.of_run: read,
    Files.links: read,
    Files.get: read,
    Files.read: read,
    Files.copy_out: read,
    Files.copy_in: change_run,
    Files.writer: change_run,
    Files.put: change_run,
    Files.put_collected: change_run,
    Files.put_stored: change_run,
    Metrics.summaries: read,
    Metrics.of_runs: read,
    Metrics.best_of: read,
    Metrics.curve: read,
    Metrics.points: read,
    Sweeps.trials: read,
    Pipelines.steps: read,
    Computes.all: read,
    Computes.get: read,
    Computes.create: manage_in,
    Computes.update: manage_in,
    Computes.delete: manage_in,
    Computes.preempt: manage_in,
    Data.datastores: read,
    Data.datastore: read,
    Data.datastore_access: add,  # with its credentials
    Data.register_datastore: manage_in,
    Data.unregister_datastore: manage_in,
    Data.set_default: manage_in,
    Data.register_dataset: add_dataset,
    Data.datasets: read,
    Data.dataset: read,
    Data.dataset_by_id: read,
    Data.files: read,
    Data.of_run: read,
    Data.lineage: read,
    Data.change_dataset: add,
    Data.unregister_dataset: manage_in,
    Environments.all: read,
    Environments.get: read,
    Environments.register: manage_in,
    Environments.label: manage_in,
    Environments.resolve: add,  # runs code of the packages that it looks at
    Environments.details: add,  # the same
    Environments.build: manage_in,
    Environments.build_status: read,
    Environments.build_log: read,
    Models.find: read,
    Models.get: read,
    Models.lineage: read,
    Models.no_code: read,
    Models.open_file: read,
    Models.register: add,
    Models.change: add,
    Models.delete: manage_in,
    Services.all: read,
    Services.get: read,
    Services.logs: read,
    Services.token: add,
    Services.keys: manage_in,
    Services.regenerate: manage_in,
    Services.deploy: manage_in,
    Services.update: manage_in,
    Services.delete: manage_in,
    Services.create_version: manage_in,
    Services.update_version: manage_in,
    Services.delete_version: manage_in,
    Images.find: read,
    Images.get: read,
    Images.create: manage_in,
    Images.change: manage_in,
    Images.delete: manage_in,
    Images.get_package: read,
    Images.create_package: manage_in,
    Profiles.get: read,
    Profiles.create: manage_in,
    Secrets.names: add,
    Secrets.get: add,  # their values: for the user, and for runs of this workspace
    Secrets.set: manage_in,
    Secrets.delete: manage_in,
}

# -- control with a guard in front of it

Guarded = NewType("Guarded", Control)
"""Control for one actor: the same calls, each allowed or refused by the table. All that a route ever gets."""


def guarded(control: Control, actor: Actor) -> Guarded:
    return cast(Guarded, _GuardedControl(control, actor))


class _ForActor:
    __slots__ = ("_actor", "_control")

    def __init__(self, control: Control, actor: Actor) -> None:
        self._control, self._actor = control, actor


class _GuardedPart:
    """One part of control. Its subclasses, one for each part, have a method for each call of it in the table."""

    __slots__ = ("_actor", "_control", "_part")

    def __init__(self, control: Control, actor: Actor, part: object) -> None:
        self._control, self._actor, self._part = control, actor, part

    def __getattr__(self, name: str) -> Any:
        raise Forbidden(f"{type(self).__name__}.{name} is for the server alone: no right to it stands in guard.py.")


def _guarded_call(call: Any, right: Right) -> Callable[..., Any]:
    """`call` once `right` has let the actor through; where it takes `by`, that is the actor."""
    code = call.__code__
    takes_by = "by" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    def guarded_call(self: _GuardedPart, *given: Any, **named: Any) -> Any:
        right(self._control, self._actor, *given, **named)
        if takes_by:
            named["by"] = self._actor
        return call(self._part, *given, **named)

    return guarded_call


def _guarded_part(name: str, kind: str) -> property:
    """What stands for the part of control that has this name and class."""
    mine = [call for call in TABLE if call.__qualname__ == f"{kind}.{call.__name__}"]
    calls = {call.__name__: _guarded_call(call, TABLE[call]) for call in mine}
    part = type(kind, (_GuardedPart,), {"__slots__": (), **calls})
    return property(lambda self: part(self._control, self._actor, getattr(self._control, name)))


# made once, so that a call costs no more than its right; the types of a dataclass' fields are text here
_PARTS = {field.name: _guarded_part(field.name, str(field.type)) for field in fields(Control)}
_GuardedControl = type("_GuardedControl", (_ForActor,), {"__slots__": (), **_PARTS})

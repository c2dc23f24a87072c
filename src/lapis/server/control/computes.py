"""What can be done with compute targets, and how their nodes come and go."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lapis.domain import compute as rules
from lapis.domain import limits
from lapis.domain.compute import IDLE, LEAVING, PREEMPTED, RUNNING, Cluster, Node, Wants
from lapis.domain.job import Job
from lapis.domain.run import RunRecord, check_labels, check_text
from lapis.domain.run_filter import RunFilter
from lapis.domain.values import Value, at_most
from lapis.domain.vm_sizes import vm_size
from lapis.engines.base import Engine, NodeHandle
from lapis.errors import ComputeTargetException, Conflict
from lapis.server.control.events import Events
from lapis.server.control.fleet import LOCAL, Fleet
from lapis.server.control.service_uses import ServiceUses
from lapis.server.control.stores import Stores
from lapis.server.store.assets import COMPUTE, Asset

_log = logging.getLogger("lapis.computes")
_SHORT = at_most(limits.NAME)
_CLUSTER = ("vm_size", "max_nodes", "min_nodes", "idle_seconds", "vm_priority", "engine")


@dataclass(frozen=True)
class NewCompute(Value):
    name: str = field(metadata=_SHORT)
    type: str = field(metadata=_SHORT)  # as Azure calls it: AmlCompute, ComputeInstance, ...
    vm_size: str = field(default="Standard_D2_v2", metadata=_SHORT)
    max_nodes: int = 1
    min_nodes: int = 0
    idle_seconds: float = 1800.0
    vm_priority: str = field(default="dedicated", metadata=_SHORT)
    engine: str = field(default="local", metadata=_SHORT)
    attached: bool = False
    description: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the engine: a Ray address, say
    more: Mapping[str, Any] = field(default_factory=dict)  # of SDK v1, kept and shown: network names, accounts


class Computes:
    def __init__(
        self,
        stores: Stores,
        fleet: Fleet,
        uses: ServiceUses,
        events: Events,
        now: Callable[[], float],
        steady: Callable[[], float],
    ) -> None:
        self._stores = stores
        self._uses = uses
        self._fleet = fleet
        self._now, self._steady = now, steady
        self._wake = events.wake

    # -- what users do

    def create(self, workspace_id: str, new: NewCompute) -> dict[str, Any]:
        """A target of that name that is there already is an error, unless it is the very same."""
        rules.check_cluster(_cluster(new.name, asdict(new), ()))
        check_labels("tags", new.tags)
        self._fleet.engine(new.engine, new.settings).check(new.settings)
        asked = {key: value for key, value in asdict(new).items() if key != "name"}

        def which(there: Asset | None) -> Asset | None:
            if there is None:
                return None
            if all(there.body.get(key) == value for key, value in asked.items()):
                return there
            raise ComputeTargetException(
                f"A compute target named '{new.name}' is there already, with other settings. Use "
                f"ComputeTarget(ws, '{new.name}'), or update() or delete() it first."
            )

        body = {**asked, "nodes": [], "changed_at": self._now(), "errors": []}
        asset = Asset(str(uuid.uuid4()), workspace_id, COMPUTE, new.name, self._now(), body=body)
        made = self._stores.assets.add(asset, which)
        self._wake()
        return self._view(made)

    def get(self, workspace_id: str, name: str) -> dict[str, Any]:
        return self._view(self._asset(workspace_id, name))

    def all(self, workspace_id: str) -> list[dict[str, Any]]:
        return [self._view(each) for each in self._stores.assets.find(workspace_id, COMPUTE)]

    def update(self, workspace_id: str, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        asset = self._asset(workspace_id, name)
        unknown = set(changes) - {"min_nodes", "max_nodes", "idle_seconds", "tags", "description"}
        if unknown:
            raise ComputeTargetException(f"{', '.join(sorted(unknown))} of a compute target cannot be changed.")
        body = {**asset.body, **changes}
        rules.check_scale(body["min_nodes"], body["max_nodes"], body["idle_seconds"])
        check_labels("tags", changes.get("tags") or {})
        check_text("description", changes.get("description"))

        def apply(stored: Asset) -> Asset:
            return replace(stored, body={**stored.body, **changes, "changed_at": self._now()})

        changed = self._stores.assets.change(workspace_id, asset.id, apply)
        self._wake()
        return self._view(changed)

    def delete(self, workspace_id: str, name: str) -> None:
        """Refused while runs use it or wait for it."""
        asset = self._asset(workspace_id, name)
        services = self._uses.of_target(workspace_id, name)
        if services:
            raise Conflict(
                f"Compute target '{name}' serves {', '.join(services)} and cannot be deleted. Delete the service first."
            )
        active = self._active_runs(workspace_id, name)
        if active:
            raise Conflict(
                f"Compute target '{name}' has {len(active)} runs that have not ended ({', '.join(active[:3])}). Cancel "
                "them, or wait for them, before deleting it."
            )
        for node in _nodes(asset):
            if node.run_id is not None:
                self.engine(asset).forget(node.run_id)
            self._let_go(asset, node)
        self._stores.assets.remove(workspace_id, COMPUTE, name)

    def preempt(self, workspace_id: str, name: str, node_id: str | None) -> list[str]:
        """Take low-priority nodes away, as the owner of a spot market would: one, or all that run something."""
        asset = self._asset(workspace_id, name)
        if asset.body["vm_priority"] != "lowpriority":
            raise ComputeTargetException(f"Only low-priority nodes can be preempted, and '{name}' has dedicated ones.")
        known = [node for node in _nodes(asset) if node.state in (IDLE, RUNNING)]
        chosen = [node for node in known if node.id == node_id or (node_id is None and node.state == RUNNING)]
        if not chosen:
            names = ", ".join(node.id for node in known) or "none"
            raise ComputeTargetException(f"'{name}' has no node {node_id or 'that runs something'}. Nodes: {names}.")
        self._set_nodes(asset, {node.id: replace(node, state=PREEMPTED, since=self._steady()) for node in chosen})
        self._wake()
        return [node.id for node in chosen]

    def check_job(self, workspace_id: str, target: str | None, job: Job) -> list[str]:
        """Raise if a run could never start there; what else the user should know."""
        nodes = job.node_count
        if target in (None, LOCAL):
            if nodes != 1:
                raise ComputeTargetException(
                    f"The run asks for {nodes} nodes, and the target 'local' is this one machine. Make a cluster with "
                    "ComputeTarget.create(ws, name, AmlCompute.provisioning_configuration(max_nodes=...)) and name it."
                )
            return []
        asset = self._asset(workspace_id, str(target))
        most = asset.body["max_nodes"]
        if nodes > most:
            raise ComputeTargetException(
                f"The run asks for {nodes} nodes, and compute target '{target}' has at most {most}. "
                f"ComputeTarget(ws, '{target}').update(max_nodes={nodes}) allows more."
            )
        lacking = self.engine(asset).lacks(self._shape(asset))
        return [f"A {asset.body['vm_size']} has {lacking}: the nodes make do with that."] if lacking else []

    def _asset(self, workspace_id: str, name: str) -> Asset:
        found = self._stores.assets.find(workspace_id, COMPUTE, name)
        if not found:
            known = sorted(each.name for each in self._stores.assets.find(workspace_id, COMPUTE))
            workspace = self._stores.workspaces.find(id=workspace_id)[0]["name"]
            raise ComputeTargetException(
                f"ComputeTargetNotFound: No compute target named '{name}' in workspace '{workspace}'. Known: "
                f"{', '.join(['local', *known])}."
            )
        return found[0]

    def _active_runs(self, workspace_id: str, name: str) -> list[str]:
        states = ("NotStarted", "Preparing", "Queued", "Running", "Finalizing")
        where = RunFilter(workspace_id=workspace_id, target=name, states=states, archived=None, services=True)
        return [run.id for run in self._stores.runs.find_all(where)]

    def _view(self, asset: Asset) -> dict[str, Any]:
        size = vm_size(asset.body["vm_size"])
        shape = {"cores": size.cores, "memory_gb": size.memory_gb, "gpus": size.gpus}
        ahead = self._now() - self._steady()
        nodes = [{**node, "since": node["since"] + ahead} for node in asset.body["nodes"]]
        body = {**asset.body, "nodes": nodes, "shape": shape}
        return {"id": asset.id, "name": asset.name, "created_at": asset.created_at, **body}

    # -- what the reconciler does

    def clusters(self) -> list[Asset]:
        return self._stores.assets.of_kind(COMPUTE)

    def has_nodes(self, asset: Asset) -> bool:
        """Whether it has nodes, which may be idle for long enough, or die; or lacks some that it should always have."""
        return bool(_nodes(asset)) or bool(asset.body.get("min_nodes"))

    def engine(self, asset: Asset) -> Engine:
        return self._fleet.engine(asset.body["engine"], asset.body["settings"])

    def engine_of(self, workspace_id: str, target: str | None) -> Engine:
        """The engine that runs on that target are launched by."""
        found = self._stores.assets.find(workspace_id, COMPUTE, target) if target not in (None, LOCAL) else []
        return self.engine(found[0]) if found else self._fleet.engine(LOCAL)

    def is_here(self, workspace_id: str, target: str | None) -> bool:
        """Whether the nodes of that target are on the server's own machine."""
        return self.engine_of(workspace_id, target) is self._fleet.engine(LOCAL)

    def allot(self, asset: Asset, waiting: Sequence[Wants]) -> list[tuple[str, tuple[Node, ...]]]:
        """Bring the nodes in line with the runs that wait; the runs that can start now, with the nodes they have."""
        cluster = _cluster(asset.name, asset.body, _nodes(asset))
        now = self._steady()
        plan = rules.plan(cluster, waiting, now)
        changed: dict[str, Node | None] = {}
        for number in rules.free_numbers(cluster, plan.start):
            node = Node(f"{asset.name}-{uuid.uuid4().hex[:8]}", number, IDLE, now)
            try:
                place = self.engine(asset).start_node(node.id, number, self._shape(asset))
            except OSError as failure:
                self._note_error(asset, f"Node {node.id} could not be started: {failure}")
                break
            changed[node.id] = replace(node, place=place)
        for node in plan.stop:
            self._let_go(asset, node)
            changed[node.id] = None
        for run_id, nodes in plan.give:
            changed.update({node.id: replace(node, state=RUNNING, since=now, run_id=run_id) for node in nodes})
        if changed:
            self._set_nodes(asset, changed)
            if plan.start:
                self._wake()  # the new nodes can be given away at once
        return list(plan.give)

    def settle(self, asset: Asset, running: Mapping[str, Any]) -> list[str]:
        """Nodes whose run has ended are idle again, preempted ones go; the runs that lost a node."""
        now = self._steady()
        changed: dict[str, Node | None] = {}
        lost = []
        ended: set[str] = set()
        for node in _nodes(asset):
            if node.state in (PREEMPTED, LEAVING):
                if node.run_id in running:
                    lost.append(str(node.run_id))
                self._let_go(asset, node)
                changed[node.id] = None
            elif node.state == RUNNING and node.run_id not in running:
                if asset.body["engine"] != LOCAL:  # here, agents tidy up after themselves
                    ended.add(str(node.run_id))
                changed[node.id] = replace(node, state=IDLE, since=now, run_id=None)
        for run_id in ended:
            self.engine(asset).forget(run_id)
        if changed:
            self._set_nodes(asset, changed)
        return lost

    def fresh(self, asset: Asset) -> Asset:
        return self._stores.assets.get(asset.workspace_id, asset.id)

    def places_of(self, run: RunRecord) -> list[NodeHandle]:
        """The nodes that a run has, in their order; none on a target without nodes."""
        found = (
            self._stores.assets.find(run.workspace_id, COMPUTE, run.target) if run.target not in (None, LOCAL) else []
        )
        return [node.place for asset in found for node in _nodes(asset) if node.run_id == run.id]

    def why_waiting(self, asset: Asset, place: int, nodes: int) -> tuple[str, str]:
        """Why a run waits for nodes, and what ends it."""
        ahead = f"{place - 1} ahead of it" if place > 1 else "the next one"
        most = asset.body["max_nodes"]
        busy = sum(1 for node in _nodes(asset) if node.state == RUNNING)
        wants = "a node" if nodes == 1 else f"{nodes} nodes"
        if asset.body["errors"]:
            return f"In the queue of '{asset.name}': {ahead}. {asset.body['errors'][0]['message']}", "tried again"
        return (
            f"In the queue of '{asset.name}': {ahead}; it wants {wants}, and {busy} of {most} are busy",
            "ends when runs that have nodes now end" if busy else "ends when nodes have come up",
        )

    def _shape(self, asset: Asset) -> dict[str, Any]:
        size = vm_size(asset.body["vm_size"])
        return {"cores": size.cores, "gpus": size.gpus, "max_nodes": asset.body["max_nodes"]}

    def _let_go(self, asset: Asset, node: Node) -> None:
        try:
            self.engine(asset).stop_node(node.place)
        except OSError as failure:
            _log.warning("Node %s could not be let go: %s", node.id, failure)

    def _set_nodes(self, asset: Asset, changed: Mapping[str, Node | None]) -> None:
        def apply(stored: Asset) -> Asset:
            nodes = {node.id: node for node in _nodes(stored)}
            for node_id, node in changed.items():
                nodes.pop(node_id, None)
                if node is not None:
                    nodes[node_id] = node
            ordered = sorted(nodes.values(), key=lambda node: node.number)
            return replace(stored, body={**stored.body, "nodes": [node.to_json() for node in ordered]})

        self._stores.assets.change(asset.workspace_id, asset.id, apply)

    def _note_error(self, asset: Asset, message: str) -> None:
        _log.error("%s", message)

        def apply(stored: Asset) -> Asset:
            return replace(stored, body={**stored.body, "errors": [{"at": self._now(), "message": message}]})

        self._stores.assets.change(asset.workspace_id, asset.id, apply)


def _cluster(name: str, body: Mapping[str, Any], nodes: Sequence[Node]) -> Cluster:
    return Cluster(name=name, nodes=tuple(nodes), **{key: body[key] for key in _CLUSTER})


def _nodes(asset: Asset) -> list[Node]:
    return [Node(**each) for each in asset.body["nodes"]]

"""The process that speaks to a Ray cluster for the server, which never imports Ray: JSON lines in, JSON lines out.

It remembers nothing that matters: runs live in Ray as named, detached actors and placement groups of one namespace, so
the next driver finds them again. An actor is called `run/attempt/node/launch`, a placement group `run/attempt`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any

from lapis.engines import ray_node
from lapis.engines.ray_node import note_key, read_note, write_note

_CHUNK = 64 * 1024  # bytes: what is larger Ray would keep with the driver, and lose when that ends
_GRACE = 20.0  # seconds that an ended run's agents have to leave by themselves
_DOUBT = 5.0  # seconds that Ray may take between dropping an actor and saying that its node has died
_STOP_WITHIN = 5.0
_SWEEP_AFTER = 120.0


def main() -> None:
    """`python -m lapis.engines.ray_driver ADDRESS NAMESPACE`"""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever Ray prints is not an answer
    address, namespace = sys.argv[1:3]
    try:
        driver = RayCluster(address, namespace)
    except Exception as error:
        answers.write(json.dumps({"fatal": _first_line(error)}) + "\n")
        answers.flush()
        os._exit(1)  # Ray's threads may not let go
    answers.write(json.dumps({"ready": True}) + "\n")
    threading.Thread(target=driver.sweep, daemon=True).start()
    operations = {
        name: getattr(driver, name)
        for name in ("about", "reach", "launch", "poll", "stop", "explain", "left", "forget")
    }
    serve(sys.stdin, answers, operations)
    os._exit(0)


def serve(questions: Iterable[str], answers: IO[str], operations: Mapping[str, Callable[..., Any]]) -> None:
    """Answer each line until there are no more. An operation that fails is an answer too."""
    for line in questions:
        asked = json.loads(line)
        try:
            answer = {"id": asked["id"], "result": operations[asked["do"]](**asked["with"])}
        except Exception as error:
            answer = {"id": asked["id"], "error": _first_line(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


class RayCluster:
    def __init__(self, address: str, namespace: str) -> None:
        import ray

        _connect(ray, address, namespace)
        ray.cloudpickle.register_pickle_by_value(ray_node)
        self._ray = ray
        self._namespace = namespace
        self._missed: dict[str, float] = {}

    def about(self) -> dict[str, Any]:
        import platform

        return {"ray": self._ray.__version__, "python": platform.python_version(), "nodes": len(self._living_nodes())}

    def reach(self, url: str) -> str:
        """Why nodes of the cluster do not reach that server; empty if they do."""
        asked = self._ray.remote(num_cpus=0)(ray_node.reach).remote(url)
        return str(self._ray.get(asked, timeout=30.0))

    def launch(
        self, job: str, attempt: int, nonce: str, assignment: Any, shapes: list[dict[str, int]], sources: str
    ) -> list[str]:
        """The names of the job's actors, after starting those that are not alive."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        group = f"{job}/{attempt}"
        alive = {int(name.split("/")[-2]): name for name in self._actors() if name.startswith(group + "/")}
        names = [alive.get(index, f"{group}/{index}/{nonce}") for index in range(len(shapes))]
        if len(alive) == len(names):
            return names
        placement = self._group(group, shapes)
        with open(sources, "rb") as file:
            whole = file.read()
        chunks = [whole[at : at + _CHUNK] for at in range(0, len(whole), _CHUNK)]
        actor = self._ray.remote(ray_node.RayNode)
        for index, shape in enumerate(shapes):
            if index in alive:
                continue
            spec = {
                "job": job, "name": names[index], "namespace": self._namespace, "index": index, "count": len(shapes),
                "head": names[0], "folder": f"{job}-{attempt}", "nonce": nonce, "assignment": assignment,
            }  # fmt: skip
            actor.options(
                name=names[index],
                namespace=self._namespace,
                lifetime="detached",
                max_restarts=0,
                max_concurrency=4,
                num_cpus=shape["cores"],
                num_gpus=shape["gpus"],
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    placement_group=placement, placement_group_bundle_index=index
                ),
            ).remote(json.dumps(spec), *chunks)
        return names

    def poll(self, jobs: list[list[str]]) -> list[str]:
        """Of each job, by the names of its actors: alive, waiting, lost, or gone with a node."""
        alive, noted = set(self._actors()), self._noted()
        states = []
        for names in jobs:
            fates = {self._fate(name, noted) for name in names if name not in alive}
            if fates:
                states.append("gone" if "gone" in fates else "lost" if "lost" in fates else "alive")
            else:
                states.append("alive" if all(name in noted for name in names) else "waiting")
        return states

    def explain(self, names: list[str]) -> str:
        alive, noted = set(self._actors()), self._noted()
        said = []
        for name in names:
            if name in alive and name not in noted:
                return self._why_waiting(name)
            note = read_note(self._namespace, name)
            dead = None if "ended" in note else self._dead_node(note)
            if dead is not None:
                return _node_died(note, dead)
            said.append(str(note.get("said") or ""))
        return "\n".join(filter(None, said))

    def stop(self, names: list[str], hard: bool) -> None:
        alive = set(self._actors())
        asked = []
        for name in names:
            if name in alive and not (hard and name not in self._noted()):
                asked.append(self._ray.get_actor(name, namespace=self._namespace).stop.remote(hard))
        if not hard:
            return
        self._ray.wait(asked, num_returns=len(asked), timeout=_STOP_WITHIN) if asked else None
        self._end(names)

    def left(self) -> dict[str, list[str]]:
        """By job, the actors of its last attempt that are there or were, the first node's first."""
        attempts: dict[str, dict[int, dict[int, str]]] = {}
        for name in {*self._noted(), *self._actors()}:
            job, attempt, index, _ = name.rsplit("/", 3)
            attempts.setdefault(job, {}).setdefault(int(attempt), {})[int(index)] = name
        last = {job: found[max(found)] for job, found in attempts.items()}
        return {job: [actors[index] for index in sorted(actors)] for job, actors in last.items()}

    def forget(self, job: str) -> None:
        """The actors that there are now have a little time to leave; a launch after this is another's business."""
        names = [name for name in self._actors() if name.startswith(job + "/")]
        groups = self._groups(job)
        noted = [name for name in self._noted() if name.startswith(job + "/")]

        def later() -> None:
            deadline = time.monotonic() + _GRACE
            while time.monotonic() < deadline and set(names) & set(self._actors()):
                time.sleep(0.5)
            self._end(names, groups)
            self._delete({*noted, *names})

        threading.Thread(target=later, daemon=True).start()

    def sweep(self) -> None:
        """Remove what ended runs left when a driver ended before it had tidied up."""
        alive = self._actors()
        groups: dict[str, list[str]] = {}
        for name in self._noted():
            groups.setdefault(_group_of(name), []).append(name)
        for group, names in groups.items():
            if any(name.startswith(group + "/") for name in alive):
                continue
            ended = [read_note(self._namespace, name).get("ended") for name in names]
            if all(at is not None and time.time() - at > _SWEEP_AFTER for at in ended):
                self._end((), [group])
                self._delete(names)

    # -- what Ray knows

    def _actors(self) -> list[str]:
        return [str(name) for name in self._ray.util.list_named_actors()]

    def _noted(self) -> set[str]:
        """The names of actors that have come up, whether they still are or not."""
        from ray.experimental.internal_kv import _internal_kv_list

        front = note_key(self._namespace, "")
        return {bytes(key).decode()[len(front) :] for key in _internal_kv_list(front)}

    def _delete(self, names: Iterable[str]) -> None:
        from ray.experimental.internal_kv import _internal_kv_del

        for name in names:
            _internal_kv_del(note_key(self._namespace, name))

    def _living_nodes(self) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"]]

    def _dead_node(self, note: Mapping[str, Any]) -> dict[str, Any] | None:
        found = [node for node in self._ray.nodes() if node["NodeID"] == note.get("node_id")]
        return found[0] if found and not found[0]["Alive"] else None

    def _fate(self, name: str, noted: set[str]) -> str:
        """Of an actor that is no more."""
        note = read_note(self._namespace, name) if name in noted else {}
        if "ended" in note:
            return "lost"
        if self._dead_node(note) is not None:
            return "gone"
        first = self._missed.setdefault(name, time.monotonic())
        return "lost" if time.monotonic() - first > _DOUBT else "alive"

    def _why_waiting(self, name: str) -> str:
        from ray.util.placement_group import placement_group_table

        group = _group_of(name)
        found = [each for each in placement_group_table().values() if each["name"] == group]
        bundles = [dict(bundle) for each in found[-1:] for bundle in each["bundles"].values()]
        nodes = [(node["NodeManagerHostname"], node["Resources"]) for node in self._living_nodes()]
        free = self._ray.available_resources()
        return why_waiting(bundles, nodes, free)

    # -- what is done to it

    def _group(self, name: str, shapes: list[dict[str, int]]) -> Any:
        """All nodes of a run at once or none, each on a machine of its own."""
        from ray.util.placement_group import get_placement_group, placement_group

        try:
            return get_placement_group(name)
        except ValueError:
            pass
        bundles = [{"CPU": shape["cores"], **({"GPU": shape["gpus"]} if shape["gpus"] else {})} for shape in shapes]
        strategy = "STRICT_SPREAD" if len(bundles) > 1 else "PACK"
        return placement_group(bundles, strategy=strategy, name=name, lifetime="detached")

    def _groups(self, job: str) -> list[str]:
        from ray.util.placement_group import placement_group_table

        table = placement_group_table().values()
        return [each["name"] for each in table if each["name"].startswith(job + "/") and each["state"] != "REMOVED"]

    def _end(self, names: Iterable[str], groups: Iterable[str] = ()) -> None:
        from ray.util.placement_group import get_placement_group, remove_placement_group

        for name in names:
            note = read_note(self._namespace, name)
            if "ended" not in note:
                write_note(self._namespace, name, {**note, "ended": time.time(), "said": note.get("said", "")})
            try:
                self._ray.kill(self._ray.get_actor(name, namespace=self._namespace), no_restart=True)
            except ValueError:
                pass  # it has gone
        for group in {_group_of(name) for name in names} | set(groups):
            try:
                remove_placement_group(get_placement_group(group))
            except ValueError:
                pass


def _group_of(name: str) -> str:
    """The placement group of the actor of that name."""
    return "/".join(name.split("/")[:-2])


def _connect(ray: Any, address: str, namespace: str) -> None:
    """A busy head fails to let in a client now and then; what it says of versions does not change."""
    for last in (False, False, True):
        try:
            ray.init(address, namespace=namespace, logging_level="ERROR", log_to_driver=False)
            return
        except ConnectionError:
            if last:
                raise
            time.sleep(1.0)


def why_waiting(bundles: list[dict[str, float]], nodes: list[tuple[str, Mapping[str, float]]], free: Any) -> str:
    """What Ray lacks for that many nodes. Pure."""
    if not bundles:
        return "Waiting for Ray to start its agents"
    wanted = bundles[0]
    large = [name for name, has in nodes if all(has.get(what, 0) >= amount for what, amount in wanted.items())]
    count = "a node" if len(bundles) == 1 else f"{len(bundles)} nodes"
    each = f" with {_amounts(wanted)}{' each' if len(bundles) > 1 else ''}"
    if len(large) < len(bundles):
        have = (
            f"Ray has {len(large) or 'none'} that large among {len(nodes)} nodes, so its autoscaler must bring up more"
        )
    else:
        have = f"of Ray's {len(nodes)} nodes {_amounts({what: free.get(what, 0) for what in wanted})} are free"
    return f"Waiting for Ray: it wants {count}{each}, and {have}"


def _amounts(resources: Mapping[str, float]) -> str:
    return " and ".join(f"{amount:g} {what}s" if amount != 1 else f"1 {what}" for what, amount in resources.items())


def _node_died(note: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    reason = str(node.get("DeathReasonMessage") or node.get("DeathReason") or "Ray does not say why").strip()
    return f"Node {note['host']} ({note['address']}) died: {reason}"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:600]}" if lines else type(error).__name__


if __name__ == "__main__":
    main()

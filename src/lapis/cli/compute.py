"""Commands about compute targets: create, list, show, update, delete, preempt."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lapis.cli import choice, screen
from lapis.cli.options import Json, WorkspaceName, labels
from lapis.cli.workspaces import tags_text

Name = Annotated[str, typer.Argument(metavar="NAME", help="The compute target.")]
MinNodes = Annotated[int | None, typer.Option(metavar="N", min=0, help="Nodes that stay when nothing runs.")]
MaxNodes = Annotated[int | None, typer.Option(metavar="N", min=1, help="The most nodes that there may be.")]
IdleSeconds = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="How long a node may be idle; 1800 at first.")
]
_ENGINES = ("local", "ray")
_OF_RAY = "--engine ray"


def create(
    name: Name,
    vm_size: Annotated[
        str, typer.Option(metavar="SIZE", help="What a node has: a VM size of Azure's.")
    ] = "STANDARD_D2_V2",
    max_nodes: MaxNodes = None,
    min_nodes: MinNodes = None,
    idle_seconds: IdleSeconds = None,
    low_priority: Annotated[
        bool, typer.Option("--low-priority", help="Nodes that `lapis compute preempt` can take away.")
    ] = False,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="Where the nodes are: local, this machine; ray, a Ray cluster.")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Of the Ray cluster, with --engine ray.")
    ] = None,
    server_address: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the nodes of the Ray cluster reach this server.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="The Ray namespace that runs live in; lapis by default.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A tag. Repeat it for more.")] = None,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="What it is for.")] = None,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Make a compute target: a cluster on this machine, or a Ray cluster that is there already.

    Its nodes come when runs need them.
    """
    from lapis.sdk.compute.aml_compute import AmlCompute
    from lapis.sdk.compute.attached_compute import RayCompute
    from lapis.sdk.compute.compute_target import ComputeTarget

    _check_engine(engine, {"--address": address, "--server-address": server_address, "--namespace": namespace})
    tags = labels(tag, "--tag", value_needed=True)
    if engine == "ray":
        _refuse(_OF_RAY, "Ray's autoscaler decides which nodes come and go", {
            "--min-nodes": min_nodes, "--idle-seconds": idle_seconds, "--low-priority": low_priority or None,
            "--tag": tags or None, "--description": description,
        })  # fmt: skip
        given: dict[str, Any] = {"max_nodes": max_nodes, "server_address": server_address, "namespace": namespace}
        ray = RayCompute.attach_configuration(
            address or "", vm_size, **{key: value for key, value in given.items() if value is not None}
        )
        made: ComputeTarget = ComputeTarget.attach(choice.workspace(workspace), name, ray)
    else:
        cluster = AmlCompute.provisioning_configuration(
            vm_size=vm_size,
            vm_priority="lowpriority" if low_priority else "dedicated",
            min_nodes=min_nodes or 0,
            max_nodes=max_nodes if max_nodes is not None else max(1, min_nodes or 1),
            idle_seconds_before_scaledown=idle_seconds,
            tags=tags,  # type: ignore[arg-type]
            description=description,
        )
        made = ComputeTarget.create(choice.workspace(workspace), name, cluster)
    view = made._view
    most = f"up to {_nodes(view['max_nodes'])} of size {view['vm_size']}"
    screen.answer(summary(view), lambda: print(f"Compute target '{name}' is there: {most}, {_where(view)}."))


def list_computes(workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """List the compute targets of the workspace."""
    from lapis.sdk.compute.compute_target import ComputeTarget

    ws = choice.workspace(workspace)
    views = [target._view for target in ComputeTarget.list(ws)]

    def show() -> None:
        if not views:
            screen.notice(
                f"No compute targets in workspace '{ws.name}' but 'local', which is the server's own machine. "
                "`lapis compute create` makes one."
            )
            return
        screen.table(
            ["COMPUTE", "TYPE", "ENGINE", "SIZE", "PRIORITY", "NODES", "BUSY", "AT MOST", "TAGS"],
            [
                (
                    view["name"],
                    view["type"],
                    view["engine"],
                    view["vm_size"],
                    view["vm_priority"],
                    str(len(view["nodes"])),
                    str(_busy(view)),
                    str(view["max_nodes"]),
                    tags_text(view["tags"]),
                )
                for view in views
            ],
            right=["NODES", "BUSY", "AT MOST"],
        )

    screen.answer({"computes": [summary(view) for view in views]}, show)


def show(name: Name, workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """Show a compute target: what its nodes have, which there are now, and what they work on."""
    view = _view(name, workspace)
    shape = view["shape"]

    def show() -> None:
        gpus = f", {shape['gpus']} GPUs" if shape["gpus"] else ""
        screen.facts(
            [
                ("Compute", view["name"]),
                ("Type", f"{view['type']}, {_where(view)}"),
                ("Description", view["description"] or ""),
                ("Size", f"{view['vm_size']}: {shape['cores']} cores, {shape['memory_gb']:g} GB{gpus}"),
                ("Priority", view["vm_priority"]),
                ("Nodes", f"{len(view['nodes'])}, {_busy(view)} busy; {view['min_nodes']} to {view['max_nodes']}"),
                ("Idle", f"a node leaves after {view['idle_seconds']:g} s" if view["engine"] == "local" else ""),
                ("Created", screen.moment(view["created_at"])),
                ("Tags", tags_text(view["tags"])),
                *(("Error", each["message"]) for each in view["errors"]),
            ]
        )
        if view["nodes"]:
            print()
            screen.table(
                ["NODE", "STATE", "SINCE", "ADDRESS", "RUN"],
                [
                    (n["id"], n["state"], screen.ago(n["since"]), n["place"].get("address") or "", n["run_id"] or "")
                    for n in view["nodes"]
                ],
            )

    screen.answer(summary(view), show)


def update(
    name: Name,
    min_nodes: MinNodes = None,
    max_nodes: MaxNodes = None,
    idle_seconds: IdleSeconds = None,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Change how many nodes a cluster may have, and how long one may be idle."""
    from lapis.client.http_client import quoted

    asked = {"min_nodes": min_nodes, "max_nodes": max_nodes, "idle_seconds": idle_seconds}
    changes = {key: value for key, value in asked.items() if value is not None}
    if not changes:
        raise typer.BadParameter("say what changes: --min-nodes, --max-nodes or --idle-seconds")
    ws = choice.workspace(workspace)
    view = ws._client.call("PATCH", f"{ws._base}/computes/{quoted(name)}", changes)
    limits = f"{view['min_nodes']} to {_nodes(view['max_nodes'])}, {view['idle_seconds']:g} s idle"
    screen.answer(summary(view), lambda: print(f"Compute target '{name}' has {limits}."))


def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="A compute target, or several.")],
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Remove compute targets that no run uses. A Ray cluster goes on without Lapis."""
    from lapis.sdk.compute.compute_target import ComputeTarget

    ws = choice.workspace(workspace)
    targets = [ComputeTarget(ws, name) for name in dict.fromkeys(names)]  # all are found before the first is removed
    for target in targets:
        target.delete()

    def show() -> None:
        for target in targets:
            print(f"Deleted compute target '{target.name}'.")

    screen.answer({"deleted": [target.name for target in targets]}, show)


def preempt(
    name: Name,
    node: Annotated[
        str | None, typer.Option(metavar="ID", help="This node; without it, all that run something.")
    ] = None,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Take low-priority nodes away, to see what runs make of it: they start again with their outputs."""
    from lapis.client.http_client import quoted

    ws = choice.workspace(workspace)
    gone = ws._client.call("POST", f"{ws._base}/computes/{quoted(name)}/preempt", {"node": node})["nodes"]

    def show() -> None:
        for each in gone:
            print(f"Node {each} of '{name}' was preempted.")

    screen.answer({"preempted": gone}, show)


def summary(view: dict[str, Any]) -> dict[str, Any]:
    """A compute target as JSON."""
    from lapis.sdk.base.display import when

    kept = (
        "name", "type", "engine", "vm_size", "vm_priority", "min_nodes", "max_nodes", "idle_seconds", "attached",
        "description", "tags", "settings", "shape",
    )  # fmt: skip
    nodes = [
        {
            "id": node["id"],
            "state": node["state"],
            "since": when(node["since"]),
            "run_id": node["run_id"],
            "address": node["place"].get("address"),
        }
        for node in view["nodes"]
    ]
    return {
        **{key: view[key] for key in kept},
        "created_at": when(view["created_at"]),
        "nodes": nodes,
        "errors": [each["message"] for each in view["errors"]],
    }


def _check_engine(engine: str, of_ray: dict[str, Any]) -> None:
    if engine not in _ENGINES:
        raise typer.BadParameter(f"{engine!r} is no engine. Known: {', '.join(_ENGINES)}", param_hint="--engine")
    if engine == "local":
        _refuse("--engine local", f"it belongs to {_OF_RAY}", of_ray)
    elif of_ray["--address"] is None:
        raise typer.BadParameter("a Ray cluster is given by its address, such as 10.0.0.5:6379", param_hint="--address")


def _refuse(engine: str, why: str, given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value is not None:
            raise typer.BadParameter(f"not with {engine}: {why}", param_hint=option)


def _view(name: str, workspace: str | None) -> dict[str, Any]:
    from lapis.sdk.compute.compute_target import ComputeTarget

    view: dict[str, Any] = ComputeTarget(choice.workspace(workspace), name)._view
    return view


def _busy(view: dict[str, Any]) -> int:
    return sum(1 for node in view["nodes"] if node["state"] == "running")


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _where(view: dict[str, Any]) -> str:
    return f"on Ray at {view['settings'].get('address')}" if view["engine"] == "ray" else "on the server's machine"

"""Commands about deployed services: list, show, logs, call, delete."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lapis.cli import choice, screen
from lapis.cli.options import Json, WorkspaceName

if TYPE_CHECKING:
    from lapis.sdk.models.webservice import Webservice

_SHOWN = ("name", "kind", "state", "error", "description", "tags", "properties", "target", "auth_enabled",
          "token_auth_enabled", "models", "default")  # fmt: skip
_SHOWN_OF_VERSIONS = ("name", "state", "revision", "serving", "traffic", "models", "runtime", "restarts", "why",
                      "stage", "error", "front")  # fmt: skip
Name = Annotated[str, typer.Argument(metavar="NAME", help="The service.")]


def list_services(workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """List the services of a workspace."""
    from lapis.sdk.models.webservice import Webservice

    ws = choice.workspace(workspace)
    found = Webservice.list(ws)

    def show() -> None:
        if not found:
            screen.notice(f"No services in workspace '{ws.name}'.")
            return
        screen.table(
            ["SERVICE", "KIND", "STATE", "MODELS", "REQUESTS", "ADDRESS"],
            [
                (
                    each.name,
                    each.compute_type,
                    each._view["state"],
                    ", ".join(each._view["models"]),
                    str(_figures(each).get("requests", "")),
                    each.scoring_uri or "",
                )
                for each in found
            ],
            right=["REQUESTS"],
        )

    screen.answer({"services": [_document(each) for each in found]}, show)


def show(name: Name, workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """Show all about a service: how it fares, where it answers, what it serves."""
    from lapis.sdk.models.webservice import Webservice

    service = Webservice(choice.workspace(workspace), name)
    view = service._view
    facts = [
        ("Service", service.name),
        ("Kind", service.compute_type),
        ("State", view["state"]),
        ("Address", service.scoring_uri),
        ("Opened by", "keys" if service.auth_enabled else "tokens" if service.token_auth_enabled else "anybody"),
        ("Description", service.description or ""),
        ("Created", screen.ago(view["created_at"])),
        *(fact for version in view["versions"].values() for fact in _facts(version)),
    ]
    screen.answer(_document(service), lambda: screen.facts([(key, value) for key, value in facts if value]))


def logs(
    name: Name,
    lines: Annotated[int, typer.Option("--lines", "-n", metavar="N", min=1, help="The last so many.")] = 100,
    build: Annotated[bool, typer.Option("--build", help="How its environment was built, instead.")] = False,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Print what a service printed."""
    from lapis.sdk.models.webservice import Webservice

    text = Webservice(choice.workspace(workspace), name)._logs(lines, build)
    screen.answer({"name": name, "logs": text}, lambda: screen.said(text))


def call(
    name: Name,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="The body of the request; @FILE for a file, @- for stdin.")
    ],
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Send one request, with the key or token that opens the service, and print the answer."""
    import json

    from lapis.sdk.models.webservice import Webservice

    found = Webservice(choice.workspace(workspace), name).run(_body(data))
    screen.answer(
        {"name": name, "answer": found}, lambda: screen.said(found if isinstance(found, str) else json.dumps(found))
    )


def delete(name: Name, workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """End a service for good."""
    from lapis.sdk.models.webservice import Webservice

    Webservice(choice.workspace(workspace), name).delete()
    screen.answer({"deleted": name}, lambda: print(f"Service '{name}' is deleted."))


def _body(data: str) -> bytes:
    if data == "@-":
        return sys.stdin.buffer.read()
    if not data.startswith("@"):
        return data.encode()
    try:
        with open(data[1:], "rb") as file:
            return file.read()
    except OSError as error:
        raise typer.BadParameter(f"{data[1:]}: {error.strerror}", param_hint="DATA") from error


def _facts(version: dict[str, Any]) -> list[tuple[str, str]]:
    """Of one version, with its name before them where it has one."""
    own = f"{version['name']}: " if version["name"] else ""
    front = version["front"] or {}
    ready = sum(each["state"] == "ready" for each in front.get("replicas") or [])
    latency = front.get("latency_ms") or {}
    times = ", ".join(f"{name} {value:.1f} ms" for name, value in latency.items() if value is not None)
    counted = f"{front.get('requests', 0)}, {front.get('failures', 0)} of them failed" + (f"; {times}" if times else "")
    return [
        (f"{own}Revision", f"{version['revision']}, {version['state']}: {version['stage']}"),
        (f"{own}Traffic", f"{version['traffic']} %" if version["name"] else ""),
        (f"{own}Models", ", ".join(version["models"])),
        (f"{own}Runtime", version["runtime"] or ""),
        (f"{own}Replicas", str(ready) if front else ""),
        (f"{own}Requests", counted if front else ""),
        (f"{own}Restarts", f"{version['restarts']}, the last because: {version['why']}" if version["restarts"] else ""),
        (f"{own}Error", (version["error"] or {}).get("message", "")),
    ]


def _figures(service: Webservice) -> dict[str, Any]:
    front: dict[str, Any] = service._main["front"] or {}
    return front


def _document(service: Webservice) -> dict[str, Any]:
    view = service._view
    return {
        **{key: view[key] for key in _SHOWN},
        "scoring_uri": service.scoring_uri,
        "swagger_uri": service.swagger_uri,
        "created_at": service.created_time,
        "updated_at": service.updated_time,
        "versions": [{key: each[key] for key in _SHOWN_OF_VERSIONS} for each in view["versions"].values()],
    }

"""Services to try the rules on, with something in every field."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lapis.domain.job import NoCode, WantedEnvironment
from lapis.domain.service import Leaving, ServiceRecord, Slot, Version
from lapis.domain.service_content import Content, ModelVersion, Origin
from lapis.domain.service_settings import ServiceSettings

CONTENT = Content(
    models=(ModelVersion("times:3", "asset", "times", 3, "Onnx", "1.2"),),
    snapshot_id="snapshot",
    entry_script="score.py",
    folder="source",
    python="/usr/bin/python3",
    environment=WantedEnvironment("lock", "inference", ("numpy is there",)),
    environment_variables={"A": "1"},
    definition={"name": "inference"},
    notices=("a notice",),
    description="what it serves",
    no_code=NoCode("onnx", "model.onnx"),
    origin=Origin("score.py", "/home", "/source", ("beside.py",)),
    image="image:1",
)
LABELS: dict[str, Any] = {
    "description": "said of it",
    "tags": {"tag": None, "other": "value"},
    "properties": {"property": "fixed"},
}


def slot(revision: int = 1, **more: Any) -> Slot:
    return replace(Slot(revision, CONTENT, ServiceSettings(cpu_cores=1.5), restart_at=100.0), **more)


FULL_SLOT = slot(
    state="failed", run="b", runs=("a", "b"), restarts=2, ready_at=90.0, why="it ended", error={"message": "no weights"}
)


def version(**more: Any) -> Version:
    return replace(Version(30000, "place", 100, slot(), **LABELS), **more)


FULL_VERSION = version(wanted=slot(2), serving=FULL_SLOT, address="h:1", is_control=False, traffic=30)


def service(versions: dict[str, Version] | None = None, **more: Any) -> ServiceRecord:
    there = versions or {"": version()}
    first = next(iter(there))
    fresh = ServiceRecord(
        id="id",
        workspace_id="workspace",
        name="abc",
        created_at=1.0,
        updated_at=2.0,
        kind="AKSENDPOINT",
        sealed="sealed",
        versions=there,
        settings=ServiceSettings(auth_enabled=True),
        gateway=first,
        default=first,
        created_by="somebody",
        **LABELS,
    )
    return replace(fresh, **more)


FULL_SERVICE = service(
    {"one": FULL_VERSION, "two": version()},
    default="two",
    target="cluster",
    leaving=(Leaving("c", 7.0), Leaving("d", until="two")),
    deleting=True,
)

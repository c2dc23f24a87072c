"""How much processor and memory something may take."""

from __future__ import annotations

from lapis.later import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class ResourceConfiguration:
    def __init__(self, cpu: float | None = None, memory_in_gb: float | None = None, gpu: int | None = None) -> None:
        self.cpu = cpu
        self.memory_in_gb = memory_in_gb
        self.gpu = gpu

    def serialize(self) -> dict[str, Any]:
        return {"cpu": self.cpu, "memoryInGB": self.memory_in_gb, "gpu": self.gpu}

    @staticmethod
    def deserialize(payload_obj: dict[str, Any] | None) -> ResourceConfiguration | None:
        if payload_obj is None:
            return None
        return ResourceConfiguration(payload_obj.get("cpu"), payload_obj.get("memoryInGB"), payload_obj.get("gpu"))

    def __repr__(self) -> str:
        return f"ResourceConfiguration(cpu={self.cpu}, memory_in_gb={self.memory_in_gb}, gpu={self.gpu})"

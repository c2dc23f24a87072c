"""Profiles: how long a model takes to answer sample requests, and how much memory and processor it uses meanwhile."""

from __future__ import annotations

import http.client
import logging
import math
import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lapis.domain.deployment import NewContent, NewService
from lapis.domain.service import FAILED, HEALTHY, check_service_name
from lapis.domain.service_settings import PROFILED, ServiceSettings
from lapis.domain.values import Value, at_most, passing, within
from lapis.errors import AzureMLException, NotFound, UserErrorException, WebserviceException
from lapis.server.control.services import Services
from lapis.server.control.stores import Stores
from lapis.server.store.assets import PROFILE, Asset

MOST_SECONDS, MOST_REQUESTS, FEWEST = 20.0, 500, 20
_START_WITHIN = 1800.0
_log = logging.getLogger("lapis.profiles")


def _check_samples(samples: tuple[Any, ...]) -> None:
    """They may be longer than other texts."""
    for each in samples:
        if not isinstance(each, str):
            raise UserErrorException(f"A sample is the body of a request, text, and not {each!r:.80}.")


@dataclass(frozen=True)
class NewProfile(Value):
    name: str = field(metadata=at_most(255))
    content: NewContent
    samples: tuple[Any, ...] = field(default=(), repr=False, metadata={**at_most(10_000), **passing(_check_samples)})
    cpu: float | None = field(default=None, metadata=within(0.001, 100_000))
    memory_gb: float | None = field(default=None, metadata=within(0.001, 1_000_000))
    description: str | None = None
    dataset_id: str | None = field(default=None, metadata=at_most(255))


class Profiles:
    def __init__(self, stores: Stores, services: Services, now: Callable[[], float]) -> None:
        self._stores = stores
        self._services = services
        self._now = now

    def start(self) -> None:
        """A server that was killed left profiles half done: nobody will finish them."""
        for asset in self._stores.assets.of_kind(PROFILE):
            if asset.body["state"] == "Running":
                self._set(
                    asset, {"state": "Failed", "error": {"message": "The server ended meanwhile. Profile again."}}
                )
        for service in self._stores.services.all():
            if service.kind == PROFILED:  # the keeper ends it
                self._stores.services.change(service, lambda stored: replace(stored, deleting=True))

    def create(self, workspace_id: str, new: NewProfile) -> dict[str, Any]:
        """Deploys the model where nobody sees it, and asks it: in a thread, so that this returns at once."""
        check_service_name(new.name)
        if not new.samples:
            raise WebserviceException(f"Profile '{new.name}' has no sample request to send.")
        hidden = f"profile-{uuid.uuid4().hex[:12]}"
        settings = ServiceSettings(cpu_cores=new.cpu, memory_gb=new.memory_gb)
        service = NewService(hidden, PROFILED, new.content, settings=settings)
        self._stores.assets.remove(workspace_id, PROFILE, new.name)
        self._services.deploy(workspace_id, service)
        content = self._services.service(workspace_id, hidden).version("").wanted.content
        body = {
            "state": "Running",
            "error": None,
            "models": [model.id for model in content.models],
            "environment": content.definition,
            "description": new.description,
            "dataset_id": new.dataset_id,
            "cpu": new.cpu,
            "memory_gb": new.memory_gb,
            "service": hidden,
            "result": None,
        }
        asset = Asset(str(uuid.uuid4()), workspace_id, PROFILE, new.name, self._now(), body=body)
        kept = self._stores.assets.add(asset, lambda newest: None)
        threading.Thread(target=self._profile, args=(kept, hidden, new.samples), daemon=True).start()
        return kept.to_json()

    def get(self, workspace_id: str, name: str) -> dict[str, Any]:
        found = self._stores.assets.find(workspace_id, PROFILE, name)
        if not found:
            known = ", ".join(each.name for each in self._stores.assets.find(workspace_id, PROFILE)) or "none"
            raise NotFound(f"No profile named '{name}' in this workspace. Known: {known}.")
        view = found[0].to_json()
        if view["state"] == "Running":
            try:
                view["stage"] = self._services.get(workspace_id, view["service"])["versions"][""]["stage"]
            except NotFound:
                view["stage"] = ""
        return view

    def _profile(self, asset: Asset, service: str, samples: Sequence[str]) -> None:
        try:
            result = self._measured(asset.workspace_id, service, [each.encode() for each in samples])
            self._set(asset, {"state": "Succeeded", "result": result})
        except Exception as error:
            said = error.message if isinstance(error, AzureMLException) else f"{type(error).__name__}: {error}"
            _log.warning("Profile '%s' failed: %s", asset.name, said)
            self._set(asset, {"state": "Failed", "error": {"message": said}})
        finally:
            try:
                self._services.delete(asset.workspace_id, service)
            except AzureMLException as error:
                _log.warning("The service of profile '%s' is not deleted yet: %s", asset.name, error.message)

    def _measured(self, workspace_id: str, service: str, samples: list[bytes]) -> dict[str, Any]:
        view = self._wait(workspace_id, service)
        pids = [each["pid"] for each in (view["versions"][""]["front"] or {}).get("replicas") or []]
        before, began = _cpu_seconds(pids), time.monotonic()
        times: list[float] = []
        asked = answered = 0
        while (asked < MOST_REQUESTS and time.monotonic() - began < MOST_SECONDS) or asked < min(FEWEST, len(samples)):
            start = time.perf_counter()
            ok = _ask(view["address"], samples[asked % len(samples)])
            asked += 1
            if ok:
                answered += 1
                times.append((time.perf_counter() - start) * 1000)
        took = time.monotonic() - began
        if not times:
            logs = self._services.logs(workspace_id, service, None, 20, False)
            raise WebserviceException(
                f"None of {asked} sample requests was answered. The last lines of the log:\n{logs}"
            )
        return {**_percentiles(times), "total": asked, "success": answered, "seconds": took,
                "cpu": (_cpu_seconds(pids) - before) / took, "memory_gb": _peak_memory(pids) / 1e9}  # fmt: skip

    def _wait(self, workspace_id: str, service: str) -> dict[str, Any]:
        deadline = time.monotonic() + _START_WITHIN
        while time.monotonic() < deadline:
            view = self._services.get(workspace_id, service)
            if view["state"] == HEALTHY:
                return view
            if view["state"] == FAILED:
                error = view["error"] or {}
                raise WebserviceException("\n".join(filter(None, [str(error.get("message")), error.get("traceback")])))
            time.sleep(0.1)
        raise WebserviceException(f"The model was not ready after {_START_WITHIN:.0f} s.")

    def _set(self, asset: Asset, changes: Mapping[str, Any]) -> None:
        self._stores.assets.change(
            asset.workspace_id, asset.id, lambda stored: replace(stored, body={**stored.body, **changes})
        )


def _ask(address: str, body: bytes) -> bool:
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=300.0)
    try:
        connection.request("POST", "/score", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _percentiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]

    return {"average": sum(times) / len(times), "p50": at(0.5), "p90": at(0.9), "p95": at(0.95), "p99": at(0.99),
            "p999": at(0.999)}  # fmt: skip


def _cpu_seconds(pids: list[int]) -> float:
    total = 0.0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rsplit(b")", 1)[1].split()
        except (OSError, IndexError):
            continue
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _peak_memory(pids: list[int]) -> float:
    """Bytes that the largest process had at its largest."""
    peaks = [0]
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status") as file:
                peaks += [int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:")]
        except (OSError, ValueError):
            continue
    return float(max(peaks))

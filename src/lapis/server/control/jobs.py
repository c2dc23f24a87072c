"""Turns a run into what its agent needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lapis.domain.run import RunRecord
from lapis.engines.base import JobSpec
from lapis.server.control.access import Access

_OF_SERVICES = 10 * 365 * 24 * 3600.0  # a service goes on until it is deleted
_TOKEN_MARGIN = 7 * 24 * 3600.0  # how long after the last second of a run its agent may still deliver


@dataclass(frozen=True)
class Address:
    """Where agents find this server: `url` now, and `file` says where it went when it does not answer there."""

    url: str
    file: str
    blobs: str
    web: Mapping[str, str] = field(default_factory=dict)  # what its settings say of fetching from the network


def job_spec(
    run: RunRecord, workspace: Mapping[str, Any], experiment: Mapping[str, Any], access: Access, address: Address,
    code: Mapping[str, Any], now: float,
) -> JobSpec:  # fmt: skip
    job = dict(run.job or {})
    longest = _OF_SERVICES if job.get("service") else 30 * 24 * 3600
    expires = now + float(job.get("max_seconds") or longest) + _TOKEN_MARGIN
    body = {
        "kind": "script",
        "run_id": run.id,
        "root_id": run.root_id,
        "workspace": {key: workspace[key] for key in ("id", "name", "subscription_id", "resource_group")},
        "experiment": {"id": experiment["id"], "name": experiment["name"]},
        "server": address.url,
        "address_file": address.file,
        "blobs": address.blobs,
        "agent_token": access.run_token("agent", run.workspace_id, run.id, expires),
        "run_token": access.run_token("run", run.workspace_id, run.id, expires),
        "run_token_expires": expires,
        **code,
        "target": run.target,
        "launch": run.launches + 1,
        "attempt": run.attempt,
        **job,
        "web": _web(address.web, job.get("url_mirrors")),  # whatever the job says
    }
    return JobSpec(run.id, body)


def _web(ours: Mapping[str, str], mirrors: str | None) -> dict[str, str]:
    """The server's settings; mirrors that came with the run go before its own."""
    both = ",".join(filter(None, [mirrors, ours.get("LAPIS_URL_MIRRORS")]))
    return dict(ours, LAPIS_URL_MIRRORS=both)


def recovery_spec(run: RunRecord, access: Access, address: Address, now: float) -> JobSpec:
    """For an interactive run whose process is gone: an agent brings in what it left on disk."""
    assert run.owner is not None
    body = {
        "kind": "recover",
        "run_id": run.id,
        "workspace": {"id": run.workspace_id},
        "server": address.url,
        "address_file": address.file,
        "agent_token": access.run_token("agent", run.workspace_id, run.id, now + _TOKEN_MARGIN),
        "owner": dict(run.owner),
    }
    return JobSpec(run.id, body)

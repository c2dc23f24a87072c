"""Turns a run into what its agent needs to know: what the server adds to the job for one launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lapis.domain.job import Job
from lapis.domain.launch import ExperimentName, Launch, Recovery, WorkspaceName
from lapis.domain.run import RunRecord
from lapis.domain.tree import Tree
from lapis.errors import UserErrorException
from lapis.server.control.access import Access

_LONGEST = 10 * 365 * 24 * 3600.0  # a service goes on until it is deleted
_LONGEST_OF_SCRIPTS = 30 * 24 * 3600.0
_TOKEN_MARGIN = 7 * 24 * 3600.0  # how long after the last second of a run its agent may still deliver


@dataclass(frozen=True)
class Address:
    """Where agents find this server: `url` now, and `file` says where it went when it does not answer there."""

    url: str
    file: str
    blobs: str
    web: Mapping[str, str] = field(default_factory=dict)  # what its settings say of fetching from the network


def launch_of(
    run: RunRecord, job: Job, workspace: Mapping[str, Any], experiment: Mapping[str, Any], access: Access,
    address: Address, code: Tree, packs: Sequence[str], now: float,
) -> Launch:  # fmt: skip
    """The next launch of `run`. Raises UserErrorException if what is stored of the job cannot be used."""
    if job.wrong:
        raise UserErrorException(" ".join(job.wrong))
    _check_numbers(job)
    longest = _LONGEST if job.service is not None else _LONGEST_OF_SCRIPTS
    expires = now + min(job.max_seconds or longest, _LONGEST) + _TOKEN_MARGIN
    return Launch(
        run_id=run.id,
        workspace=WorkspaceName(
            workspace["id"], workspace["name"], workspace["subscription_id"], workspace["resource_group"]
        ),
        experiment=ExperimentName(experiment["id"], experiment["name"]),
        server=address.url,
        agent_token=access.run_token("agent", run.workspace_id, run.id, expires),
        run_token=access.run_token("run", run.workspace_id, run.id, expires),
        run_token_expires=expires,
        code=code,
        root_id=run.root_id,
        address_file=address.file,
        blobs=address.blobs,
        packs=tuple(packs),
        number=run.launches + 1,
        attempt=run.attempt,
        web=_web(address.web, job.url_mirrors),
        cancel=run.cancel_requested,
    )


def _check_numbers(job: Job) -> None:
    """A release that did not look may have stored more nodes and processes than there can be."""
    stored = job.to_json()
    numbers = {name: stored[name] for name in ("node_count", "distribution", "max_seconds") if name in stored}
    Job.checked({"script": "checked before", **numbers}, "job")


def _web(ours: Mapping[str, str], mirrors: str | None) -> dict[str, str]:
    """The server's settings; mirrors that came with the run go before its own."""
    both = ",".join(filter(None, [mirrors, ours.get("LAPIS_URL_MIRRORS")]))
    return dict(ours, LAPIS_URL_MIRRORS=both)


def recovery_of(run: RunRecord, access: Access, address: Address, now: float) -> Recovery:
    """For an interactive run whose process is gone: an agent brings in what it left on disk."""
    assert run.owner is not None
    return Recovery(
        run_id=run.id,
        workspace_id=run.workspace_id,
        server=address.url,
        agent_token=access.run_token("agent", run.workspace_id, run.id, now + _TOKEN_MARGIN),
        owner=run.owner,
        address_file=address.file,
    )

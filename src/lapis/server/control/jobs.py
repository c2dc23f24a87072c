"""Turns a run into what its agent needs to know: what the server adds to the job for one launch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lapis.domain.interactive import left_by, left_by_earlier_release
from lapis.domain.job import Job
from lapis.domain.launch import ExperimentName, Launch, Recovery, WorkspaceName
from lapis.domain.run import RunRecord
from lapis.domain.tree import Tree
from lapis.errors import UserErrorException
from lapis.server.control.access import Access

_SHOWN_EXPIRY = 30 * 24 * 3600.0  # for scripts that look at AZUREML_RUN_TOKEN_EXPIRY: a token ends with its run


@dataclass(frozen=True)
class Address:
    """Where agents find this server: `url` now, and `file` says where it went when it does not answer there."""

    url: str
    file: str
    blobs: str
    home: str
    web: Mapping[str, str] = field(default_factory=dict)  # what its settings say of fetching from the network


def launch_of(
    run: RunRecord, job: Job, workspace: Mapping[str, Any], experiment: Mapping[str, Any], access: Access,
    address: Address, code: Tree, packs: Sequence[str], now: float,
) -> Launch:  # fmt: skip
    """The next launch of `run`. Raises UserErrorException if what is stored of the job cannot be used."""
    if job.wrong:
        raise UserErrorException(" ".join(job.wrong))
    _check_numbers(job)
    return Launch(
        run_id=run.id,
        workspace=WorkspaceName(
            workspace["id"], workspace["name"], workspace["subscription_id"], workspace["resource_group"]
        ),
        experiment=ExperimentName(experiment["id"], experiment["name"]),
        server=address.url,
        agent_token=access.run_token("agent", run.workspace_id, run.id),
        run_token=access.run_token("run", run.workspace_id, run.id),
        run_token_expires=now + (job.max_seconds or _SHOWN_EXPIRY),
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


def recovery_of(run: RunRecord, access: Access, address: Address) -> Recovery:
    """For an interactive run whose process is gone: an agent brings in what it left on disk."""
    assert run.owner is not None
    left = left_by(address.home, run.workspace_id, run.id)
    if run.made_by is None and not os.path.exists(left.journal) and not os.path.isdir(left.spool):
        left = left_by_earlier_release(address.home, run.id)  # the user's alone: it says nothing of the workspace
    return Recovery(
        run_id=run.id,
        workspace_id=run.workspace_id,
        server=address.url,
        agent_token=access.run_token("agent", run.workspace_id, run.id),
        owner=run.owner,
        journal=left.journal,
        spool=left.spool,
        address_file=address.file,
    )

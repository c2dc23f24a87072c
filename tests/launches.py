"""A launch of some run, for tests of what agents and engines do with one."""

from __future__ import annotations

from typing import Any

from lapis.domain.job import Job
from lapis.domain.launch import ExperimentName, Launch, Work, WorkspaceName
from lapis.domain.tree import Tree


def launch(**more: Any) -> Launch:
    """One that no server answers to."""
    given = {
        "run_id": "r",
        "workspace": WorkspaceName("w", "vision", "sub", "group"),
        "experiment": ExperimentName("e", "first"),
        "server": "http://127.0.0.1:9",
        "agent_token": "t",
        "run_token": "t",
        "run_token_expires": 1e10,
        "code": Tree([]),
    }
    return Launch(**{**given, **more})


def work(job: Job, **more: Any) -> Work:
    return Work(job, launch(**more))

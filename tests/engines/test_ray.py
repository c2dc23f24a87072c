"""The Ray engine keeps every engine's promises, on a real cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lapis.engines.base import Engine, Handle, JobSpec, JobState
from lapis.engines.ray import RayEngine
from lapis.errors import ComputeTargetException
from lapis.testing import until
from lapis.testing.engine_contract import EngineContract
from tests.ray_cluster import RayCluster

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("ray")]


class _Remembering(RayEngine):
    """Knows what it launched, so that nothing outlives a test."""

    launched: list[Handle]

    def launch(self, job: JobSpec) -> Handle:
        self.launched.append(super().launch(job))
        return self.launched[-1]


class TestRay(EngineContract):
    @pytest.fixture
    def another(self, ray_cluster: RayCluster, tmp_path: Path) -> Iterator[Callable[[], Engine]]:
        namespace, made = f"test-{os.urandom(4).hex()}", []

        def make() -> Engine:
            engine = _Remembering(str(tmp_path / "work"), ray_cluster.address, namespace=namespace)
            engine.launched = []
            made.append(engine)
            return engine

        yield make
        for engine in made:
            for handle in engine.launched:
                engine.stop(handle, hard=True)
            engine.close()

    @pytest.fixture
    def engine(self, another: Callable[[], Engine]) -> Engine:
        return another()

    def test_the_nodes_of_a_job_are_different_machines(
        self, engine: Engine, job: JobSpec, ray_cluster: RayCluster
    ) -> None:
        shape: Any = {"cores": 2, "gpus": 0}
        engine.launch(JobSpec("run-2", job.work, (shape, shape, shape)))
        handle = engine.launch(JobSpec("run-2", job.work, (shape, shape, shape)))
        until(lambda: engine.poll([handle]) == [JobState.ALIVE], seconds=60)
        waiting = engine.launch(JobSpec("run-3", job.work, (shape,)))
        until(lambda: engine.poll([handle, waiting]) == [JobState.ALIVE, JobState.WAITING])
        assert engine.explain(waiting) == (
            "Waiting for Ray: it wants a node with 2 CPUs, and of Ray's 3 nodes 0 CPUs are free"
        )
        engine.stop(handle, hard=True)
        until(lambda: engine.poll([waiting]) == [JobState.ALIVE], seconds=60)
        assert not list(ray_cluster.folder.glob("home?/ray/runs/run-2-0/job.json")), (
            "nothing of it is left on its nodes"
        )

    def test_a_cluster_that_answers_passes_the_check(self, engine: Engine) -> None:
        engine.check({"address": "there"})
        with pytest.raises(ComputeTargetException, match="knows no adress"):
            engine.check({"adress": "there"})

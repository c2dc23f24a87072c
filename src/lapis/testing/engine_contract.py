"""What every engine promises, as tests: inherit EngineContract and supply `engine` and `another`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import ClassVar

import pytest

from lapis.domain.launch import Owner, Recovery
from lapis.engines.base import Engine, Handle, JobSpec, JobState
from lapis.testing.waiting import until


class EngineContract:
    """The promises of `lapis.engines.base.Engine` that can be seen from outside, each a test."""

    patience: ClassVar[float] = 60.0  # seconds that a cluster may take to do as it was told

    @pytest.fixture
    def engine(self) -> Engine:
        """The engine under test. After a `yield`, stop what it launched and close it."""
        raise NotImplementedError(f"{type(self).__name__} supplies no fixture `engine`")

    @pytest.fixture
    def another(self) -> Callable[[], Engine]:
        """Makes a second engine of the same cluster, as a restarted server would: it knows nothing of the first."""
        raise NotImplementedError(f"{type(self).__name__} supplies no fixture `another`")

    @pytest.fixture
    def job(self) -> JobSpec:
        """A job that stays until it is stopped: its server never answers."""
        left = ("/nonexistent/j", "/nonexistent/s")
        return JobSpec("run-1", Recovery("run-1", "nowhere", "http://127.0.0.1:9", "none", Owner("nowhere", 1), *left))

    def test_launching_a_job_twice_starts_it_once(self, engine: Engine, job: JobSpec) -> None:
        assert engine.launch(job) == engine.launch(job)

    def test_a_launched_job_is_alive_until_it_is_stopped(self, engine: Engine, job: JobSpec) -> None:
        handle = engine.launch(job)
        self.until(lambda: engine.poll([handle]) == [JobState.ALIVE])
        engine.stop(handle, hard=True)
        self.until(lambda: engine.poll([handle]) == [JobState.LOST])

    def test_a_job_that_was_lost_can_be_launched_again(self, engine: Engine, job: JobSpec) -> None:
        first = engine.launch(job)
        engine.stop(first, hard=True)
        self.until(lambda: engine.poll([first]) == [JobState.LOST])
        second = engine.launch(job)
        self.until(lambda: engine.poll([first, second]) == [JobState.LOST, JobState.ALIVE])

    def test_stopping_a_job_that_has_gone_is_silent(self, engine: Engine, job: JobSpec) -> None:
        handle = engine.launch(job)
        for _ in range(2):
            engine.stop(handle, hard=True)
        engine.stop(handle)

    def test_a_handle_is_all_that_is_needed_to_find_a_job_again(
        self, engine: Engine, job: JobSpec, another: Callable[[], Engine]
    ) -> None:
        handle = json.loads(json.dumps(engine.launch(job)))  # it is stored with the run
        other = another()
        self.until(lambda: other.poll([handle]) == [JobState.ALIVE])
        other.stop(handle, hard=True)
        self.until(lambda: other.poll([handle]) == [JobState.LOST])

    def test_polling_nothing_gives_nothing(self, engine: Engine) -> None:
        assert engine.poll([]) == []

    def test_what_a_job_left_can_be_forgotten_twice(
        self, engine: Engine, job: JobSpec, another: Callable[[], Engine]
    ) -> None:
        handle: Handle = engine.launch(job)
        assert another().left() == {job.id: handle}
        engine.stop(handle, hard=True)
        assert engine.left() == {job.id: handle}
        engine.forget(job.id)
        engine.forget(job.id)
        self.until(lambda: engine.left() == {})

    def until(self, look: Callable[[], bool]) -> None:
        until(look, seconds=self.patience)

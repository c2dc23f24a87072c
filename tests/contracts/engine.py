"""What every engine promises, as tests. Inherit EngineContract and supply `engine`; plugins do the same."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from lapis.domain.launch import Owner, Recovery
from lapis.engines.base import Engine, Handle, JobSpec, JobState


class EngineContract:
    @pytest.fixture
    def engine(self) -> Engine:
        raise NotImplementedError

    @pytest.fixture
    def job(self) -> JobSpec:
        """A job that stays until it is stopped: its server never answers."""
        owner = Owner("nowhere", 1, journal="/nonexistent/j", spool="/nonexistent/s")
        return JobSpec("run-1", Recovery("run-1", "nowhere", "http://127.0.0.1:9", "none", owner))

    def test_launching_a_job_twice_starts_it_once(self, engine: Engine, job: JobSpec) -> None:
        assert engine.launch(job) == engine.launch(job)

    def test_a_launched_job_is_alive_until_it_is_stopped(self, engine: Engine, job: JobSpec) -> None:
        handle = engine.launch(job)
        eventually(lambda: engine.poll([handle]) == [JobState.ALIVE])
        engine.stop(handle, hard=True)
        eventually(lambda: engine.poll([handle]) == [JobState.LOST])

    def test_a_job_that_was_lost_can_be_launched_again(self, engine: Engine, job: JobSpec) -> None:
        first = engine.launch(job)
        engine.stop(first, hard=True)
        eventually(lambda: engine.poll([first]) == [JobState.LOST])
        second = engine.launch(job)
        eventually(lambda: engine.poll([first, second]) == [JobState.LOST, JobState.ALIVE])

    def test_stopping_a_job_that_has_gone_is_silent(self, engine: Engine, job: JobSpec) -> None:
        handle = engine.launch(job)
        for _ in range(2):
            engine.stop(handle, hard=True)
        engine.stop(handle)

    def test_a_handle_is_all_that_is_needed_to_find_a_job_again(
        self, engine: Engine, job: JobSpec, another: Callable[[], Engine]
    ) -> None:
        handle = engine.launch(job)
        other = another()
        eventually(lambda: other.poll([handle]) == [JobState.ALIVE])
        other.stop(handle, hard=True)
        eventually(lambda: other.poll([handle]) == [JobState.LOST])

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
        eventually(lambda: engine.left() == {})


def eventually(true: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come to pass in time"
        time.sleep(0.01)

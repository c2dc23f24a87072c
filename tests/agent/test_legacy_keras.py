"""Which Keras a distributed TensorFlow job gets, and what its log says about that."""

from __future__ import annotations

from dataclasses import replace

from lapis.agent.legacy_keras import choose
from lapis.domain.job import Job, PyTorch, TensorFlow

KERAS_3 = "keras==3.15.1\ntensorflow-cpu==2.21.0\n"
JOB = Job(distribution=TensorFlow(), notices=("one",), environment_variables={"A": "1"})


def test_keras_3_is_switched_to_tf_keras_where_that_is_installed() -> None:
    chosen = choose(JOB, KERAS_3 + "tf-keras==2.21.0\n")
    assert chosen.environment_variables == {"A": "1", "TF_USE_LEGACY_KERAS": "1"}
    assert chosen.notices[0] == "one" and "TF_USE_LEGACY_KERAS=1" in chosen.notices[1]


def test_without_tf_keras_the_log_says_what_to_add() -> None:
    chosen = choose(JOB, KERAS_3)
    assert chosen.environment_variables == {"A": "1"}
    assert "Add tf_keras==2.21.* to the environment's pip packages" in chosen.notices[1]


def test_what_the_user_has_chosen_stays() -> None:
    job = replace(JOB, environment_variables={"TF_USE_LEGACY_KERAS": "0"})
    assert choose(job, KERAS_3 + "tf_keras==2.21.0\n") == job


def test_keras_2_and_jobs_of_another_kind_are_left_alone() -> None:
    assert choose(JOB, "keras==2.15.0\ntensorflow==2.15.1\n") == JOB
    for distribution in (PyTorch(2), None):
        job = replace(JOB, distribution=distribution)
        assert choose(job, KERAS_3) == job

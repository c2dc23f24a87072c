"""Which Keras a distributed TensorFlow job gets, and what its log says about that."""

from __future__ import annotations

from typing import Any

from lapis.agent.legacy_keras import choose

KERAS_3 = "keras==3.15.1\ntensorflow-cpu==2.21.0\n"


def job(packages: str, kind: str = "tensorflow", **more: Any) -> dict[str, Any]:
    return {"distribution": {"kind": kind}, "lock": {"packages": packages}, "notices": ["one"], **more}


def test_keras_3_is_switched_to_tf_keras_where_that_is_installed() -> None:
    chosen = choose(job(KERAS_3 + "tf-keras==2.21.0\n", environment_variables={"A": "1"}))
    assert chosen["environment_variables"] == {"A": "1", "TF_USE_LEGACY_KERAS": "1"}
    assert chosen["notices"][0] == "one" and "TF_USE_LEGACY_KERAS=1" in chosen["notices"][1]


def test_without_tf_keras_the_log_says_what_to_add() -> None:
    chosen = choose(job(KERAS_3))
    assert "environment_variables" not in chosen
    assert "Add tf_keras==2.21.* to the environment's pip packages" in chosen["notices"][1]


def test_what_the_user_has_chosen_stays() -> None:
    assert choose(job(KERAS_3 + "tf_keras==2.21.0\n", environment_variables={"TF_USE_LEGACY_KERAS": "0"})) == {}


def test_keras_2_and_jobs_of_another_kind_are_left_alone() -> None:
    assert choose(job("keras==2.15.0\ntensorflow==2.15.1\n")) == {}
    assert choose(job(KERAS_3, kind="pytorch")) == {}
    assert choose({"distribution": None}) == {}

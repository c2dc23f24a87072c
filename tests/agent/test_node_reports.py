"""What follows from what the nodes of a run tell of themselves."""

from __future__ import annotations

from typing import Any

from lapis.agent import node_reports
from lapis.agent.verdict import Verdict, of_rank


def failed(index: int, at: float, reason: str, **error: Any) -> dict[str, Any]:
    verdict = Verdict("Failed", reason, {"code": "ExitCode", "message": reason, **error})
    return {"index": index, "state": "failed", "at": at, "verdict": verdict.to_json()}


def test_the_first_failure_is_the_runs_whichever_node_told_it_first() -> None:
    told = [failed(0, 20.5, "connection reset"), {}, failed(2, 20.1, "division by zero")]
    found = node_reports.failure(told)
    assert found is not None and found.reason == "division by zero"


def test_nodes_that_say_nothing_yet_are_missing() -> None:
    assert node_reports.missing([{"index": 0, "ports": [1]}, {}, {"index": 2}], 4) == [1, 2, 3]


def test_parameter_servers_are_needed_until_every_node_is_idle() -> None:
    assert not node_reports.nobody_is_busy([{"state": "idle"}, {"state": None}])
    assert node_reports.nobody_is_busy([{"state": "idle"}, {"state": "done"}])


def test_the_last_words_of_an_mpi_rank_come_from_the_node_that_has_its_log() -> None:
    verdict = of_rank(Verdict("Failed", "Ended with exit code 3", {"code": "ExitCode"}), 3, "")
    told = [
        {"index": 0, "state": "failed", "at": 1.0, "verdict": verdict.to_json()},
        {"index": 1, "state": "failed", "at": 1.1, "verdict": verdict.to_json(), "said": {"rank": 3, "lines": "boom"}},
    ]
    found = node_reports.failure(told)
    assert found is not None and found.error is not None
    assert found.reason == "rank 3: ended with exit code 3"
    assert found.error["message"] == "rank 3: ended with exit code 3. Last lines of user_logs/std_log_3.txt:\nboom"


def test_the_last_words_of_a_failed_rank_are_waited_for_until_its_node_has_told_them() -> None:
    failed = {"index": 0, "state": "failed", "at": 1.0, "verdict": Verdict("Failed", "r", {"rank": 3}).to_json()}
    other: dict[str, Any] = {"index": 1, "state": "done", "delivered": True}
    assert node_reports.last_words_are_missing([failed, other])
    assert not node_reports.last_words_are_missing([failed, {**other, "said": {"rank": 3, "lines": ""}}])
    assert not node_reports.last_words_are_missing([{**failed, "state": "done"}, other])

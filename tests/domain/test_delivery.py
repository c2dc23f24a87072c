"""What becomes of a verdict when something could not be delivered."""

from __future__ import annotations

from lapis.domain.delivery import lacking, not_delivered

COMPLETED = {"state": "Completed", "reason": "Ended with exit code 0", "error": None}


def test_a_run_that_delivered_all_ends_as_it_ended() -> None:
    assert not_delivered(COMPLETED, []) == COMPLETED


def test_a_run_that_could_not_deliver_has_failed_and_tells_how_its_script_ended() -> None:
    told = not_delivered(COMPLETED, ["a", "b", "a"])
    assert told["state"] == "Failed"
    assert told["reason"] == "Ended with exit code 0, but 2 of the things it wrote could not be stored: a; b"
    assert told["error"]["code"] == "NotDelivered" and told["error"]["notDelivered"] == ["a", "b"]


def test_a_failure_stays_what_it_is_and_names_what_is_lacking_too() -> None:
    failed = {"state": "Failed", "reason": "Ended with exit code 1", "error": {"code": "ExitCode", "message": "No."}}
    told = not_delivered(failed, ["a"])
    assert (told["state"], told["reason"], told["error"]["code"]) == ("Failed", "Ended with exit code 1", "ExitCode")
    assert told["error"]["message"] == "No.\n1 of the things it wrote could not be stored: a."


def test_a_cancelled_run_stays_cancelled_and_names_what_is_lacking() -> None:
    told = not_delivered({"state": "Canceled", "reason": "Stopped: cancel() was called", "error": None}, ["a"])
    assert (told["state"], told["error"]["code"]) == ("Canceled", "NotDelivered")


def test_of_many_lost_things_some_are_shown_and_all_are_counted() -> None:
    told = not_delivered(COMPLETED, [f"file {number}" for number in range(1500)])
    assert told["reason"].startswith("Ended with exit code 0, but 1,500 of") and told["reason"].endswith(
        "and 1,490 more"
    )


def test_a_stream_that_is_longer_than_stated_lacks_nothing() -> None:
    assert lacking({"log:a": 5, "journal:b": 5}, {"log:a": 9, "journal:b": 4}) == [
        "of journal 'b' 4 of 5 bytes have arrived"
    ]

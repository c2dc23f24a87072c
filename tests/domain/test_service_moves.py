"""What becomes of a service when it is updated, when a revision is ready, when one ends."""

from __future__ import annotations

from lapis.domain import service_moves as moves
from lapis.domain.service import Leaving
from lapis.domain.service_settings import ServiceSettings
from tests.domain.service_samples import CONTENT, service, slot, version

SETTINGS = ServiceSettings(cpu_cores=2)


def test_what_serves_goes_on_until_its_successor_is_ready() -> None:
    first = service({"": version(wanted=slot(1, state="ready", run="a"))})
    rolled = moves.rolled(first, "", CONTENT, SETTINGS, 150.0)
    there = rolled.version("")
    assert there.serving is not None and there.serving.run == "a"
    assert there.wanted.revision == 2 and there.wanted.settings == SETTINGS and rolled.leaving == ()
    begun = moves.slot_changed(rolled, "", there.wanted, moves.started(there.wanted, "b"))
    assert begun is not None
    again = moves.rolled(begun, "", CONTENT, SETTINGS, 160.0)
    assert again.version("").serving == there.serving
    assert again.leaving == (Leaving("b", 160.0),)  # the one that never came to serve is not wanted
    wanted = again.version("").wanted
    begun = moves.slot_changed(again, "", wanted, moves.started(wanted, "c"))
    assert begun is not None
    ready = moves.became_ready(begun, "", "c", "h:1", 200.0)
    after = ready.version("")
    assert after.serving is None and after.address == "h:1"
    assert after.wanted.state == "ready" and after.wanted.ready_at == 200.0
    assert ready.leaving == (Leaving("b", 160.0), Leaving("a", 200.0 + moves.DRAIN))
    assert moves.runs_gone(ready, ["b"]).leaving == (Leaving("a", 200.0 + moves.DRAIN),)


def test_nothing_becomes_of_a_revision_that_is_not_wanted_any_more() -> None:
    there = service({"": version(wanted=slot(2, run="b"))})
    assert moves.became_ready(there, "", "a", "h:1", 200.0) == there
    assert moves.became_ready(there, "gone", "b", "h:1", 200.0) == there
    assert moves.slot_changed(there, "", slot(1, run="a"), slot(1)) is None
    assert moves.slot_changed(there, "gone", slot(2, run="b"), slot(2)) is None


def test_what_began_to_serve_again_while_the_service_was_updated_goes_on() -> None:
    was = slot(1, state="ready", run=None)
    updated = moves.rolled(service({"": version(wanted=was)}), "", CONTENT, SETTINGS, 150.0)
    changed = moves.slot_changed(updated, "", was, moves.started(was, "a"))
    assert changed is not None
    serving = changed.version("").serving
    assert serving is not None and serving.run == "a"


def test_a_version_goes_once_nobody_sends_requests_to_it() -> None:
    two = version(wanted=slot(2, run="b"), serving=slot(1, run="a"))
    left = moves.version_deleted(service({"one": version(), "two": two}), "two", 100.0)
    assert list(left.versions) == ["one"]
    assert [(each.run, each.cancel_at) for each in left.leaving] == [("a", 104.0), ("b", 104.0)]


def test_the_version_at_which_requests_come_in_goes_when_the_default_one_has_its_place() -> None:
    one = version(port=1, place="first", wanted=slot(1, state="ready", run="a"))
    two = version(port=2, place="second", wanted=slot(1, state="ready", run="b"))
    left = moves.version_deleted(service({"one": one, "two": two}, default="two"), "one", 100.0)
    heir = left.version("two")
    assert left.gateway == "two" and (heir.port, heir.place, heir.wanted.revision) == (1, "first", 2)
    assert heir.serving is not None and heir.serving.run == "b"
    assert left.leaving == (Leaving("a", until="two"),)
    begun = moves.slot_changed(left, "two", heir.wanted, moves.started(heir.wanted, "c"))
    assert begun is not None
    done = moves.became_ready(begun, "two", "c", "h:1", 200.0)
    assert {each.run: each.cancel_at for each in done.leaving} == {"a": 290.0, "b": 290.0}


def test_a_first_start_that_fails_by_itself_has_failed() -> None:
    error = {"code": "EntryScript", "message": "no weights"}
    after = moves.ended(slot(run="a"), error, "why", 101.0)
    assert after.state == "failed" and after.error == error


def test_a_first_start_that_is_killed_is_tried_again_a_few_times() -> None:
    after = slot(run="a")
    for _ in range(moves.MOST_FALSE_STARTS):
        after = moves.ended(after, {"code": "Signal", "message": "killed"}, "killed", 101.0)
        assert after.state == "starting" and after.run is None
    assert moves.ended(after, {"code": "Signal", "message": "killed"}, "killed", 101.0).state == "failed"


def test_what_answered_once_is_started_again_after_longer_and_longer_pauses() -> None:
    after = slot(run="a", state="ready", ready_at=100.0)
    pauses = []
    for _ in range(9):
        after = moves.ended(after, None, "it ended", 101.0)
        assert after.state == "ready" and after.why == "it ended" and after.restart_at is not None
        pauses.append(after.restart_at - 101.0)
    assert pauses == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    steady = moves.ended(after, None, "it ended", 100.0 + moves.STEADY + 1)
    assert steady.restarts == 1  # it had lived long enough: the next one counts as the first


def test_only_the_last_runs_of_a_revision_are_kept() -> None:
    after = slot()
    for number in range(7):
        after = moves.started(after, str(number))
    assert after.runs == ("2", "3", "4", "5", "6") and after.run == "6" and after.restart_at is None

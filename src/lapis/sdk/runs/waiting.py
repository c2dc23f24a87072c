"""Waiting for a run with something to see: its log as it grows, and why it waits when it does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Mapping

from lapis.domain.run import ENDED
from lapis.domain.terminal_escapes import Colours, plain
from lapis.sdk.runs.failure import exception_of

if TYPE_CHECKING:
    from lapis.sdk.runs.run import Run

_BUILD_LOG = "azureml-logs/20_image_build_log.txt"  # while its environment is being built
_WAIT = 20.0
WORTH_TELLING = 1.0  # seconds in the queue: on an idle machine a run is out of it before anybody could read of it
_FIRST_BYTES = {2: range(0xC0, 0xE0), 3: range(0xE0, 0xF0), 4: range(0xF0, 0xF8)}  # of a character, by its length


def wait_for_completion(run: Run, show_output: bool, raise_on_error: bool) -> dict[str, Any]:
    screen = _Screen(run) if show_output else None
    own_log = run._own_log
    revision, log, offset = -1, own_log, 0
    if run._view is not None and run._view["status"] == "Queued":  # as submit() was told: ask for what came since
        revision = run._view["revision"]
        if screen is not None:
            screen.tell_status(run._view)
    try:
        while True:
            held_back = screen is not None and screen.holds_back
            query: dict[str, Any] = {"revision": revision, "wait": WORTH_TELLING if held_back else _WAIT}
            if screen is not None:
                query.update(log=log, offset=offset)
            seen = run._call("GET", "/watch", query=query, timeout=_WAIT + 40.0)
            view, revision = seen["run"], seen["run"]["revision"]
            run._view = view
            if screen is not None:
                if log == own_log or view["status"] == "Preparing":  # else: the build's last words come first
                    screen.tell_status(view)
                if seen["length"] > offset:
                    offset += screen.show_log(log, offset)
                needed = _BUILD_LOG if view["status"] == "Preparing" else own_log
                if needed != log:
                    log, offset, revision = needed, 0, -1
                    screen.turn_to_another_log()
                    continue
            if view["status"] in ENDED:
                break
    except KeyboardInterrupt:
        print(
            f"\nNo longer waiting. Run {run.id} goes on: run.wait_for_completion(show_output=True) follows it again, "
            "run.cancel() stops it.",
            file=sys.stderr,
        )
        raise
    if screen is not None:
        screen.sum_up(view)
    if view["status"] == "Failed" and raise_on_error:
        raise exception_of(view)
    return run._details(view)


class _Screen:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._headed = False
        self._ended_line = True
        self._colours = Colours()
        self._told: tuple[str, str] | None = None
        self.holds_back = False
        self._url = run.get_portal_url()
        print(f"RunId: {run.id}\nWeb View: {self._url}", flush=True)

    def tell_status(self, view: dict[str, Any]) -> None:
        """A line when the run begins to wait for something else; nothing once its log speaks."""
        self.holds_back = False
        if (self._headed and view["status"] != "Queued") or view["status"] in ENDED or not view["stages"]:
            return
        last = view["stages"][-1]
        self.holds_back = just_queued(view)
        if self.holds_back:
            return
        now = (view["status"], last["reason"])
        if now != self._told and view["status"] != "Running":
            ends = f" ({last['until']})" if last["until"] else ""
            print(plain(f"{view['status']}: {last['reason']}{ends}"), flush=True)
        self._told = now

    def turn_to_another_log(self) -> None:
        self._headed = False

    def show_log(self, log: str, offset: int) -> int:
        """Print what the log has from `offset`; how many bytes that were."""
        if not self._headed:
            heading = f"Streaming {log}"
            print(f"\n{heading}\n{'=' * len(heading)}\n", flush=True)
            self._headed = True
        pieces: list[bytes] = []
        self._run._client.download(f"{self._run._base}/files/{log}", pieces.append, {"offset": offset})
        data = b"".join(pieces)
        whole = whole_characters(data)
        sys.stdout.write(self._colours.feed(data[:whole].decode("utf-8", "replace")))
        sys.stdout.flush()
        self._ended_line = data[:whole].endswith(b"\n")
        return whole

    def sum_up(self, view: dict[str, Any]) -> None:
        spent: dict[str, float] = {}
        for stage in view["stages"]:
            spent[stage["state"]] = spent.get(stage["state"], 0.0) + stage["seconds"]
        lines = ["", "Execution Summary", "=================", f"RunId: {self._run.id}", f"Web View: {self._url}"]
        lines.append("Status: {} ({})".format(view["status"], view["stages"][-1]["reason"]))
        times = ", ".join(f"{state} {seconds:.1f} s" for state, seconds in spent.items() if seconds >= 0.05)
        if times:
            lines.append(f"Time: {times}")
        lines += [f"Warning: {warning}" for warning in view["warnings"]]
        sys.stdout.write(self._colours.end())
        if not self._ended_line:
            print()
        print(plain("\n".join(lines)), flush=True)


def just_queued(view: Mapping[str, Any]) -> bool:
    """Whether it is too early to say that the run waits."""
    return view["status"] == "Queued" and bool(view["stages"]) and view["stages"][-1]["seconds"] < WORTH_TELLING


def whole_characters(data: bytes) -> int:
    """The length of `data` without a character at its end that has only begun to arrive."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needs = next((length for length, first in _FIRST_BYTES.items() if byte in first), 1)
        return len(data) - back if needs > back and len(data) > back else len(data)
    return len(data)

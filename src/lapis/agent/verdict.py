"""How a run ended, in words a person can act on. The agent says so, never the script."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lapis.domain import log_names
from lapis.domain.delivery import not_delivered

_LAST_LINES = 30


@dataclass(frozen=True)
class Verdict:
    state: str
    reason: str
    error: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        return {"state": self.state, "reason": self.reason, "error": self.error}

    def but_lost(self, lost: list[str]) -> Verdict:
        """The same for a run of which these things could not be delivered: it has not completed."""
        return Verdict(**not_delivered(self.to_json(), lost))


def from_exit(record: Mapping[str, Any], log: str, log_name: str = log_names.STD_LOG) -> Verdict:
    if "could_not_start" in record:
        return cannot_start(OSError(record["could_not_start"]))
    if record["code"] == 0:
        return Verdict("Completed", "Ended with exit code 0")
    last = last_lines(log)
    if record["out_of_memory"]:
        peak = record["peak_memory_kb"] / 1024
        why = f"Out of memory: the kernel killed it (its peak was {peak:.0f} MB)"
        code = "OutOfMemory"
    elif record["signal"] is not None:
        why = killed(record["signal"])
        code = "Signal"
    elif "MemoryError" in last.rsplit("\n", 1)[-1]:
        why = f"Out of memory: Python raised MemoryError (exit code {record['code']})"
        code = "OutOfMemory"
    else:
        why = f"Ended with exit code {record['code']}"
        code = "ExitCode"
    message = f"{why}. Last lines of {log_name}:\n{last}" if last else f"{why}. It printed nothing."
    details = {"exitCode": record["code"], "signal": record["signal"], "lastLines": last}
    return Verdict("Failed", why, {"code": code, "message": message, **details})


def canceled(why: str) -> Verdict:
    return Verdict("Canceled", f"Stopped: {why}")


def timed_out(limit: float) -> Verdict:
    why = f"Ran longer than max_run_duration_seconds={limit:g}"
    return Verdict("Canceled", why, {"code": "TimedOut", "message": why + ", so it was stopped."})


def cannot_start(error: BaseException) -> Verdict:
    said = getattr(error, "message", None) or str(error)
    why = f"The script could not be started: {said}"
    return Verdict("Failed", why, {"code": "CouldNotStart", "message": why})


def unknown() -> Verdict:
    why = "Its keeper was killed before it ended, so nobody saw its exit status"
    return Verdict("Failed", why, {"code": "ExitStatusUnknown", "message": why + "."})


def by_member(name: str, verdict: Verdict) -> Verdict:
    """The verdict with the name of who ended so, where there are several."""
    if not name or verdict.error is None or "rank" in verdict.error:
        return verdict
    reason = f"{name}: {verdict.reason[0].lower()}{verdict.reason[1:]}"
    error = {**verdict.error, "message": f"{name}: {verdict.error['message']}"}
    return Verdict(verdict.state, reason, error)


def of_rank(verdict: Verdict, rank: int, said: str) -> Verdict:
    """The verdict on a rank of an MPI job, with the last lines of its own log."""
    named = f"rank {rank}: "
    why = verdict.reason[len(named) :] if verdict.reason.startswith(named) else verdict.reason
    reason = f"{named}{why[0].lower()}{why[1:]}"
    where = log_names.of_rank(rank)
    message = f"{reason}. Last lines of {where}:\n{said}" if said else f"{reason}. {where} tells more."
    return Verdict(
        verdict.state, reason, {**(verdict.error or {}), "message": message, "lastLines": said, "rank": rank}
    )


def killed(number: int) -> str:
    return f"Killed by signal {number} ({_signal_name(number)})"


def last_lines(log: str) -> str:
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.path.getsize(log) - 16384))
            lines = file.read().decode("utf-8", "replace").rstrip().splitlines()
    except FileNotFoundError:
        return ""
    return "\n".join(line.rsplit("\r", 1)[-1] for line in lines[-_LAST_LINES:])


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"

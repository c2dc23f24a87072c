"""The processes that one agent has started and follows: one for a plain run, several for a distributed one.

What it is made of lies in `crew.json`, written before anything is started, so that the next agent can take over.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lapis.agent import launch
from lapis.agent.verdict import Verdict, by_member, from_exit, unknown
from lapis.machine import apart, json_files, processes


class Canceled(Exception):
    """The run was cancelled while it was being prepared; the text says at what."""


@dataclass(frozen=True)
class Ended:
    """How something ended, and when that was clear."""

    verdict: Verdict
    at: float


@dataclass(frozen=True)
class Member:
    name: str  # empty for the only one
    folder: str  # where its keeper writes
    log: str  # what it prints
    log_name: str  # and how that is called in the run
    argv: list[str]
    variables: dict[str, str]
    cwd: str
    serves: bool = False  # never ends by itself
    logs: dict[str, str] = field(default_factory=dict)  # more of them, by their name in the run
    network: str = ""  # the one that it lives in; empty: the machine's
    container: list[str] = field(default_factory=list)  # the runtime and the name, if it is in one
    reserved: list[str] = field(default_factory=list)  # folders outside of the run's that were made for it
    starts: list[str] = field(default_factory=list)  # programs that it starts, where it does not find them by itself
    apart: str = apart.SHARED  # how far from what is the server's (machine/apart.py)
    reach: dict[str, Any] = field(default_factory=dict)  # and what it gets to see of that

    def order(self) -> launch.Order:
        return launch.Order(
            self.argv, self.variables, self.cwd, self.log, self.folder, self.network, self.apart, self.reach
        )

    def ended(self) -> Ended | None:
        """None while it lives."""
        record = launch.read(self.folder, "exit.json")
        if record is None:
            started = launch.started(self.folder)
            if started is None or _lives(started["keeper"]):
                return None
            record = launch.read(self.folder, "exit.json")  # it may have ended between the two looks
            if record is None:
                return None if _lives(started["script"]) else Ended(unknown(), time.time())
        verdict = from_exit(record, self.log, self.log_name)
        if self.name == "mpirun" and verdict.state != "Completed":
            from lapis.agent.mpi import blamed

            verdict = blamed(self, verdict)
        return Ended(verdict, float(record.get("at") or time.time()))


class Crew:
    def __init__(self, members: list[Member]) -> None:
        self.members = members
        self._serving = {each.name for each in members if each.serves}

    @staticmethod
    def read(folder: str) -> Crew | None:
        found = launch.read(folder, "crew.json")
        return None if found is None else Crew([Member(**each) for each in found["members"]])

    def write(self, folder: str) -> None:
        json_files.write(os.path.join(folder, "crew.json"), {"members": [asdict(each) for each in self.members]})

    def logs(self) -> dict[str, str]:
        """Where they print, by the name in the run."""
        return {name: path for each in self.members for name, path in {each.log_name: each.log, **each.logs}.items()}

    def start(self, keeper: launch.Keeper | None = None) -> list[int]:
        """Start those that were not started before, the first with the `keeper` that was forked ahead.

        Pipes to read from: something comes when one has ended.
        """
        ends = []
        for each in self.members:
            os.makedirs(each.folder, exist_ok=True)
            for log in each.logs.values():
                open(log, "ab").close()  # it may write to them, and make none beside them
            end = launch.start(each.order(), keeper)
            ends += [end] if end is not None else []
            keeper = None
        return ends

    def ended(self, others_are_done: bool) -> Ended | None:
        """The first failure, with the name of who failed; or, once all have ended, how. None while it goes on."""
        ends = [each.ended() for each in self.members]
        needed = [
            (member, end)
            for member, end in zip(self.members, ends, strict=True)
            if not (member.name in self._serving and others_are_done)  # it may end as it likes
        ]
        failed = [
            Ended(by_member(member.name, end.verdict), end.at)
            for member, end in needed
            if end is not None and end.verdict.state != "Completed"
        ]
        if failed:
            return min(failed, key=lambda end: end.at)
        if any(end is None for _, end in needed):
            return None
        return Ended(Verdict("Completed", "Ended with exit code 0"), time.time())

    def ended_by(self, at: float) -> bool:
        """Whether all had ended at that time of the monotonic clock. An agent that takes over later asks."""
        records = [launch.read(each.folder, "exit.json") for each in self.members]
        return all(record is not None and _monotonic(record) <= at for record in records)

    def began(self) -> float | None:
        """When the first of them was started, by the monotonic clock."""
        records = [launch.started(each.folder) for each in self.members]
        return min((_monotonic(record) for record in records if record is not None), default=None)

    def busy(self) -> bool:
        """Whether somebody who ends by himself has not ended yet."""
        return any(each.ended() is None for each in self.members if each.name not in self._serving)

    def is_done(self, name: str) -> bool:
        ends = [each.ended() for each in self.members if each.name == name]
        return any(end is not None and end.verdict.state == "Completed" for end in ends)

    def let_go(self, members: Sequence[Member]) -> list[Member]:
        """Wait for them no longer; those that were waited for until now."""
        fresh = [each for each in members if each.name not in self._serving and each.ended() is None]
        self._serving.update(each.name for each in fresh)
        return fresh

    def alive(self) -> bool:
        return any(each.ended() is None for each in self.members)

    def keepers(self) -> list[int]:
        """Of those that have not ended: who wants to know when they do waits for these processes."""
        started = [launch.started(each.folder) for each in self.members if each.ended() is None]
        return [int(record["keeper"]["pid"]) for record in started if record is not None]

    def stop(self, grace: float) -> None:
        """All of them at once, so that the last one has as much time as the first."""
        left = [each for each in self.members if not (launch.read(each.folder, "exit.json") or {}).get("alone")]
        if not left:
            return
        from concurrent.futures import ThreadPoolExecutor  # late: as a rule nobody is left

        with ThreadPoolExecutor(len(left)) as threads:
            list(threads.map(lambda each: _stop(each, grace), left))


def _stop(member: Member, grace: float) -> None:
    started: Mapping[str, Any] = launch.started(member.folder) or {}
    living = [started["script"]["pid"]] if started and _lives(started["script"]) else []
    keeper = started.get("keeper", {})
    if keeper.get("adopts") and _lives(keeper):
        processes.end_below(keeper["pid"], keeper["started"], grace)
    else:
        processes.end_tree(f"LAPIS_MEMBER={member.variables['LAPIS_MEMBER']}", living, grace)
    if member.container and living:
        from lapis.environments.containers import remove

        remove(*member.container)  # its client was ended; the runtime may not have noticed


def _monotonic(record: Mapping[str, Any]) -> float:
    """When a keeper wrote that down. One of an earlier release says the time of day only."""
    told = record.get("monotonic")
    return float(told) if told is not None else time.monotonic() - max(0.0, time.time() - float(record.get("at", 0.0)))


def _lives(process: Mapping[str, Any]) -> bool:
    return processes.alive(process["pid"], process["started"])

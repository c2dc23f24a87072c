"""The workers of a service: started, given requests, replaced when they die, and more or fewer of them by load."""

from __future__ import annotations

import asyncio
import json
import math
import os
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lapis.machine import unix_sockets
from lapis.scoring import frames
from lapis.serving.call import RETRY, Call
from lapis.serving.description import Description

PATIENCE = 2.0  # seconds that requests wait while no worker is up and one is on its way
STUCK_GRACE = 2.0  # seconds after its time limit in which a worker may still come back from run()
SETTLED = 60.0  # seconds after which a worker's death is no longer a failure to start
LONGEST_BACKOFF = 30.0  # seconds until the next try where workers cannot start,
LONGEST_PAUSE = 1.0  # and where they start, and die of what they are asked
AHEAD_SECONDS = 0.01  # of work that a worker holds beside what it is at: it need not wait where the front has to,
MOST_AHEAD, FEW_AHEAD = 32, 4  # and so many requests at most: of the only worker, and of one of several
LOOKS = 10  # at the load, one each `refresh_seconds`: there are as many workers as any of the last ones called for
_LARGE = 1 << 16

STARTING, READY, STOPPING, GONE = "starting", "ready", "stopping", "gone"


class StartFailed(Exception):
    def __init__(self, message: str, traceback: str | None) -> None:
        super().__init__(message)
        self.message, self.traceback = message, traceback


class Replica:
    """One worker process and the line to it."""

    def __init__(self, number: int, owner: Replicas) -> None:
        self.number = number
        self.state = STARTING
        self.process: asyncio.subprocess.Process | None = None
        self.pid: int | None = None
        self.began = time.monotonic()
        self.told: dict[str, Any] = {}  # what it said when it was ready
        self.failure: tuple[str, str | None] | None = None
        self.let_go = False  # it was told to end
        self.outstanding: dict[int, Call] = {}
        self.room = 1  # how many may be outstanding
        self.mean = 1.0  # seconds that it needs for a request, about
        self.moved = time.monotonic()  # when it last answered, or began after a pause
        self.line_ended = asyncio.Event()
        self.line_ended.set()
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._incoming = frames.Incoming()

    def attach(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.line_ended.clear()

    def take(self, call: Call) -> None:
        owner = self._owner
        number = owner.next_number()
        call.sent = time.monotonic()
        if not self.outstanding:
            self.moved = call.sent
        self.outstanding[number] = call
        meta = owner.meta_of(call, self.told["wants"])
        assert self._transport is not None
        if len(call.body) > _LARGE:
            head = frames.request(number, meta, b"")
            size = frames.META.size + len(meta) + len(call.body)
            self._transport.write(frames.HEAD.pack(size, number, frames.REQUEST) + head[frames.HEAD.size :])
            self._transport.write(call.body)
            return
        self._transport.write(frames.request(number, meta, call.body))

    def received(self, data: bytes) -> None:
        for kind, number, payload in self._incoming.feed(data):
            if kind == frames.ANSWER:
                self._answered(number, payload)
            elif kind == frames.READY:
                self.told = json.loads(payload)
                self._owner.is_ready(self)
            elif kind == frames.FAILED:
                said = json.loads(payload)
                self.failure = (said["message"], said["traceback"])

    def _answered(self, number: int, payload: bytes) -> None:
        call = self.outstanding.pop(number, None)
        if call is None:
            return
        status, length, took = frames.ANSWERED.unpack_from(payload)
        begin = frames.ANSWERED.size
        lines = payload[begin : begin + length]
        if status < 400:
            lines += b"x-ms-run-fn-exec-ms: %.3f\r\n" % (took / 1000)
        self.moved = time.monotonic()
        self.mean += 0.1 * (took / 1e6 - self.mean)
        call.answer(status, lines, payload[begin + length :])
        self._owner.has_room(self)

    def tell_to_start(self, body: dict[str, Any]) -> None:
        assert self._transport is not None
        self._transport.write(frames.message(frames.START, body))

    def end(self) -> None:
        """Let it go; what it is answering comes first."""
        self.state, self.let_go = STOPPING, True
        if not self.outstanding and self._transport is not None:
            self._transport.write(frames.frame(frames.END, 0, b""))

    def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.kill()


class _Arrival(asyncio.Protocol):
    """A connection of a worker, until it says which it is and after."""

    def __init__(self, owner: Replicas) -> None:
        self._owner = owner
        self._incoming = frames.Incoming()
        self._replica: Replica | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        if self._replica is not None:
            try:
                self._replica.received(data)
            except (ValueError, KeyError) as error:  # a script that writes to what is not its own
                self._owner.say(f"Worker {self._replica.number} said what makes no sense, and is ended: {error!r}")
                self._transport.abort()
            return
        for kind, number, _ in self._incoming.feed(data):
            self._replica = self._owner.arrived(kind, number, self._transport)
            if self._replica is None:
                self._transport.close()
                return

    def connection_lost(self, error: Exception | None) -> None:
        if self._replica is not None:
            self._replica.line_ended.set()
            self._owner.line_lost(self._replica)


@dataclass
class _Load:
    """How much was asked of the workers since their number was last looked at."""

    since: float
    last: float  # when it was last added to
    busy: float = 0.0  # workers that had to do then
    total: float = 0.0  # worker seconds
    needed: deque[int] = field(default_factory=lambda: deque(maxlen=LOOKS))  # workers, at each of the last looks

    def add(self, busy: float, now: float) -> None:
        self.total += self.busy * (now - self.last)
        self.busy, self.last = busy, now

    def mean(self, now: float) -> float:
        """Of the workers that had to do; from here on anew."""
        mean = self.total / max(now - self.since, 1e-9)
        self.total, self.since = 0.0, now
        return mean


class Replicas:
    """All workers of a service, and the requests that wait for one."""

    def __init__(self, description: Description, folder: str, say: Callable[[str], None], changed: Callable[[], None]):
        self.description = description
        self.all: list[Replica] = []
        self.ready: list[Replica] = []
        self.queue: deque[Call] = deque()
        self.restarts = 0
        self.told: dict[str, Any] = {}  # by the first worker that was ready
        self._socket = os.path.join(folder, "workers.sock")
        self.say, self._changed = say, changed
        self._server: asyncio.Server | None = None
        self._numbers = 0
        self._made = 0
        self._wanted = description.replicas.min
        self._failures = 0
        self._next_start = 0.0
        self._none_since: float | None = time.monotonic()
        self._first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._settled_in = False
        self._stopping = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._load = _Load(since=time.monotonic(), last=time.monotonic())
        self.stirred = asyncio.Event()  # something has to be looked after ten times a second; else a second is enough
        self._metas: dict[tuple[bytes, bytes, bytes | None], bytes] = {}

    async def start(self) -> None:
        """Start as many as there have to be, and wait until they are ready. Raises StartFailed."""
        if os.path.lexists(self._socket):
            os.unlink(self._socket)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with unix_sockets.short(self._socket) as path, unix_sockets.for_us_alone():
            listener.bind(path)
        self._server = await asyncio.get_running_loop().create_unix_server(lambda: _Arrival(self), sock=listener)
        for _ in range(self._wanted):
            self._begin()
        await self._first
        self._settled_in = True

    def submit(self, call: Call) -> None:
        """Have it answered, now or soon, or refuse it."""
        if not self.stirred.is_set():
            self.stirred.set()
        best = None
        for replica in self.ready:
            count = len(replica.outstanding)
            if count < replica.room and (best is None or count < len(best.outstanding)):
                best = replica
        if best is not None:
            best.take(call)
        elif len(self.queue) >= self.description.limits.queue:
            reason = f"The service has {len(self.queue)} requests waiting, as many as it may. Try again in a moment."
            call.refuse(429, reason, RETRY)
        elif self._none_since is not None and time.monotonic() - self._none_since > PATIENCE:
            call.refuse(503, "No worker of the service is up; one is being started.", RETRY)
        else:
            self.queue.append(call)

    def has_room(self, replica: Replica) -> None:
        if replica.state is STOPPING:
            replica.end()
            return
        replica.room = self._room(replica)
        while self.queue and len(replica.outstanding) < replica.room:
            call = self.queue.popleft()
            if not call.done:
                replica.take(call)

    def tick(self, now: float) -> None:
        """To be called ten times a second while `stirred` is set, each second else."""
        self._refuse_late(now)
        self._end_stuck(now)
        self._scale(now)
        missing = self._wanted - sum(replica.state in (STARTING, READY) for replica in self.all)
        if missing > 0 and now >= self._next_start and self._settled_in and not self._stopping:
            for _ in range(missing):
                self._begin()
        if missing <= 0 and not self.waiting and self._wanted <= self.description.replicas.min:
            self.stirred.clear()

    @property
    def waiting(self) -> int:
        return len(self.queue) + sum(len(replica.outstanding) for replica in self.all)

    def states(self) -> list[dict[str, Any]]:
        return [{"pid": each.pid, "state": each.state, "restarts": self.restarts} for each in self.all]

    async def stop(self) -> None:
        """End all workers; what they are answering has been answered by now, or nobody wants it any more."""
        self._stopping = True
        for replica in list(self.all):
            replica.end()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=2.0)
        for replica in list(self.all):
            replica.kill()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=5.0)
        if self._server is not None:
            self._server.close()
        if os.path.lexists(self._socket):
            os.unlink(self._socket)

    # What workers do

    def arrived(self, kind: int, number: int, transport: asyncio.Transport) -> Replica | None:
        replica = next((each for each in self.all if each.number == number and each.state is STARTING), None)
        if kind != frames.HELLO or replica is None:
            return None
        replica.attach(transport)
        about = self.description
        replica.tell_to_start(
            {
                "service": about.name,
                "load": about.load,
                "concurrent": about.replicas.concurrent_per_replica,
                "seconds": about.limits.seconds,
                "start_seconds": about.limits.worker_start_seconds,
                "batch": {"largest": about.batch.largest, "wait_ms": about.batch.wait_ms},
            }
        )
        return replica

    def is_ready(self, replica: Replica) -> None:
        replica.state = READY
        replica.room = self._room(replica)
        self.told = self.told or replica.told
        self.ready.append(replica)
        self._none_since = None
        self._changed()  # first: what is said wakes the agent, which looks at it
        self.say(f"Worker {replica.number} (pid {replica.pid}) is ready.")
        if not self._first.done() and len(self.ready) >= self._wanted:
            self._first.set_result(None)
        self.has_room(replica)

    def line_lost(self, replica: Replica) -> None:
        """It is gone or about to be: nothing more is sent to it."""
        if replica.state is GONE:
            return
        was = replica.state
        replica.state = GONE
        if replica in self.ready:
            self.ready.remove(replica)
            if not self.ready:
                self._none_since = time.monotonic()
        calls = [call for call in replica.outstanding.values() if not call.done]
        begun = calls[: self._at_once()]
        replica.outstanding.clear()
        for call in begun:
            call.refuse(502, "The worker that was answering this request ended before it had an answer.")
        for call in reversed(calls[len(begun) :]):  # it answers in order, so it had not begun these
            self.queue.appendleft(call)
        if begun or was is READY:
            waiting = len(calls) - len(begun)
            self.say(
                f"Worker {replica.number} (pid {replica.pid}) is gone: {len(begun)} requests it was answering failed, "
                f"{waiting} others go to another worker."
            )
        if not replica.let_go:
            replica.kill()
        for other in list(self.ready):
            self.has_room(other)

    # Helpers, in order of use

    def next_number(self) -> int:
        self._numbers = (self._numbers + 1) & 0xFFFFFFFF
        return self._numbers

    def meta_of(self, call: Call, wants: str) -> bytes:
        """What the worker is told of a request's head."""
        if wants == "all":
            words = [call.method, call.target]
            for pair in call.headers:
                words += pair
            return frames.meta_of(words)
        key = (call.method, call.target, call.fields.get(b"content-type"))
        length = call.fields.get(b"inference-header-content-length")
        meta = self._metas.get(key) if length is None else None
        if meta is None:
            words = [call.method, call.target]
            words += [b"content-type", key[2]] if key[2] is not None else []
            words += [b"inference-header-content-length", length] if length is not None else []
            meta = frames.meta_of(words)
            if length is None and len(self._metas) < 100:
                self._metas[key] = meta
        return meta

    def _room(self, replica: Replica) -> int:
        """How many requests it may have at once: a quick one gets the next while it works on the last."""
        if self.description.no_code:
            return 2 * self.description.batch.largest
        most = MOST_AHEAD if len(self.ready) == 1 else FEW_AHEAD  # another may be free before it is
        ahead = min(most, int(AHEAD_SECONDS / max(replica.mean, 1e-6)))
        return self.description.replicas.concurrent_per_replica + ahead

    def _at_once(self) -> int:
        """How many of its requests a worker may have begun."""
        if self.description.no_code:
            return self.description.batch.largest
        return self.description.replicas.concurrent_per_replica

    def _begin(self) -> None:
        self._made += 1
        replica = Replica(self._made, self)
        self.all.append(replica)
        task = asyncio.get_running_loop().create_task(self._live(replica))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _live(self, replica: Replica) -> None:
        """From the start of its process to its end."""
        worker = self.description.worker
        environ = {**os.environ, **worker.environ, "PYTHONUNBUFFERED": "1"}
        if self.description.collect:
            environ["LAPIS_COLLECT"] = self.description.collect
        argv = [*worker.argv, "--connect", self._socket, "--number", str(replica.number)]
        try:
            replica.process = await asyncio.create_subprocess_exec(
                *argv, cwd=worker.cwd, env=environ, stdin=asyncio.subprocess.DEVNULL
            )
        except OSError as error:
            replica.failure = (f"The worker could not be started: {argv[0]}: {error.strerror or error}", None)
            self._ended(replica, None)
            return
        replica.pid = replica.process.pid
        self._changed()
        if self._stopping:
            replica.kill()
        limit = self.description.limits.worker_start_seconds
        waiter = asyncio.ensure_future(replica.process.wait())
        await asyncio.wait([waiter], timeout=limit)
        if not waiter.done() and replica.state is STARTING:
            replica.failure = replica.failure or (
                f"The worker was not ready after {limit:g} seconds; see the log.",
                None,
            )
            replica.kill()
        code = await waiter
        try:  # what it said last is still on the line, unless something it started holds the line open
            await asyncio.wait_for(replica.line_ended.wait(), 1.0)
        except TimeoutError:
            pass
        self._ended(replica, code)

    def _ended(self, replica: Replica, code: int | None) -> None:
        started = bool(replica.told)
        self.line_lost(replica)
        self.all.remove(replica)
        if replica.let_go or self._stopping:
            self._changed()
            return
        message, traceback = replica.failure or (
            f"The worker {_how(code)}{'' if started else ' while it started'}.",
            None,
        )
        if not self._first.done():
            self._first.set_exception(StartFailed(message, traceback))
            return
        lived = time.monotonic() - replica.began
        self._failures = self._failures + 1 if lived < SETTLED or not started else 1
        longest = LONGEST_PAUSE if started else LONGEST_BACKOFF
        delay = 0.0 if self._failures == 1 else min(longest, 0.5 * 2 ** (min(self._failures, 20) - 2))
        self._next_start = time.monotonic() + delay
        self.stirred.set()
        self.restarts += 1
        self.say(f"Worker {replica.number}: {message} Another is started{f' in {delay:g} s' if delay else ''}.")
        self._changed()

    def _refuse_late(self, now: float) -> None:
        limits = self.description.limits
        late = now - limits.seconds
        for replica in self.all:
            for call in replica.outstanding.values():
                if call.arrived < late and not call.done:
                    call.refuse(504, f"No answer within {limits.seconds:g} seconds.")
        if not self.queue:
            return
        hopeless = self._none_since is not None and now - self._none_since > PATIENCE
        patience = limits.seconds if limits.wait_seconds is None else min(limits.wait_seconds, limits.seconds)
        for call in self.queue:
            if call.done:
                continue
            waited = now - call.arrived
            if hopeless and waited > PATIENCE:
                call.refuse(503, "No worker of the service is up; one is being started.", RETRY)
            elif waited > limits.seconds:
                call.refuse(504, f"No worker was free for {limits.seconds:g} seconds.")
            elif waited > patience:
                call.refuse(503, f"No worker was free for {patience:g} seconds.", RETRY)
        if any(call.done for call in self.queue):
            self.queue = deque(call for call in self.queue if not call.done)

    def _end_stuck(self, now: float) -> None:
        limit = self.description.limits.seconds + STUCK_GRACE
        for replica in list(self.ready):
            if not replica.outstanding:
                continue
            if self._at_once() == 1 or self.description.no_code:
                stuck = now - replica.moved > limit
            else:
                stuck = sum(now - each.sent > limit for each in replica.outstanding.values()) >= self._at_once()
            if stuck:
                replica.failure = (f"It did not come back from run() within {limit:g} seconds and was ended.", None)
                replica.kill()

    def _scale(self, now: float) -> None:
        count, load = self.description.replicas, self._load
        if not count.min <= self._wanted <= count.max:
            self._wanted = min(max(self._wanted, count.min), count.max)
        if count.min == count.max:
            self._let_go()
            return
        if self.description.no_code:
            busy = sum(bool(replica.outstanding) for replica in self.ready)
            load.add(busy + len(self.queue) / self.description.batch.largest, now)
        else:
            load.add(self.waiting / count.concurrent_per_replica, now)
        if now - load.since < count.refresh_seconds:
            return
        needed = math.ceil(load.mean(now) / (count.target_utilization / 100) - 1e-9)
        load.needed.append(min(max(needed, count.min), count.max))
        wanted = min(max(load.needed), count.max)
        if wanted != self._wanted:
            why = "for the load" if wanted > self._wanted else "they are enough"
            self.say(f"{wanted} workers instead of {self._wanted}: {why}.")
            self._wanted = wanted
        self._let_go()

    def _let_go(self) -> None:
        idle_first = sorted(self.ready, key=lambda each: len(each.outstanding))
        for replica in idle_first[: max(0, len(self.ready) - self._wanted)]:
            self.ready.remove(replica)
            replica.end()
            self._changed()


def _how(code: int | None) -> str:
    if code is None:
        return "did not start"
    return f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"


def say(text: str) -> None:
    """A line of the front's own in the service's log."""
    print(f"[service] {text}", file=sys.stderr, flush=True)

"""One replica of a service: loads the model in the user's environment and answers what the front sends.

`python -m lapis.scoring.worker --connect SOCKET --number N`; what to load comes over the socket. Standard library only,
Python 3.7 and later. Whatever the script prints goes to the log.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections import deque
from typing import Any, Deque, Tuple

from lapis.machine.unix_sockets import short
from lapis.scoring import frames
from lapis.scoring.score_script import Answer, CannotServe, failure

FAILED_TO_START = 3  # the exit status, as Azure's server has it

Pending = Deque[Tuple[int, bytes]]  # number and payload of requests


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connect", required=True)
    parser.add_argument("--number", type=int, required=True)
    given = parser.parse_args()
    _log_as_it_comes()
    _end_with_the_front()
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with short(given.connect) as path:
        connected.connect(path)
    line = frames.Line(connected)
    line.send(frames.frame(frames.HELLO, given.number, str(os.getpid()).encode()))
    first = line.receive()
    if not first:
        return 0
    start = json.loads(first[0][2])
    try:
        loaded = _load(start)
        ready = {"wants": loaded.wants, "model": loaded.model, "swagger": loaded.swagger(start["service"])}
    except BaseException as error:  # sys.exit() in init() too
        said = traceback.format_exc()
        print(said, file=sys.stderr, flush=True)
        line.send(frames.message(frames.FAILED, {"message": _reason(error), "traceback": said}))
        return FAILED_TO_START
    gc.collect()
    gc.freeze()  # a model's many objects stay as they are: looking through them again would delay requests
    line.send(frames.message(frames.READY, ready))
    if loaded.batches:
        _answer_together(line, loaded, start["batch"])
    elif start["concurrent"] > 1:
        _answer_in_threads(line, loaded, start["concurrent"])
    else:
        _answer_one_by_one(line, loaded, start["seconds"])
    return 0


def _load(start: dict[str, Any]) -> Any:
    load = start["load"]
    # What init() hangs in is told before the front gives up on it.
    faulthandler.dump_traceback_later(max(1.0, start["start_seconds"] - 1.0))
    try:
        if load.get("script"):
            from lapis.scoring import score_script

            return score_script.load(load["script"])
        from lapis.scoring import no_code

        return no_code.load(load["runtime"], load["model"], load.get("sample"), start["service"])
    finally:
        faulthandler.cancel_dump_traceback_later()


def _reason(error: BaseException) -> str:
    if isinstance(error, CannotServe):
        return str(error)
    text = getattr(error, "message", None) or str(error)
    where = _last_of_the_script(error)
    return f"The service could not start: {type(error).__name__}: {text}{where}"


def _last_of_the_script(error: BaseException) -> str:
    own = os.path.dirname(os.path.abspath(__file__))
    steps = [step for step in traceback.extract_tb(error.__traceback__) if os.path.dirname(step.filename) != own]
    steps = [step for step in steps if not step.filename.startswith("<frozen")]
    return f" ({os.path.basename(steps[0].filename)}, line {steps[0].lineno})" if steps else ""


def _answer_one_by_one(line: frames.Line, loaded: Any, seconds: float) -> None:
    """In the main thread, in order. An answer is sent before the next request begins, so that the front knows which
    of those that it sent has been begun if we die."""
    alarm = _Alarm(seconds)
    for number, payload in line.requests():
        meta, body = frames.split_request(payload)
        line.send(_framed(number, alarm.answer(loaded, meta, body)))


class _Alarm:
    """Raises in run() when it takes too long, so that the log shows where, and the worker lives on.

    The clock is set once for many requests: when it rings for one that has ended, it is set for the one that runs.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: float | None = None  # when what runs now has taken too long
        self._set = False
        signal.signal(signal.SIGALRM, self._ring)

    def answer(self, loaded: Any, meta: bytes, body: bytes) -> Answer:
        try:
            self._until = time.monotonic() + self._seconds
            if not self._set:
                self._set = True
                signal.setitimer(signal.ITIMER_REAL, self._seconds)
            try:
                answer: Answer = loaded.answer(meta, body)
                return answer
            finally:
                self._until = None
        except TimeoutError as error:  # just after run() had returned
            return failure(str(error))

    def _ring(self, *_: Any) -> None:
        self._set = False
        if self._until is None:
            return
        left = self._until - time.monotonic()
        if left > 0:
            self._set = True
            signal.setitimer(signal.ITIMER_REAL, left)
            return
        self._until = None
        raise TimeoutError(f"run() took more than {self._seconds:g} seconds")


def _answer_in_threads(line: frames.Line, loaded: Any, concurrent: int) -> None:
    from concurrent.futures import ThreadPoolExecutor

    lock = threading.Lock()

    def answer(number: int, payload: bytes) -> None:
        meta, body = frames.split_request(payload)
        framed = _framed(number, loaded.answer(meta, body))
        with lock:
            line.send(framed)

    with ThreadPoolExecutor(concurrent, thread_name_prefix="run") as threads:
        for number, payload in line.requests():
            threads.submit(answer, number, payload)


def _answer_together(line: frames.Line, loaded: Any, batch: dict[str, Any]) -> None:
    """All that waits, up to the largest batch; with `wait_ms` a little longer for more to come. A model that does not
    answer rows together as it does alone is asked for one request after the other."""
    largest, patience = max(1, min(int(batch["largest"]), loaded.together)), batch.get("wait_ms", 0) / 1000
    pending: Pending = deque()
    while True:
        if not pending and not _take(line, pending, None):
            return
        if patience and len(pending) < largest and not _take(line, pending, patience):
            return
        taken = [pending.popleft() for _ in range(min(largest, len(pending)))]
        answers = loaded.answer_all([frames.split_request(payload) for _, payload in taken])
        line.send(b"".join([_framed(number, answer) for (number, _), answer in zip(taken, answers)]))


def _take(line: frames.Line, pending: Pending, seconds: float | None) -> bool:
    """Wait for requests; whether there is still a front that wants them answered."""
    found = line.receive(seconds)
    if found is None:
        return False
    for kind, number, payload in found:
        if kind == frames.END:
            return False
        pending.append((number, payload))
    return True


def _framed(number: int, answer: Answer) -> bytes:
    return frames.answer(number, answer.status, answer.lines, answer.body, answer.seconds)


def _log_as_it_comes() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
    import logging

    level = os.environ.get("AZUREML_LOG_LEVEL", "INFO").upper()
    known = level if isinstance(logging.getLevelName(level), int) else "INFO"
    logging.basicConfig(level=known, format="%(asctime)s %(levelname)s %(name)s: %(message)s")


def _end_with_the_front() -> None:
    """A front that is killed takes its workers along, even one that hangs in run(). Ctrl-C is for the front alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "linux":
        return
    import ctypes

    parent = os.getppid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(0)  # it died in between


if __name__ == "__main__":
    sys.exit(main())

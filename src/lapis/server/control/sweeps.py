"""Hyperparameter searches: starts their runs, stops those that are not worth it, and ends with the last of them.

What is done next is decided in domain/sweeps.py from what stands in the store. One thread carries it out, woken by news
of a run; nothing is kept here that cannot be read again, so a server that was killed goes on where it stopped: a trial
has its number in its id, and making it again is no second one.
"""

from __future__ import annotations

import json
import logging
import math
import shlex
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lapis.domain import run as rules
from lapis.domain import spaces
from lapis.domain.job import Job
from lapis.domain.metrics import ROW, Point
from lapis.domain.run import RunRecord, RunState
from lapis.domain.sweeps import (
    BAYESIAN,
    HYPERPARAMETERS,
    LOG,
    RANDOM,
    STOPPED_BY,
    Board,
    End,
    Sampler,
    Spec,
    Start,
    Stop,
    Trial,
    board_of,
    check_spec,
)
from lapis.errors import AzureMLException, NotFound, UserErrorException
from lapis.server.control.events import Events
from lapis.server.control.runs import NewRun, Runs
from lapis.server.control.stores import Stores
from lapis.server.store.logged import gathered

_SILENCE = "no run has logged"
_RETRY_SECONDS = 5.0  # after a pass that was cut short: a full disk, say
_log = logging.getLogger("lapis.sweeps")
Key = tuple[str, str]  # workspace and run
_USER_ERRORS = "User errors were found in at least one of the child runs."  # as SDK v1 says it


class _Live:
    """A search that has not ended: its board, and how far each of its runs has been read."""

    def __init__(self, run: RunRecord, board: Board, began: float) -> None:
        self.run = run
        self.began = began  # by the steady clock
        self.board = board
        self.read: dict[str, int] = {}  # points of the primary metric, by the id of a run that has not ended
        self.told_best: tuple[int, float] | None = board.best
        self.silence = next((said for said in run.warnings if said.startswith(_SILENCE)), "")  # as it was told
        self.rows_logged = 0  # of best runs
        self.fault = ""  # why the last pass was cut short
        self.news: set[str] = set()

    @property
    def spec(self) -> Spec:
        return self.board.spec


class Sweeps:
    def __init__(
        self, stores: Stores, runs: Runs, events: Events, now: Callable[[], float], steady: Callable[[], float]
    ) -> None:
        self._stores = stores
        self._runs = runs
        self._now, self._steady = now, steady
        self._live: dict[Key, _Live] = {}
        self._homes: dict[str, set[Key]] = {}  # the searches that news of a run matter to, by its id
        self._begun: list[RunRecord] = []
        self._news: set[str] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._loop, name="sweeps", daemon=True)
        events.on_run_told(self._hear)
        events.on_search_begun(self._begin)

    def start(self) -> None:
        self._begun.extend(self._stores.runs.sweeps())
        self._wake.set()
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout=10)

    def progress(self, run: RunRecord) -> tuple[str, str] | None:
        """How far a search is, and what ends it: an observation, so it is told and never stored."""
        live = self._live.get((run.workspace_id, run.id))
        if live is None or run.ended or run.cancel_requested:
            return None
        counts, total = live.board.ended_counts, live.spec.max_total
        said = [f"{sum(counts.values())} of at most {total} runs have ended, {len(live.board.live)} go on"]
        if live.board.best is not None:
            number, value = live.board.best
            said.append(f"the best {live.spec.metric} is {value:.6g}, of {_child_id(run.id, number)}")
        elif live.silence:
            said.append(live.silence)
        if live.fault:
            said.append(f"it was cut short and is tried again: {live.fault}")
        return ", ".join(said), "ends when all have ended"

    def trials(self, workspace_id: str, run_id: str) -> dict[str, Any]:
        """Every run of a search, and of those that it started warm from, with its parameters and its best."""
        run = self._runs.get(workspace_id, run_id)
        if run.sweep is None:
            raise UserErrorException(f"Run {run_id} is no hyperparameter search.")
        spec = check_spec(run.sweep.spec)
        earlier = [trial for each in spec.resume_from for trial in self._table(workspace_id, each, spec)]
        return {"trials": self._table(workspace_id, run_id, spec), "earlier": earlier}

    def _table(self, workspace_id: str, run_id: str, spec: Spec) -> list[dict[str, Any]]:
        children = self._children(workspace_id, run_id)
        found = self._stores.metrics.summaries(workspace_id, [child.id for child in children], spec.metric)
        now, rows = self._steady(), []
        for child in children:
            summary = next(iter(found[child.id]), None)
            best = None if summary is None else summary["max" if spec.sign > 0 else "min"]
            if best is not None and not math.isfinite(best):  # it diverged: the rest of it counts
                values = self._stores.metrics.numbers(workspace_id, [child.id], spec.metric)[child.id]
                best = max(filter(math.isfinite, values), key=lambda value: spec.sign * value, default=None)
            rows.append(
                {
                    "run_id": child.id,
                    "parameters": json.loads(child.tags[HYPERPARAMETERS] or "{}"),
                    "status": rules.status(child, now),
                    "reason": child.history[-1].reason if child.history else "",
                    "best": best,
                    "last": summary and summary["last"],
                    "points": summary["count"] if summary else 0,
                    "stopped_by": child.properties.get(STOPPED_BY),
                    "started_at": child.started_at,
                    "ended_at": child.ended_at,
                }
            )
        return rows

    # -- the thread

    def _begin(self, run: RunRecord) -> None:
        with self._lock:
            self._begun.append(run)
        self._wake.set()

    def _hear(self, run_id: str) -> None:
        if run_id in self._homes:
            with self._lock:
                self._news.add(run_id)
            self._wake.set()

    def _loop(self) -> None:
        retry = False
        while not self._stopping:
            self._wake.wait(_RETRY_SECONDS if retry else self._seconds_until_due())
            self._wake.clear()
            if not self._stopping:
                retry = not self._one_pass()

    def _seconds_until_due(self) -> float | None:
        """Until the first search has run for as long as it may; None if none is there."""
        left = [live.board.seconds_left(self._steady() - live.began) for live in self._live.values()]
        return min(left) + 0.01 if left else None

    def _one_pass(self) -> bool:
        """Whether all of it could be done. What could not is tried again."""
        with self._lock:
            begun, self._begun = self._begun, []
            news, self._news = self._news, set()
        due = {(run.workspace_id, run.id) for run in begun}
        failed = [run for run in begun if not self._guarded(run, self._open, run)]
        for run_id in news:
            for key in self._homes.get(run_id, ()):
                if key in self._live:
                    self._live[key].news.add(run_id)
                    due.add(key)
        now = self._steady()
        due |= {key for key, live in self._live.items() if not live.board.seconds_left(now - live.began)}
        minded = [self._live[key] for key in sorted(due & self._live.keys())]
        cut_short = {live.run.id for live in minded if not self._guarded(live.run, self._go_on, live)}
        with self._lock:
            self._begun += failed
            self._news |= cut_short
        return not failed and not cut_short

    def _guarded(self, run: RunRecord, work: Callable[..., None], *of: Any) -> bool:
        try:
            work(*of)
            return True
        except NotFound:  # it was deleted meanwhile
            self._forget((run.workspace_id, run.id))
            return True
        except Exception as error:
            said = error.message if isinstance(error, AzureMLException) else f"{type(error).__name__}: {error}"
            _log.exception("The search %s was cut short", run.id)
            self._tell_fault(run, said)
            return False

    def _tell_fault(self, run: RunRecord, said: str) -> None:
        live = self._live.get((run.workspace_id, run.id))
        if live is not None:
            live.fault = said
        until = f"tried again in {_RETRY_SECONDS:g} s"
        try:
            self._stores.runs.change(run.workspace_id, run.id, lambda stored: rules.note(
                stored, f"The search was cut short: {said}", at=self._now(), until=until
            ))  # fmt: skip
        except AzureMLException:
            pass  # a full disk: the server's log has it

    def _open(self, run: RunRecord) -> None:
        """Begin to mind a search, from all that the store has of it."""
        key = (run.workspace_id, run.id)
        if run.ended or key in self._live:  # it was made by the same request, sent again after a lost reply
            return
        assert run.sweep is not None
        reason = " ".join(run.sweep.wrong) or _fault_of(run.sweep.spec)
        if reason:
            error = {"code": "UserError", "message": reason}
            self._runs.endings.end(run, RunState.FAILED, f"The search cannot go on: {reason}", error)
            return
        spec = check_spec(run.sweep.spec)
        self._homes.setdefault(run.id, set()).add(key)
        children = self._children(*key)
        for child in children:
            if not child.ended:
                self._homes.setdefault(child.id, set()).add(key)
        values = self._stores.metrics.numbers(run.workspace_id, [child.id for child in children], spec.metric)
        trials = [_trial(run.id, child, values[child.id]) for child in children]
        board = board_of(spec, _sampler(spec), trials, self._earlier(run.workspace_id, spec))
        live = _Live(run, board, self._steady() - max(0.0, self._now() - run.created_at))
        live.read = {child.id: len(values[child.id]) for child in children if not child.ended}
        self._live[key] = live
        if not children:
            self._say(live, _preface(spec))
        else:
            self._say(live, f"The server has started again: {len(children)} runs are known, {len(live.read)} go on.")

    def _earlier(self, workspace_id: str, spec: Spec) -> list[Trial]:
        """Trials of earlier sweeps, with numbers below those of this one."""
        found: list[Trial] = []
        for sweep_id in spec.resume_from:
            children = self._children(workspace_id, sweep_id)
            values = self._stores.metrics.numbers(workspace_id, [child.id for child in children], spec.metric)
            for child in children:
                trial = _trial(sweep_id, child, values[child.id])
                found.append(trial._replace(number=-1 - len(found), state=trial.state or "Canceled"))
        return found

    def _go_on(self, live: _Live) -> None:
        """Take in what is new, and do what follows from it."""
        news, live.news = live.news, set()
        try:
            live.run = self._stores.runs.get(live.run.workspace_id, live.run.id)
            if live.run.ended:
                self._forget((live.run.workspace_id, live.run.id))
                return
            for run_id in sorted(news - {live.run.id}, key=lambda each: _number(live.run.id, each)):
                self._take_in(live, run_id)
            self._carry_out(live)
            live.fault = ""
        except Exception:
            live.news |= news
            raise

    def _take_in(self, live: _Live, run_id: str) -> None:
        if run_id not in live.read:
            return  # it has ended, and was read to its end
        child = self._stores.runs.get(live.run.workspace_id, run_id)
        number = _number(live.run.id, run_id)
        metric, start = live.spec.metric, live.read[run_id]
        fresh = self._stores.metrics.numbers(child.workspace_id, [run_id], metric, start)[run_id]
        live.read[run_id] = start + len(fresh)
        live.board.logged(number, fresh)
        if child.cancel_requested:
            live.board.asked_to_stop(number)
        if child.ended:
            live.board.ended(number, child.state.value)
            del live.read[run_id]
            self._drop_home(run_id, (live.run.workspace_id, live.run.id))
            self._tell_end(live, child, number)

    def _carry_out(self, live: _Live) -> None:
        while True:
            decision = live.board.decide(self._steady() - live.began, live.run.cancel_requested)
            for stop in decision.stop:
                self._stop_trial(live, stop)
            for start in decision.start:
                self._start_trial(live, start)
            if decision.end is not None:
                self._end(live, decision.end)
            if not decision.start:
                return

    def _start_trial(self, live: _Live, start: Start) -> None:
        run, child_id = live.run, _child_id(live.run.id, start.number)
        key = (run.workspace_id, run.id)
        self._homes.setdefault(child_id, set()).add(key)  # before it can have news
        live.read[child_id] = 0
        self._runs.add_below(run, _new_run(run, start))
        live.board.started(start)
        goes_on = f", going on from {start.resumes}" if start.resumes else ""
        self._say(live, f"Started {child_id}{goes_on}: {json.dumps(start.parameters)}")

    def _stop_trial(self, live: _Live, stop: Stop) -> None:
        child = self._stores.runs.get(live.run.workspace_id, _child_id(live.run.id, stop.number))
        if stop.early:
            self._runs.stop_early(child, stop.reason)
        else:
            self._runs.cancel(child.workspace_id, child.id, stop.reason)
        live.board.asked_to_stop(stop.number)
        self._say(live, f"Stopping {child.id}: {stop.reason}")

    def _tell_end(self, live: _Live, child: RunRecord, number: int) -> None:
        why = f" ({child.history[-1].reason})" if child.state is not RunState.COMPLETED else ""
        self._say(live, f"{child.state.value} {child.id}{why}")
        if live.board.best != live.told_best and live.board.best is not None:
            live.told_best = live.board.best
            best, value = live.board.best
            self._say(live, f"The best {live.spec.metric} so far is {value:.6g}, of {_child_id(live.run.id, best)}")
            self._change(live, lambda stored: stored._replace(properties={**stored.properties, **_facts(live, "")}))
            self._log_best(live, final=False)
        if live.board.best is None and not live.silence and child.state is RunState.COMPLETED:
            self._tell_silence(live, child)

    def _tell_silence(self, live: _Live, child: RunRecord) -> None:
        """The first run has completed, and nobody has logged what the search is about."""
        summaries = self._stores.metrics.summaries(child.workspace_id, [child.id])[child.id]
        logged = ", ".join(repr(each["name"]) for each in summaries) or "nothing"
        said = f"{_SILENCE} '{live.spec.metric}' yet: {child.id} has completed and logged {logged}"
        live.silence = said
        self._say(live, f"Warning: {said}. Is primary_metric_name right?")
        self._change(live, lambda stored: rules.note(
            stored._replace(warnings=(*stored.warnings, said)), said, at=self._now(), until="ends when a run logs it"
        ))  # fmt: skip

    def _log_best(self, live: _Live, final: bool) -> None:
        """A row for each new best run, under the name that SDK v1 logs it by; the last row is final."""
        if live.board.best is None:
            return
        number, value = live.board.best
        row = {
            "metric_name": live.spec.metric,
            "timestamp": _iso(self._now()),
            "run_id": _child_id(live.run.id, number),
            "metric_value": value,
            "final": final,
        }
        logged = gathered([Point(ROW, self._now(), "best_child_by_primary_metric", row)])
        at, home = live.rows_logged, (live.run.workspace_id, live.run.id, "best")
        live.rows_logged = self._stores.metrics.append(*home, at, at + 1, logged)
        if live.rows_logged != at + 1:  # a server before this one has logged some
            at = live.rows_logged
            live.rows_logged = self._stores.metrics.append(*home, at, at + 1, logged)

    def _end(self, live: _Live, end: End) -> None:
        reason = end.reason
        if live.board.best is not None:
            number, value = live.board.best
            reason += f". The best {live.spec.metric} is {value:.6g}, of {_child_id(live.run.id, number)}"
        elif end.state == "Completed":
            reason += f". No run has logged '{live.spec.metric}'"
        error = None
        if end.code is not None:
            error = {"code": end.code, "message": f"{_USER_ERRORS} {end.reason}. {self._why_failed(live)}"}
        self._say(live, f"{end.state}: {reason}")
        self._log_best(live, final=True)
        self._runs.endings.end(live.run, RunState(end.state), reason, error, _facts(live, end.state))
        self._forget((live.run.workspace_id, live.run.id))

    def _why_failed(self, live: _Live) -> str:
        failed = next(child for child in self._children(live.run.workspace_id, live.run.id) if child.error)
        return f"{failed.id}: {(failed.error or {}).get('message', '')}"

    def _say(self, live: _Live, text: str) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self._now()))
        self._runs.grow_log(live.run, LOG, f"[{at}Z] {text}\n".encode())

    def _change(self, live: _Live, how: Callable[[RunRecord], RunRecord]) -> None:
        live.run = self._stores.runs.change(live.run.workspace_id, live.run.id, how)

    def _children(self, workspace_id: str, run_id: str) -> list[RunRecord]:
        """The runs that a search has started, by their number."""
        mine = [run for run in self._stores.runs.children(workspace_id, run_id) if HYPERPARAMETERS in run.tags]
        return sorted(mine, key=lambda child: _number(run_id, child.id))

    def _forget(self, key: Key) -> None:
        live = self._live.pop(key, None)
        for run_id in (key[1], *(live.read if live is not None else ())):
            self._drop_home(run_id, key)

    def _drop_home(self, run_id: str, key: Key) -> None:
        homes = self._homes.get(run_id, set())
        homes.discard(key)
        if not homes:
            self._homes.pop(run_id, None)


def _fault_of(spec: Mapping[str, Any]) -> str:
    """Why what is stored of a search cannot be searched by; empty if it can. An earlier release may have kept it."""
    try:
        check_spec(spec)
    except AzureMLException as error:
        return error.message
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return f"its description is damaged ({error!r})."
    return ""


def _sampler(spec: Spec) -> Sampler:
    if spec.sampling.name != BAYESIAN:
        return Sampler(spec)
    from lapis.server.control.bayesian import BayesianSampler  # late: Optuna is slow to import

    return BayesianSampler(spec)


def _child_id(sweep_id: str, number: int) -> str:
    return f"{sweep_id}_{number}"


def _number(sweep_id: str, child_id: str) -> int:
    tail = child_id[len(sweep_id) + 1 :]
    return int(tail) if tail.isdigit() else -1


def _trial(sweep_id: str, child: RunRecord, values: list[float]) -> Trial:
    return Trial(
        number=_number(sweep_id, child.id),
        parameters=json.loads(child.tags[HYPERPARAMETERS] or "{}"),
        values=values,
        state=child.state.value if child.ended else None,
        asked_to_stop=child.cancel_requested,
        resumes=child.job.resumes if child.job is not None else None,
    )


def _new_run(sweep: RunRecord, start: Start) -> NewRun:
    """What the search runs, with this trial's parameters after the fixed arguments.

    Random sampling gives them sorted by name, the others in the order of the space, as Azure does: scripts and
    notebooks read them by position.
    """
    assert sweep.sweep is not None
    trial, child_id, given = sweep.sweep.trial, _child_id(sweep.id, start.number), start.parameters
    if sweep.sweep.spec["sampling"]["name"] == RANDOM:
        given = dict(sorted(given.items()))
    more = spaces.as_arguments(given)
    more += ["--resume-from", "$AZUREML_DATAREFERENCE_MODEL_LOCATION"] if start.resumes else []
    outputs = tuple(output.of_run(sweep.id, child_id) for output in trial.job.outputs)  # a place for each run
    job = replace(_with_arguments(trial.job, more), resumes=start.resumes, outputs=outputs)
    return NewRun(
        experiment=sweep.experiment,
        run_id=child_id,
        nonce=child_id,
        type=rules.SCRIPT_RUN,
        parent_id=sweep.id,
        tags={HYPERPARAMETERS: json.dumps(start.parameters)},
        properties=dict(trial.properties),
        definition=_definition_with(trial.definition, more),
        snapshot_id=sweep.snapshot_id,
        target=sweep.target,
        job=job,
        uses=tuple((asset_id, role, name) for asset_id, role, name in trial.uses),
        accepted=f"Started by the search {sweep.id}",
        created_by=sweep.created_by,
    )


def _with_arguments(job: Job, more: list[str]) -> Job:
    """Arguments after those of the script, or of the command where there is no script."""
    if not job.command:
        return replace(job, arguments=(*job.arguments, *more))
    if isinstance(job.command, str):
        return replace(job, command=" ".join([job.command, *map(shlex.quote, more)]))
    return replace(job, command=(*job.command, *map(shlex.quote, more)))


def _definition_with(definition: Mapping[str, Any], more: list[str]) -> dict[str, Any]:
    """The same in what the run shows of itself."""
    command = definition.get("command")
    if not command:
        return {**definition, "arguments": [*(definition.get("arguments") or []), *more]}
    if isinstance(command, str):
        return {**definition, "command": " ".join([command, *map(shlex.quote, more)])}
    return {**definition, "command": [*command, *map(shlex.quote, more)]}


def _facts(live: _Live, ended: str) -> dict[str, str]:
    """Properties that tell of the best run, under the names of SDK v1."""
    size = spaces.size(live.spec.sampling.space)
    facts = {"space_size": "infinite_space_size" if size is None else str(size)} if ended else {}
    if live.board.best is None:
        return {**facts, "best_metric_status": "Failed"} if ended else facts
    number, value = live.board.best
    best = _child_id(live.run.id, number)
    facts.update(score=repr(value), best_child_run_id=best, best_data_container_id=f"dcid.{best}")
    return {**facts, "best_metric_status": "Succeeded"} if ended else facts


def _preface(spec: Spec) -> str:
    size = spaces.size(spec.sampling.space)
    of = "" if size is None else f" over {size} combinations"
    policy = ", ".join(f"{key}={value}" for key, value in spec.policy.properties.items() if value is not None)
    return (
        f"The search begins: {spec.sampling.name} sampling{of} with seed {spec.sampling.seed}, to {spec.goal} "
        f"{spec.metric}; at most {spec.max_total} runs, {spec.max_concurrent} at once, {spec.max_minutes:g} minutes; "
        f"policy {spec.policy.name}{f' ({policy})' if policy else ''}."
    )


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()

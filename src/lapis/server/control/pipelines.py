"""Pipelines: starts each step once what it reads is there, and ends with the last of them.

What is done next is decided in domain/pipeline_moves.py from what stands in the store. One thread carries it out, woken
by news of a run; nothing is kept here that cannot be read again, so a server that was killed goes on where it stopped:
a step has its number in the id of its run, and making that again is no second one.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from lapis.domain import run as rules
from lapis.domain.job import DatasetInput, Job, Output, Reference, Search, TrialTemplate
from lapis.domain.pipeline import WRITER, PipelinePlan, StepPlan
from lapis.domain.pipeline_moves import (
    COMPLETED,
    LOG,
    REUSED_PIPELINE_RUN,
    REUSED_RUN,
    End,
    Shape,
    decide,
    node_id,
    number_of,
    step_run_id,
)
from lapis.domain.run import STEP_RUN, RunRecord, RunState
from lapis.errors import AzureMLException, NotFound, UserErrorException
from lapis.server.control import plans
from lapis.server.control.data import Data, NewDataset
from lapis.server.control.events import Events
from lapis.server.control.runs import NewRun, Runs
from lapis.server.control.step_reuse import WRITTEN, StepReuse, written_by
from lapis.server.control.stores import Stores
from lapis.server.control.trained_outputs import write_trained

_AT_HAND = 16  # plans
_AT_ONCE = 100  # steps that are started in one transaction: nobody else writes meanwhile
_RETRY_SECONDS = 5.0  # after a pass that was cut short: a full disk, say
_log = logging.getLogger("lapis.pipelines")
Key = tuple[str, str]  # workspace and run


class _Live:
    """A pipeline that has not ended: its plan, and the runs of its steps as they were last read."""

    def __init__(self, run: RunRecord, plan: PipelinePlan) -> None:
        self.run, self.plan = run, plan
        needs = [step.needs for step in plan.steps]
        self.shape = Shape([step.name for step in plan.steps], needs, plan.continue_on_step_failure)
        self.steps: dict[int, RunRecord] = {}
        self.asked: set[int] = set()
        self.news: set[str] = set()
        self.fault = ""
        self.said: list[str] = []  # lines of its log that are not written yet

    @property
    def states(self) -> dict[int, str | None]:
        return {number: run.state.value if run.ended else None for number, run in self.steps.items()}


class Pipelines:
    def __init__(
        self, stores: Stores, runs: Runs, data: Data, reuse: StepReuse, events: Events, now: Callable[[], float]
    ) -> None:
        self._stores, self._runs, self._data, self._reuse = stores, runs, data, reuse
        self._plan = lru_cache(maxsize=_AT_HAND)(partial(plans.read, stores))  # a plan never changes
        self._now = now
        self._live: dict[Key, _Live] = {}
        self._homes: dict[str, set[Key]] = {}  # the pipelines that news of a run matter to, by its id
        self._begun: list[RunRecord] = []
        self._news: set[str] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._loop, name="pipelines", daemon=True)
        events.on_run_told(self._hear)
        events.on_pipeline_begun(self._begin)

    def start(self) -> None:
        self._begun.extend(self._stores.runs.pipelines())
        self._wake.set()
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout=10)

    def progress(self, run: RunRecord) -> tuple[str, str] | None:
        """How far a pipeline is, and what ends it: an observation, so it is told and never stored."""
        live = self._live.get((run.workspace_id, run.id))
        if live is None or run.ended or run.cancel_requested:
            return None
        states = live.states
        going = [live.shape.names[number] for number, state in states.items() if state is None]
        done = sum(state == COMPLETED for state in states.values())
        said = [f"{done} of {len(live.shape.names)} steps have completed"]
        if going:
            said.append("now " + ", ".join(going[:5]) + (f" and {len(going) - 5} more" if len(going) > 5 else ""))
        if live.fault:
            said.append(f"it was cut short and is tried again: {live.fault}")
        return ", ".join(said), "ends when all have ended"

    def steps(self, workspace_id: str, run_id: str) -> dict[str, Any]:
        """The steps of a pipeline in its order, each with its run as far as there is one, and what it writes."""
        run = self._runs.get(workspace_id, run_id)
        if run.pipeline is None:
            raise UserErrorException(f"Run {run_id} is no pipeline.")
        there, plan = self._children(run), self._plan(run.pipeline)
        rows = [self._row(run, number, step, there.get(number)) for number, step in enumerate(plan.steps)]
        outputs = {name: each.to_json() for name, each in plan.outputs.items()}
        return {"steps": rows, "outputs": outputs, "parameters": dict(plan.parameters)}

    def _row(self, pipeline: RunRecord, number: int, step: StepPlan, run: RunRecord | None) -> dict[str, Any]:
        writer = _writer(run) if run is not None else step_run_id(pipeline.id, number)
        return {
            "number": number,
            "node_id": node_id(step.name, number),
            "name": step.name,
            "type": step.type,
            "run_id": run.id if run is not None else None,
            "status": rules.status(run, self._now()) if run is not None else None,
            "reason": run.history[-1].reason if run is not None and run.history else "",
            "started_at": run.started_at if run is not None else None,
            "ended_at": run.ended_at if run is not None else None,
            "created_at": run.created_at if run is not None else None,
            "reused_run_id": run.properties.get(REUSED_RUN) if run is not None else None,
            "needs": sorted(step.needs),
            "inputs": [{"name": each.input.name, "step": each.step, "output": each.output} for each in step.inputs],
            "outputs": [_place_of(output.of_run(WRITER, writer)) for output in step.job.outputs],
            "target": step.target,
            "arguments": [str(word) for word in step.definition.get("arguments") or ()],
        }

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
            self._wake.wait(_RETRY_SECONDS if retry else None)
            self._wake.clear()
            if not self._stopping:
                retry = not self._one_pass()

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
            _log.exception("The pipeline %s was cut short", run.id)
            live = self._live.get((run.workspace_id, run.id))
            if live is not None:
                live.fault = said
            return False

    def _open(self, run: RunRecord) -> None:
        """Begin to mind a pipeline, from all that the store has of it."""
        key = (run.workspace_id, run.id)
        if run.ended or key in self._live:  # it was made by the same request, sent again after a lost reply
            return
        assert run.pipeline is not None
        plan = self._plan(run.pipeline)
        reason = " ".join(plan.wrong) or plan.fault()
        if reason:
            error = {"code": "UserError", "message": f"The pipeline {reason}"}
            self._runs.endings.end(run, RunState.FAILED, f"The pipeline cannot go on: it {reason}", error)
            return
        live = self._live[key] = _Live(run, plan)
        self._homes.setdefault(run.id, set()).add(key)
        for number, child in self._children(run).items():
            self._homes.setdefault(child.id, set()).add(key)
            live.steps[number] = self._noted(live, number, child)
        if not live.steps:
            self._say(live, f"The pipeline begins: {len(live.plan.steps)} steps.")
        else:
            self._say(live, f"The server has started again: {len(live.steps)} steps are known.")

    def _go_on(self, live: _Live) -> None:
        """Take in what is new, and do what follows from it."""
        news, live.news = live.news, set()
        try:
            live.run = self._stores.runs.get(live.run.workspace_id, live.run.id)
            if live.run.ended:
                self._forget((live.run.workspace_id, live.run.id))
                return
            for run_id in sorted(news - {live.run.id}):
                self._take_in(live, number_of(live.run.id, run_id))
            self._carry_out(live)
            self._write_log(live)
            live.fault = ""
        except Exception:
            live.news |= news
            live.steps = self._children(live.run)  # what was begun and not committed did not happen
            live.said.clear()
            raise

    def _take_in(self, live: _Live, number: int) -> None:
        known = live.steps.get(number)
        if known is None or known.ended:
            return
        run = live.steps[number] = self._noted(live, number, self._stores.runs.get(known.workspace_id, known.id))
        if run.ended:
            why = f": {run.history[-1].reason}" if run.state is not RunState.COMPLETED else ""
            self._say(live, f"{run.state.value} '{live.shape.names[number]}' ({run.id}){why}")
            for warning in run.warnings:
                self._say(live, f"  {warning}")

    def _noted(self, live: _Live, number: int, run: RunRecord) -> RunRecord:
        """A completed step says what it wrote, so that it can be seen later whether that is still there."""
        if run.state is not RunState.COMPLETED or {REUSED_RUN, WRITTEN} & run.properties.keys():
            return run
        step = live.plan.steps[number]
        outputs = step.outputs_of(run.id)
        write_trained(self._stores, self._runs, run, step.trained, outputs)
        facts = self._reuse.written(outputs)
        missing = [each for each in outputs if isinstance(each.place, str) and not _is_written(each)]
        said = [
            "Output '{name}' was never written: nothing is at {path} of datastore '{datastore}'.".format(
                **_place_of(each)
            )
            for each in missing
        ]

        def noted(stored: RunRecord) -> RunRecord:
            return rules.warned(stored._replace(properties={**stored.properties, **facts}), said)

        return self._stores.runs.change(run.workspace_id, run.id, noted)

    def _carry_out(self, live: _Live) -> None:
        while True:
            with self._stores.database.write():  # one commit for many steps: of a fan, or in a row that is reused
                if not self._carry_out_some(live):
                    break

    def _carry_out_some(self, live: _Live) -> bool:
        """Whether there is more to do."""
        done = 0
        while done < _AT_ONCE:
            decision = decide(live.shape, live.states, live.asked, live.run.cancel_requested)
            for number in decision.stop:
                self._stop_step(live, number)
            for number in decision.start[:_AT_ONCE]:
                self._start_step(live, number)
            if decision.end is not None:
                self._end(live, decision.end)
            if not decision.start or decision.end is not None:
                return False
            done += len(decision.start)
        return True

    def _stop_step(self, live: _Live, number: int) -> None:
        run = live.steps[number]
        reason = "the pipeline was cancelled" if live.run.cancel_requested else "another step has failed"
        self._say(live, f"Stopping '{live.shape.names[number]}' ({run.id}): {reason}")
        live.asked.add(number)
        live.steps[number] = self._runs.cancel(run.workspace_id, run.id, reason)

    def _start_step(self, live: _Live, number: int) -> None:
        run, step = live.run, live.plan.steps[number]
        child_id = step_run_id(run.id, number)
        self._homes.setdefault(child_id, set()).add((run.workspace_id, run.id))  # before it can have news
        writers = {each.step: live.steps[each.step] for each in step.inputs}
        lacking = self._lacking(live, step, writers)
        job, uses = self._job(run, step, child_id, writers)
        new = _new_run(run, step, number, job, uses)
        if lacking:
            live.steps[number] = self._ended_at_once(live, replace(new, job=None, sweep=None), RunState.FAILED, lacking)
            self._say(live, f"Failed '{step.name}' ({child_id}): {lacking}")
            return
        read = {each.input.name: written_by(self._wrote(writers[each.step]), each.output) for each in step.inputs}
        marks = self._reuse.properties(run.workspace_id, step, job, read)
        earlier, why = self._earlier(live, step, marks)
        if earlier is not None:
            live.steps[number] = self._reused(live, new, earlier, why)
            self._say(live, f"Reused '{step.name}' ({child_id}): {why}")
            return
        accepted = f"Started by the pipeline {run.id}: {why}"
        new = replace(new, properties={**new.properties, **marks}, accepted=accepted)
        live.steps[number] = self._runs.add_below(run, new)
        self._say(live, f"Started '{step.name}' ({child_id}): {why}")

    def _earlier(self, live: _Live, step: StepPlan, marks: dict[str, str]) -> tuple[RunRecord | None, str]:
        """The run whose outputs this step can have, and why or why not."""
        if live.plan.regenerate_outputs:
            return None, "regenerate_outputs=True"
        if not step.allow_reuse:
            return None, "allow_reuse=False"
        found = self._reuse.find(live.run.workspace_id, marks)
        return found.run, found.why

    def _reused(self, live: _Live, new: NewRun, earlier: RunRecord, why: str) -> RunRecord:
        """A run that stands for an earlier one: with its files and logs, and its outputs where they are."""
        facts = {
            REUSED_RUN: earlier.id,
            "azureml.reusednodeid": earlier.properties.get("azureml.nodeid", ""),
            "azureml.reusedpipeline": earlier.root_id or "",
            REUSED_PIPELINE_RUN: earlier.parent_id or "",
        }
        files = self._stores.files.find(earlier.workspace_id, earlier.id)
        named = {each.name: (each.hash, each.size) for each in files if each.hash is not None}
        new = replace(new, job=None, sweep=None, properties={**facts, **new.properties})
        return self._ended_at_once(live, new, RunState.COMPLETED, f"Reused: {why}", named)

    def _ended_at_once(
        self, live: _Live, new: NewRun, state: RunState, reason: str, files: dict[str, Any] | None = None
    ) -> RunRecord:
        """The run of a step that nothing is launched for. In one transaction: nobody would end it later."""
        error = None if state is RunState.COMPLETED else {"code": "UserError", "message": reason}
        with self._stores.database.write():
            child = self._runs.add_below(live.run, new)
            self._stores.files.put(child.workspace_id, child.id, files or {}, self._now())
            return self._runs.endings.end(child, state, reason, error)

    def _lacking(self, live: _Live, step: StepPlan, writers: dict[int, RunRecord]) -> str:
        """What the step reads and its writer did not write; empty if all is there, or cannot be looked at."""
        for each in step.inputs:
            output = live.plan.steps[each.step].output(each.output)
            assert output is not None
            writer = _writer(writers[each.step])
            output = output.of_run(WRITER, writer)
            if isinstance(output.place, str) and not _is_written(output):
                place = _place_of(output)
                return (
                    f"Input '{each.input.name}' of step '{step.name}' was never written: step "
                    f"'{live.shape.names[each.step]}' ({writer}) completed without writing its output "
                    f"'{output.name}', which belongs at {place['path']} of datastore '{place['datastore']}'."
                )
        return ""

    def _job(
        self, run: RunRecord, step: StepPlan, child_id: str, writers: dict[int, RunRecord]
    ) -> tuple[Job, list[tuple[str, str, str]]]:
        """The step's job with what other steps wrote, and with places of its own for what it writes."""
        uses = [(asset_id, role, name) for asset_id, role, name in step.uses]
        inputs: list[DatasetInput | Reference] = []
        for each in step.inputs:
            given = each.of_run(_writer(writers[each.step]))
            if isinstance(given, DatasetInput):
                saved = self._data.register_dataset(run.workspace_id, NewDataset(None, dict(given.definition)))
                given = replace(given, dataset_id=saved["id"])
                uses.append((saved["id"], "input", given.name))
            inputs.append(given)
        trained = {each.output for each in step.trained}
        outputs = tuple(each for each in step.outputs_of(child_id) if each.name not in trained)
        return replace(step.job, inputs=(*step.job.inputs, *inputs), outputs=outputs), uses

    def _wrote(self, run: RunRecord) -> RunRecord:
        """The run that really wrote what this one stands for."""
        earlier = run.properties.get(REUSED_RUN)
        return self._stores.runs.get(run.workspace_id, earlier) if earlier else run

    def _end(self, live: _Live, end: End) -> None:
        error = None
        if end.state == RunState.FAILED.value:
            error = {"code": "UserError", "message": f"{end.reason}. {self._why_failed(live)}".strip()}
        self._say(live, f"{end.state}: {end.reason}")
        self._write_log(live)
        self._runs.endings.end(live.run, RunState(end.state), end.reason, error)
        self._forget((live.run.workspace_id, live.run.id))

    def _why_failed(self, live: _Live) -> str:
        for number, run in sorted(live.steps.items()):
            if run.error:
                return f"'{live.shape.names[number]}' ({run.id}): {run.error.get('message', '')}"
        return ""

    def _say(self, live: _Live, text: str) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self._now()))
        live.said.append(f"[{at}Z] {text}\n")

    def _write_log(self, live: _Live) -> None:
        if live.said:
            self._runs.grow_log(live.run, LOG, "".join(live.said).encode())
            live.said.clear()

    def _children(self, run: RunRecord) -> dict[int, RunRecord]:
        """The runs of the steps that were started, by their number."""
        found = self._stores.runs.children(run.workspace_id, run.id)
        return {number_of(run.id, child.id): child for child in found if child.type == STEP_RUN}

    def _forget(self, key: Key) -> None:
        live = self._live.pop(key, None)
        steps = [run.id for run in live.steps.values()] if live is not None else []
        for run_id in (key[1], *steps):
            homes = self._homes.get(run_id, set())
            homes.discard(key)
            if not homes:
                self._homes.pop(run_id, None)


def _writer(run: RunRecord) -> str:
    """The id of the run that wrote a step's outputs: an earlier one, if it was reused."""
    return run.properties.get(REUSED_RUN) or run.id


def _is_written(output: Output) -> bool:
    """Lapis makes the folder of an output itself, unless the script is to; so an empty one was not written to."""
    place = str(output.place)
    return os.path.lexists(place) if output.made_by_script else os.path.isdir(place) and bool(os.listdir(place))


def _place_of(output: Output) -> dict[str, Any]:
    source = (output.definition.get("sources") or [{}])[0]
    path = str(source.get("path") or "")
    if output.glob and path.endswith("/" + output.glob):
        path = path[: -len(output.glob) - 1]
    return {"name": output.name, "datastore": source.get("datastore"), "path": path, "mode": output.mode}


def _new_run(run: RunRecord, step: StepPlan, number: int, job: Job, uses: list[tuple[str, str, str]]) -> NewRun:
    definition, properties = dict(step.definition), dict(step.properties)
    trial = TrialTemplate(job, definition, properties, tuple(uses))
    return NewRun(
        experiment=run.experiment,
        run_id=step_run_id(run.id, number),
        nonce=step_run_id(run.id, number),
        type=STEP_RUN,
        parent_id=run.id,
        display_name=step.name,
        properties={
            **properties,
            "StepType": step.type,
            "azureml.moduleid": str(uuid.uuid5(uuid.NAMESPACE_OID, step.snapshot_id + step.name)),
            "azureml.runsource": STEP_RUN,
            "azureml.nodeid": node_id(step.name, number),
            "azureml.pipelinerunid": run.id,
        },
        definition=definition,
        snapshot_id=step.snapshot_id,
        target=step.target,
        job=None if step.search else job,
        sweep=Search(step.search, trial) if step.search else None,
        uses=tuple(uses),
        warnings=step.notices,
        accepted=f"Started by the pipeline {run.id}",
        created_by=run.created_by,
    )

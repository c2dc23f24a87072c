"""The agent's life: prepare, launch or adopt the script, follow it to its end, tell the verdict.

It keeps no state of its own but what lies in its folder, so another agent can take over at any moment:
`code/` made, `process.json` (the script was started), `exit.json` (it ended, and how).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from lapis.agent import data, launch, prepare
from lapis.agent.outputs import Outputs
from lapis.agent.recover import recover
from lapis.agent.verdict import Verdict, canceled, cannot_start, from_exit, timed_out, unknown
from lapis.engines import processes
from lapis.errors import AzureMLException, NotFound, ServiceException, Unavailable
from lapis.sdk.client import Client, JobEndpoint
from lapis.sdk.shipping import Shipper

LOOK_EVERY = 0.1  # seconds between looks at what the script wrote
BEAT_EVERY = 5.0  # a sign of life even when there is nothing to tell
STOP_GRACE = 5.0  # what a cancelled script has to save its work
GIVE_UP_AFTER = 3600.0  # without a server for so long after the script's end, leave; the spool stays


class Agent:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        with open(os.path.join(folder, "job.json")) as file:
            self.job: dict[str, Any] = json.load(file)
        self.run_id: str = self.job["run_id"]
        self.code = os.path.join(folder, "code")
        self.log = os.path.join(folder, "std_log.txt")
        endpoint = JobEndpoint(self.job["server"], self.job["agent_token"], self.job["address_file"])
        self.resumed = int(self.job.get("launch", 1)) > 1
        self.shipper = Shipper(Client(endpoint, timeout=30.0), self.job["workspace"]["id"], self.run_id, self.resumed)
        self.shipper.follow_journal("journal", os.path.join(folder, "journal.jsonl"))
        self.shipper.follow_log("user_logs/std_log.txt", self.log)
        watch, collect = self.job.get("watch", ["logs"]), bool(self.job.get("collect_outputs", True))
        self.outputs = Outputs(self.shipper, self.code, folder, watch, collect)
        self.cancel = False
        self.steps: list[dict[str, Any]] = []
        self.quiet_until = 0.0
        self.last_report = 0.0

    def live(self) -> None:
        signal.signal(signal.SIGTERM, self._on_term)
        started = launch.read(self.folder, "process.json")
        if started is None:
            verdict = self._prepare_and_launch()
            if verdict is not None:
                self._finish(verdict)
                return
            started = launch.read(self.folder, "process.json")
        self._finish(self._follow(started or {}))

    def _on_term(self, *_: object) -> None:
        self.cancel = True

    def _prepare_and_launch(self) -> Verdict | None:
        """Start the script; a verdict if that could not be done."""
        try:
            self.step("Running", "The agent has begun: laying out the code")
            prepare.lay_out_code(self.job, self.code, self.shipper.client)
            variables = self._lay_out_data()
            if self.job.get("inputs"):
                self.step("", f"Data is there: {', '.join(each['name'] for each in self.job['inputs'])}")
            argv, environment = prepare.command(self.job, self.code, self.folder, variables)
            if self.cancel:
                return canceled("before the script was started")
            prepare.write_notices(self.job, self.log)
            launch.start(argv, environment, self.code, self.log, self.folder)
        except data.Canceled:
            return canceled("while its data was on the way")
        except (AzureMLException, ServiceException, OSError) as error:
            return cannot_start(error)
        exit_record = launch.read(self.folder, "exit.json")
        if exit_record is not None and "could_not_start" in exit_record:
            return cannot_start(OSError(exit_record["could_not_start"]))
        self.step("", f"{'Script' if self.job.get('script') else 'Command'} started: {_shown(argv)}")
        return None

    def _lay_out_data(self) -> dict[str, str]:
        """Large data takes its time: meanwhile the log is shipped, the server hears of us, and cancel is obeyed."""

        def lay_out() -> dict[str, str]:
            client = self.shipper.client
            return data.lay_out_inputs(self.job, self.code, self.folder, self.log, client, lambda: self.cancel)

        if not self.job.get("inputs"):
            return lay_out()
        with ThreadPoolExecutor(1) as thread:
            laying = thread.submit(lay_out)
            while not wait([laying], LOOK_EVERY).done:
                self._ship()
        return laying.result()

    def _follow(self, started: dict[str, Any]) -> Verdict:
        """Ship what the script writes until it has ended; say how."""
        limit = float(self.job.get("max_seconds") or 0) or None
        keeper, began = started["keeper"], float(started["at"])
        why: Verdict | None = None
        while True:
            if self.cancel and why is None:
                why = canceled("cancel was asked for")
                self._stop_script(started)
            if limit is not None and time.time() - began > limit and why is None:
                why = timed_out(limit)
                self._stop_script(started)
            record = launch.read(self.folder, "exit.json")
            if record is not None:
                return why or from_exit(record, self.log)
            if not processes.alive(keeper["pid"], keeper["started"]):
                record = launch.read(self.folder, "exit.json")  # it may have ended between the two looks
                if record is not None:
                    return why or from_exit(record, self.log)
                if not processes.alive(started["script"]["pid"], started["script"]["started"]):
                    return why or unknown()
            self._ship()
            launch.wait_for_end(self.folder, keeper, LOOK_EVERY)

    def _stop_script(self, started: dict[str, Any]) -> None:
        living = [p["pid"] for p in (started["script"],) if processes.alive(p["pid"], p["started"])]
        processes.end_tree(f"AZUREML_RUN_ID={self.run_id}", living, STOP_GRACE)

    def _ship(self) -> None:
        now = time.monotonic()
        if now < self.quiet_until:
            return
        self.outputs.look()
        due = now - self.last_report > BEAT_EVERY
        if not (due or self.steps or self.shipper.behind()):
            return
        try:
            reply = self.shipper.report({"steps": self.steps}, patience=0.0)
        except (Unavailable, ServiceException, AzureMLException) as error:
            if isinstance(error, NotFound):
                self.cancel = True  # the run was deleted: nobody wants it any more
            self.quiet_until = now + 0.5  # the files on disk are the spool
            return
        self.last_report = now
        self.steps = []
        self.cancel = self.cancel or reply["cancel"] or reply["state"] in ("Canceled", "Failed", "Completed")

    def _finish(self, verdict: Verdict) -> None:
        """Deliver everything, then the verdict. A file that cannot be delivered does not change how the run ended."""
        ended = time.time()
        self.step("Finalizing", "Collecting outputs and the last of the logs", at=ended)
        deadline = time.monotonic() + GIVE_UP_AFTER
        data.end_streams(self.folder)
        not_taken_back = data.take_back(self.job, self.code, self.folder, self.shipper.client)
        while True:
            try:
                files, notices = self.outputs.collect()
                notices += not_taken_back
                if verdict.state == "Completed":
                    notices += data.register_outputs(self.job, self.folder, self.shipper.client, self._register)
                header = {"steps": self.steps, "verdict": dict(verdict.to_json(), at=time.time(), notices=notices)}
                self.shipper.report(header, files, final=True, patience=30.0)
                break
            except NotFound:  # the run was deleted meanwhile
                break
            except (ServiceException, AzureMLException) as error:
                print(f"{time.strftime('%F %T')} not delivered yet: {error}", flush=True)
                if time.monotonic() > deadline:
                    return  # the next server of this home starts an agent here again
                time.sleep(2.0)
        shutil.rmtree(self.folder, ignore_errors=True)  # all of it is stored now

    def _register(self, dataset: dict[str, Any]) -> None:
        self.shipper.client.call("POST", f"/workspaces/{self.job['workspace']['id']}/datasets", dataset)

    def step(self, state: str, reason: str, at: float | None = None) -> None:
        self.steps.append({"state": state, "reason": reason, "at": at or time.time()})


def _shown(argv: list[str]) -> str:
    text = " ".join(argv)
    return text if len(text) <= 200 else text[:200] + " ..."


def live(folder: str) -> None:
    """The whole life of the agent whose job lies in `folder`."""
    with open(os.path.join(folder, "job.json")) as file:
        kind = json.load(file)["kind"]
    if kind == "recover":
        recover(folder)
    else:
        Agent(folder).live()


if __name__ == "__main__":
    live(sys.argv[1])

"""The agent's life: prepare, launch or adopt the script, follow it to its end, tell the verdict.

It keeps no state of its own but what lies in its folder, so another agent can take over at any moment: `crew.json`
(what is to be started), `process.json` (it was), `exit.json` (it ended, and how).

A run on several nodes has an agent on each. They meet through the server, and each hears with every report what the
others told (node_reports.py). As soon as one has failed, all stop. The first one, the head, tells the run's verdict,
once all have delivered what they had; the others stay until then.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from lapis.agent import hanging, node_reports, prepare, reach
from lapis.agent.crew import Canceled, Crew, Ended, Member
from lapis.agent.launch import Keeper
from lapis.agent.outputs import Outputs
from lapis.agent.own_log import say, tell_user
from lapis.agent.verdict import Verdict, canceled, cannot_start, last_lines, timed_out
from lapis.client.http_client import Client, JobEndpoint
from lapis.client.shipping import Shipper
from lapis.domain import log_names
from lapis.domain.job import Distribution, Job, Mpi
from lapis.domain.launch import Assignment, Launch, Place, Recovery, Work
from lapis.domain.secrets import masked
from lapis.domain.settings import WEB
from lapis.errors import AzureMLException, NotFound, ServiceException, TokenEnded, Unavailable
from lapis.later import load_waiting
from lapis.machine import rotation
from lapis.machine.sleeping import Sleeper

if TYPE_CHECKING:
    from lapis.agent.service import FrontProcess

LOOK_EVERY = 0.1  # seconds between reports of what the script wrote
TOGETHER = 0.01  # seconds in which what is written belongs to one report
FIRST_REPORT = 0.02  # seconds in which a script that ends at once needs but one: none could have asked yet
BEAT_EVERY = 10.0  # a sign of life even when there is nothing to tell
BEAT_OF_SERVICES = 1.0  # how soon a front learns of a new key
BEAT_TOGETHER = 0.5  # on several nodes: how soon one learns that another has failed
BEAT_IDLE = 0.25  # and that it is no longer needed
MEET_EVERY = 0.02  # seconds between looks at whether the other nodes are there, while that may be soon
LAST_WORDS_WITHIN = 5.0  # seconds that a node has to tell what its failed rank said last
SAY_AFTER = 5.0  # seconds of waiting for other nodes before somebody would wonder
STOP_GRACE = 5.0  # what a cancelled script has to save its work
_NOT_SHARED = "This node shares no folder with the first one: what it writes to outputs and logs is not kept."
MUCH = 4 << 20  # bytes that take more than a moment to deliver
GIVE_UP_AFTER = 3600.0  # without a server for so long after the script's end, leave; the spool stays


_Made = TypeVar("_Made")


class Agent:
    def __init__(self, folder: str, work: Work, place: Place, keeper: Keeper | None = None) -> None:
        self.folder = folder
        self.keeper = keeper  # one that was forked ahead
        self.work = work
        self.launch = launch = work.launch
        self.place = place
        self.run_id = launch.run_id
        self.head = place.index == 0
        for name in WEB:  # what the server's settings say, whatever this machine's do
            os.environ.pop(name, None)
        os.environ.update(launch.web)
        if work.job.mount:
            os.environ["LAPIS_MOUNT"] = work.job.mount
        self.code = prepare.code_folder(folder)
        self.log, self.log_name = _own_log(work.job, place, folder)
        self.endpoint = endpoint = JobEndpoint(launch.server, launch.agent_token, launch.address_file)
        self.resumed = launch.number > 1
        self.shipper = Shipper(Client(endpoint, timeout=30.0), launch.workspace.id, self.run_id, self.resumed)
        self.journal = os.path.join(folder, "journal.jsonl")
        self.shipper.follow_journal(_stream(launch, place), self.journal)
        self.shipper.follow_log(self.log_name, self.log)
        # outputs and logs are shared: the head brings them in
        mine = (list(work.job.watch), work.job.collect_outputs) if self.head else ([], False)
        self.outputs = Outputs(self.shipper, self.code, folder, *mine)
        self.address_note = reach.AddressNote(launch.address_file, folder)
        self.cancel = launch.cancel
        self.over = False  # the run has ended
        self.hangs = False
        self.sleeper = Sleeper()
        self.woken = 0.0  # by a file that grew
        self.others: list[dict[str, Any]] = []  # what the agents of all nodes told, by their number
        self.told: dict[str, Any] = {"index": place.index}  # what this one tells of its node
        self.front = self._front(work, folder)
        self.has_data = bool(work.job.inputs or work.job.outputs)
        self.steps: list[dict[str, Any]] = []
        self.quiet_until = 0.0
        self.last_report = 0.0

    @staticmethod
    def _front(work: Work, folder: str) -> FrontProcess | None:
        if work.job.service is None:
            return None
        from lapis.agent.service import FrontProcess

        return FrontProcess(work, work.job.service, folder)

    def live(self) -> None:
        signal.signal(signal.SIGTERM, self._on_term)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # held back until somebody listens: fork_server.py
        ended = self._live_here()
        self._dismiss_keeper()
        if self.place.count == 1:
            self._finish(ended.verdict)
            return
        self._tell(ended)
        self._deliver()
        verdict = self._of_all_nodes(ended.verdict)
        if self.head:
            self._finish(verdict)
        elif self.over:  # else whoever comes next must find that it ran here
            self._tidy_up()

    def _live_here(self) -> Ended:
        """Prepare, launch and follow; how that ended on this node."""
        crew = Crew.read(self.folder)
        if self.launch.verdict is not None:
            self._follow_logs(crew or Crew([]))
            return Ended(Verdict(**self.launch.verdict), time.time())
        try:
            if crew is None:
                if self.cancel:
                    raise Canceled("before anything was laid out")
                crew = self._prepare()
                open(self.journal, "ab").close()
                crew.write(self.folder)
            keeper, self.keeper = self.keeper, None
            self.sleeper.hear(crew.start(keeper))
            if self.place.network:
                from lapis.agent import forward

                forward.to_server(self.place.network, self.launch.server, lambda: self.endpoint.find(again=True)[0])
        except Canceled as why:
            return Ended(canceled(str(why)), time.time())
        except _OtherNodeFailed as other:
            return Ended(other.verdict, time.time())
        except (AzureMLException, ServiceException, OSError) as error:
            if crew is not None:
                crew.stop(STOP_GRACE)
            return Ended(cannot_start(error), time.time())
        self._follow_logs(crew)
        if self.resumed:
            self._ship(force=True)  # whether it was asked to stop meanwhile
        elif self.head:
            self.step("", f"{_what(self.work.job)} started: {_shown(crew)}")
        return self._follow(crew)

    def _follow_logs(self, crew: Crew) -> None:
        for name, path in crew.logs().items():
            self.shipper.follow_log(name, path)
        self.shipper.behind()  # has seen them all: one that is gone later was removed

    def _dismiss_keeper(self) -> None:
        """The one that was forked ahead is not the right one, or is not needed."""
        keeper, self.keeper = self.keeper, None
        if keeper is not None:
            keeper.dismiss()

    def _on_term(self, *_: object) -> None:
        self.cancel = True

    def _prepare(self) -> Crew:
        """Everything that the script needs, and the processes to start."""
        if self.head:
            self.step("Running", "The agent has begun: laying out the code")
        reach.get_ready(self.folder)
        self._bring_back(self.log_name, self.log)
        prepare.lay_out_code(self.launch, self.code, self.shipper.client, self.place)
        variables = {"LAPIS_JOURNAL": _stream(self.launch, self.place)}
        if self.launch.attempt or self.work.job.resumes is not None:
            from lapis.agent import resume

            resume.restore_outputs(self.launch, self.place, self.code, self.shipper.client)
            variables.update(resume.go_on_from(self.work, self.folder, self.shipper.client))
        if self.has_data:
            variables.update(self._lay_out_data())
        if self.work.job.inputs and self.head:
            self.step("", f"Data is there: {', '.join(each.name for each in self.work.job.inputs)}")
        self.work = self._enter_environment()
        prepare.write_notices(self.work.job.notices, self.log)
        if self.place.head is None:
            prepare.write_notices([_NOT_SHARED], self.log)
        members = self._members(variables)
        if self.cancel:
            raise Canceled("before the script was started")
        if self.work.container is None:  # which is apart itself
            members = reach.apart_from_server(self.work, members, self.folder, self.place.head)
        else:
            from lapis.agent import in_container

            members = in_container.wrapped(self.work, self.work.container, members, self.folder, self.place.head)
        crew = Crew(members)
        self.address_note.keep()
        for name, path in crew.logs().items():
            self._bring_back(name, path)
        return crew

    def _bring_back(self, name: str, log: str) -> None:
        if self.launch.attempt:
            from lapis.agent import resume

            resume.bring_back(self.launch, name, log, self.shipper.client)

    def _enter_environment(self) -> Work:
        if self.launch.lock is None and not isinstance(self.work.job.distribution, Mpi):
            return self.work
        from lapis.agent import environment, legacy_keras

        self._dismiss_keeper()  # the next one holds what this process does
        work = environment.enter(self.work, self.log, lambda: self.cancel)
        packages = str(self.launch.lock["packages"]) if self.launch.lock is not None else ""
        return replace(work, job=legacy_keras.choose(work.job, packages))

    def _members(self, variables: dict[str, str]) -> list[Member]:
        """The processes of this node."""
        spread = self.work.job.distribution
        if spread is not None:
            from lapis.agent import distributed

            nodes = self._meet(spread)
            return distributed.members(self.work, spread, self.place, nodes, self.code, self.folder, variables)
        if self.front is not None:
            return [self._front_member(self.front)]
        argv, surroundings = prepare.command(self.work, self.code, self.folder, variables)
        surroundings["LAPIS_MEMBER"] = self.run_id
        prepare.share_of_node(surroundings, self.place)
        log, network = log_names.STD_LOG, self.place.network
        return [Member("", self.folder, self.log, log, argv, surroundings, self.code, network=network)]

    def _meet(self, spread: Distribution) -> list[dict[str, Any]]:
        """Tell where this node is, and wait until all have."""
        from lapis.agent import distributed

        self.told.update(distributed.introduction(spread, self.place, self.folder))
        if self.place.count == 1:
            return [self.told]
        began = said = time.monotonic()
        while True:
            self._ship(force=True)
            missing = node_reports.missing(self.others, self.place.count)
            if not missing:
                return self.others
            failed = node_reports.failure(self.others)
            if failed is not None:
                raise _OtherNodeFailed(failed)
            if self.cancel:
                raise Canceled("while its nodes were meeting")
            now = time.monotonic()
            if self.head and now - said > SAY_AFTER:
                said = now
                self.step("", f"Waiting for node {', '.join(map(str, missing))} of {self.place.count} to be ready")
            time.sleep(MEET_EVERY if now - began < SAY_AFTER else BEAT_TOGETHER)

    def _tell(self, ended: Ended) -> None:
        """Let the other nodes know how it ended here."""
        if self.place.count == 1:
            return
        state = "done" if ended.verdict.state == "Completed" else "failed"
        self.told.update(state=state, verdict=ended.verdict.to_json(), at=ended.at)
        self._ship(force=True)

    def _deliver(self) -> None:
        """All that was printed, logged and written here, before the run ends and takes no more. Then say so."""
        for _ in self._until_given_up():
            try:
                lost = [] if self.head else self._bring_in_own_files()  # the head also brings in what is shared
                ends, losses = self.shipper.settle(patience=30.0)
                told = {**self.told, "delivered": True, "lost": lost + losses.lost, "notices": losses.notices}
                self.shipper.deliver(ends, {"node": told}, patience=30.0)
            except _RUN_IS_OVER:
                return
            except (ServiceException, AzureMLException, OSError) as error:
                say(f"not delivered yet: {error}")
                continue
            self.told = told
            return

    def _bring_in_own_files(self) -> list[str]:
        _, losses = self.outputs.collect()
        for notice in [*losses.notices, *self._take_back()]:
            tell_user(self.log, notice)
        return losses.lost

    def _of_all_nodes(self, verdict: Verdict) -> Verdict:
        """The first failure of any node, or that all are done; of a node that is not the head, when the run is over."""
        for waited in self._until_given_up():
            self._say_for_rank()
            self._ship(force=waited < SAY_AFTER)
            if self.over:
                break
            if waited < LAST_WORDS_WITHIN and node_reports.last_words_are_missing(self.others):
                continue
            if self.head and node_reports.all_delivered(self.others, self.place.count):
                return (node_reports.failure(self.others) or verdict).but_lost(node_reports.lost(self.others))
        silent = node_reports.undelivered(self.others, self.place.count)
        return verdict.but_lost([f"what node {number} has not sent yet" for number in silent])

    def _until_given_up(self) -> Iterator[float]:
        """Again and again, with the seconds gone by; not for ever: the next server starts an agent here again.

        Nor once the folder is gone: the head has told how the run ended, and cleared everything away.
        """
        began = time.monotonic()
        while time.monotonic() - began < GIVE_UP_AFTER and os.path.isdir(self.folder):
            yield time.monotonic() - began
            time.sleep(LOOK_EVERY)

    def _say_for_rank(self) -> None:
        """The head knows which rank of an MPI job failed; if it was one of ours, we know its last words."""
        rank = (getattr(node_reports.failure(self.others), "error", None) or {}).get("rank")
        if rank is None or "said" in self.told or self.head:
            return
        log = os.path.join(self.folder, log_names.file_of(log_names.of_rank(rank)))
        if os.path.exists(log):
            self.told["said"] = {"rank": rank, "lines": last_lines(log)}

    def _lay_out_data(self) -> dict[str, str]:
        """Large data takes its time: meanwhile the log is shipped, the server hears of us, and cancel is obeyed."""
        from lapis.agent import data

        self._dismiss_keeper()  # the next one holds what this process does
        arguments = self.work, self.code, self.folder, self.log, self.shipper.client, lambda: self.cancel
        if not self.work.job.inputs:
            return data.lay_out_inputs(*arguments)
        return self._shipping_meanwhile(data.lay_out_inputs, *arguments)

    def _front_member(self, front: FrontProcess) -> Member:
        """Models take their time, and some are converted: meanwhile the log is shipped and the server hears of us."""
        self._dismiss_keeper()  # the next one holds what this process does
        canceled = lambda: self.cancel  # noqa: E731
        client = self.shipper.client
        return self._shipping_meanwhile(front.member, self.work, self.code, self.log, client, self.place, canceled)

    def _shipping_meanwhile(self, work: Callable[..., _Made], *arguments: Any) -> _Made:
        from concurrent.futures import ThreadPoolExecutor, wait

        with ThreadPoolExecutor(1) as thread:
            working = thread.submit(work, *arguments)
            while not wait([working], LOOK_EVERY).done:
                self._ship()
        return working.result()

    def _follow(self, crew: Crew) -> Ended:
        """Ship what the processes write until all have ended, or one has failed; say how."""
        stopped: Ended | None = None
        watch = hanging.SilenceWatch(crew, self.journal, hanging.seconds(self.work.job))
        limit = self.work.job.max_seconds or 0.0
        until = (crew.began() or time.monotonic()) + limit if limit else None

        def look() -> Ended | None:
            nonlocal stopped
            if watch.look():
                self._let_go_of_idle_workers(crew, watch)
                self._tell_of_silence(crew, watch)
            if stopped is None:
                late = until is not None and time.monotonic() > until and not crew.ended_by(until)
                why = timed_out(limit) if late else self._reason_to_stop()
                if why is not None:
                    stopped = Ended(why, time.time())
                    self._tell(stopped)
                    crew.stop(STOP_GRACE)
            ended = crew.ended(self._others_are_done(crew))
            if ended is not None:
                if stopped is None and ended.verdict.state != "Completed":
                    self._tell(ended)  # first: the other nodes need not go on
                crew.stop(STOP_GRACE)  # whoever is left: the ranks of a failed one, and parameter servers
                return stopped or ended
            return stopped if stopped is not None and not crew.alive() else None

        watched = self.outputs.folders()
        self.sleeper.watch([*watched, *self.shipper.paths()])
        if not self.resumed:
            self._rest(crew, FIRST_REPORT)
        while True:
            try:
                self.sleeper.watch([*watched, *self.shipper.paths()])
                found = look()
                if found is not None:
                    return found
                self._ship()
                self._rest(crew, self._nothing_to_do_until(min(watch.next_look(), until or inf)) - time.monotonic())
            except OSError as error:  # no descriptors left, say: the script goes on, and so do we
                say(f"cannot look after the script: {error}")
                time.sleep(1.0)

    def _nothing_to_do_until(self, at: float) -> float:
        """Unless something happens."""
        times = [at, self.outputs.next_look, self.last_report + self._beat()]
        if self.shipper.lacks():
            times.append(max(self.last_report + LOOK_EVERY, self.quiet_until))
        if self.place.count > 1:  # others change what there is to do; a front says in the log that it has news
            times.append(time.monotonic() + LOOK_EVERY)
        return min(times)

    def _rest(self, crew: Crew, seconds: float) -> None:
        """So long, or until there is news. What comes at about the same time, the end above all, is told together."""
        keepers = crew.keepers()
        if self.sleeper.sleep(seconds, keepers):
            self.sleeper.sleep(max(TOGETHER, self.woken + LOOK_EVERY - time.monotonic()), keepers, files=False)
            self.woken = time.monotonic()
            self.outputs.news()

    def _let_go_of_idle_workers(self, crew: Crew, watch: hanging.SilenceWatch) -> None:
        if self.work.job.distribution is not None:
            from lapis.agent import distributed

            distributed.let_go_of_idle_workers(self.work.job, crew, watch, self.told, self.others)

    def _tell_of_silence(self, crew: Crew, watch: hanging.SilenceWatch) -> None:
        """If all nodes seem to hang: say so, with where each process stands; and when they go on, say that."""
        self.told["quiet"] = watch.hangs()
        nodes = self.others if self.place.count > 1 else [self.told]
        hang = len(nodes) == self.place.count and all(each.get("quiet") for each in nodes)
        if hang == self.hangs:
            return
        self.hangs = hang
        files = hanging.save_stacks(crew, self.code) if hang else []
        if not self.head:
            return
        if not hang:
            self.step("", "It does something again")
            return
        where = f"{', '.join(files)} and so on tell where its processes stand" if files else hanging.LACKING
        self.step("", f"Nothing was printed, logged or computed for {watch.after:g} s: it seems to hang. {where}")

    def _reason_to_stop(self) -> Verdict | None:
        failed = node_reports.failure(self.others)
        if failed is not None:
            return failed
        return canceled("cancel was asked for") if self.cancel else None

    def _others_are_done(self, crew: Crew) -> bool:
        """Whether nobody is left that a parameter server would serve."""
        if crew.busy():
            return False
        if self.place.count == 1:
            return True
        fresh = self.told.get("state") is None
        if fresh:
            self.told["state"] = "idle"
        self._ship(force=fresh or time.monotonic() - self.last_report > BEAT_IDLE)
        return node_reports.nobody_is_busy(self.others)

    def _ship(self, force: bool = False) -> None:
        now = time.monotonic()
        if now < self.quiet_until:
            return
        try:
            self.outputs.look()
            self.address_note.keep()
            due = now - self.last_report > self._beat()
            news = self.front is not None and self.front.changed()
            if not (force or due or news or self.steps or self.shipper.behind()):
                return
            header: dict[str, Any] = {"steps": self.steps}
            if self.place.count > 1:
                header["node"] = self.told
            if self.front is not None:
                header["service"] = self.front.told()
            reply = self.shipper.report(header, patience=0.0)
        except (Unavailable, ServiceException, AzureMLException, OSError) as error:
            if isinstance(error, _RUN_IS_OVER):
                self.cancel = self.over = True  # nobody wants it any more
            self.quiet_until = now + 0.5  # the files on disk are the spool
            return
        self.last_report = now
        self.steps = []
        self.others = reply.get("nodes") or []
        if self.front is not None:  # it never ends, and what the server has need not lie here too
            rotation.give_up_beginning(self.log, before=reply["positions"].get(f"log:{self.log_name}", 0))
            rotation.give_up_beginning(os.path.join(self.folder, "agent.log"))
        self.over = reply["state"] in ("Canceled", "Failed", "Completed")
        self.cancel = self.cancel or reply["cancel"] or self.over
        if self.front is not None and reply.get("service"):
            self.front.take_up(reply["service"])

    def _beat(self) -> float:
        if self.front is not None:
            return BEAT_OF_SERVICES
        return BEAT_EVERY if self.place.count == 1 else BEAT_TOGETHER

    def _finish(self, verdict: Verdict) -> None:
        """Deliver everything, then the verdict: Completed only if all of it could be delivered."""
        ended = time.time()
        self.step("Finalizing", "Collecting outputs and the last of the logs", at=ended)
        if self.cancel or self.outputs.backlog() + self.shipper.backlog() > MUCH:
            self._ship(force=True)  # it takes a while, and whoever cancels must know that nothing but that goes on
        deadline = time.monotonic() + GIVE_UP_AFTER
        not_taken_back: list[str] | None = None
        while True:
            try:
                if not_taken_back is None:
                    not_taken_back = self._take_back(and_end_streams=True)
                files, losses = self.outputs.collect()
                ends, of_streams = self.shipper.settle(patience=30.0)
                losses += of_streams
                told = verdict.but_lost(losses.lost)
                notices = losses.notices + not_taken_back + node_reports.notices(self.others)
                if self.has_data and Crew.read(self.folder) is not None:  # the script was started
                    from lapis.agent import data

                    completed = told.state == "Completed"
                    notices += data.note_outputs(self.work, self.folder, self.shipper.client, completed, self._note)
                header = {"steps": self.steps, "verdict": dict(told.to_json(), at=time.time(), notices=notices)}
                if self.front is not None:
                    header["service"] = self.front.told()  # why it could not start
                self.shipper.deliver(ends, header, files, patience=30.0)
                break
            except _RUN_IS_OVER:
                break
            except (ServiceException, AzureMLException, OSError) as error:
                say(f"not delivered yet: {error}")
                if time.monotonic() > deadline:
                    return  # the next server of this home starts an agent here again
                time.sleep(2.0)
        self._tidy_up()

    def _tidy_up(self) -> None:
        """All of it is stored now."""
        if self.work.job.distribution is not None:
            from lapis.agent import distributed

            distributed.clean(self.work.job, self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        if "lapis.agent.environment" in sys.modules:
            from lapis.agent import environment

            environment.leave()

    def _take_back(self, and_end_streams: bool = False) -> list[str]:
        """What the script wrote for datastores; what could not be brought there."""
        if not self.has_data:
            return []
        from lapis.agent import data

        if and_end_streams:
            data.end_streams(self.folder)
        return data.take_back(self.work, self.code, self.folder, self.shipper.client)

    def _note(self, dataset: dict[str, Any]) -> None:
        self.shipper.client.call("POST", f"/workspaces/{self.launch.workspace.id}/datasets", dataset)

    def step(self, state: str, reason: str, at: float | None = None) -> None:
        self.steps.append({"state": state, "reason": reason, "at": at or time.time()})


_RUN_IS_OVER = (NotFound, TokenEnded)  # it was deleted, or the server has ended it without us


class _OtherNodeFailed(Exception):
    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


def _own_log(job: Job, place: Place, folder: str) -> tuple[str, str]:
    """Where the agent says what the user should know, and its name in the run: the script's log, or rank 0's."""
    if job.distribution is None:
        name = log_names.STD_LOG
    elif place.index == 0:
        name = log_names.of_rank(0)
    else:
        return os.path.join(folder, "job_prep.txt"), f"azureml-logs/65_job_prep_node_{place.index}.txt"
    return os.path.join(folder, log_names.file_of(name)), name


def _stream(launch: Launch, place: Place) -> str:
    """Each node has a journal of its own, and a run that began anew begins a new one."""
    parts = [
        "journal",
        f"n{place.index}" if place.index else "",
        f"a{launch.attempt}" if launch.attempt else "",
    ]
    return "-".join(filter(None, parts))


def _what(job: Job) -> str:
    if job.service is not None:
        return "Front"
    return "Script" if job.script else "Command"


def _shown(crew: Crew) -> str:
    """The command, without the secrets that stand in it: as words, and as a line that a shell is given."""
    words = masked({"arguments": crew.members[0].argv})["arguments"] if crew.members else ["on other nodes"]
    text: str = masked({"command": " ".join(words)})["command"]
    return text if len(text) <= 200 else text[:200] + " ..."


def live(folder: str, keeper: Keeper | None = None) -> None:
    """The whole life of the agent whose job lies in `folder`."""
    with open(os.path.join(folder, "job.json")) as file:
        given = Assignment.from_json(json.load(file))
    if isinstance(given.work, Recovery):
        from lapis.agent.recover import recover

        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        if keeper is not None:
            keeper.dismiss()
        recover(given.work)
    else:
        Agent(folder, given.work, given.place, keeper).live()


if __name__ == "__main__":
    load_waiting()  # as the fork server does: once code runs apart from us, our own files may be out of sight
    live(sys.argv[1])

"""Nothing grows for ever: finds what nobody needs any more and removes it, when asked and now and then by itself."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from lapis.client import server_environment, server_requirements
from lapis.domain.service import SERVICE_RUN
from lapis.domain.settings import Settings
from lapis.environments import cache as environments
from lapis.errors import AzureMLException, NotFound
from lapis.machine import json_files, rotation
from lapis.server.control.runs import Runs
from lapis.server.control.stores import Stores
from lapis.server.store.blobs import FRESH
from lapis.server.store.collected import Collected
from lapis.upkeep import alone
from lapis.upkeep.naming import names_in, view_of

KEEP = "keep"  # the tag of a run that stays whatever its age is
_DAY = 24 * 3600.0
_UNUSED = 90 * _DAY  # a cache that only saves time goes after so long
_LOOK_EVERY = 60.0  # seconds between looks whether it is time
_EVERY, _AT_LEAST_EVERY = _DAY, 7 * _DAY  # when no run is under way; when some always is
_MOST_SECONDS = 300.0  # of one collection that nobody asked for: the next one goes on
_log = logging.getLogger("lapis.upkeep")


class Upkeep:
    def __init__(self, stores: Stores, runs: Runs, settings: Settings, now: Callable[[], float]) -> None:
        self._stores = stores
        self._runs = runs
        self._settings = settings
        self._home = settings.home
        self._now = now
        self._done_at = os.path.join(settings.home, "upkeep.json")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="upkeep", daemon=True)

    # -- by itself

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(timeout=5)

    def _loop(self) -> None:
        while not self._stopping.wait(_LOOK_EVERY):
            try:
                rotation.rotate_own_output(os.path.join(self._home, "server.log"))
                if self._is_due():
                    self._collect_quietly()
            except Exception:
                _log.exception("Upkeep was cut short; it is tried again tomorrow")
                json_files.write(self._done_at, {"at": self._now()})

    def _is_due(self) -> bool:
        since = self._now() - float((json_files.read(self._done_at) or {}).get("at", 0.0))
        return since > _AT_LEAST_EVERY or (since > _EVERY and not self._stores.runs.count_active())

    def _collect_quietly(self) -> None:
        until = time.monotonic() + _MOST_SECONDS
        try:
            found = self._collect(False, lambda: not self._stopping.is_set() and time.monotonic() < until)
        except AzureMLException as error:  # a backup is being made
            _log.info("Nothing was collected: %s", error.message)
            return
        freed = sum(each.freed for each in found)
        if freed:
            _log.info("Removed what nobody needs: %.1f MB", freed / 1e6)

    # -- asked for

    def collect(self, dry_run: bool) -> dict[str, Any]:
        """What nobody needs, by kind, and how much of it was freed: nothing with `dry_run`."""
        found = self._collect(dry_run, lambda: not self._stopping.is_set())
        return {"dry_run": dry_run, "collected": [each.to_json() for each in found]}

    def _collect(self, dry_run: bool, go_on: Callable[[], bool]) -> list[Collected]:
        with alone.collecting(self._home):
            found = [
                *self._records_and_blobs(dry_run, go_on),
                self._live_logs(dry_run),
                self._leftovers(dry_run),
                self._server_environments(dry_run),
                self._environments(dry_run),
                self._caches(dry_run),
            ]
            if not dry_run:
                json_files.write(self._done_at, {"at": self._now()})
        return found

    # -- runs, snapshots, blobs

    def _records_and_blobs(self, dry_run: bool, go_on: Callable[[], bool]) -> Iterator[Collected]:
        """All by one view of the database. What is named after it was asked for before: its date says so."""
        before = time.time() - FRESH  # by the clock that dates files
        with view_of(self._stores.database.path) as view:
            past = self._past_runs(view)
            keys = [row["pk"] for _, _, family in past for row in family]
            names = names_in(view, self._stores.blobs.read_whole, keys, newer_than=before)
            known = {row["id"]: row["created_at"] for row in view.execute("SELECT id, created_at FROM snapshots")}
        runs = Collected("runs that are past their time")
        for workspace_id, root, family in past:
            if not dry_run:
                try:
                    self._runs.delete(workspace_id, root)
                except AzureMLException:  # gone, or there is another one below it by now
                    continue
            runs.add(0, dry_run, len(family))
        yield runs
        snapshots = Collected("snapshots that no run names")
        unnamed = [each for each, at in known.items() if each not in names.snapshots and at < before]
        snapshots.add(0, dry_run, len(unnamed) if dry_run else self._stores.snapshots.collect(unnamed, before))
        yield snapshots
        if names.unreadable:
            _log.warning("Blobs are kept: the list of files of snapshot %s cannot be read", names.unreadable[0])
            return
        yield from self._stores.blobs.collect(names.blob, before, dry_run, go_on)

    def _past_runs(self, view: sqlite3.Connection) -> list[tuple[str, str, list[sqlite3.Row]]]:
        """Whole families that ended long enough ago: workspace, root and all of them. A run stays that a registered
        model came from, or that has the tag `keep`, and with it its family."""
        days = self._settings.keep_runs_days
        if not days:
            return []
        kept = {row["run"] for row in view.execute(
            "SELECT json_extract(body, '$.run_id') AS run FROM assets WHERE kind = 'model'"
        )}  # fmt: skip
        kept |= {row["id"] for row in view.execute(
            "SELECT id FROM runs WHERE json_type(body, ?) IS NOT NULL", (f"$.tags.{KEEP}",)
        )}  # fmt: skip
        families: dict[tuple[str, str], list[sqlite3.Row]] = {}
        for row in view.execute(
            "SELECT pk, workspace_id, id, COALESCE(root_id, id) AS root, ended,"
            " COALESCE(json_extract(body, '$.history[#-1].at'), created_at) AS last"
            " FROM runs WHERE COALESCE(type, '') != ?",
            (SERVICE_RUN,),
        ):
            families.setdefault((row["workspace_id"], row["root"]), []).append(row)
        before = self._now() - days * _DAY
        return [
            (workspace_id, root, family)
            for (workspace_id, root), family in families.items()
            if all(row["ended"] and row["last"] < before and row["id"] not in kept for row in family)
        ]

    def _live_logs(self, dry_run: bool) -> Collected:
        """Logs that still lie open although their run has ended, or is gone."""
        found = Collected("open logs of runs that have ended")
        for workspace_id, run_id in self._stores.files.unsealed():
            try:
                run = self._stores.runs.get(workspace_id, run_id)
            except NotFound:
                found.add(self._stores.files.size_of_live(workspace_id, run_id), dry_run)
                if not dry_run:
                    self._stores.files.forget(workspace_id, run_id)
                continue
            if run.ended:
                found.add(0, dry_run)
                if not dry_run:
                    self._stores.files.seal(workspace_id, run_id)
        return found

    # -- files beside the database

    def _leftovers(self, dry_run: bool) -> Collected:
        """Drafts of files that were never finished, and what interactive runs and services that are gone left."""
        found, before = Collected("leftovers of processes that were killed"), time.time() - FRESH
        alive = {run.id for run in self._stores.runs.owned()}
        places = {version.place for service in self._stores.services.all() for version in service.versions.values()}
        for entry in _entries(self._home):
            if entry.name.endswith(".part"):
                found.take(entry.path, before, dry_run)
        for entry in _entries(os.path.join(self._home, "sources")):
            if not os.path.exists(os.path.join(entry.path, "lapis")):  # the environment it led to is gone
                found.take(entry.path, before, dry_run)
        for entry in _entries(os.path.join(self._home, "interactive")):
            if entry.name.split(".")[0] not in alive:
                found.take(entry.path, before, dry_run)
        for entry in _entries(os.path.join(self._home, "services")):
            if entry.name.endswith(".sock") and not entry.name.startswith(tuple(f"{place}-" for place in places)):
                found.take(entry.path, before, dry_run)
        return found

    def _server_environments(self, dry_run: bool) -> Collected:
        """Those of earlier releases, and of uv, that no process uses."""
        found, before = Collected("server environments of earlier releases"), time.time() - FRESH
        current = server_environment.plan(self._home).folder
        tool = f"uv-{server_requirements.pinned_version('uv')}"
        candidates = [
            *(each.path for each in _entries(server_environment.root(self._home)) if each.is_dir()),
            *(each.path for each in _entries(os.path.join(self._home, "tools")) if each.name != tool),
        ]
        in_use = _named_by_processes()
        for path in candidates:
            if path != current and path.encode() not in in_use and found.take(path, before, dry_run):
                found.take(path + ".lock", before, dry_run)
        return found

    def _environments(self, dry_run: bool) -> Collected:
        """Above their limit, those that were not used for longest."""
        found = Collected("environments above LAPIS_ENVIRONMENTS_MAX_GB")
        root, most = os.path.join(self._home, "environments"), int(self._settings.environments_max_gb * 1e9)
        if dry_run:
            over = environments.over_limit(root, most)
            found.add(over.freed, dry_run, len(over.removed))
        else:
            done = environments.prune(root, most)
            found.add(done.freed, dry_run, len(done.removed))
        return found

    def _caches(self, dry_run: bool) -> Collected:
        """What only saves time and was not used for months; the large caches have limits of their own."""
        found, before = Collected("caches that were not used for 90 days"), time.time() - _UNUSED
        for name in ("hashes", "wheels"):
            for entry in _entries(os.path.join(self._home, "cache", name)):
                if entry.stat().st_atime < before:
                    found.take(entry.path, before, dry_run)
        return found


def _entries(folder: str) -> list[os.DirEntry[str]]:
    return list(os.scandir(folder)) if os.path.isdir(folder) else []


def _named_by_processes() -> bytes:
    """Command lines and environments of all processes that we may look at."""
    said = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for what in ("cmdline", "environ"):
            try:
                with open(f"/proc/{pid}/{what}", "rb") as file:
                    said.append(file.read())
            except OSError:
                continue
    return b"\0".join(said)

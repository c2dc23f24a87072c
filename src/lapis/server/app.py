"""The composition root: makes every part of the server and joins them."""

from __future__ import annotations

import os
from collections.abc import Callable
from urllib.parse import urlsplit

from lapis.domain.addresses import rule_of
from lapis.domain.settings import Settings
from lapis.environments.environment_builds import EnvironmentBuilds
from lapis.machine import clock
from lapis.server.api import (
    about,
    computes,
    data,
    environments,
    files,
    images,
    models,
    runs,
    secrets,
    services,
    workspaces,
)
from lapis.server.api.errors import Errors
from lapis.server.api.express import Express
from lapis.server.api.routing import App
from lapis.server.control.access import Access
from lapis.server.control.admission import Admission
from lapis.server.control.computes import Computes
from lapis.server.control.control import Control
from lapis.server.control.data import Data
from lapis.server.control.environments import Environments
from lapis.server.control.events import Events
from lapis.server.control.files import Files
from lapis.server.control.fleet import Fleet
from lapis.server.control.holdings import Holdings
from lapis.server.control.images import Images
from lapis.server.control.jobs import Address
from lapis.server.control.lifetime import Lifetime
from lapis.server.control.metrics import Metrics
from lapis.server.control.models import Models
from lapis.server.control.pipelines import Pipelines
from lapis.server.control.profiles import Profiles
from lapis.server.control.reconciler import Reconciler
from lapis.server.control.run_tokens import RunTokens
from lapis.server.control.run_views import RunViews
from lapis.server.control.runs import Runs
from lapis.server.control.sealing import Sealing
from lapis.server.control.secrets import Secrets
from lapis.server.control.service_content import Contents
from lapis.server.control.service_fronts import ServiceFronts
from lapis.server.control.service_keeper import ServiceKeeper
from lapis.server.control.service_uses import ServiceUses
from lapis.server.control.services import Services
from lapis.server.control.step_reuse import StepReuse
from lapis.server.control.stores import open_stores
from lapis.server.control.sweeps import Sweeps
from lapis.server.control.upkeep import Upkeep
from lapis.server.control.waiting import WaitingRuns
from lapis.server.control.workspaces import Workspaces
from lapis.server.gate import Gate
from lapis.server.handed_files import HandedFiles
from lapis.server.once import Once
from lapis.server.studio import pages
from lapis.server.system import System


def make_system(settings: Settings, url: str, now: Callable[[], float], leave: Callable[[], None]) -> System:
    """Every part is given what it needs, so each stands below those that it is made of."""
    home, host = settings.home, urlsplit(url).hostname or "127.0.0.1"
    stores = open_stores(home)
    sealing = Sealing(stores, home)
    access = Access(home)
    tokens = RunTokens(stores, now)
    holdings = Holdings(stores)
    data_sets = Data(stores, sealing, home, now, rule_of(settings.web))
    steady = clock.steady(os.path.join(home, "clock.json"))  # for durations; `now` is what people are shown
    events = Events(stores.database.after_commit)
    handed = HandedFiles(settings.door)
    fleet = Fleet(home)
    waiting = WaitingRuns(settings.max_runs)
    uses = ServiceUses(stores)
    builds = EnvironmentBuilds(os.path.join(home, "environments"), events.wake)
    computes = Computes(stores, fleet, uses, events, now, steady)
    fronts = ServiceFronts(stores, builds, access, events, home, steady)
    admission = Admission(stores, holdings, data_sets)
    runs = Runs(stores, events, builds, computes, fronts, tokens, admission, sealing, now, steady)
    sweeps = Sweeps(stores, runs, events, now, steady)
    pipelines = Pipelines(stores, runs, data_sets, StepReuse(stores, sealing), events, now)
    models = Models(stores, holdings, uses, now)
    contents = Contents(stores, models, builds, sealing)
    services = Services(stores, contents, computes, fronts, waiting, access, events, home, host, now, steady)
    keeper = ServiceKeeper(stores, runs, services, fronts, contents, computes, home, steady)
    address = Address(url, settings.address_file, stores.blobs.root, home, settings.web)
    reconciler = Reconciler(
        stores,
        runs,
        computes,
        fleet,
        builds,
        access,
        address,
        settings.max_runs,
        fronts,
        keeper,
        waiting,
        events,
        now,
        steady,
    )
    control = Control(
        lifetime=Lifetime(stores, access, home, now, leave),
        workspaces=Workspaces(stores, now),
        runs=runs,
        run_views=RunViews(waiting, sweeps, pipelines, now, steady),
        files=Files(stores, holdings, access, events, handed, now),
        metrics=Metrics(stores),
        sweeps=sweeps,
        pipelines=pipelines,
        computes=computes,
        data=data_sets,
        environments=Environments(stores, holdings, builds, sealing, now),
        models=models,
        services=services,
        images=Images(stores, contents, builds, sealing, now),
        profiles=Profiles(stores, services, now),
        secrets=Secrets(stores, sealing, now),
        upkeep=Upkeep(stores, runs, settings, now),
    )
    control.workspaces.ensure_default()
    return System(home, stores, access, tokens, sealing, control, reconciler, handed)


def make_app(system: System, host: str, ready: Callable[[], None]) -> Gate:
    def start() -> None:
        system.start()
        ready()

    errors, stores = Errors(system.home), system.stores
    subjects = (
        about, workspaces, computes, data, environments, models, services, images, secrets, runs, files,
    )  # fmt: skip
    routes = [route for each in subjects for route in each.router.below("/api/v1")]
    app = App([*routes, *pages.router.below("/studio")], errors, start, system.stop)
    once = Once(
        app, stores.database, stores.requests, system.sealing, system.access.mark_key(), system.control.lifetime.now
    )
    express = Express(once, lambda: stores.database.busy, stores.settle, errors)
    return Gate(express, system, host, errors)

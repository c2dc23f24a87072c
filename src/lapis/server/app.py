"""The composition root: makes every part of the server and joins them."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from lapis.domain.addresses import rule_of
from lapis.domain.settings import Settings
from lapis.environments.environment_builds import EnvironmentBuilds
from lapis.errors import AzureMLException, NotFound, ServiceException, UserErrorException, to_wire
from lapis.server.api import about, computes, data, environments, files, images, models, runs, services, workspaces
from lapis.server.api.express import Express
from lapis.server.api.request import answer
from lapis.server.control.access import Access
from lapis.server.control.computes import Computes
from lapis.server.control.control import Control
from lapis.server.control.data import Data
from lapis.server.control.environments import Environments
from lapis.server.control.events import Events
from lapis.server.control.files import Files
from lapis.server.control.fleet import Fleet
from lapis.server.control.images import Images
from lapis.server.control.jobs import Address
from lapis.server.control.lifetime import Lifetime
from lapis.server.control.metrics import Metrics
from lapis.server.control.models import Models
from lapis.server.control.profiles import Profiles
from lapis.server.control.reconciler import Reconciler
from lapis.server.control.run_views import RunViews
from lapis.server.control.runs import Runs
from lapis.server.control.service_content import Contents
from lapis.server.control.service_fronts import ServiceFronts
from lapis.server.control.service_keeper import ServiceKeeper
from lapis.server.control.service_uses import ServiceUses
from lapis.server.control.services import Services
from lapis.server.control.stores import open_stores
from lapis.server.control.sweeps import Sweeps
from lapis.server.control.upkeep import Upkeep
from lapis.server.control.waiting import WaitingRuns
from lapis.server.control.workspaces import Workspaces
from lapis.server.gate import Gate
from lapis.server.system import System
from lapis.version import VERSION

_log = logging.getLogger("lapis.server")


def make_system(settings: Settings, url: str, now: Callable[[], float], leave: Callable[[], None]) -> System:
    """Every part is given what it needs, so each stands below those that it is made of."""
    home, host = settings.home, urlsplit(url).hostname or "127.0.0.1"
    stores = open_stores(home)
    access = Access(home)
    events = Events()
    fleet = Fleet(home)
    waiting = WaitingRuns(settings.max_runs)
    uses = ServiceUses(stores)
    builds = EnvironmentBuilds(os.path.join(home, "environments"), events.wake)
    computes = Computes(stores, fleet, uses, events, now)
    fronts = ServiceFronts(stores, builds, access, events, home, now)
    runs = Runs(stores, events, builds, computes, fronts, now)
    sweeps = Sweeps(stores, runs, events, now)
    models = Models(stores, uses, now)
    contents = Contents(stores, models, builds)
    services = Services(stores, contents, computes, fronts, waiting, access, events, home, host, now)
    keeper = ServiceKeeper(stores, runs, services, fronts, contents, computes, home, now)
    address = Address(url, settings.address_file, stores.blobs.root, settings.web)
    reconciler = Reconciler(
        stores, runs, computes, fleet, builds, access, address, settings.max_runs, fronts, keeper, waiting, events, now
    )
    control = Control(
        lifetime=Lifetime(stores, access, home, now, leave),
        workspaces=Workspaces(stores, now),
        runs=runs,
        run_views=RunViews(waiting, sweeps, now),
        files=Files(stores, access, events, now),
        metrics=Metrics(stores),
        sweeps=sweeps,
        computes=computes,
        data=Data(stores, home, now, rule_of(settings.web)),
        environments=Environments(stores, builds, home, now),
        models=models,
        services=services,
        images=Images(stores, contents, builds, now),
        profiles=Profiles(stores, services, now),
        upkeep=Upkeep(stores, runs, settings, now),
    )
    control.workspaces.ensure_default()
    return System(home, stores, access, control, reconciler)


def make_app(system: System, host: str, ready: Callable[[], None]) -> Gate:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        system.start()
        ready()
        yield
        system.stop()

    app = FastAPI(title="Lapis", version=VERSION, lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    for router in (
        about.router,
        workspaces.router,
        computes.router,
        data.router,
        environments.router,
        models.router,
        services.router,
        images.router,
        runs.router,
        files.router,
    ):
        app.include_router(router, prefix="/api/v1")
    _include_studio(app)
    app.add_exception_handler(AzureMLException, _deliberate)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _fault)
    stores = system.stores
    return Gate(Express(app, lambda: stores.database.busy, stores.settle), system, host)


def _include_studio(app: FastAPI) -> None:
    from lapis.server.studio import pages

    app.include_router(pages.router, prefix="/studio")


def _deliberate(_: Request, error: Any) -> Response:
    return answer(to_wire(error), error.status)


def _invalid(_: Request, error: Any) -> Response:
    faults = [f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()]
    return answer(to_wire(UserErrorException("The request cannot be read: " + "; ".join(faults) + ".")), 400)


def _http(request: Request, error: Any) -> Response:
    if error.status_code == 404:
        return answer(to_wire(NotFound(f"No route {request.method} {request.url.path}.")), 404)
    return answer(to_wire(UserErrorException(str(error.detail))), error.status_code)


def _fault(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    said = f"The server failed at {request.method} {request.url.path}: {type(error).__name__}: {error}"
    return answer(to_wire(ServiceException(said)), 500)

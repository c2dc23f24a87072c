"""The composition root: makes every part of the server and joins them."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from lapis.domain.addresses import rule_of
from lapis.domain.settings import Settings
from lapis.errors import AzureMLException, NotFound, ServiceException, UserErrorException, to_wire
from lapis.server.api import computes as computes_api
from lapis.server.api import data, environments, files, images, models, runs, services, workspaces
from lapis.server.api.express import Express
from lapis.server.api.system import System, TheActor, TheSystem, answer
from lapis.server.control.access import Access
from lapis.server.control.bulletin import Bulletin
from lapis.server.control.computes import Computes
from lapis.server.control.data import Data
from lapis.server.control.environments import Environments
from lapis.server.control.fleet import Fleet
from lapis.server.control.images import Images
from lapis.server.control.jobs import Address
from lapis.server.control.models import Models
from lapis.server.control.profiles import Profiles
from lapis.server.control.reconciler import Reconciler
from lapis.server.control.runs import Runs
from lapis.server.control.service_content import Contents
from lapis.server.control.service_keeper import ServiceKeeper
from lapis.server.control.services import Services
from lapis.server.control.shelf import open_shelf
from lapis.server.control.sweeps import Sweeps
from lapis.server.control.workshop import Workshop
from lapis.server.control.workspaces import Workspaces
from lapis.server.gate import Gate
from lapis.version import VERSION

_log = logging.getLogger("lapis.server")


def make_system(settings: Settings, url: str, now: Callable[[], float], stop: Callable[[], None]) -> System:
    shelf = open_shelf(settings.home)
    access = Access(settings.home)
    bulletin = Bulletin()
    fleet = Fleet(settings.home)
    computes = Computes(shelf, fleet, now, lambda: reconciler.wake())
    workshop = Workshop(os.path.join(settings.home, "environments"), lambda: reconciler.wake())
    runs = Runs(
        shelf, bulletin, workshop, computes, now, lambda: reconciler.wake(), lambda run: sweeps.begin(run)
    )  # fmt: skip
    sweeps = Sweeps(shelf, runs, bulletin, now)
    address = Address(url, settings.address_file, shelf.blobs.root, settings.web)
    reconciler = Reconciler(shelf, runs, computes, fleet, workshop, access, address, settings.max_runs, now)
    models = Models(shelf, now)
    contents = Contents(shelf, models, workshop)
    host = urlsplit(url).hostname or "127.0.0.1"
    services = Services(shelf, contents, computes, access, settings.home, host, now, reconciler.wake)
    keeper = ServiceKeeper(shelf, runs, services, contents, computes, settings.home, now)
    services.views.waiting = reconciler.waiting
    models.used_by = services.used_by
    computes.used_by = services.on_target
    runs.service_told = services.told
    reconciler.service_secrets = services.secrets
    reconciler.look_after_services = keeper.look_after
    system = System(
        home=settings.home,
        shelf=shelf,
        access=access,
        workspaces=Workspaces(shelf, now),
        runs=runs,
        sweeps=sweeps,
        models=models,
        services=services,
        images=Images(shelf, contents, workshop, now),
        profiles=Profiles(shelf, services, now),
        data=Data(shelf, settings.home, now, rule_of(settings.web)),
        computes=computes,
        environments=Environments(shelf, workshop, settings.home, now),
        reconciler=reconciler,
        bulletin=bulletin,
        stop=stop,
        now=now,
    )
    system.workspaces.ensure_default()
    return system


def make_app(system: System, host: str, ready: Callable[[], None]) -> Gate:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        system.profiles.start()
        system.reconciler.start()
        system.sweeps.start()
        ready()
        yield
        system.sweeps.stop()
        system.reconciler.stop()
        system.shelf.database.close()

    app = FastAPI(title="Lapis", version=VERSION, lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.system = system
    for router in (
        about,
        workspaces.router,
        computes_api.router,
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
    return Gate(Express(app, system), system, host)


def _include_studio(app: FastAPI) -> None:
    from lapis.server.studio import pages

    app.include_router(pages.router, prefix="/studio")


about = APIRouter()


@about.get("/about")
def about_server(system: TheSystem, actor: TheActor) -> Response:
    return answer(
        {
            "version": VERSION,
            "pid": system.pid,
            "home": system.home,
            "started_at": system.started_at,
            "active_runs": system.shelf.runs.count_active(),
            "services": system.services.count(),
            "failed_services": system.services.count_failed(),
            "viewer_key": system.access.viewer_key if actor.kind in ("user", "viewer") else None,
        }
    )


@about.post("/stop")
def stop(system: TheSystem, actor: TheActor) -> Response:
    """Leave. Agents and scripts carry on, and find the next server of this home."""
    actor.may_change_workspace()
    system.stop()
    return answer({"stopping": True})


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

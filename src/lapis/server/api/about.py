"""Routes of the server itself."""

from __future__ import annotations

from fastapi import APIRouter, Response

from lapis.server.api.repeats import harmless
from lapis.server.api.request import BoundedRoute, TheControl, answer

router = APIRouter(route_class=BoundedRoute)


@router.get("/about")
def about(control: TheControl) -> Response:
    return answer(control.lifetime.about())


@router.post("/stop")
@harmless("it leaves once")
def stop(control: TheControl) -> Response:
    control.lifetime.stop()
    return answer({"stopping": True})

"""Routes of the server itself."""

from __future__ import annotations

from fastapi import Response

from lapis.server.api.repeats import harmless
from lapis.server.api.request import TheControl, answer, make_router

router = make_router()


@router.get("/about")
def about(control: TheControl) -> Response:
    return answer(control.lifetime.about())


@router.post("/stop")
@harmless("it leaves once")
def stop(control: TheControl) -> Response:
    control.lifetime.stop()
    return answer({"stopping": True})

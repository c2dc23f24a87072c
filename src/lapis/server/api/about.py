"""Routes of the server itself."""

from __future__ import annotations

from fastapi import Body, Response

from lapis.server.api.long_work import LOOKING
from lapis.server.api.repeats import harmless
from lapis.server.api.request import TheControl, answer, make_router

router = make_router()


@router.get("/about")
def about(control: TheControl) -> Response:
    return answer(control.lifetime.about())


@router.post("/gc")
@LOOKING.route
@harmless("what was removed is removed")
def collect(control: TheControl, dry_run: bool = Body(default=False, embed=True)) -> Response:
    """Remove what nobody needs any more."""
    return answer(control.upkeep.collect(dry_run))


@router.post("/stop")
@harmless("it leaves once")
def stop(control: TheControl) -> Response:
    control.lifetime.stop()
    return answer({"stopping": True})

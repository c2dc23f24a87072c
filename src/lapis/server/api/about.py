"""Routes of the server itself."""

from __future__ import annotations

from fastapi import APIRouter, Body, Response

from lapis.server.api.request import TheControl, answer

router = APIRouter()


@router.get("/about")
def about(control: TheControl) -> Response:
    return answer(control.lifetime.about())


@router.post("/gc")
def collect(control: TheControl, dry_run: bool = Body(default=False, embed=True)) -> Response:
    """Remove what nobody needs any more."""
    return answer(control.upkeep.collect(dry_run))


@router.post("/stop")
def stop(control: TheControl) -> Response:
    control.lifetime.stop()
    return answer({"stopping": True})

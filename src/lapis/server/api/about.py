"""Routes of the server itself."""

from __future__ import annotations

from dataclasses import dataclass

from lapis.domain.values import Value
from lapis.server.api.long_work import LOOKING
from lapis.server.api.repeats import harmless
from lapis.server.api.request import Response, TheControl, answer
from lapis.server.api.routing import Routes

router = Routes()


@dataclass(frozen=True)
class CollectWish(Value):
    dry_run: bool = False


@router.get("/about")
def about(control: TheControl) -> Response:
    return answer(control.lifetime.about())


@router.post("/gc")
@LOOKING.route
@harmless("what was removed is removed")
def collect(control: TheControl, wish: CollectWish) -> Response:
    """Remove what nobody needs any more."""
    return answer(control.upkeep.collect(wish.dry_run))


@router.post("/stop")
@harmless("it leaves once")
def stop(control: TheControl) -> Response:
    control.lifetime.stop()
    return answer({"stopping": True})

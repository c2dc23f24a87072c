"""What every route needs: control, guarded for whoever asks, and how an answer is written."""

from __future__ import annotations

import json
from typing import Annotated, Any, cast

from fastapi import Depends, Request, Response

from lapis.server.control.guard import Guarded

RETRY_AFTER = "2"  # seconds that whoever finds the server busy is asked to wait
CONTROL, ACTOR = "lapis_control", "lapis_actor"  # where the gate puts them in the scope of a request


# async, although it waits for nothing: FastAPI would hand a plain function to a thread, for each request
async def _control(request: Request) -> Guarded:
    return cast(Guarded, request.scope[CONTROL])


TheControl = Annotated[Guarded, Depends(_control)]


def answer(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value, separators=(",", ":")), status, media_type="application/json")

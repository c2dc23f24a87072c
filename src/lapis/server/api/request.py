"""What every route needs: control, guarded for whoever asks, and how an answer is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, cast

from fastapi import Depends, HTTPException, Request, Response
from fastapi.routing import APIRoute

from lapis.domain.limits import read_json
from lapis.errors import UserErrorException
from lapis.server.control.guard import Guarded

RETRY_AFTER = "2"  # seconds that whoever finds the server busy is asked to wait
CONTROL, ACTOR = "lapis_control", "lapis_actor"  # where the gate puts them in the scope of a request


# async, although it waits for nothing: FastAPI would hand a plain function to a thread, for each request
async def _control(request: Request) -> Guarded:
    return cast(Guarded, request.scope[CONTROL])


class BoundedRoute(APIRoute):
    """A route whose JSON is no deeper than it may be."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def bounded(request: Request) -> Response:
            return await handle(_BoundedRequest(request.scope, request.receive))

        return bounded


class _BoundedRequest(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            try:
                self._json = read_json("The body of this request", await self.body())
            except UserErrorException as error:  # FastAPI has words of its own for any other class
                raise HTTPException(400, error.message) from None
        return self._json


TheControl = Annotated[Guarded, Depends(_control)]


def answer(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value, separators=(",", ":")), status, media_type="application/json")

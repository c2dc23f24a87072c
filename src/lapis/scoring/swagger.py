"""The description of a service that /swagger.json gives: what it takes and answers, in versions 2, 3 and 3.1."""

from __future__ import annotations

import os
from typing import Any, Callable, Optional, Tuple

VERSIONS = ("2", "3", "3.1")
Schema = Optional[Tuple[Any, Any]]  # of the input and the output; None: nothing is declared

_HEALTHY = "The service is up."
_FAILED = "The service could not answer."


def schema_of(run: Callable[..., Any]) -> Schema:
    """What the decorators of the package `inference_schema` declare, if the script's environment has it."""
    try:
        from inference_schema import schema_util
    except ImportError:
        return None
    if not schema_util.is_schema_decorated(run):
        return None
    return schema_util.get_input_schema(run), schema_util.get_output_schema(run)


def pages(service: str, schema: Schema) -> dict[str, Any]:
    """By version. Files beside the script take the place of what is made here."""
    given, returned = schema or (None, None)
    nothing = {"type": "object", "example": {}}
    shapes = {
        "ServiceInput": given or nothing,
        "ServiceOutput": returned or nothing,
        "ErrorResponse": {"type": "object", "properties": {"message": {"type": "string"}}},
    }
    made: dict[str, Any] = {"2": _second(service, shapes)}
    for version, full in (("3", "3.0.3"), ("3.1", "3.1.0")):
        made[version] = _third(service, shapes, full)
    for version, names in (("2", ("swagger2.json", "swagger.json")), ("3", ("swagger3.json",))):
        for name in names:
            own = _own(name)
            if own is not None:
                made[version] = own
                break
    return made


def _own(name: str) -> Any:
    import json

    path = os.path.join(os.getcwd(), name)
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _info(service: str) -> dict[str, str]:
    return {"title": service, "description": f"What the service {service} takes and answers.", "version": "1.0"}


_BEARER = {"type": "apiKey", "name": "Authorization", "in": "header", "description": "Bearer <key or token>"}


def _paths(
    healthy: dict[str, Any], score: dict[str, Any], version: dict[str, Any], page: dict[str, Any]
) -> dict[str, Any]:
    return {
        "/": {"get": {"operationId": "ServiceHealthCheck", "responses": healthy}},
        "/score": {"post": score},
        "/swagger.json": {"get": {"operationId": "GetSwaggerSpec", "parameters": [version], "responses": page}},
    }


def _second(service: str, shapes: dict[str, Any]) -> dict[str, Any]:
    def answers(what: str, schema: dict[str, Any]) -> dict[str, Any]:
        failed = {"description": _FAILED, "schema": {"$ref": "#/definitions/ErrorResponse"}}
        return {"200": {"description": what, "schema": schema}, "default": failed}

    score = {
        "operationId": "RunMLService",
        "description": "Asks the model.",
        "security": [{"Bearer": []}],
        "parameters": [
            {"name": "serviceInputPayload", "in": "body", "schema": {"$ref": "#/definitions/ServiceInput"}},
        ],
        "responses": answers("What the model answers.", {"$ref": "#/definitions/ServiceOutput"}),
    }
    version = {"name": "version", "in": "query", "required": False, "type": "integer", "enum": [2, 3]}
    healthy = answers(_HEALTHY, {"type": "string"})
    return {
        "swagger": "2.0",
        "info": _info(service),
        "schemes": ["http", "https"],
        "consumes": ["application/json"],
        "produces": ["application/json"],
        "securityDefinitions": {"Bearer": _BEARER},
        "paths": _paths(healthy, score, version, answers("This page.", {"type": "object"})),
        "definitions": shapes,
    }


def _third(service: str, shapes: dict[str, Any], full: str) -> dict[str, Any]:
    def answers(what: str, schema: dict[str, Any], kind: str = "application/json") -> dict[str, Any]:
        wrong = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}}
        good = {"description": what, "content": {kind: {"schema": schema}}}
        return {"200": good, "default": {"description": _FAILED, "content": wrong}}

    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/ServiceInput"}}}}
    score = {
        "operationId": "RunMLService",
        "description": "Asks the model.",
        "security": [{"Bearer": []}],
        "requestBody": body,
        "responses": answers("What the model answers.", {"$ref": "#/components/schemas/ServiceOutput"}),
    }
    version = {"name": "version", "in": "query", "required": False, "schema": {"type": "integer", "enum": [2, 3]}}
    healthy = answers(_HEALTHY, {"type": "string"}, "text/plain")
    return {
        "openapi": full,
        "info": _info(service),
        "security": [{"Bearer": []}],
        "paths": _paths(healthy, score, version, answers("This page.", {"type": "object"})),
        "components": {"schemas": shapes, "securitySchemes": {"Bearer": _BEARER}},
    }

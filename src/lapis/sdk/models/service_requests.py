"""Asks a deployed service, as `service.run` does: with the key or token that opens it."""

from __future__ import annotations

import json
from typing import Any

from lapis.errors import WebserviceException

_LONGEST = 3600.0  # the service has its own limit, and says so


def ask(service: Any, input_data: Any) -> Any:
    body = _body(input_data)
    status, headers, content = _post(service.scoring_uri, body, _credentials(service))
    text = content.decode("utf-8", "replace")
    if status == 200:
        return _parsed(text)
    said = _said(text).rstrip(".")
    raise WebserviceException(
        f"Service '{service.name}' answered {status}: {said}. service.get_logs() tells more.\n"
        f"Received bad response from service.\nResponse Code: {status}\nHeaders: {dict(headers)}\nContent: {content!r}",
        status_code=status,
    )


def _body(input_data: Any) -> bytes:
    if isinstance(input_data, str):
        return input_data.encode()
    if isinstance(input_data, (bytes, bytearray)):
        return bytes(input_data)
    if isinstance(input_data, (dict, list)):
        return json.dumps(input_data).encode()
    raise WebserviceException(
        f"run() takes text or bytes, as json.dumps(...) gives them, not {type(input_data).__name__}."
    )


def _credentials(service: Any) -> str | None:
    if service.token_auth_enabled:
        return str(service.get_access_token().access_token)
    return str(service.get_keys()[0]) if service.auth_enabled else None


def _post(url: str, body: bytes, secret: str | None) -> tuple[int, Any, bytes]:
    import http.client  # late: only whoever asks a service needs it
    from urllib.parse import urlsplit

    place = urlsplit(url)
    headers = {"Content-Type": "application/json"}
    if secret:
        headers["Authorization"] = f"Bearer {secret}"
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_LONGEST)
    try:
        connection.request("POST", place.path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    except OSError as error:
        raise WebserviceException(
            f"Nobody answers at {url} ({error}). service.update_deployment_state(); service.state says how it fares."
        )
    finally:
        connection.close()


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _said(text: str) -> str:
    """The message of an error, if it is one of ours."""
    parsed = _parsed(text)
    return str(parsed["message"]) if isinstance(parsed, dict) and "message" in parsed else text.strip()[:2000]

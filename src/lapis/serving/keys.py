"""Who may ask a service: keys, of which only hashes are known here, and tokens that end."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable

from lapis.domain import service_tokens
from lapis.serving.description import Auth

_LONGEST = 4096  # bytes of a key or a token


class KeyCheck:
    def __init__(self, auth: Auth, now: Callable[[], float] = time.time) -> None:
        self._keys = [bytes.fromhex(key) for key in auth.keys]
        self._secret = _secret(auth.token_secret_file)
        self._now = now
        self.open = auth.open

    def refusal(self, authorization: bytes | None) -> str | None:
        """Why whoever sent this header may not ask; None if they may."""
        if self.open:
            return None
        if authorization is None:
            return "This service needs a key: send the header 'Authorization: Bearer <key>'."
        scheme, _, given = authorization.strip().partition(b" ")
        given = given.strip()
        if scheme.lower() != b"bearer" or not given or len(given) > _LONGEST:
            return "The Authorization header has to be 'Bearer <key or token>'."
        hashed = hashlib.sha256(given).digest()
        known = [hmac.compare_digest(hashed, key) for key in self._keys]  # all of them: the time says nothing
        if any(known):
            return None
        if self._secret is None:
            return "This is not a key of this service. It may have been regenerated: ask service.get_keys()."
        return self._token_refusal(given)

    def _token_refusal(self, token: bytes) -> str | None:
        assert self._secret is not None
        expires = service_tokens.expiry(self._secret, token)
        if expires is None:
            return "This is not a token of this service. Ask service.get_token() for one."
        if expires < self._now():
            return "The token has expired. Ask service.get_token() for another."
        return None


def _secret(path: str | None) -> bytes | None:
    if path is None:
        return None
    with open(path, "rb") as file:
        return file.read().strip()

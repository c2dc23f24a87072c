"""Tokens that open one service until they end: `expires.nonce.signature`. The server makes, the front checks them."""

from __future__ import annotations

import hashlib
import hmac

SECONDS = 12 * 3600.0  # that a token is good for
REFRESH_BEFORE = 3600.0  # seconds before its end


def make(secret: bytes, expires: int, nonce: str) -> str:
    """A token that is good until `expires`, in seconds since 1970."""
    claim = f"{expires}.{nonce}"
    return f"{claim}.{_signature(secret, claim.encode())}"


def expiry(secret: bytes, token: bytes) -> int | None:
    """Until when a token is good; None if it was not made with this secret."""
    parts = token.split(b".")
    if len(parts) != 3 or not parts[0].isdigit():
        return None
    signed = _signature(secret, parts[0] + b"." + parts[1])
    return int(parts[0]) if hmac.compare_digest(signed.encode(), parts[2]) else None


def _signature(secret: bytes, claim: bytes) -> str:
    return hmac.new(secret, claim, hashlib.sha256).hexdigest()

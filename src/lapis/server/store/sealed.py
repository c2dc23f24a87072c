"""Keeps secrets unreadable in the database: sealed with a key that lies in a file of its own."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from lapis.errors import UserErrorException

_PREFIX = "lapis-sealed:"  # as domain/secrets.py finds it
_KEY_LENGTH = 44


class Sealer:
    def __init__(self, home: str) -> None:
        self._path = os.path.join(home, "secrets.key")

    def seal(self, secrets: Mapping[str, str]) -> str:
        try:
            sealed: bytes = self._fernet(make=True).encrypt(json.dumps(dict(secrets)).encode())
        except ValueError:
            raise self._no_key() from None
        return sealed.decode()

    def open(self, sealed: str, what: str) -> dict[str, str]:
        from cryptography.fernet import InvalidToken

        try:
            opened: dict[str, str] = json.loads(self._fernet(make=False).decrypt(sealed.encode()))
        except (InvalidToken, FileNotFoundError, ValueError):
            raise UserErrorException(
                f"The credentials of {what} cannot be opened: {self._path} is not the key they were stored with. Put "
                "the old file back, or register them again with overwrite=True."
            ) from None
        return opened

    def seal_text(self, text: str, workspace_id: str) -> str:
        """What stands for a secret where it was: only this server can open it, and only for that workspace.

        The same text is sealed the same way again, so that definitions can be compared without being opened.
        """
        try:
            siv = self._siv(make=True)
        except ValueError:
            raise self._no_key() from None
        sealed = siv.encrypt(text.encode("utf-8", "surrogatepass"), [workspace_id.encode()])
        return _PREFIX + base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def open_text(self, sealed: str, workspace_id: str) -> str:
        from cryptography.exceptions import InvalidTag

        written = sealed[len(_PREFIX) :]
        try:
            opened: bytes = self._siv(make=False).decrypt(
                base64.urlsafe_b64decode(written + "=" * (-len(written) % 4)), [workspace_id.encode()]
            )
        except (InvalidTag, FileNotFoundError, ValueError):
            raise UserErrorException(
                f"A secret ({sealed[:24]}...) cannot be opened: it was sealed for another workspace, or by another "
                "server. Give the secret itself again in its place."
            ) from None
        return opened.decode("utf-8", "surrogatepass")

    def _no_key(self) -> UserErrorException:
        return UserErrorException(
            f"{self._path} holds no key, so credentials cannot be stored. Put the right file back; or remove it, and "
            "register every datastore that has credentials again."
        )

    def _siv(self, make: bool) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        return AESSIV(hashlib.sha512(b"lapis texts:" + self._key(make)).digest())

    def _fernet(self, make: bool) -> Any:
        from cryptography.fernet import Fernet  # late: few servers ever need it

        return Fernet(self._key(make))

    def _key(self, make: bool) -> bytes:
        if make:
            self._make()
        with open(self._path, "rb") as file:
            key = file.read().strip()
        if len(key) != _KEY_LENGTH:
            raise ValueError("no key")
        return key

    def _make(self) -> None:
        """A key on first use, readable by its owner alone; whole or not there, as without it all is lost."""
        from cryptography.fernet import Fernet

        if os.path.exists(self._path):
            return
        fresh = f"{self._path}.{os.getpid()}.{os.urandom(4).hex()}"
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(Fernet.generate_key())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(fresh, self._path)
        except FileExistsError:
            pass  # another thread was first, and its key counts
        finally:
            os.remove(fresh)

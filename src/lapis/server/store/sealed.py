"""Keeps credentials unreadable in the database: sealed with a key that lies in a file of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from lapis.errors import UserErrorException


class Sealer:
    def __init__(self, home: str) -> None:
        self._path = os.path.join(home, "secrets.key")

    def seal(self, secrets: Mapping[str, str]) -> str:
        try:
            sealed: bytes = self._fernet(make=True).encrypt(json.dumps(dict(secrets)).encode())
        except ValueError:
            raise UserErrorException(
                f"{self._path} holds no key, so credentials cannot be stored. Put the right file back; or remove "
                "it, and register every datastore that has credentials again."
            ) from None
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

    def _fernet(self, make: bool) -> Any:
        from cryptography.fernet import Fernet  # late: few servers ever need it

        if make:
            self._make()
        with open(self._path) as file:
            return Fernet(file.read().strip())

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

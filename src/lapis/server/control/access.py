"""Who may do what: the user's token opens everything, a run's token its own run and what lies below it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
from dataclasses import dataclass

from lapis.errors import AuthenticationException, Forbidden, TokenEnded, UserErrorException

LINK_SECONDS = 15 * 60


@dataclass(frozen=True)
class Actor:
    """Whoever asks for something.

    `user`: everything. `viewer`: reading. `agent`, `run`: one run, and what lies below it, in one workspace.
    `server`: the server itself, which has no token and needs none. What each call needs stands in control/guard.py.
    """

    kind: str
    workspace_id: str | None = None
    run_id: str | None = None
    ended: bool = False  # the run: what it has said may be said again, and nothing else

    def may_come_in(self) -> None:
        if self.ended:
            raise TokenEnded(f"Run {self.run_id} has ended, and its token with it.")

    def may_read_everything(self) -> None:
        if self.workspace_id is not None:
            raise Forbidden(
                f"The token of run {self.run_id} reads no blob by its hash alone: a file is read as one of a snapshot, "
                "a model or a run of its workspace."
            )

    def may_read(self, workspace_id: str) -> None:
        self.may_come_in()
        if self.workspace_id not in (None, workspace_id):
            raise Forbidden(f"The token of run {self.run_id} opens the workspace of that run only.")

    def may_change_workspace(self) -> None:
        self.may_come_in()
        if self.kind != "user":
            raise Forbidden(f"A token of kind '{self.kind}' cannot change a workspace. Use the user's token.")

    def may_upload(self) -> None:
        self.may_come_in()
        if self.kind == "viewer":
            raise Forbidden("This key is for looking only.")

    def may_write(self, workspace_id: str, run_id: str, ancestors: tuple[str, ...] = ()) -> None:
        if self.kind == "user":
            return
        if self.kind == "viewer":
            raise Forbidden("This key is for looking only.")
        self.may_read(workspace_id)
        if self.run_id != run_id and self.run_id not in ancestors:
            raise Forbidden(f"The token of run {self.run_id} cannot change run {run_id}.")

    def may_repeat(self, workspace_id: str, run_id: str) -> bool:
        """Whether it is the agent of a run that has ended, which says again what it had said of that run."""
        return self.ended and (self.workspace_id, self.run_id) == (workspace_id, run_id)


USER, VIEWER, SERVER = Actor("user"), Actor("viewer"), Actor("server")


class Access:
    """Keeps one secret; every token but the user's is derived from it, so none needs to be stored."""

    def __init__(self, home: str) -> None:
        self._token = _kept_secret(os.path.join(home, "token"))
        self._key = hashlib.sha256(b"lapis tokens:" + self._token.encode()).digest()
        self._viewer = self._sign("viewer")

    @property
    def user_token(self) -> str:
        return self._token

    @property
    def viewer_key(self) -> str:
        """Opens the pages for reading; goes into links that a person clicks, after the #."""
        return self._viewer

    def run_token(self, kind: str, workspace_id: str, run_id: str) -> str:
        """It opens what it opens for as long as the run goes on: see run_tokens.py."""
        claims = json.dumps([kind, workspace_id, run_id], separators=(",", ":"))
        body = base64.urlsafe_b64encode(claims.encode()).decode().rstrip("=")
        return f"lapis.{body}.{self._sign(body)}"

    def actor(self, token: str | None) -> Actor:
        if not token:
            raise AuthenticationException(
                "This server needs a token: Authorization: Bearer <token>. It is in the file `token` of LAPIS_HOME."
            )
        if _same(token, self._token):
            return USER
        if _same(token, self._viewer):
            return VIEWER
        parts = token.split(".")
        if len(parts) == 3 and parts[0] == "lapis" and _same(parts[2], self._sign(parts[1])):
            body = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
            kind, workspace_id, run_id, *_ = json.loads(body)  # earlier releases wrote a date behind them
            return Actor(kind, workspace_id, run_id)
        raise AuthenticationException(
            "The token is not this server's. Was LAPIS_TOKEN or config.json made for another server?"
        )

    def mark_key(self) -> bytes:
        """What the marks of requests are made with."""
        return self._sign("marks of requests").encode()

    def service_secret(self, service_id: str) -> str:
        """What the tokens that open one service are signed with."""
        return self._sign(f"service:{service_id}")

    def sign_link(self, path: str, now: float) -> str:
        """A link to read one file for a few minutes without any other credential."""
        expires = int(now) + LINK_SECONDS
        return f"{path}?expires={expires}&signature={self._sign(f'{path}:{expires}')}"

    def check_link(self, path: str, expires: str, signature: str, now: float) -> None:
        if not _same(self._sign(f"{path}:{expires}"), signature) or not expires.isascii() or not expires.isdigit():
            raise AuthenticationException("The link's signature is wrong.")
        if now > int(expires):
            raise AuthenticationException("The link has expired. get_details() gives a fresh one.")

    def _sign(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


def _same(given: str, ours: str) -> bool:
    """Whatever characters a stranger sends, and in a time that tells nothing."""
    return hmac.compare_digest(given.encode(), ours.encode())


def _kept_secret(path: str) -> str:
    """The secret in the file, made on first use, readable by its owner alone."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        with open(path) as file:
            kept = file.read().strip()
        if len(kept) < 32:
            raise UserErrorException(
                f"The token in {path} has fewer than 32 characters. Remove the file to get a new one."
            ) from None
        return kept
    with os.fdopen(descriptor, "w") as file:
        fresh = secrets.token_urlsafe(32)
        file.write(fresh)
        file.flush()
        os.fsync(file.fileno())
    return fresh

"""Keeps what changing requests were answered, so that one that comes again after a lost reply gets the same answer."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import delete, func, insert, select

from lapis.server.store.database import Database
from lapis.server.store.tables import requests

KEPT_SECONDS = 24 * 3600.0  # at least so long, and
KEPT = 10_000  # at least so many: who asks again does so within minutes


class Answered(NamedTuple):
    mark: str  # tells whether it is the same request
    status: int
    answer: bytes


class RequestStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, actor: str, identity: str) -> Answered | None:
        with self._database.read() as connection:
            query = select(requests.c.mark, requests.c.status, requests.c.answer)
            row = connection.execute(query.where(requests.c.actor == actor, requests.c.identity == identity)).first()
        return None if row is None else Answered(row.mark, row.status, row.answer.encode())

    def add(self, actor: str, identity: str, answered: Answered, at: float) -> None:
        with self._database.write() as connection:
            mark, status, answer = answered
            row = {"actor": actor, "identity": identity, "mark": mark, "status": status, "answer": answer.decode()}
            connection.execute(insert(requests).values(**row, at=at))
            newest = select(func.max(requests.c.pk)).scalar_subquery()
            old = (requests.c.pk <= newest - KEPT) & (requests.c.at < at - KEPT_SECONDS)
            connection.execute(delete(requests).where(old))

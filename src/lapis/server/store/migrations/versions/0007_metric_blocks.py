"""Points lie in blocks, many of one series in a row, in place of a row for each.

It may be millions of them, so they are copied some at a time, each time committed. One that was killed meanwhile goes
on where it was: what a block holds is not copied again, and what it was copied from goes only at the very end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from alembic import op

from lapis.domain.columns import pack

revision = "0007"
down_revision = "0006"

KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_POINTS_IN_A_BLOCK = 4096
_POINTS_IN_A_COMMIT = 200_000


def upgrade() -> None:
    connection = op.get_bind()
    if not sa.inspect(connection).has_table("metric_blocks"):
        op.create_table(
            "metric_blocks",
            sa.Column("series_pk", KEY, sa.ForeignKey("metric_series.pk"), primary_key=True),
            sa.Column("start", sa.Integer, primary_key=True),
            sa.Column("points", sa.Integer, nullable=False),
            sa.Column("kind", sa.String(16)),
            sa.Column("peaks", sa.Text),
            sa.Column("value", sa.LargeBinary, nullable=False),
            sa.Column("at", sa.LargeBinary, nullable=False),
            sa.Column("step", sa.LargeBinary, nullable=False),
        )
    driver: Any = connection.connection
    since = 0
    for series, start, rows in _to_copy(driver):
        driver.cursor().executemany(
            "INSERT INTO metric_blocks (series_pk, start, points, kind, value, at, step) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(series, *block) for block in _blocks(start, rows)],
        )
        since += len(rows)
        if since >= _POINTS_IN_A_COMMIT:
            driver.cursor().execute("COMMIT")
            driver.cursor().execute("BEGIN IMMEDIATE")
            since = 0
    op.drop_table("metric_points")


def _to_copy(driver: Any) -> Iterator[tuple[int, int, list[Any]]]:
    """Of each series, and of at most a block of it at a time: its key, the first point's number, and the points."""
    series = driver.cursor().execute("SELECT pk, points FROM metric_series ORDER BY pk").fetchall()
    copied = dict(driver.cursor().execute("SELECT series_pk, sum(points) FROM metric_blocks GROUP BY 1").fetchall())
    for pk, count in series:
        start = copied.get(pk, 0)
        while start < count:
            rows = driver.cursor().execute(
                "SELECT kind, number, json, at, step FROM metric_points "
                f"WHERE series_pk = ? AND seq >= ? ORDER BY seq LIMIT {_POINTS_IN_A_BLOCK}",
                (pk, start),
            ).fetchall()  # fmt: skip
            if not rows:
                break
            yield pk, start, rows
            start += len(rows)


def _blocks(start: int, rows: list[Any]) -> Iterator[tuple[Any, ...]]:
    for kind, same in groupby(rows, key=lambda row: row[0]):
        group = list(same)
        values = [number if text is None else json.loads(text) for _, number, text, _, _ in group]
        times, steps = [float(row[3]) for row in group], [row[4] for row in group]
        yield start, len(group), kind, pack(values), pack(times), pack(steps)
        start += len(group)

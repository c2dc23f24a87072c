"""The tables, as migrations leave them. A change here needs a migration in `migrations/versions`."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()
_KEY = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up only in a column of type INTEGER

workspaces = Table(
    "workspaces",
    metadata,
    Column("pk", _KEY, primary_key=True),
    Column("id", String(64), nullable=False, unique=True),
    Column("subscription_id", String(255), nullable=False),
    Column("resource_group", String(255), nullable=False),
    Column("name", String(255), nullable=False),
    Column("body", Text, nullable=False),
    UniqueConstraint("subscription_id", "resource_group", "name"),
)

experiments = Table(
    "experiments",
    metadata,
    Column("pk", _KEY, primary_key=True),
    Column("id", String(64), nullable=False, unique=True),
    Column("workspace_id", String(64), nullable=False),
    Column("name", String(255), nullable=False),
    Column("archived_at", Float),
    Column("runs", Integer, nullable=False),  # how many were ever made: the next run's number
    Column("body", Text, nullable=False),
    UniqueConstraint("workspace_id", "name"),
)

runs = Table(
    "runs",
    metadata,
    Column("pk", _KEY, primary_key=True),
    Column("workspace_id", String(64), nullable=False),
    Column("id", String(256), nullable=False),
    Column("experiment_pk", _KEY, ForeignKey("experiments.pk"), nullable=False),
    Column("parent_id", String(256)),
    Column("root_id", String(256)),
    Column("type", String(64)),
    Column("target", String(255)),
    Column("state", String(16), nullable=False),
    Column("ended", Integer, nullable=False, server_default="0"),
    Column("minded", String(8)),  # why the reconciler looks after it; NULL: it need not
    Column("created_at", Float, nullable=False),
    Column("archived_at", Float),
    Column("last_heard", Float),
    Column("revision", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("standing", Integer, nullable=False, server_default="0"),  # domain/standing.py
    UniqueConstraint("workspace_id", "id"),
    # in SQLite every index ends in the row's number, so that those of one standing come in order
    Index("runs_of_workspace", "workspace_id", "standing"),
    Index("runs_of_experiment", "experiment_pk", "standing"),
)

# Partial, so that a run that has no parent, or has ended, costs them nothing.
Index("runs_by_parent", runs.c.parent_id, sqlite_where=runs.c.parent_id.is_not(None))
Index("runs_by_root", runs.c.root_id, sqlite_where=runs.c.root_id.is_not(None))
Index("runs_by_minded", runs.c.minded, sqlite_where=runs.c.minded.is_not(None))
Index("runs_not_ended", runs.c.ended, sqlite_where=runs.c.ended == 0)

# What else runs are looked for by, each a number (run_marks.py). No foreign key: it would look through all of them.
run_marks = Table(
    "run_marks",
    metadata,
    Column("mark", BigInteger, primary_key=True, autoincrement=False),
    Column("run_pk", _KEY, primary_key=True),
    sqlite_with_rowid=False,
)

run_files = Table(
    "run_files",
    metadata,
    Column("run_pk", _KEY, ForeignKey("runs.pk"), primary_key=True),
    Column("name", String(1024), primary_key=True),
    Column("hash", String(64)),  # NULL: it is still growing, under live/
    Column("size", BigInteger, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("alias_of", String(1024)),
)

# One row for each metric of each run, with what lists and charts need: lists never touch points.
metric_series = Table(
    "metric_series",
    metadata,
    Column("pk", _KEY, primary_key=True),
    Column("run_pk", _KEY, ForeignKey("runs.pk"), nullable=False),
    Column("experiment_pk", _KEY, nullable=False),
    Column("name", String(255), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("points", Integer, nullable=False),
    Column("last", Float),
    Column("least", Float),
    Column("greatest", Float),
    # these two are set some time after the run has ended: only then its values are ranked among others
    Column("workspace_pk", _KEY),
    Column("standing", Integer),
    UniqueConstraint("run_pk", "name"),
)
# The best of a metric, in order. While a run goes on its values change, so its series cost the ranking nothing.
for _home in ("workspace", "experiment"):
    for _value in ("least", "greatest"):
        Index(
            f"{_value}_of_{_home}",
            *(metric_series.c[name] for name in (f"{_home}_pk", "name", "standing", _value, "run_pk")),
            sqlite_where=metric_series.c.standing.is_not(None),
        )
Index("series_not_ranked", metric_series.c.name, sqlite_where=metric_series.c.standing.is_(None))

# The points, many of one series in a row, as columns that `lapis.domain.columns` packs: docs/decisions/0028. What most
# readers leave alone comes last, so that it is not read.
metric_blocks = Table(
    "metric_blocks",
    metadata,
    Column("series_pk", _KEY, ForeignKey("metric_series.pk"), primary_key=True),
    Column("start", Integer, primary_key=True),  # how many points of the series come before
    Column("points", Integer, nullable=False),
    Column("kind", String(16)),  # NULL: the series' kind
    Column("peaks", Text),  # of many numbers the lowest and the highest, as JSON: (time, step, number)
    Column("value", LargeBinary, nullable=False),
    Column("at", LargeBinary, nullable=False),
    Column("step", LargeBinary, nullable=False),
)

# How far each journal has been taken up, in the same transaction as its points: nothing twice, nothing lost.
journals = Table(
    "journals",
    metadata,
    Column("run_pk", _KEY, ForeignKey("runs.pk"), primary_key=True),
    Column("stream", String(128), primary_key=True),
    Column("position", BigInteger, nullable=False),
)

# Whatever is registered under a name: datastores, services (one version), datasets, models, environments.
assets = Table(
    "assets",
    metadata,
    Column("pk", _KEY, primary_key=True),
    Column("id", String(64), nullable=False, unique=True),
    Column("workspace_id", String(64), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("name", String(255), nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("body", Text, nullable=False),
    UniqueConstraint("workspace_id", "kind", "name", "version"),
)

# Which runs read or wrote which asset: lineage, both ways.
run_assets = Table(
    "run_assets",
    metadata,
    Column("run_pk", _KEY, ForeignKey("runs.pk"), primary_key=True),
    Column("asset_id", String(64), primary_key=True),
    Column("role", String(16), primary_key=True),  # input or output
    Column("name", String(255), primary_key=True),  # as the run calls it
    Index("run_assets_by_asset", "asset_id"),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("manifest", String(64), nullable=False),  # the blob that lists its files
    Column("created_at", Float, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("files", Integer, nullable=False),
)

# What changing requests were answered, for those that come again after a lost reply.
requests = Table(
    "requests",
    metadata,
    Column("pk", _KEY, primary_key=True),
    Column("actor", String(400), nullable=False),
    Column("identity", String(64), nullable=False),  # made by the client
    Column("mark", String(64), nullable=False),  # of what was asked
    Column("at", Float, nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer", Text, nullable=False),
    UniqueConstraint("actor", "identity"),
)

# Which workspace has what of the things that are stored once, under their hash, for all of them.
holdings = Table(
    "holdings",
    metadata,
    Column("workspace_id", String(64), primary_key=True),
    Column("kind", String(8), primary_key=True),
    Column("digest", String(64), primary_key=True),
    sqlite_with_rowid=False,
)

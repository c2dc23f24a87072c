"""Where a database answers."""

from __future__ import annotations

import pytest

from lapis.domain.database import host_of


@pytest.mark.parametrize(
    ("server_name", "endpoint", "host"),
    [
        ("sales", None, "sales.postgres.database.azure.com"),
        ("sales", "postgres.database.usgovcloudapi.net", "sales.postgres.database.usgovcloudapi.net"),
        ("db.lab.lan", None, "db.lab.lan"),
        ("localhost", None, "localhost"),
        ("::1", None, "::1"),
        ("sales", "10.0.0.7", "10.0.0.7"),
        ("sales", "dbhost", "dbhost"),
        ("sales.postgres.database.azure.com", "postgres.database.azure.com", "sales.postgres.database.azure.com"),
    ],
)
def test_where_a_database_answers(server_name: str, endpoint: str | None, host: str) -> None:
    options = {"server_name": server_name, **({"endpoint": endpoint} if endpoint else {})}
    assert host_of({"type": "AzurePostgreSql", "options": options}) == host

"""Tables of a query to a real MariaDB."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from azureml.core import Dataset, Datastore
from azureml.data.azure_my_sql_datastore import AzureMySqlDatastore
from azureml.data.dataset_error_handling import DatasetValidationError
from lapis.sdk.workspace.workspace import Workspace
from tests.tables import databases
from tests.tables.test_sql_tables import rows

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("databases")]

from_query = Dataset.Tabular.from_sql_query


@pytest.fixture(scope="module")
def mariadb() -> Iterator[int]:
    with databases.mariadb() as port:
        yield port


@pytest.fixture
def store(workspace: Workspace, mariadb: int) -> AzureMySqlDatastore:
    return register(workspace, mariadb)


def register(workspace: Workspace, port: int, **changes: Any) -> AzureMySqlDatastore:
    given = {
        "server_name": "127.0.0.1",
        "database_name": databases.DATABASE,
        "user_id": databases.USER,
        "user_password": databases.PASSWORD,
        "port_number": port,
        **changes,
    }
    return Datastore.register_azure_my_sql(workspace, "shop", **given)


@pytest.fixture(scope="module", autouse=True)
def towns(mariadb: int) -> None:
    import pymysql

    with pymysql.connect(
        host="127.0.0.1", port=mariadb, user=databases.USER, password=databases.PASSWORD, database="sales",
        autocommit=True,
    ) as connection, connection.cursor() as cursor:  # fmt: skip
        cursor.execute("""CREATE TABLE towns (i int, b bool, f double, n decimal(20, 5), s varchar(20), raw blob,
            j json, d date, dt datetime(6), ts timestamp, t time, e enum('a', 'b'), long_text text)""")
        cursor.execute("""INSERT INTO towns VALUES (1, true, 1.5, 123456789.12345, 'Zürich', x'00ff', '{"a": 1}',
            '2024-02-29', '2024-02-29 12:00:00.123456', from_unixtime(86400), '12:30', 'b', 'long')""")
        cursor.execute("INSERT INTO towns (ts) VALUES (NULL)")


def test_every_type_becomes_one_of_pandas(store: AzureMySqlDatastore) -> None:
    table = from_query((store, "SELECT * FROM towns WHERE i IS NOT NULL;"))
    assert rows(table) == [
        (1, 1, 1.5, 123456789.12345, "Zürich", b"\0\xff", '{"a": 1}', datetime(2024, 2, 29),
         datetime(2024, 2, 29, 12, 0, 0, 123456), datetime(1970, 1, 2), "12:30:00", "b", "long"),
    ]  # fmt: skip
    nothing = from_query((store, "SELECT * FROM towns WHERE i IS NULL")).to_pandas_dataframe()
    assert nothing.drop(columns="ts").isna().all(axis=None)
    odd = from_query((store, "SELECT CAST('0000-00-00' AS date) AS d, 1 AS one"))
    assert rows(odd) == [(None, 1)]


def test_no_more_is_read_than_is_taken(store: AzureMySqlDatastore) -> None:
    began = time.monotonic()
    table = from_query((store, "SELECT seq FROM seq_1_to_1000000000"))
    assert rows(table[table["seq"] > 7].take(2)) == [(8,), (9,)]
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("changes", "query", "message"),
    [
        ({"user_password": "wrong"}, "SELECT 1", "cannot be opened: Access denied for user 'app'"),
        ({"port_number": 1}, "SELECT 1", "cannot be reached: nobody answers there"),
        ({}, "SELEC 1", "cannot run the query: You have an error in your SQL syntax"),
        ({}, "SELECT * FROM tons", "Table 'sales.tons' doesn't exist. Tables there: towns."),
        ({}, "SET @a = 1", "A query that gives rows is needed"),
        ({}, "DELETE FROM towns", "cannot run the query: Cannot execute statement in a READ ONLY transaction"),
    ],
)
def test_what_is_wrong_is_found_when_the_dataset_is_made(
    changes: dict[str, Any], query: str, message: str, workspace: Workspace, mariadb: int
) -> None:
    store = register(workspace, mariadb, **changes)
    with pytest.raises(DatasetValidationError, match=message):
        from_query((store, query))


def test_a_query_that_takes_too_long_is_stopped(store: AzureMySqlDatastore) -> None:
    with pytest.raises(DatasetValidationError, match="gave no more rows within query_timeout, 1 s"):
        from_query((store, "SELECT sleep(20)"), query_timeout=1)

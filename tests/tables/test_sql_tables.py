"""Tables of a query: on a real PostgreSQL, lazily and in bounded memory, with errors that say what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import lapis
from azureml.core import Dataset, Datastore, Experiment, ScriptRunConfig
from azureml.data import DataType, TabularDataset
from azureml.data.azure_postgre_sql_datastore import AzurePostgreSqlDatastore
from azureml.data.azure_sql_database_datastore import AzureSqlDatabaseDatastore
from azureml.data.datapath import DataPath
from azureml.data.dataset_error_handling import DatasetExecutionError, DatasetValidationError
from azureml.exceptions import UserErrorException
from lapis.errors import Conflict, NotThereYet
from lapis.sdk.workspace.workspace import Workspace
from lapis.testing import Home, until
from tests.memory import PEAK
from tests.tables import databases

pytestmark = pytest.mark.xdist_group("databases")

from_query = Dataset.Tabular.from_sql_query

EVERY_TYPE = """
    SELECT * FROM (VALUES
        (1::smallint, 2::int, 9223372036854775807::bigint, 1.5::real, 2.5::double precision,
         12345678901234567890.5::numeric, true, 'Zürich'::text, ''::varchar(9), 'ab'::char(4), '\\x00ff'::bytea,
         '{"a": [1, null]}'::json, '{"b": 1}'::jsonb, DATE '2024-02-29', TIMESTAMP '2024-02-29 12:00:00.123456',
         TIMESTAMPTZ '2024-02-29 12:00:00+02', TIME '12:30', INTERVAL '1 day 2 hours',
         '6f1e0b1e-0000-4000-8000-000000000000'::uuid, '{1,NULL,3}'::int[], '{a,"b c",NULL}'::text[],
         '{1.5,2}'::numeric[], '{2024-01-01}'::date[], '10.0.0.1'::inet)
    ) AS v(small, middle, big, single, double, exact, truth, text, empty, padded, raw, json, jsonb, day, at, zoned,
           hour, span, id, numbers, words, exacts, days, address)
"""


@pytest.fixture(scope="session")
def server() -> Iterator[int]:
    with databases.postgres() as port:
        with databases.as_superuser(port) as connection:
            connection.execute("CREATE TABLE towns (id int, town text, amount numeric(9, 2), at timestamptz)")
            connection.execute("INSERT INTO towns VALUES (1, 'Oslo', 120.50, '2024-01-05 01:00+01')")
            connection.execute("INSERT INTO towns VALUES (2, 'Rome', 310, '2024-02-10'), (3, NULL, NULL, NULL)")
        yield port


@pytest.fixture
def store(workspace: Workspace, server: int) -> AzurePostgreSqlDatastore:
    return register(workspace, server)


def register(workspace: Workspace, port: int, **changes: Any) -> AzurePostgreSqlDatastore:
    given = {
        "datastore_name": "shop",
        "server_name": "127.0.0.1",
        "database_name": databases.DATABASE,
        "user_id": databases.USER,
        "user_password": databases.PASSWORD,
        "port_number": port,
        **changes,
    }
    return Datastore.register_azure_postgre_sql(workspace, **given)


def rows(dataset: TabularDataset) -> list[tuple[Any, ...]]:
    frame = dataset.to_pandas_dataframe()
    return [
        tuple(None if v is None or v is pd.NaT or v != v else v for v in row) for row in frame.itertuples(index=False)
    ]


# -- rows


def test_a_query_gives_its_rows(store: AzurePostgreSqlDatastore) -> None:
    table = from_query((store, "SELECT * FROM towns ORDER BY id;"))
    frame = table.to_pandas_dataframe()
    assert list(frame.columns) == ["id", "town", "amount", "at"]
    assert [str(frame[name].dtype) for name in ("id", "amount", "at")] == ["int64", "float64", "datetime64[ns]"]
    assert rows(table) == [
        (1, "Oslo", 120.5, datetime(2024, 1, 5)),  # times are UTC
        (2, "Rome", 310.0, datetime(2024, 2, 10)),
        (3, None, None, None),
    ]
    assert rows(from_query(DataPath(store, "SELECT 1 AS one"))) == [(1,)]
    assert "shop: SELECT 1 AS one" in repr(from_query(DataPath(store, "SELECT 1 AS one")))


def test_every_type_becomes_one_of_pandas(store: AzurePostgreSqlDatastore) -> None:
    row = from_query((store, EVERY_TYPE)).to_pandas_dataframe().to_dict("records")[0]
    lists = {name: list(row.pop(name)) for name in ("numbers", "words", "exacts", "days")}
    assert row == {
        "small": 1, "middle": 2, "big": 2**63 - 1, "single": 1.5, "double": 2.5, "exact": 12345678901234567890.5,
        "truth": True, "text": "Zürich", "empty": "", "padded": "ab  ", "raw": b"\0\xff",
        "json": '{"a": [1, null]}', "jsonb": '{"b": 1}', "day": datetime(2024, 2, 29),
        "at": datetime(2024, 2, 29, 12, 0, 0, 123456), "zoned": datetime(2024, 2, 29, 10), "hour": "12:30:00",
        "span": "1 day 02:00:00", "id": "6f1e0b1e-0000-4000-8000-000000000000", "address": "10.0.0.1",
    }  # fmt: skip
    assert lists["words"] == ["a", "b c", None] and lists["exacts"] == [1.5, 2.0] and lists["days"] == ["2024-01-01"]
    assert lists["numbers"][0] == 1 and pd.isna(lists["numbers"][1])


def test_types_of_the_users_own_are_text(store: AzurePostgreSqlDatastore, server: int) -> None:
    with databases.as_superuser(server) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN age AS int CHECK (VALUE > 0)")
    assert rows(from_query((store, "SELECT 'glad'::mood, 7::age, ROW(1, 'x') AS pair"))) == [("glad", 7, "(1,x)")]


def test_missing_values_stay_missing_in_every_type(store: AzurePostgreSqlDatastore) -> None:
    nothing = EVERY_TYPE.replace("SELECT *", "SELECT v.*") + " RIGHT JOIN (SELECT 1 AS one) AS o ON false"
    frame = from_query((store, nothing)).to_pandas_dataframe()
    assert len(frame) == 1 and frame.isna().all(axis=None)


def test_a_type_that_is_asked_for_is_made_of_the_exact_value(store: AzurePostgreSqlDatastore) -> None:
    query = "SELECT 0.1234567890123456789 AS n, '7' AS t, TIMESTAMPTZ '2024-01-01 00:00Z' AS at, 3.0::numeric AS whole"
    types = {
        "n": DataType.to_string(),
        "t": DataType.to_long(),
        "at": DataType.to_string(),
        "whole": DataType.to_long(),
    }
    assert rows(from_query((store, query), set_column_types=types)) == [
        ("0.1234567890123456789", 7, "2024-01-01 00:00:00+00", 3)
    ]
    with pytest.raises(DatasetValidationError, match="set_column_types names column 'x', which is not there"):
        from_query((store, query), set_column_types={"x": DataType.to_long()})


def test_times_that_no_clock_shows_are_missing_or_an_error(store: AzurePostgreSqlDatastore) -> None:
    table = from_query((store, "SELECT 'infinity'::timestamp AS at UNION ALL SELECT '2024-01-01'"))
    assert rows(table) == [(None,), (datetime(2024, 1, 1),)]
    with pytest.raises(DatasetExecutionError, match="Column 'at' holds 'infinity', which is no datetime"):
        table.to_pandas_dataframe(on_error="fail")


def test_columns_of_one_name_get_numbers(store: AzurePostgreSqlDatastore) -> None:
    table = from_query((store, "SELECT 1 AS a, 2 AS a, 3 AS b"))
    assert list(table.to_pandas_dataframe().columns) == ["a", "a_1", "b"]
    assert rows(table.keep_columns(["b", "a_1"])) == [(3, 2)]


def test_a_query_without_rows_has_columns(store: AzurePostgreSqlDatastore) -> None:
    frame = from_query((store, "SELECT * FROM towns WHERE false")).to_pandas_dataframe()
    assert frame.empty and list(frame.columns) == ["id", "town", "amount", "at"]


def test_arrays_within_arrays_say_what_to_do(store: AzurePostgreSqlDatastore) -> None:
    with pytest.raises(DatasetExecutionError, match="Column 'grid' of the query to datastore 'shop' .* Cast it in the"):
        from_query((store, "SELECT '{{1,2},{3,4}}'::int[] AS grid")).to_pandas_dataframe()


# -- steps, and out again


def test_steps_work_as_on_files(store: AzurePostgreSqlDatastore) -> None:
    query = (
        "SELECT i, i % 3 AS rest, TIMESTAMP '2024-01-01' + i * INTERVAL '1 day' AS day FROM generate_series(1, 50000) i"
    )
    table = from_query((store, query))
    chosen = table[(table["rest"] == 1) & (table["i"] > 40_000)].keep_columns(["i"])
    assert [row[0] for row in rows(chosen)] == [i for i in range(40_001, 50_001) if i % 3 == 1]
    assert rows(table.skip(30_000).take(2).drop_columns(["rest", "day"])) == [(30_001,), (30_002,)]
    first, second = table.random_split(0.5, seed=3)
    both = {row[0] for row in rows(first.keep_columns("i"))} ^ {row[0] for row in rows(second.keep_columns("i"))}
    assert both == set(range(1, 50_001))
    early = table.with_timestamp_columns("day").time_before(datetime(2024, 1, 3))
    assert [row[0] for row in rows(early.keep_columns("i"))] == [1, 2]
    assert table.partition_keys == [] and table.get_partition_key_values() == []


def test_rows_are_written_anew_each_time(store: AzurePostgreSqlDatastore) -> None:
    table = from_query((store, "SELECT id, town FROM towns ORDER BY id"))
    first, second = table.to_csv_files(), table.to_csv_files()
    assert first._files()[0].place != second._files()[0].place  # whether they changed nobody can tell
    assert Path(first._files()[0].place).read_text() == '"id","town"\n1,"Oslo"\n2,"Rome"\n3,\n'
    assert table.to_parquet_files().to_path() == ["/part-00000.parquet"]


def test_nothing_is_asked_before_rows_are(workspace: Workspace) -> None:
    nowhere = register(workspace, 1)
    table = from_query((nowhere, "SELECT 1 AS a"), validate=False)
    with pytest.raises(DatasetExecutionError, match="cannot be reached: nobody answers there"):
        table[table["a"] > 3].take(1).to_pandas_dataframe()


def test_no_more_is_read_than_is_taken(store: AzurePostgreSqlDatastore, server: int) -> None:
    began = time.monotonic()
    endless = from_query((store, "SELECT generate_series(1, 1000000000000) AS n, pg_sleep(0) AS lapis_endless"))
    assert [row[0] for row in rows(endless.keep_columns("n").take(1000))] == list(range(1, 1001))
    assert time.monotonic() - began < 10
    with databases.as_superuser(server) as connection:
        found = connection.execute(
            "SELECT 1 FROM pg_stat_activity WHERE application_name = 'lapis' AND state = 'active'"
        )
        assert found.fetchall() == []


def test_a_query_runs_once_for_its_columns_and_its_rows(store: AzurePostgreSqlDatastore) -> None:
    table = from_query((store, "SELECT 7 AS n"), validate=False)._table()
    query, started = table._files._query, []
    start = query.start
    query.start = lambda: started.append(start()) or started[-1]
    assert table.run(lambda schema, tables: (schema.names, [each.num_rows for each in tables])) == (["n"], [1])
    assert len(started) == 1


@pytest.mark.full
def test_a_result_larger_than_memory_streams(store: AzurePostgreSqlDatastore, workspace: Workspace) -> None:
    from_query(
        (
            store,
            "SELECT i, random() AS x, repeat(md5(i::text), 8) AS text FROM (SELECT generate_series(1, 2000000) i) s",
        )
    ).register(workspace, "large")
    code = (
        PEAK + "import sys\n"
        "from azureml.core import Dataset, Workspace\n"
        "ds = Dataset.get_by_name(Workspace.get(sys.argv[1]), 'large')\n"
        "ds.take(5).to_pandas_dataframe()\n"
        "before = peak()\n"
        "few = ds[ds['x'] < 0.001].to_pandas_dataframe()\n"
        "after = peak()\n"
        "print(len(few), (after - before) // 1024)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(lapis.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code, workspace.name], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    few, more = map(int, done.stdout.split())
    assert 1000 < few < 3000 and more < 150  # megabytes, of a result of more than 500


# -- registered, and in a run


def test_a_registered_query_is_run_when_it_is_read(
    workspace: Workspace, store: AzurePostgreSqlDatastore, server: int
) -> None:
    with databases.as_superuser(server) as connection:
        connection.execute("CREATE TABLE grows AS SELECT 1 AS n")
        table = from_query((store, "SELECT n FROM grows ORDER BY n"), query_timeout=timedelta(seconds=20))
        known = table[table["n"] < 3].register(workspace, "grows")
        assert rows(Dataset.get_by_name(workspace, "grows")) == [(1,)]
        connection.execute("INSERT INTO grows VALUES (2), (3)")
    assert rows(Dataset.get_by_name(workspace, "grows", version=1)) == [(1,), (2,)]
    (source,) = known._definition["sources"]
    assert (source["datastore"], source["query"], source["timeout"]) == ("shop", "SELECT n FROM grows ORDER BY n", 20)
    again = from_query((store, "SELECT n FROM grows ORDER BY n LIMIT 1")).register(
        workspace, "grows", create_new_version=True
    )
    assert again.version == 2 and rows(Dataset.get_by_name(workspace, "grows", version=1)) == [(1,), (2,)]
    other = Workspace.create("other-" + os.urandom(4).hex(), show_output=False)
    with pytest.raises(UserErrorException, match="cannot be registered in 'other-"):
        known.register(other, "grows")


def test_a_name_that_a_folder_has_taken_since_says_so(
    workspace: Workspace, store: AzurePostgreSqlDatastore, tmp_path: Path
) -> None:
    table = from_query((store, "SELECT 1"))
    Datastore.register_folder(workspace, "shop", tmp_path, overwrite=True)
    with pytest.raises(UserErrorException, match="Datastore 'shop' is no database, so no query can be put to it"):
        table.to_pandas_dataframe()


READ_IN_A_RUN = """
from azureml.core import Run
run = Run.get_context()
run.log("sum", int(run.input_datasets["towns"].to_pandas_dataframe()["id"].sum()))
"""


def test_a_run_reads_a_registered_query(
    workspace: Workspace, store: AzurePostgreSqlDatastore, script: Callable[..., str]
) -> None:
    table = from_query((store, "SELECT id FROM towns")).register(workspace, "towns")
    config = ScriptRunConfig(script(READ_IN_A_RUN), "train.py", arguments=["--in", table.as_named_input("towns")])
    run = Experiment(workspace, "tables").submit(config)
    run.wait_for_completion()
    assert run.get_metrics() == {"sum": 6}


def test_a_run_without_the_driver_says_what_to_install(
    workspace: Workspace, store: AzurePostgreSqlDatastore, script: Callable[..., str]
) -> None:
    table = from_query((store, "SELECT id FROM towns")).register(workspace, "towns")
    code = "import sys\nsys.modules['psycopg'] = None\n" + READ_IN_A_RUN
    config = ScriptRunConfig(script(code), "train.py", arguments=["--in", table.as_named_input("towns")])
    run = Experiment(workspace, "tables").submit(config)
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Failed"
    said = run.get_details()["error"]["error"]["message"]
    assert "Datastore 'shop' is a database" in said and "Install it: pip install 'psycopg[binary]'" in said


# -- what is wrong


@pytest.mark.parametrize(
    ("changes", "query", "message"),
    [
        ({"user_password": "wrong"}, "SELECT 1", "cannot be opened: password authentication failed for user .app.. "),
        ({"database_name": "nowhere"}, "SELECT 1", "cannot be opened: database .nowhere. does not exist. .* overwrite"),
        ({"port_number": 1}, "SELECT 1", "at 127.0.0.1:1. cannot be reached: nobody answers there .Connection refused"),
        ({"server_name": "no.such.host.invalid"}, "SELECT 1", "no.such.host.invalid:.* cannot be reached"),
        ({}, "SELECT * FORM towns", "cannot run the query: syntax error at or near .FORM.. The query: SELECT . FORM"),
        ({}, "SELECT * FROM tons", "cannot run the query: relation .tons. does not exist. Tables there: .*towns"),
        ({}, "SELECT twon FROM towns", "column .twon. does not exist. Perhaps you meant to reference .* .towns.town"),
        ({}, "SELECT 1/0", "cannot run the query: division by zero"),
        ({}, "SELECT 1/(i-50) FROM generate_series(1, 99) i", "cannot run the query: division by zero"),
        ({}, "DELETE FROM towns", "cannot run the query: syntax error at or near .DELETE."),
        ({}, "SELECT setval('towns_made', 3)", "cannot run the query: (relation|cannot execute)"),
        ({}, "SELECT 1; SELECT 2", "cannot run the query: cannot insert multiple commands"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found_when_the_dataset_is_made(
    changes: dict[str, Any], query: str, message: str, workspace: Workspace, server: int
) -> None:
    store = register(workspace, server, **changes)
    where = "Datastore 'shop' .database '.*' at "
    with pytest.raises(DatasetValidationError, match=f"(?s){where}.*{message}") as raised:
        from_query((store, query))
    assert databases.PASSWORD not in str(raised.value)
    later = from_query((store, query), validate=False)
    with pytest.raises(DatasetExecutionError, match=f"(?s){where}.*{message}"):
        later.to_pandas_dataframe()


def test_a_query_that_takes_too_long_is_stopped(store: AzurePostgreSqlDatastore, server: int) -> None:
    began = time.monotonic()
    with pytest.raises(DatasetValidationError, match=r"gave no more rows within query_timeout, 0.3 s, and .* pg_sleep"):
        from_query((store, "SELECT pg_sleep(30)"), query_timeout=0.3)
    assert time.monotonic() - began < 10
    with databases.as_superuser(server) as connection:
        assert connection.execute("SELECT 1 FROM pg_stat_activity WHERE query LIKE 'FETCH%pg_sleep%'").fetchall() == []
    assert rows(from_query((store, "SELECT pg_sleep(0.4)::text AS a"), query_timeout=0)) == [("",)]


def test_whoever_is_slow_to_read_is_not_timed_out(store: AzurePostgreSqlDatastore) -> None:
    table = from_query((store, "SELECT generate_series(1, 40000) AS n"), query_timeout=1)._table()
    counted = []

    def slowly(schema: Any, tables: Iterator[Any]) -> None:
        for each in tables:
            counted.append(each.num_rows)
            time.sleep(0.4)

    table.run(slowly)
    assert sum(counted) == 40_000 and len(counted) > 2


def test_a_connection_that_is_lost_says_so(store: AzurePostgreSqlDatastore, server: int) -> None:
    table = from_query((store, "SELECT generate_series(1, 100000000) AS n"))._table()

    def until_killed(schema: Any, tables: Iterator[Any]) -> None:
        for _ in tables:
            with databases.as_superuser(server) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lapis'"
                )

    with pytest.raises(DatasetExecutionError, match="Datastore 'shop' .* cannot run the query: terminating connection"):
        table.run(until_killed)


def test_a_query_changes_nothing(store: AzurePostgreSqlDatastore, server: int) -> None:
    with databases.as_superuser(server) as connection:
        connection.execute(
            "CREATE FUNCTION add_town() RETURNS int LANGUAGE sql AS 'INSERT INTO towns VALUES (9) RETURNING id'"
        )
    with pytest.raises(DatasetValidationError, match="cannot execute INSERT in a read-only transaction"):
        from_query((store, "SELECT add_town()"))


def test_encryption_is_asked_for_unless_it_is_not_enforced(workspace: Workspace, server: int) -> None:
    encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    strict = register(workspace, server)
    assert rows(from_query((strict, encrypted))) == [(True,)] and strict.enforce_ssl is True
    relaxed = register(workspace, server, datastore_name="relaxed", enforce_ssl=False)
    with databases.as_superuser(server) as connection:
        connection.execute("ALTER SYSTEM SET ssl = off")
        connection.execute("SELECT pg_reload_conf()")
        try:
            until(lambda: rows(from_query((relaxed, encrypted))) == [(False,)])
            with pytest.raises(
                DatasetValidationError, match="does not support SSL, but SSL was required. .* enforce_ssl=F"
            ):
                from_query((strict, encrypted))
        finally:
            connection.execute("ALTER SYSTEM RESET ssl")
            connection.execute("SELECT pg_reload_conf()")
            until(lambda: rows(from_query((relaxed, encrypted))) == [(True,)])
    assert Datastore.get(workspace, "relaxed").enforce_ssl is False


@pytest.mark.parametrize("call", [
    lambda store: from_query("SELECT 1"), lambda store: from_query(store), lambda store: from_query((store, "")),
    lambda store: from_query((store, 1)), lambda store: from_query((store, "SELECT 1"), query_timeout="long"),
    lambda store: from_query((store, "SELECT 1"), query_timeout=-1), lambda store: from_query(DataPath(store)),
    lambda store: from_query((store.workspace.get_default_datastore(), "SELECT 1")),
])  # fmt: skip
def test_arguments_that_cannot_be_are_refused(call: Callable[[Any], Any], store: AzurePostgreSqlDatastore) -> None:
    with pytest.raises(UserErrorException):
        call(store)


# -- datastores


def test_a_registered_database_is_known_by_name(workspace: Workspace, server: int) -> None:
    made = register(workspace, server, user_password="first")
    assert type(made) is AzurePostgreSqlDatastore and made.datastore_type == "AzurePostgreSql"
    with pytest.raises(Conflict, match="exists already. Pass overwrite=True"):
        register(workspace, server)
    register(workspace, server, overwrite=True)
    found = Datastore.get(workspace, "shop")
    assert type(found) is AzurePostgreSqlDatastore and type(workspace.datastores["shop"]) is AzurePostgreSqlDatastore
    facts = (found.server_name, found.database_name, found.user_id, found.port_number, found.enforce_ssl)
    assert facts == ("127.0.0.1", databases.DATABASE, databases.USER, str(server), True)
    assert found.user_password == databases.PASSWORD
    found.unregister()
    with pytest.raises(UserErrorException, match="Datastore 'shop' could not be found"):
        Datastore.get(workspace, "shop")


def test_a_database_holds_no_files(workspace: Workspace, store: AzurePostgreSqlDatastore, tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1]})
    for call in (
        lambda: Dataset.File.from_files((store, "a.txt")),
        lambda: Dataset.Tabular.from_delimited_files((store, "a.csv")),
        lambda: Dataset.Tabular.register_pandas_dataframe(frame, (store, "a"), "frame"),
    ):
        with pytest.raises(UserErrorException, match="Datastore 'shop' is a database and holds no files"):
            call()
    with pytest.raises(UserErrorException, match="'shop' is a database; the default one must hold files"):
        store.set_as_default()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"datastore_name": "a b"}, "Datastore name 'a b' cannot be used"),
        ({"server_name": ""}, "server_name must be text, and not empty"),
        ({"server_name": "a/b.c"}, "'a/b.c' is not the name of a server"),
        ({"user_password": None}, "needs user_id and user_password"),
        ({"port_number": "many"}, "port_number must be a number from 1 to 65535"),
        ({"enforce_sll": False}, "has no enforce_sll"),
    ],
)
def test_a_registration_that_cannot_be_is_refused(changes: dict[str, Any], message: str, workspace: Workspace) -> None:
    with pytest.raises(UserErrorException, match=message):
        register(workspace, 5432, **changes)
    assert "shop" not in workspace.datastores


def test_a_sql_server_is_kept_and_says_that_it_cannot_be_read_yet(workspace: Workspace) -> None:
    made = Datastore.register_azure_sql_database(workspace, "erp", "sales", "erp", username="ann", password="p4ss")
    assert type(made) is AzureSqlDatabaseDatastore and (made.username, made.password) == ("ann", "p4ss")
    assert Datastore.get(workspace, "erp").auth_type == "SqlAuthentication"
    with pytest.raises(NotThereYet, match="'erp' is a SQL Server database.*register_pandas_dataframe"):
        from_query((made, "SELECT 1"))
    with pytest.raises(UserErrorException, match="needs username and password, or tenant_id and client_id and client"):
        Datastore.register_azure_sql_database(workspace, "erp2", "sales", "erp")


def test_the_password_is_sealed_and_shown_nowhere(home: Home, monkeypatch: pytest.MonkeyPatch, server: int) -> None:
    workspace = Workspace.create("secrets", show_output=False)
    store = register(workspace, server)
    table = from_query((store, "SELECT 1 AS one")).register(workspace, "one")
    wrong = register(workspace, server, datastore_name="wrong", user_password="an0ther secret")
    with pytest.raises(DatasetValidationError) as raised:
        from_query((wrong, "SELECT 'an0ther secret' AS a, 1/0"))
    told = [repr(store), str(raised.value), repr(table), str(table._definition)]
    told += [str(workspace._client.call("GET", workspace._base + path)) for path in ("/datastores", "/datasets")]
    for secret in (databases.PASSWORD, "an0ther secret"):
        assert not [text for text in told if secret in text]
        for file in home.path.rglob("*"):
            if file.is_file():
                assert secret.encode() not in file.read_bytes(), file

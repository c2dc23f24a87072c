"""Tables: what is read is what pandas reads, lazily and in bounded memory, and bad input says what is wrong."""

from __future__ import annotations

import functools
import gzip
import http.server
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal

import lapis
from azureml.core import Dataset, Experiment, ScriptRunConfig
from azureml.data import DataType, TabularDataset
from azureml.data.dataset_error_handling import DatasetExecutionError, DatasetValidationError
from azureml.data.dataset_type_definitions import FileEncoding, PromoteHeadersBehavior
from azureml.exceptions import DatasetTimestampMissingError, UserErrorException
from lapis.errors import NotThereYet
from lapis.sdk.workspace.workspace import Workspace
from tests.memory import PEAK

from_csv = Dataset.Tabular.from_delimited_files
from_json = Dataset.Tabular.from_json_lines_files
from_parquet = Dataset.Tabular.from_parquet_files

PEOPLE = """name,age,height,member,joined
Ann,31,1.7,True,2020-01-05
Bob,25,1.85,False,2020-02-10 08:30:00
"Cid, the third",,1.6,True,2020-03-15
Dee,47,,False,
,19,2,True,2021-01-01 00:00:00
"""


@pytest.fixture(autouse=True)
def home_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPIS_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def put(name: str, content: str | bytes) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return put


@pytest.fixture
def people(write: Callable[..., str]) -> TabularDataset:
    return from_csv(write("people.csv", PEOPLE))


def rows(dataset: TabularDataset) -> list[tuple[Any, ...]]:
    frame = dataset.to_pandas_dataframe()
    return [tuple(None if pd.isna(v) else v for v in row) for row in frame.itertuples(index=False)]


# -- types


def test_types_are_found_and_values_are_those_that_pandas_reads(people: TabularDataset, tmp_path: Path) -> None:
    frame = people.to_pandas_dataframe()
    expected = pd.read_csv(tmp_path / "people.csv")
    expected["joined"] = pd.to_datetime(expected["joined"], format="ISO8601").astype("datetime64[ns]")
    assert_frame_equal(frame, expected)
    assert frame.dtypes["joined"] == np.dtype("datetime64[ns]")


def test_without_inference_everything_is_text(write: Callable[..., str]) -> None:
    table = from_csv(write("a.csv", "a,b\n007,1.50\n,x\n"), infer_column_types=False)
    assert rows(table) == [("007", "1.50"), (None, "x")]


def test_only_empty_text_is_missing_text(write: Callable[..., str]) -> None:
    path = write("a.csv", "word,number\nNA,1\n,NA\nnull,3\nxy,4\n")
    assert rows(from_csv(path)) == [("NA", 1), (None, None), ("null", 3), ("xy", 4)]
    assert rows(from_csv(path, empty_as_string=True))[1] == ("", None)


def test_types_that_are_asked_for(write: Callable[..., str]) -> None:
    path = write(
        "a.csv", "id;price;ok;day;at\n007;1,5;yes;03/02/2020;2020-01-01T00:00:00Z\n8;2,25;0;13/02/2020;5/6/2020\n"
    )
    table = from_csv(path, separator=";", set_column_types={
        "id": DataType.to_string(),
        "price": DataType.to_float(decimal_mark=","),
        "ok": DataType.to_bool(),
        "day": DataType.to_datetime("%d/%m/%Y"),
        "at": DataType.to_datetime(),
    })  # fmt: skip
    assert rows(table) == [
        ("007", 1.5, True, datetime(2020, 2, 3), datetime(2020, 1, 1)),
        ("8", 2.25, False, datetime(2020, 2, 13), datetime(2020, 5, 6)),
    ]


def test_a_value_that_is_none_of_its_type_is_missing_or_an_error(write: Callable[..., str]) -> None:
    table = from_csv(write("a.csv", "n\n1\nmany\n3\n"), set_column_types={"n": DataType.to_long()})
    assert rows(table) == [(1,), (None,), (3,)]
    with pytest.raises(DatasetExecutionError, match="Column 'n' holds 'many', which is no long"):
        table.to_pandas_dataframe(on_error="fail")
    with pytest.raises(UserErrorException, match="on_error is 'null' or 'fail', not 'ignore'"):
        table.to_pandas_dataframe(on_error="ignore")


def test_times_that_pandas_cannot_hold_are_missing_or_an_error(write: Callable[..., str]) -> None:
    table = from_csv(write("a.csv", "at\n0001-01-01\n2020-01-01\n"))
    assert rows(table) == [(None,), (datetime(2020, 1, 1),)]
    with pytest.raises(DatasetExecutionError, match="0001-01-01 00:00:00, which pandas cannot hold"):
        table.to_pandas_dataframe(out_of_range_datetime="fail")


@pytest.mark.parametrize(
    ("late", "expected"),
    [("1.5", [1.0, 1.5]), ("x7", ["1", "x7"]), ("", [1, None]), ("2021-01-01", ["1", "2021-01-01"])],
)
def test_a_type_holds_for_all_rows_wherever_the_odd_one_is(
    late: str, expected: list[Any], write: Callable[..., str]
) -> None:
    """The types are found from the first megabyte; the row that does not fit comes long after it."""
    table = from_csv(write("a.csv", "id,v\n" + "1,1\n" * 400_000 + f"2,{late}\n"))
    found = rows(table.skip(399_999).keep_columns("v"))
    assert [row[0] for row in found] == expected


def test_values_with_line_breaks_stay_whole(write: Callable[..., str]) -> None:
    text = "a,b\n" + '"one\ntwo",1\n' * 200_000 + 'last "odd one,2\n'
    table = from_csv(write("a.csv", text), support_multi_line=True)
    frame = table.to_pandas_dataframe()
    assert len(frame) == 200_001
    assert set(frame["a"]) == {"one\ntwo", 'last "odd one'}


# -- headers


def test_a_header_in_every_file(write: Callable[..., str], tmp_path: Path) -> None:
    write("d/1.csv", "a,b\n1,x\n"), write("d/2.csv", "b,a\ny,2\n")
    assert rows(from_csv(str(tmp_path / "d" / "*.csv"))) == [(1, "x"), (2, "y")]


def test_no_header_numbers_the_columns(write: Callable[..., str], tmp_path: Path) -> None:
    write("d/1.csv", "1,x\n"), write("d/2.csv", "2,y\n")
    for header in (False, PromoteHeadersBehavior.NO_HEADERS):
        frame = from_csv(str(tmp_path / "d"), header=header).to_pandas_dataframe()
        assert list(frame.columns) == ["Column1", "Column2"] and list(frame["Column1"]) == [1, 2]


def test_a_header_in_the_first_file_only(write: Callable[..., str], tmp_path: Path) -> None:
    write("d/1.csv", "a,b\n1,x\n"), write("d/2.csv", "2,y\n")
    table = from_csv(str(tmp_path / "d"), header=PromoteHeadersBehavior.ONLY_FIRST_FILE_HAS_HEADERS)
    assert rows(table) == [(1, "x"), (2, "y")]


def test_headers_that_differ_are_combined_when_asked_and_an_error_else(
    write: Callable[..., str], tmp_path: Path
) -> None:
    write("d/1.csv", "a,b\n1,x\n"), write("d/2.csv", "b,c\ny,2.5\n")
    table = from_csv(str(tmp_path / "d"), header=PromoteHeadersBehavior.COMBINE_ALL_FILES_HEADERS)
    assert list(table.to_pandas_dataframe().columns) == ["a", "b", "c"]
    assert rows(table) == [(1, "x", None), (None, "y", 2.5)]
    with pytest.raises(UserErrorException, match="2.csv has the columns b, c; the first file has a, b"):
        from_csv(str(tmp_path / "d")).to_pandas_dataframe()


def test_names_that_are_empty_or_there_twice_get_a_number(write: Callable[..., str]) -> None:
    assert list(from_csv(write("a.csv", "a,,a\n1,2,3\n")).to_pandas_dataframe().columns) == ["a", "Column2", "a_1"]


# -- files


@pytest.mark.parametrize(
    ("encoding", "python"),
    [("utf8", "utf-8-sig"), ("utf8bom", "utf-8-sig"), ("latin1", "latin-1"), ("iso88591", "latin-1"),
     ("windows1252", "cp1252"), ("utf16", "utf-16"), (FileEncoding.UTF32, "utf-32")],
)  # fmt: skip
def test_a_file_is_read_in_the_encoding_that_is_named(encoding: Any, python: str, write: Callable[..., str]) -> None:
    text = "town,n\n" + "Zürich,1\nTromsø,2\n" * 100_000
    frame = from_csv(write("a.csv", text.encode(python)), encoding=encoding).to_pandas_dataframe()
    assert list(frame.columns) == ["town", "n"]
    assert list(frame["town"].unique()) == ["Zürich", "Tromsø"] and frame["n"].sum() == 300_000


def test_a_packed_file_is_unpacked(write: Callable[..., str]) -> None:
    assert len(rows(from_csv(write("people.csv.gz", gzip.compress(PEOPLE.encode()))))) == 5


def test_short_rows_are_filled_and_trailing_separators_dropped(write: Callable[..., str]) -> None:
    assert rows(from_csv(write("a.csv", "a,b\n1,x,\n2\n\n3,z\n"))) == [(1, "x"), (2, None), (3, "z")]


@pytest.mark.parametrize("text", ["a,b\r\n1,x\r\n", "a,b\r1,x\r", "\n\na,b\n1,x", '"a",b\n\n\n"1","x"\n'])
def test_lines_end_in_many_ways(text: str, write: Callable[..., str]) -> None:
    frame = from_csv(write("a.csv", text)).to_pandas_dataframe()
    assert frame.to_dict("list") == {"a": [1], "b": ["x"]}


def test_each_line_of_json_is_a_row_and_each_name_in_it_a_column(write: Callable[..., str]) -> None:
    path = write("a.jsonl", '{"a": 1, "b": "x"}\n{"a": 2.5, "c": {"d": 1}}\n{"b": 7}\n')
    assert rows(from_json(path)) == [(1, "x", None), (2.5, None, {"d": 1}), (None, "7", None)]


def test_json_columns_that_appear_late_are_there(write: Callable[..., str]) -> None:
    table = from_json(write("a.jsonl", '{"a": 1}\n' * 200_000 + '{"a": "x", "new": 2}\n'))
    assert rows(table.skip(199_999)) == [("1", None), ("x", 2)]


def test_json_lines_that_are_none(write: Callable[..., str]) -> None:
    path = write("a.jsonl", '{"a": 1}\n{"a": \n[2]\n{"a": 3}\n')
    with pytest.raises(DatasetValidationError, match=r"a.jsonl holds a line that is no JSON object"):
        from_json(path)
    assert rows(from_json(path, invalid_lines="drop")) == [(1,), (3,)]
    with pytest.raises(UserErrorException, match="invalid_lines is 'error' or 'drop', not 'keep'"):
        from_json(path, invalid_lines="keep")


def test_parquet_files_with_columns_that_differ(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1, 2], "b": ["x", None]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"a": [2.5], "day": pd.to_datetime(["2020-01-01"])}).to_parquet(tmp_path / "2.parquet")
    table = from_parquet(str(tmp_path / "*.parquet"))
    assert rows(table) == [(1, "x", None), (2, None, None), (2.5, None, datetime(2020, 1, 1))]
    assert rows(table[table["a"] > 2].keep_columns("day")) == [(datetime(2020, 1, 1),)]


def test_the_path_and_its_parts_as_columns(write: Callable[..., str], tmp_path: Path) -> None:
    for region, month in (("north", "01"), ("south", "01"), ("south", "02")):
        write(f"d/{region}/2020/{month}/x.csv", f"n\n{month}\n")
    table = from_csv(str(tmp_path / "d" / "**"), include_path=True, partition_format="/{region}/{month:yyyy/MM}/x.csv")
    assert list(table.to_pandas_dataframe().columns) == ["Path", "region", "month", "n"]
    south = table[(table["region"] == "south") & (table["month"] > datetime(2020, 1, 1))]
    assert rows(south) == [("/south/2020/02/x.csv", "south", datetime(2020, 2, 1), 2)]
    with pytest.raises(UserErrorException, match="does not fit the partition format '/{year:yyyy}.csv'"):
        from_csv(str(tmp_path / "d" / "**"), partition_format="/{year:yyyy}.csv")


def test_files_that_a_condition_on_their_path_rules_out_are_not_read(write: Callable[..., str], tmp_path: Path) -> None:
    write("d/good/x.csv", "n\n1\n"), write("d/zero/x.csv", b"\0\0")
    table = from_csv(str(tmp_path / "d"), partition_format="/{state}/x.csv", header=False, validate=False)
    assert rows(table[table["state"] == "good"].skip(1)) == [("good", "1")]
    with pytest.raises(DatasetExecutionError, match="zero/x.csv is no text"):
        table.to_pandas_dataframe()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_files_on_the_web(web: str, people: TabularDataset, write: Callable[..., str]) -> None:
    assert rows(from_csv(web + "/people.csv")) == rows(people)
    write("more.csv", PEOPLE)
    assert rows(from_csv([web + "/people.csv", web + "/more.csv"])) == rows(people) * 2
    with pytest.raises(DatasetValidationError, match="nobody.csv is not there"):
        from_csv(web + "/nobody.csv")


# -- steps


def test_conditions_choose_what_pandas_chooses(people: TabularDataset) -> None:
    frame = people.to_pandas_dataframe()
    for choose in (
        lambda t: t["age"] > 25,
        lambda t: t["age"] != 25,
        lambda t: ~(t["age"] >= 31),
        lambda t: (t["age"] < 30) | (t["name"] == "Dee"),
        lambda t: (t["member"] == True) & (t["height"] <= 1.7),  # noqa: E712
        lambda t: t["joined"] >= datetime(2020, 2, 10, 8, 30),
        lambda t: t["height"] > t["age"],
    ):
        expected = frame[choose(frame)].reset_index(drop=True)
        assert_frame_equal(people[choose(people)].to_pandas_dataframe(), expected, check_dtype=False)
    starts = frame[frame["name"].str.startswith("D", na=False)].reset_index(drop=True)
    assert_frame_equal(people[people["name"].starts_with("D")].to_pandas_dataframe(), starts, check_dtype=False)
    with pytest.raises(UserErrorException, match="Column 'age' is int64 and cannot be compared with '3'"):
        people[people["age"].starts_with("3")].to_pandas_dataframe()
    assert rows(people.filter(people["name"].is_null()).keep_columns("age")) == [(19,)]
    assert rows(people.filter(people["name"] == None).keep_columns("age")) == [(19,)]  # noqa: E711


def test_conditions_take_values_of_numpy_and_pandas(people: TabularDataset) -> None:
    assert len(rows(people[people["age"] > np.int64(30)])) == 2
    assert len(rows(people[people["joined"] > pd.Timestamp("2020-12-31")])) == 1
    assert len(rows(people[people["joined"] > "2020-12-31"])) == 1
    west = datetime(2020, 2, 10, 1, 30, tzinfo=timezone(timedelta(hours=-7)))
    assert len(rows(people[people["joined"] == west])) == 1


def test_columns_are_kept_in_the_order_asked_for_and_dropped(people: TabularDataset) -> None:
    assert list(people.keep_columns(["age", "name"]).to_pandas_dataframe().columns) == ["age", "name"]
    assert list(people[["height", "age"]].to_pandas_dataframe().columns) == ["height", "age"]
    left = people.drop_columns(["joined", "member"]).drop_columns("age")
    assert list(left.to_pandas_dataframe().columns) == ["name", "height"]
    older = people[people["age"] > 30].keep_columns(["name", "age"]).keep_columns("name")
    assert rows(older) == [("Ann",), ("Dee",)]


def test_steps_are_done_in_their_order(people: TabularDataset) -> None:
    young = people["age"] < 30
    assert rows(people.take(2).filter(young).keep_columns("name")) == [("Bob",)]
    assert rows(people.filter(young).take(2).keep_columns("age")) == [(25,), (19,)]
    assert rows(people.skip(1).take(1).keep_columns("name")) == [("Bob",)]
    assert rows(people.take(0)) == [] and list(people.take(0).to_pandas_dataframe().columns)[0] == "name"
    assert len(rows(people.skip(99))) == 0


def test_samples_and_splits_are_the_same_again_and_share_nothing(write: Callable[..., str]) -> None:
    table = from_csv(write("n.csv", "n\n" + "".join(f"{n}\n" for n in range(300_000))))
    first, second = table.random_split(0.7, seed=3)
    one, two = (set(each.to_pandas_dataframe()["n"]) for each in (first, second))
    assert one & two == set() and one | two == set(range(300_000)) and 0.69 < len(one) / 300_000 < 0.71
    sample = table.take_sample(0.1, seed=5)
    assert rows(sample) == rows(table.take_sample(0.1, seed=5)) != rows(table.take_sample(0.1, seed=6))
    drawn = table.take_sample(0.5)
    assert rows(drawn.take(50)) == rows(drawn.take(50))


def test_a_step_gives_a_new_dataset(people: TabularDataset) -> None:
    people.take(1), people.keep_columns("age"), people.with_timestamp_columns("joined")
    assert len(rows(people)) == 5 and people.timestamp_columns == (None, None)


# -- time


def test_rows_before_after_and_between_times_are_kept_with_or_without_the_boundary(people: TabularDataset) -> None:
    timed = people.with_timestamp_columns("joined", validate=True)
    assert timed.timestamp_columns == ("joined", None)
    edge = datetime(2020, 2, 10, 8, 30)

    def names(table: TabularDataset) -> list[Any]:
        return [row[0] for row in rows(table.keep_columns("name"))]

    assert names(timed.time_before(edge)) == ["Ann", "Bob"]
    assert names(timed.time_before(edge, include_boundary=False)) == ["Ann"]
    assert names(timed.time_after(edge, include_boundary=False)) == ["Cid, the third", None]
    assert names(timed.time_between(datetime(2020, 1, 1), edge)) == ["Ann", "Bob"]
    assert names(timed.time_after(datetime(2020, 3, 1)).time_before(datetime(2020, 4, 1))) == ["Cid, the third"]


def test_recent_rows_are_those_since_so_long_ago(write: Callable[..., str]) -> None:
    now = datetime.now(UTC).replace(tzinfo=None)
    path = write("a.csv", f"at,n\n{now - timedelta(days=3)},1\n{now - timedelta(hours=1)},2\n")
    timed = from_csv(path).with_timestamp_columns("at")
    assert rows(timed.time_recent(timedelta(days=1)).keep_columns("n")) == [(2,)]


def test_time_needs_a_column_of_times(people: TabularDataset) -> None:
    for lost in (people, people.with_timestamp_columns("joined").drop_columns("joined")):
        with pytest.raises(DatasetTimestampMissingError, match="time_before.. needs to know which column"):
            lost.time_before(datetime(2020, 1, 1))
    with pytest.raises(UserErrorException, match="Column 'name' is string, not a time"):
        people.with_timestamp_columns("name", validate=True)
    with pytest.raises(UserErrorException, match="no column 'born'"):
        people.with_timestamp_columns("born").time_before(datetime(2020, 1, 1))
    with pytest.raises(UserErrorException, match="after its end"):
        people.with_timestamp_columns("joined").time_between(datetime(2021, 1, 1), datetime(2020, 1, 1))


# -- out


def test_csv_and_parquet_files_hold_the_same_rows(people: TabularDataset) -> None:
    older = people[people["age"] > 20]
    as_csv, as_parquet = older.to_csv_files(separator=";"), older.to_parquet_files()
    assert as_csv.to_path() == ["/part-00000.csv"] and as_parquet.to_path() == ["/part-00000.parquet"]
    assert rows(from_csv(as_csv.download()[0], separator=";")) == rows(older)
    assert rows(from_parquet(as_parquet.download()[0])) == rows(older)


def test_the_same_rows_are_written_once_and_changed_ones_anew(people: TabularDataset, tmp_path: Path) -> None:
    place = people.to_csv_files()._files()[0].place
    assert people.to_csv_files()._files()[0].place == place
    (tmp_path / "people.csv").write_text("name,age\nEve,1\n")
    assert people.to_csv_files()._files()[0].place != place


def test_a_failed_write_leaves_nothing(write: Callable[..., str], tmp_path: Path) -> None:
    bad = from_csv(write("a.csv", "a,b\n" + "1,2\n" * 500_000 + "1,2,3\n"), validate=False)
    with pytest.raises(DatasetExecutionError, match="is no table of 2 columns .a, b.: a row has 3: 1,2,3"):
        bad.to_parquet_files()
    assert list((tmp_path / "home").rglob("*.parquet")) == []


# -- bad input


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"PAR1\0\0\0\0", b"PK\x03\x04\x14\0\0\0"])
def test_what_is_no_table_is_not_read_as_one(content: bytes, write: Callable[..., str]) -> None:
    path = write("picture.png", content)
    with pytest.raises(DatasetValidationError, match="picture.png is no text"):
        from_csv(path)
    with pytest.raises(DatasetValidationError, match="picture.png is no text"):
        from_json(path)
    with pytest.raises(DatasetValidationError, match="picture.png is no Parquet file"):
        from_parquet(path)


def test_text_in_another_encoding_says_so(write: Callable[..., str]) -> None:
    path = write("a.csv", "town,n\nZürich,1\n".encode("latin-1"))
    with pytest.raises(DatasetValidationError, match="a.csv is no utf8 text. Say which it is with encoding="):
        from_csv(path)
    with pytest.raises(UserErrorException, match="Encoding 'klingon' is not known. Known: utf8, "):
        from_csv(path, encoding="klingon")


def test_an_empty_file_says_so(write: Callable[..., str]) -> None:
    with pytest.raises(DatasetValidationError, match="a.csv is empty"):
        from_csv(write("a.csv", ""))
    assert rows(from_csv(write("b.csv", "a,b\n"))) == []


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserErrorException, match="nothing.csv"):
        from_csv(str(tmp_path / "nothing.csv"))
    with pytest.raises(UserErrorException, match=r"\*\.csv"):
        from_csv(str(tmp_path / "*.csv"))


def test_unknown_columns_are_named_with_the_known_ones(people: TabularDataset) -> None:
    known = r"There is no column 'agge'. Columns: name, age, height, member, joined\."
    for bad in (people.keep_columns(["agge"]), people[people["agge"] > 1]):
        with pytest.raises(DatasetExecutionError, match=known):
            bad.to_pandas_dataframe()
    with pytest.raises(UserErrorException, match=known):
        people.keep_columns("agge", validate=True)
    with pytest.raises(DatasetExecutionError, match="no column 'age'. Columns: name"):
        people.keep_columns("name").filter(people["age"] > 1).to_pandas_dataframe()
    assert people.drop_columns(["agge", "age"]).to_pandas_dataframe().columns[1] == "height"  # gone already


def test_a_type_for_a_column_that_is_not_there(write: Callable[..., str]) -> None:
    with pytest.raises(DatasetValidationError, match="set_column_types names column 'b', which is not there"):
        from_csv(write("a.csv", "a\n1\n"), set_column_types={"b": DataType.to_long()})


def test_comparing_with_what_is_not_comparable(people: TabularDataset) -> None:
    with pytest.raises(DatasetExecutionError, match="Column 'name' is string and cannot be compared with 3"):
        people[people["name"] > 3].to_pandas_dataframe()
    with pytest.raises(UserErrorException, match="Combine conditions with & | ~"):
        people.filter(people["age"] > 1 and people["age"] < 3)
    with pytest.raises(UserErrorException, match="A condition is made of columns"):
        people.filter(True)
    with pytest.raises(UserErrorException, match="not list"):
        people.filter(people["age"] == [1, 2])


@pytest.mark.parametrize("call", [
    lambda ds: ds.take(-1), lambda ds: ds.take(1.5), lambda ds: ds.skip("2"), lambda ds: ds.take_sample(2),
    lambda ds: ds.random_split("half"), lambda ds: ds.keep_columns([]), lambda ds: ds.keep_columns(["a", "a"]),
    lambda ds: ds[3], lambda ds: ds.time_recent(5), lambda ds: ds.to_csv_files(separator="::"),
    lambda ds: ds.take_sample(0.5, seed="x"), lambda ds: from_csv("people.csv", separator="ab"),
    lambda ds: from_csv("people.csv", header="yes"), lambda ds: from_csv("people.csv", set_column_types=["age"]),
    lambda ds: from_csv("people.csv", set_column_types={"age": "int"}), lambda ds: DataType.to_datetime("day"),
    lambda ds: from_csv([]), lambda ds: from_csv(7), lambda ds: TabularDataset(),
    lambda ds: from_csv("p", partition_format="x"), lambda ds: ds.get_partition_key_values("age"),
])  # fmt: skip
def test_arguments_that_cannot_be_are_refused(call: Callable[[TabularDataset], Any], people: TabularDataset) -> None:
    with pytest.raises(UserErrorException):
        call(people)


def test_what_is_not_there_yet_says_so(people: TabularDataset) -> None:
    for call in (people.get_profile, people.to_spark_dataframe, people.to_dask_dataframe, people.get_profile_runs):
        with pytest.raises(NotThereYet, match="TabularDataset"):
            call()


def test_without_pyarrow_the_definition_works_and_reading_says_what_to_install(write: Callable[..., str]) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from azureml.core import Dataset\n"
        "ds = Dataset.Tabular.from_delimited_files(sys.argv[1], validate=False)\n"
        "print(ds[ds['age'] > 3].take(2))\n"
        "try: Dataset.Tabular.from_delimited_files(sys.argv[1])\n"
        "except Exception as error: print(type(error).__name__, error.message)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, write("a.csv", PEOPLE)],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(Path(lapis.__file__).parents[1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "UserErrorException Tables need the packages pyarrow and pandas" in done.stdout
    assert "pip install pyarrow pandas" in done.stdout


# -- memory


@pytest.mark.full
def test_a_table_larger_than_memory_is_filtered_and_written_in_little_of_it(tmp_path: Path) -> None:
    some = random.Random(1)
    block = "".join(f"{n},{some.random()},{some.choice('nswe')},some text {some.random()}\n" for n in range(50_000))
    path = tmp_path / "large.csv"
    with open(path, "w") as file:
        file.write("id,x,where,text\n")
        while file.tell() < 300_000_000:
            file.write(block)
    code = (
        PEAK + "import sys\n"
        "from azureml.core import Dataset\n"
        "ds = Dataset.Tabular.from_delimited_files(sys.argv[1])\n"
        "few = ds.take(5).to_pandas_dataframe()\n"
        "before = peak()\n"
        "kept = ds[(ds['where'] == 'n') & (ds['x'] < 0.01)].keep_columns(['id', 'x']).to_pandas_dataframe()\n"
        "written = ds.drop_columns('text').to_parquet_files()\n"
        "after = peak()\n"
        "print(len(kept), written._files()[0].place, after // 1024, (after - before) // 1024)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(lapis.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    kept, place, peak, more = done.stdout.split()
    assert int(kept) > 0 and pq.ParquetFile(place).metadata.num_rows > 5_000_000
    assert int(peak) < 450 and int(more) < 200  # megabytes


# -- with a workspace


class TestRegistered:
    @pytest.fixture(autouse=True)
    def home_of_its_own(self, on_shared_server: Any) -> None:
        """The shared server's, instead of one of its own."""

    @pytest.fixture
    def table(self, workspace: Workspace, tmp_path: Path) -> TabularDataset:
        (tmp_path / "up").mkdir()
        (tmp_path / "up" / "people.csv").write_text(PEOPLE)
        store = workspace.get_default_datastore()
        store.upload(str(tmp_path / "up"), "tables", show_progress=False)
        return from_csv((store, "tables/people.csv"))

    def test_a_registered_table_comes_back_with_its_steps(self, workspace: Workspace, table: TabularDataset) -> None:
        older = table[table["age"] > 30].keep_columns(["name", "joined"]).with_timestamp_columns("joined")
        older.register(workspace, "older people", tags={"kind": "test"})
        found = Dataset.get_by_name(workspace, "older people")
        assert type(found) is TabularDataset and found.version == 1 and found.tags == {"kind": "test"}
        assert rows(found) == rows(older) and found.timestamp_columns == ("joined", None)
        assert rows(Dataset.get_by_id(workspace, found.id)) == rows(older)
        assert type(workspace.datasets["older people"]) is TabularDataset
        assert rows(found.take(1)) == rows(older)[:1]

    def test_a_run_gets_a_registered_table(
        self, workspace: Workspace, table: TabularDataset, script: Callable[..., str]
    ) -> None:
        table.register(workspace, "people")
        code = (
            "import sys\nfrom azureml.core import Run\n"
            "frame = Run.get_context().input_datasets['people'].to_pandas_dataframe()\n"
            "Run.get_context().log('rows', len(frame)); print(sys.argv)\n"
        )
        known = Dataset.get_by_name(workspace, "people")
        config = ScriptRunConfig(script(code), "train.py", arguments=["--in", known.as_named_input("people")])
        run = Experiment(workspace, "tables").submit(config)
        run.wait_for_completion()
        assert run.get_metrics() == {"rows": 5}
        assert run.get_details()["inputDatasets"]

    def test_a_run_gets_a_table_that_was_never_registered(
        self, workspace: Workspace, table: TabularDataset, script: Callable[..., str]
    ) -> None:
        older = table.filter(table["age"] > 30)
        code = (
            "import os, sys\nfrom azureml.core import Run\n"
            "found = Run.get_context().input_datasets['people']\n"
            "assert found.id == os.environ['people'] == sys.argv[1] and found.name is None\n"
            "Run.get_context().log('rows', len(found.to_pandas_dataframe()))\n"
        )
        runs = []
        for _ in range(2):
            config = ScriptRunConfig(script(code), "train.py", arguments=[older.as_named_input("people")])
            runs.append(Experiment(workspace, "tables").submit(config))
            runs[-1].wait_for_completion()
            assert runs[-1].get_metrics() == {"rows": 2}
        first, second = (run.get_details()["inputDatasets"][0] for run in runs)
        assert first["dataset"] == older and first["dataset"].id == second["dataset"].id
        assert first["consumptionDetails"] == {"type": "RunInput", "inputName": "people", "mechanism": "Direct"}
        uses = workspace._client.call("GET", f"{workspace._base}/datasets/{first['dataset'].id}/runs")["runs"]
        assert [use["run_id"] for use in uses] == [run.id for run in runs]
        assert workspace.datasets == {}

    def test_a_table_is_not_mounted(
        self, workspace: Workspace, table: TabularDataset, script: Callable[..., str]
    ) -> None:
        table = table.register(workspace, "people")
        for wrong in (table.as_named_input("people").as_mount(), table):
            config = ScriptRunConfig(script("pass"), "train.py", arguments=["--in", wrong])
            with pytest.raises(UserErrorException, match="as_named_input"):
                Experiment(workspace, "tables").submit(config)

    def test_a_data_frame_is_registered(self, workspace: Workspace) -> None:
        store = workspace.get_default_datastore()
        frame = pd.DataFrame({"n": [1, 2], "word": ["a", None], "at": pd.to_datetime(["2020-01-01", None])})
        frame["at"] = frame["at"].astype("datetime64[ns]")
        first = Dataset.Tabular.register_pandas_dataframe(frame, (store, "frames"), "frame", show_progress=False)
        second = Dataset.Tabular.register_pandas_dataframe(frame[:1], store, "frame", show_progress=False)
        assert (first.version, second.version) == (1, 2)
        assert_frame_equal(Dataset.get_by_name(workspace, "frame", version=1).to_pandas_dataframe(), frame)
        assert len(rows(second)) == 1
        with pytest.raises(UserErrorException, match="must be a pandas DataFrame, not dict"):
            Dataset.Tabular.register_pandas_dataframe({}, store, "frame")

    def test_rows_are_parted_by_the_values_of_columns(self, workspace: Workspace, table: TabularDataset) -> None:
        store = workspace.get_default_datastore()
        known = table[table["age"] > 0].drop_columns("joined")
        parted = known.partition_by(["member", "age"], (store, "parted"), name="parted", show_progress=False)
        assert parted.partition_keys == ["member", "age"] and parted.name == "parted"
        assert parted.get_partition_key_values("member") == [{"member": "false"}, {"member": "true"}]
        assert {"member": "true", "age": "31"} in parted.get_partition_key_values()
        assert rows(parted[parted["age"] == "31"].keep_columns("name")) == [("Ann",)]
        assert len(rows(parted)) == 4
        with pytest.raises(DatasetExecutionError, match="Column 'name' holds None, which cannot name a folder"):
            table.partition_by("name", store, show_progress=False)

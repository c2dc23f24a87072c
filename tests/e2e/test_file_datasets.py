"""Datasets of files: what they hold, how they are laid out, and how they are kept under a name."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Dataset, Datastore, Workspace
from azureml.data import FileDataset
from azureml.data.datapath import DataPath
from azureml.exceptions import UserErrorException
from lapis.files import layout
from tests.web import Web


@pytest.fixture
def store(workspace: Workspace, tmp_path: Path) -> Any:
    """up/a.txt, up/b.csv, up/sub/c.txt, other/d.txt in the default datastore"""
    for name in ("up/a.txt", "up/b.csv", "up/sub/c.txt", "other/d.txt"):
        path = tmp_path / "filled" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    found = workspace.get_default_datastore()
    found.upload(str(tmp_path / "filled"), show_progress=False)
    return found


def from_files(*paths: Any, **more: Any) -> Any:
    return Dataset.File.from_files(paths[0] if len(paths) == 1 else list(paths), **more)


# -- laid out


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("up", ["/a.txt", "/b.csv", "/sub/c.txt"]),
        ("up/", ["/a.txt", "/b.csv", "/sub/c.txt"]),
        ("/up/**", ["/a.txt", "/b.csv", "/sub/c.txt"]),
        ("up/a.txt", ["/a.txt"]),
        ("up/*.txt", ["/a.txt"]),
        ("up/**/*.txt", ["/a.txt", "/sub/c.txt"]),
        ("*/*.txt", ["/other/d.txt", "/up/a.txt"]),
        ("up/sub/c.txt", ["/c.txt"]),
        ("up/**/c.txt", ["/sub/c.txt"]),
        ("/", ["/other/d.txt", "/up/a.txt", "/up/b.csv", "/up/sub/c.txt"]),
    ],
)
def test_names_in_a_datastore_are_relative_to_where_the_source_begins(store: Any, path: str, names: list[str]) -> None:
    assert from_files((store, path)).to_path() == names
    assert from_files(DataPath(store, path)).to_path() == names
    assert from_files(store.path(path)).to_path() == names


def test_names_of_several_sources_are_relative_to_what_they_share(store: Any) -> None:
    assert from_files((store, "up/a.txt"), (store, "up/sub/c.txt")).to_path() == ["/a.txt", "/sub/c.txt"]
    assert from_files((store, "up/a.txt"), (store, "other")).to_path() == ["/up/a.txt", "/other/d.txt"]
    assert from_files(((store, "up/a.txt"), (store, "other"))).to_path() == ["/up/a.txt", "/other/d.txt"]


def test_a_file_that_two_sources_name_is_there_once(store: Any) -> None:
    assert from_files((store, "up"), (store, "up/a.txt")).to_path() == ["/a.txt", "/b.csv", "/sub/c.txt"]


def test_web_files_are_laid_out_by_their_address(web: Web, on_shared_server: Any) -> None:
    web.put("/data/a.gz", b"a")
    web.put("/b.gz", b"b")
    one = from_files(web.url("/data/a.gz"))
    assert one.to_path() == [f"/http%3A/%2F127.0.0.1%3A{web.port}/data/a.gz"]
    both = from_files(web.url("/data/a.gz"), web.url("/b.gz"))
    assert both.to_path() == [*one.to_path(), f"/http%3A/%2F127.0.0.1%3A{web.port}/b.gz"]


def test_local_files_are_laid_out_below_the_folder_that_was_named(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "x.txt").write_text("x")
    monkeypatch.chdir(tmp_path)
    assert from_files("data").to_path() == ["/deep/x.txt"]
    assert from_files(tmp_path / "data" / "deep" / "x.txt").to_path() == ["/x.txt"]
    assert from_files("data/**/*.txt").to_path() == ["/deep/x.txt"]


def test_a_file_whose_name_looks_like_a_pattern_is_found_by_it(tmp_path: Path) -> None:
    for name in ("a[1].txt", "b*.txt", "a1.txt"):
        (tmp_path / name).write_text(name)
    assert from_files(tmp_path / "a[1].txt").to_path() == ["/a[1].txt"]
    assert from_files(tmp_path / "b*.txt").to_path() == ["/b*.txt"]
    assert from_files(tmp_path / "a*.txt").to_path() == ["/a1.txt", "/a[1].txt"]


def test_what_is_no_file_is_not_in_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "broken").symlink_to(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert from_files(tmp_path).to_path() == ["/a.txt"]


def test_a_dataset_that_was_never_registered_has_no_name(store: Any) -> None:
    found = from_files((store, "up"))
    assert isinstance(found, FileDataset)
    assert (found.id, found.name, found.version, found.tags, found.description) == (None,) * 5
    assert "up" in repr(found)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (lambda store: (store, "nothing"), "no file or folder 'nothing' of datastore 'workspaceblobstore'"),
        (lambda store: (store, "up/*.png"), "No file matches 'up/\\*.png'"),
        (lambda store: (store, "no/*.png"), "no is not there"),
        (lambda store: (store, "../x"), "leads out of datastore"),
        (lambda store: (store, "up/[z-a]"), "cannot be read"),
        (lambda store: (store, 5), "must be text, not 5"),
        (lambda store: [], "was given no path"),
        (lambda store: "", "takes web addresses"),
        (lambda store: None, "takes web addresses.*NoneType"),
        (lambda store: 5, "takes web addresses.*int"),
        (lambda store: [None], "takes web addresses"),
        (lambda store: "no/such/file", "no file or folder"),
        (lambda store: "s3://bucket/key", "cannot be read"),
        (lambda store: "http://", "not a web address"),
        (lambda store: "http://h/*.gz", "the web cannot be searched"),
        (lambda store: "http://u:p@h/x", "user name or a password"),
    ],
)
def test_a_source_that_is_none_is_told_at_once(store: Any, path: Any, says: str) -> None:
    with pytest.raises(UserErrorException, match=says):
        Dataset.File.from_files(path(store))


def test_two_files_that_would_have_one_name_are_an_error(store: Any, workspace: Workspace, tmp_path: Path) -> None:
    other = Datastore.register_folder(workspace, "other", tmp_path / "filled")  # the same names, other files
    with pytest.raises(UserErrorException, match="Two files of the dataset have the name /a.txt"):
        from_files((other, "up/a.txt"), (store, "up/a.txt"))


def test_sources_of_two_workspaces_do_not_mix(store: Any) -> None:
    other = Workspace.create("other-" + os.urandom(4).hex(), show_output=False)
    with pytest.raises(UserErrorException, match="lies in one workspace"):
        from_files((store, "up"), (other.get_default_datastore(), "up"))


def test_without_validation_nothing_is_asked_for_until_it_is_used(web: Web, on_shared_server: Any) -> None:
    late = from_files(web.url("/late"), validate=False)
    assert late.to_path() and web.asked == []
    with pytest.raises(UserErrorException, match="is not there"):
        late.download()


# -- downloaded and mounted


def test_a_download_gives_copies_that_may_be_changed(store: Any, web: Web, tmp_path: Path) -> None:
    found = from_files((store, "up"))
    paths = found.download(tmp_path / "down")
    assert sorted(os.path.relpath(path, tmp_path / "down") for path in paths) == ["a.txt", "b.csv", "sub/c.txt"]
    Path(paths[0]).write_text("changed")
    (again,) = from_files((store, "up/a.txt")).download()
    assert Path(again).read_text() == "up/a.txt"
    url = web.put("/w.txt", b"web")
    (first,) = from_files(url).download(tmp_path / "web")
    Path(first).write_bytes(b"changed")
    (second,) = from_files(url).download(tmp_path / "web2")
    assert Path(second).read_bytes() == b"web"


def test_a_download_replaces_nothing_unasked(store: Any, tmp_path: Path) -> None:
    found = from_files((store, "up"))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.txt").write_text("mine")
    with pytest.raises(UserErrorException, match=r"c.txt exists already.*Nothing was downloaded"):
        found.download(str(tmp_path))
    assert not (tmp_path / "a.txt").exists()
    found.download(str(tmp_path), overwrite=True)
    assert (tmp_path / "sub" / "c.txt").read_text() == "up/sub/c.txt"


def test_a_download_that_fails_half_way_leaves_nothing(web: Web, tmp_path: Path, on_shared_server: Any) -> None:
    found = from_files(web.put("/good", b"good"), web.put("/bad", b"bad"))
    del web.pages["/bad"]
    with pytest.raises(UserErrorException, match="/bad is not there"):
        found.download(tmp_path / "down")
    assert not (tmp_path / "down").exists()
    assert [Path(path).name for path in found.download(tmp_path / "down", ignore_not_found=True)] == ["good"]


def test_a_link_in_the_target_is_not_a_way_out_of_it(store: Any, tmp_path: Path) -> None:
    (tmp_path / "down").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "down" / "sub").symlink_to(tmp_path / "outside")
    with pytest.raises(UserErrorException, match="a link leads it out"):
        from_files((store, "up")).download(tmp_path / "down")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_mount_shows_the_files_for_as_long_as_it_lasts(store: Any) -> None:
    with from_files((store, "up")).mount() as context:
        assert Path(context.mount_point, "sub", "c.txt").read_text() == "up/sub/c.txt"
        assert Path(context.mount_point, "a.txt").is_symlink()  # nothing was copied
    assert not os.path.exists(context.mount_point)
    assert from_files((store, "up")).to_path() == ["/a.txt", "/b.csv", "/sub/c.txt"]


def test_a_mount_is_started_and_stopped_by_hand_and_again(store: Any, tmp_path: Path) -> None:
    context = from_files((store, "up")).mount(tmp_path / "point")
    context.stop()
    context.start()
    context.start()
    assert (tmp_path / "point" / "a.txt").read_text() == "up/a.txt"
    (tmp_path / "point" / "mine.txt").write_text("mine")
    context.stop()
    assert [path.name for path in (tmp_path / "point").iterdir()] == ["mine.txt"]
    (tmp_path / "point" / "mine.txt").unlink()
    context.start()
    context.stop()
    assert not (tmp_path / "point").exists()


def test_a_mount_over_something_is_refused(store: Any, tmp_path: Path) -> None:
    (tmp_path / "point").mkdir()
    (tmp_path / "point" / "mine.txt").write_text("mine")
    for place in ("point", "point/mine.txt"):
        with pytest.raises(UserErrorException, match="Mount to a folder that is empty or new"):
            from_files((store, "up")).mount(str(tmp_path / place)).start()
    with pytest.raises(UserErrorException, match="mount_point must be a path"):
        from_files((store, "up")).mount(5)
    assert (tmp_path / "point" / "mine.txt").read_text() == "mine"


def test_progress_of_a_long_download_is_told_in_percent(
    web: Web, tmp_path: Path, on_shared_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "_SAY_EVERY", 0.0)
    said: list[str] = []
    files = from_files(web.put("/big?key=SECRET", os.urandom(3 << 20)))._files()
    layout.lay_out_files(files, str(tmp_path / "t"), say=said.append)
    assert any("3 MB (100%)" in line for line in said) and "3145728 bytes are here" in said[-1]
    assert not any("SECRET" in line for line in said)


# -- chosen from


def test_skip_take_sample_and_split_give_new_datasets(store: Any) -> None:
    found = from_files((store, "up"))
    assert found.skip(1).to_path() == ["/b.csv", "/sub/c.txt"]
    assert found.take(1).to_path() == ["/a.txt"]
    assert found.skip(1).take(1).to_path() == ["/b.csv"]
    assert found.take_sample(0.5, seed=3).to_path() == found.take_sample(0.5, seed=3).to_path()
    first, second = found.random_split(0.5, seed=1)
    assert sorted(first.to_path() + second.to_path()) == found.to_path()
    unseeded = found.take_sample(0.5)
    assert unseeded.to_path() == unseeded.to_path()
    assert found.to_path() == ["/a.txt", "/b.csv", "/sub/c.txt"]


def test_files_are_chosen_by_what_they_are(tmp_path: Path) -> None:
    for name, size, day in (("a.txt", 10, 1), ("b.jpg", 2000, 2), ("sub/c.jpeg", 30, 3)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * size)
        os.utime(path, (0, datetime(2020, 1, day, tzinfo=UTC).timestamp()))
    found = from_files(tmp_path)
    of = found.file_metadata

    def chosen(condition: Any) -> list[str]:
        return found.filter(condition).to_path()  # type: ignore[no-any-return]

    assert chosen(of("Size") > 20) == ["/b.jpg", "/sub/c.jpeg"]
    assert chosen((of("Size") > 20) & (of("LastModifiedTime") < datetime(2020, 1, 3))) == ["/b.jpg"]
    assert chosen(of("Extension") == "jpg") == chosen(of("Extension") == ".jpg") == ["/b.jpg"]
    assert chosen(of("Extension").starts_with("j") & (of("CanSeek") == True)) == ["/b.jpg", "/sub/c.jpeg"]  # noqa: E712
    assert (
        chosen(of("CreationTime") > datetime(2020, 6, 1)) == found.to_path() == chosen(of("CreatedTime") > "2020-06-01")
    )
    assert found.skip(1).filter(of("Size") < 100).to_path() == ["/sub/c.jpeg"]
    assert found.filter(of("Size") > 20).take(1).to_path() == ["/b.jpg"]
    assert found.data_changed_time == datetime(2020, 1, 3, tzinfo=UTC)


def test_web_files_are_chosen_by_what_their_server_says(web: Web, on_shared_server: Any) -> None:
    urls = web.put("/small", b"x"), web.put("/large", b"x" * 100)
    found = from_files(*urls)
    large = found.filter(found.file_metadata("Size") > 10)
    assert [path.rpartition("/")[2] for path in large.to_path()] == ["large"]
    assert found.filter(found.file_metadata("LastModifiedTime") > datetime(2000, 1, 1)).to_path() == []  # it says none
    assert found.data_changed_time is None


def test_a_filtered_dataset_is_the_same_in_a_registered_version(store: Any, workspace: Workspace) -> None:
    found = from_files((store, "up"))
    found.filter(found.file_metadata("Extension") == "csv").register(workspace, "x")
    assert Dataset.get_by_name(workspace, "x").to_path() == ["/b.csv"]


def test_parts_of_the_path_are_partition_keys(tmp_path: Path) -> None:
    for name in ("north/2020/01/a.csv", "north/2020/02/a.csv", "south/2020/01/b.csv"):
        (tmp_path / "d" / name).parent.mkdir(parents=True)
        (tmp_path / "d" / name).write_text("x")
    found = from_files(str(tmp_path / "d" / "**"), partition_format="/{region}/{month:yyyy/MM}/*.csv")
    assert found.partition_keys == ["region", "month"]
    assert found.get_partition_key_values(["region"]) == [{"region": "north"}, {"region": "south"}]
    first = datetime(2020, 1, 1)
    assert {"region": "south", "month": first} in found.get_partition_key_values()
    early = found.filter((found["region"] == "north") & (found["month"] <= first))
    assert early.to_path() == ["/north/2020/01/a.csv"]
    assert early.get_partition_key_values() == [{"region": "north", "month": first}]
    assert from_files(tmp_path).partition_keys == [] == from_files(tmp_path).get_partition_key_values()
    with pytest.raises(UserErrorException, match="does not fit the partition format"):
        from_files(str(tmp_path / "d" / "**"), partition_format="/{year:yyyy}.csv")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda found: found.file_metadata("Owner"), "does not know 'Owner'. Known: Size, LastModifiedTime"),
        (lambda found: found.file_metadata(5), "does not know 5"),
        (lambda found: found.filter(found["region"] == "x"), "'region' is no partition key .* Partition keys: none"),
        (lambda found: found.filter("Size > 5"), "A condition is made of columns"),
        (lambda found: found.filter(found.file_metadata("Size") > "big").to_path(), "cannot be compared with 'big'"),
        (lambda found: found[5], "asked for a partition key, not 5"),
        (lambda found: found.get_partition_key_values("x"), "'x' is no partition key"),
        (lambda found: found.get_partition_key_values(5), "a list of names, not 5"),
        (lambda found: from_files(".", partition_format="x"), "partition_format looks like"),
        (lambda found: found.as_cache(None), "use as_mount"),
        (lambda found: found.skip(-1), "number of files, not -1"),
        (lambda found: found.take("2"), "number of files, not '2'"),
        (lambda found: found.take(True), "number of files"),
        (lambda found: found.take_sample(1.5), "between 0 and 1, not 1.5"),
        (lambda found: found.random_split("half"), "between 0 and 1"),
        (lambda found: found.take_sample(0.5, seed="x"), "seed must be a whole number"),
        (lambda found: found.as_named_input("a b"), "Input name 'a b'"),
        (lambda found: found.as_mount("../up"), "cannot be used"),
        (lambda found: found.as_hdfs(), "Spark"),
        (lambda found: FileDataset(), "made by Dataset.File.from_files"),
        (lambda found: found.update(description="x"), "Only a registered dataset"),
        (lambda found: found.unregister_all_versions(), "Only a registered dataset"),
        (lambda found: found.register("ws", "name"), "must be a Workspace"),
        (lambda found: found.download(5), "target_path must be a path"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(store: Any, call: Any, says: str) -> None:
    with pytest.raises(UserErrorException, match=says):
        call(from_files((store, "up")))


# -- registered


def test_a_registered_dataset_is_found_by_name_and_by_id(store: Any, workspace: Workspace) -> None:
    made = from_files((store, "up")).register(workspace, "my data", description="d", tags={"k": "v"})
    assert (made.name, made.version, made.description, made.tags) == ("my data", 1, "d", {"k": "v"})
    for found in (
        Dataset.get_by_name(workspace, "my data"),
        Dataset.get_by_name(workspace, "my data", version=1),
        Dataset.get_by_name(workspace, "my data", version="latest"),
        Dataset.get_by_id(workspace, made.id),
        Dataset.get_all(workspace)["my data"],
        workspace.datasets["my data"],
    ):
        assert found == made and found.id == made.id and found.to_path() == made.to_path()


def test_the_same_definition_again_is_the_same_version(store: Any, workspace: Workspace) -> None:
    first = from_files((store, "up")).register(workspace, "x")
    assert from_files((store, "up")).register(workspace, "x").id == first.id


def test_another_definition_needs_a_new_version(store: Any, workspace: Workspace) -> None:
    first = from_files((store, "up")).register(workspace, "x")
    with pytest.raises(UserErrorException, match="create_new_version=True"):
        from_files((store, "other")).register(workspace, "x")
    second = from_files((store, "other")).register(workspace, "x", create_new_version=True)
    assert (first.version, second.version) == (1, 2)
    assert Dataset.get_by_name(workspace, "x").to_path() == ["/d.txt"]
    assert Dataset.get_by_name(workspace, "x", version=1).to_path() == first.to_path()
    assert Dataset.get_all(workspace)["x"].version == 2


def test_what_a_version_stood_for_is_written_down(store: Any, web: Web, workspace: Workspace) -> None:
    url = web.put("/w.txt", b"12345", etag='"v1"')
    made = from_files((store, "up/a.txt"), url).register(workspace, "x")
    rows = workspace._client.call("GET", f"{workspace._base}/datasets/{made.id}/files")["files"]
    assert [(row["path"], row["size"]) for row in rows] == [
        ("/a.txt", 8),
        (f"/http%3A/%2F127.0.0.1%3A{web.port}/w.txt", 5),
    ]
    assert rows[0]["mark"].isdigit() and rows[1]["mark"] == '"v1"'


def test_tags_and_description_can_be_changed(store: Any, workspace: Workspace) -> None:
    made = from_files((store, "up")).register(workspace, "x", tags={"a": "1", "b": "2"})
    made.add_tags({"c": "3"})
    made.remove_tags(["a"])
    made.update(description="new", tags={"b": "4"})
    found = Dataset.get_by_name(workspace, "x")
    assert (found.tags, found.description) == ({"b": "4", "c": "3"}, "new") == (made.tags, made.description)
    with pytest.raises(UserErrorException, match="description must be text"):
        made.update(description=5)


def test_a_forgotten_name_is_gone_with_all_versions_and_the_data_stays(store: Any, workspace: Workspace) -> None:
    made = from_files((store, "up")).register(workspace, "x")
    from_files((store, "other")).register(workspace, "x", create_new_version=True)
    made.unregister_all_versions()
    assert made.id is None and made.name is None
    assert workspace.datasets == {}
    with pytest.raises(UserErrorException, match='Cannot find dataset registered with name "x"'):
        Dataset.get_by_name(workspace, "x")
    assert from_files((store, "up")).to_path()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda ws: Dataset.get_by_name(ws, "nope"),
            'Cannot find dataset registered with name "nope" in the workspace. Known: x',
        ),
        (lambda ws: Dataset.get_by_name(ws, "x", version=7), r"\(version: 7\) in the workspace. It has: 1"),
        (lambda ws: Dataset.get_by_name(ws, "x", version="new"), "version must be a number or 'latest'"),
        (lambda ws: Dataset.get_by_name(ws, ""), "Dataset name ''"),
        (lambda ws: Dataset.get_by_id(ws, "no-such-id"), "'no-such-id'"),
        (lambda ws: Dataset.get_by_id(ws, "../runs"), "dataset id"),
        (lambda ws: Dataset.get_by_id(ws, None), "dataset id"),
        (lambda ws: Dataset.get_by_name("ws", "x"), "workspace must be a Workspace"),
        (lambda ws: Dataset.get_all(None), "workspace must be a Workspace"),
        (lambda ws: ws.datasets["x"].register(ws, ""), "Dataset name ''"),
        (lambda ws: ws.datasets["x"].register(ws, "y", tags=["a"]), "tags must be a dictionary"),
        (lambda ws: ws.datasets["x"].register(ws, "y", description=5), "description must be text"),
    ],
)
def test_unknown_names_and_wrong_values_are_told(store: Any, workspace: Workspace, call: Any, says: str) -> None:
    from_files((store, "up")).register(workspace, "x")
    with pytest.raises(UserErrorException, match=says):
        call(workspace)
    assert sorted(workspace.datasets) == ["x"]


def test_a_dataset_of_one_workspaces_datastore_is_not_registered_in_another(store: Any) -> None:
    other = Workspace.create("other-" + os.urandom(4).hex(), show_output=False)
    with pytest.raises(UserErrorException, match="cannot be registered in"):
        from_files((store, "up")).register(other, "x")


def test_a_folder_is_uploaded_and_becomes_a_dataset(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    for name in ("a.csv", "b.txt", "deep/c.csv"):
        (tmp_path / "src" / name).write_text(name)
    store = workspace.get_default_datastore()
    made = Dataset.File.upload_directory(tmp_path / "src", (store, "all"), show_progress=False)
    assert made.to_path() == ["/a.csv", "/b.txt", "/deep/c.csv"]
    some = Dataset.File.upload_directory(str(tmp_path / "src"), (store, "some"), "**/*.csv", show_progress=False)
    assert some.to_path() == ["/a.csv", "/deep/c.csv"]
    for wrong, says in (
        (lambda: Dataset.File.upload_directory(tmp_path / "no", (store, "x")), "there is no folder"),
        (lambda: Dataset.File.upload_directory(tmp_path / "src", "x"), "a place in a datastore"),
        (lambda: Dataset.File.upload_directory(tmp_path / "src", (store, "x"), "*.png"), "no file in .* matches"),
    ):
        with pytest.raises(UserErrorException, match=says):
            wrong()


# -- as the first releases had it


def test_calls_of_the_first_releases_give_datasets_of_today(workspace: Workspace, store: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n')
    made = Dataset.from_delimited_files(str(tmp_path / "t.csv")).register(workspace, "t")
    assert [each.id for each in Dataset.list(workspace)] == [made.id] == [Dataset.get(workspace, "t").id]
    assert Dataset.get(workspace, id=made.id).name == "t"
    assert Dataset.from_json_files(str(tmp_path / "t.jsonl")).take(1).partition_keys == []
    assert Dataset.from_binary_files((store, "up")).to_path() == ["/a.txt", "/b.csv", "/sub/c.txt"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda ws: Dataset.get(ws), "takes a name or an id"),
        (lambda ws: Dataset("definition"), "is made by Dataset.File"),
        (lambda ws: Dataset.from_delimited_files("x", skip_rows=2), "skip_rows"),
        (lambda ws: Dataset.from_json_files("x", flatten_nested_arrays=True), "flatten_nested_arrays"),
        (lambda ws: Dataset.from_excel_files("x"), "Dataset.from_excel_files is not there yet"),
        (lambda ws: Dataset.head(None, 5), "Dataset.head is not there yet"),
    ],
)
def test_what_the_first_releases_had_alone_is_refused(workspace: Workspace, call: Any, says: str) -> None:
    with pytest.raises(UserErrorException, match=says):
        call(workspace)

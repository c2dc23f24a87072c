"""Data in a run: how the script gets it, how it gives it back, and what is remembered of both."""

from __future__ import annotations

import json
import os
import pydoc
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Dataset, Datastore, Experiment, ScriptRunConfig, Workspace
from azureml.core.runconfig import (
    Data,
    DataLocation,
    DataPath,
    GlobsOptions,
    OutputData,
    OutputOptions,
    RegistrationOptions,
    RunConfiguration,
    UploadOptions,
    Uri,
)
from azureml.core.runconfig import Dataset as DatasetSection
from azureml.data import OutputFileDatasetConfig
from azureml.data.output_dataset_config import OutputTabularDatasetConfig
from azureml.exceptions import UserErrorException
from lapis.testing import Home, until
from tests.web import Web

Finish = Callable[..., Any]

# Prints what each of its arguments leads to: the text of a file, or the texts below a folder.
SHOW = """
import json, os, sys
def look(path):
    if os.path.isdir(path):
        found = {}
        for where, _, names in os.walk(path):
            for name in names:
                full = os.path.join(where, name)
                found[os.path.relpath(full, path)] = open(full).read()
        return found
    return open(path).read() if os.path.isfile(path) else path
print("SEEN" + json.dumps([look(path) for path in sys.argv[1:]]))
"""


@pytest.fixture
def store(workspace: Workspace, tmp_path: Path) -> Any:
    """up/a.txt and up/sub/b.txt in the default datastore"""
    (tmp_path / "filled" / "sub").mkdir(parents=True)
    (tmp_path / "filled" / "a.txt").write_text("A")
    (tmp_path / "filled" / "sub" / "b.txt").write_text("B")
    found = workspace.get_default_datastore()
    found.upload(str(tmp_path / "filled"), "up", show_progress=False)
    return found


def text_of(run: Any) -> str:
    return str(run.get_logs()["user_logs/std_log.txt"])


def seen(run: Any) -> Any:
    assert run.get_status() == "Completed", run.get_details()
    return json.loads(text_of(run).partition("SEEN")[2].splitlines()[0])


def failed_with(run: Any) -> str:
    assert run.get_status() == "Failed", text_of(run)
    return str(run.get_details()["error"]["error"]["message"])


def below(store: Any, path: str) -> dict[str, str]:
    root = Path(store._folder, path)
    return {str(file.relative_to(root)): file.read_text() for file in root.rglob("*") if file.is_file()}


def from_files(*paths: Any) -> Any:
    return Dataset.File.from_files(list(paths))


# -- inputs


def test_several_files_arrive_as_a_folder_and_one_as_itself(store: Any, finish: Finish) -> None:
    folder, one = from_files((store, "up")), from_files((store, "up/sub/b.txt"))
    run = finish(SHOW, arguments=[folder.as_mount(), one.as_mount(), folder.as_download(), one.as_download()])
    everything = {"a.txt": "A", "sub/b.txt": "B"}
    assert seen(run) == [everything, "B", everything, "B"]


def test_web_files_arrive_under_their_address(web: Web, finish: Finish) -> None:
    urls = web.put("/x/a.gz", b"a"), web.put("/x/b.gz", b"b")
    run = finish(SHOW, arguments=[from_files(*urls).as_named_input("mnist").as_mount()])
    assert seen(run) == [{f"http%3A/%2F127.0.0.1%3A{web.port}/x/{name}.gz": name for name in "ab"}]
    assert f"Lapis: {urls[0]}: 1 bytes are here" in text_of(run)


def test_a_named_input_is_a_variable_and_in_input_datasets(store: Any, workspace: Workspace, finish: Finish) -> None:
    registered = from_files((store, "up")).register(workspace, "kept")
    run = finish(
        """
import json, os, sys
from azureml.core import Run
run = Run.get_context()
assert run.input_datasets["data"] == os.environ["data"] == sys.argv[1], os.environ["data"]
assert run.input_datasets["direct"].to_path() == ["/a.txt", "/sub/b.txt"]
assert os.environ["direct"] == sys.argv[2] == run.input_datasets["direct"].id
assert sorted(os.environ["AZUREML_DATASET_ENVIRONMENT_VARS"].split(",")) == ["data", "direct"]
assert run.input_datasets.get("none") is None
try:
    run.input_datasets["none"]
except Exception as error:
    print("SEEN" + json.dumps(error.message))
""",
        arguments=[registered.as_named_input("data").as_mount(), registered.as_named_input("direct")],
    )
    assert seen(run) == "This run has no input named 'none'. It has: data, direct."


def test_files_on_this_machine_are_linked_and_not_copied_by_a_mount(store: Any, finish: Finish) -> None:
    code = "import os, sys, json\nprint('SEEN' + json.dumps([os.path.islink(p + '/a.txt') for p in sys.argv[1:]]))"
    folder = from_files((store, "up"))
    assert seen(finish(code, arguments=[folder.as_mount(), folder.as_download()])) == [True, False]


def test_a_script_may_change_what_it_downloaded(store: Any, web: Web, finish: Finish) -> None:
    url = web.put("/a.txt", b"web")
    code = "import sys\nfor path in sys.argv[1:]: open(path, 'w').write('changed')"
    run = finish(code, arguments=[from_files((store, "up/a.txt")).as_download(), from_files(url).as_download()])
    assert run.get_status() == "Completed", text_of(run)
    assert below(store, "up")["a.txt"] == "A"
    assert Path(from_files(url).download()[0]).read_text() == "web"


def test_data_appears_where_the_run_wants_it(store: Any, tmp_path: Path, finish: Finish) -> None:
    place = tmp_path / "wanted"
    run = finish(
        SHOW + "\nassert sys.argv[1] == " + repr(str(place)) + "\nassert open('here/a.txt').read() == 'A'",
        arguments=[from_files((store, "up")).as_mount(str(place)), from_files((store, "up")).as_download("here")],
    )
    assert seen(run)[0] == {"a.txt": "A", "sub/b.txt": "B"}


def test_data_never_lands_on_top_of_somebodys_files(store: Any, tmp_path: Path, finish: Finish) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt").write_text("mine")
    run = finish(SHOW, arguments=[from_files((store, "up")).as_named_input("data").as_mount(str(tmp_path / "mine"))])
    said = failed_with(run)
    assert "Input 'data' could not be prepared" in said and "mine/a.txt exists already" in said
    assert (tmp_path / "mine" / "a.txt").read_text() == "mine"


def test_two_runs_that_need_one_file_download_it_once(web: Web, submit: Finish) -> None:
    dataset = from_files(web.put("/once.bin", os.urandom(1 << 20)))
    code = "import sys; print(len(open(sys.argv[1], 'rb').read()))"
    runs = [submit(code, arguments=[dataset.as_mount()]) for _ in "ab"]
    for run in runs:
        run.wait_for_completion()
        assert "1048576" in text_of(run)
    assert len(web.gets("/once.bin")) == 1


def test_an_old_address_is_found_through_a_mirror_that_goes_with_the_run(
    web: Web, finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.put("/new/a.txt", b"moved")
    monkeypatch.setenv("LAPIS_URL_MIRRORS", f"http://gone.example/old/={web.url('/new/')}")
    run = finish(SHOW, arguments=[from_files("http://gone.example/old/a.txt").as_mount()])
    assert seen(run) == ["moved"]
    monkeypatch.setenv("LAPIS_URL_MIRRORS", "nonsense")
    with pytest.raises(UserErrorException, match="LAPIS_URL_MIRRORS holds 'nonsense'"):
        finish(SHOW)


def test_a_cancel_while_data_is_on_the_way_is_obeyed_and_progress_is_seen(web: Web, submit: Finish) -> None:
    dataset = from_files(web.put("/slow.bin", bytes(50 << 20), per_second=4 << 20, ranges=False))
    run = submit("print('never')", arguments=[dataset.as_mount()])
    until(lambda: "MB (" in run.get_logs().get("user_logs/std_log.txt", ""), seconds=30)
    assert run.get_status() == "Running"
    run.cancel()
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Canceled" and "never" not in text_of(run)


# -- what cannot be prepared


def test_a_file_that_is_gone_by_then_is_named_with_its_input_and_the_reason(web: Web, finish: Finish) -> None:
    dataset = from_files(web.put("/a.txt", b"a"), web.put("/b.txt", b"b"))
    del web.pages["/b.txt"]
    said = failed_with(finish(SHOW, arguments=[dataset.as_named_input("mnist").as_mount()]))
    assert "Input 'mnist' could not be prepared" in said and f"{web.url('/b.txt')} is not there (status 404)" in said


def test_a_host_that_is_gone_by_then_is_told(finish: Finish) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/a.txt"
        dataset = Dataset.File.from_files(url, validate=False)
        said = failed_with(finish(SHOW, arguments=[dataset.as_named_input("mnist").as_mount()]))
    assert f"Input 'mnist' could not be prepared. {url} cannot be reached" in said


def test_a_dataset_from_which_nothing_is_left_is_told(store: Any, finish: Finish) -> None:
    said = failed_with(finish(SHOW, arguments=[from_files((store, "up")).skip(9).as_named_input("data").as_mount()]))
    assert "Input 'data' could not be prepared. It holds no file." in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (lambda ds: [from_files((ds, "up"))], r"needs a way to get it: dataset.as_mount\(\)"),
        (
            lambda ds: [from_files((ds, "up")).as_named_input("x").as_mount(),
                        from_files((ds, "up/a.txt")).as_named_input("x").as_mount()],
            "Two different inputs of the run are named 'x'",
        ),
        (lambda ds: [ds.path("a", "r").as_mount(), ds.path("b", "r").as_mount()], "Two different data references"),
        (lambda ds: [OutputFileDatasetConfig("x"), from_files((ds, "up")).as_named_input("x").as_mount()],
         "'x' names an input and an output"),
        (lambda ds: [OutputFileDatasetConfig("x").as_input()], "joins the steps of a pipeline"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_before_anything_is_sent(
    store: Any, submit: Finish, workspace: Workspace, arguments: Any, says: str
) -> None:
    with pytest.raises(UserErrorException, match=says):
        submit(SHOW, arguments=arguments(store))
    assert list(Experiment(workspace, "trial").get_runs()) == []


def test_a_server_fetches_nothing_that_its_settings_forbid(
    home: Home, web: Web, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPIS_FORBIDDEN_ADDRESSES", "127.0.0.0/8")
    monkeypatch.setenv("LAPIS_URL_MIRRORS", f"http://gone.example/={web.url('/')}")
    home.start()
    for name in ("LAPIS_FORBIDDEN_ADDRESSES", "LAPIS_URL_MIRRORS"):
        monkeypatch.delenv(name)  # they are the server's, and not ours
    workspace = Workspace.from_config()
    near, far = from_files(web.put("/a", b"a")), Dataset.File.from_files("http://gone.example/a", validate=False)
    for dataset in (near, far):
        config = ScriptRunConfig(script(SHOW), "train.py", arguments=[dataset.as_mount()])
        run = Experiment(workspace, "web").submit(config)
        run.wait_for_completion(raise_on_error=False)
        assert "127.0.0.1 is among LAPIS_FORBIDDEN_ADDRESSES" in failed_with(run)
    with pytest.raises(UserErrorException, match="'local' cannot be registered: 127.0.0.1 is among LAPIS_FORBIDDEN"):
        Datastore.register_s3_bucket(workspace, "local", "bucket", endpoint="http://127.0.0.1:1", skip_validation=True)
    with pytest.raises(UserErrorException, match="cannot be registered: .* metadata service"):
        Datastore.register_s3_bucket(workspace, "meta", "bucket", endpoint="http://169.254.169.254")


def test_mirrors_of_a_server_serve_its_runs(home: Home, web: Web, script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    web.put("/old", b"old"), web.put("/new", b"new")
    monkeypatch.setenv("LAPIS_URL_MIRRORS", f"http://gone.example/={web.url('/')}")
    home.start()
    experiment = Experiment(Workspace.from_config(), "web")
    dataset = Dataset.File.from_files("http://gone.example/old", validate=False)
    found = []
    for mirrors in ("", f"http://gone.example/old={web.url('/new')}"):  # the user's own go first
        monkeypatch.setenv("LAPIS_URL_MIRRORS", mirrors)
        run = experiment.submit(ScriptRunConfig(script(SHOW), "train.py", arguments=[dataset.as_mount()]))
        run.wait_for_completion()
        found += seen(run)
    assert found == ["old", "new"]


# -- references


def test_a_reference_is_a_path_in_the_arguments_and_a_variable(store: Any, finish: Finish) -> None:
    run = finish(
        SHOW + "\nassert os.environ['AZUREML_DATAREFERENCE_mine'] == sys.argv[1]",
        arguments=[
            store.path("up", "mine").as_mount(),
            store.path("up").as_download(),
            store.path("up/a.txt").as_download(),
            store.path("up/a.txt").as_mount(),
            str(store.path("up", "mine")) + "/a.txt",
        ],
    )
    everything = {"a.txt": "A", "sub/b.txt": "B"}
    assert seen(run) == [everything, everything, "A", "A", "A"]


def test_references_of_the_run_configuration_arrive_too(
    store: Any, experiment: Experiment, script: Callable[..., str]
) -> None:
    config = RunConfiguration()
    reference = store.path("up", "mine").as_download("local")
    config.data_references = {reference.data_reference_name: reference.to_config()}
    code = SHOW + "\nassert os.environ['AZUREML_DATAREFERENCE_mine'] == sys.argv[1] == os.path.abspath('local')"
    run = experiment.submit(ScriptRunConfig(script(code), "train.py", arguments=[str(reference)], run_config=config))
    run.wait_for_completion(raise_on_error=False)
    assert seen(run) == [{"a.txt": "A", "sub/b.txt": "B"}]


def test_what_is_written_for_upload_is_in_the_datastore_afterwards(store: Any, finish: Finish) -> None:
    code = "import os, sys\nto = sys.argv[1] + '/'\nos.makedirs(to + 'sub')\n"
    code += "for name in ('x', 'sub/y'): open(to + name, 'w').write(name)"
    run = finish(code, arguments=[store.path("new").as_upload()])
    assert run.get_status() == "Completed", text_of(run)
    assert below(store, "new") == {"x": "x", "sub/y": "sub/y"}


def test_an_upload_replaces_only_on_request_and_says_what_it_kept(store: Any, finish: Finish) -> None:
    code = "import sys\nopen(sys.argv[1] + '/a.txt', 'w').write('new')\nopen(sys.argv[1] + '/c.txt', 'w').write('c')"
    run = finish(code, arguments=[store.path("up", "out").as_upload()])
    assert run.get_status() == "Completed"
    assert below(store, "up") == {"a.txt": "A", "sub/b.txt": "B", "c.txt": "c"}
    (warning,) = run.get_details()["warnings"]
    assert "a.txt of 'out' could not be uploaded" in warning["message"]
    finish(code, arguments=[store.path("up").as_upload(overwrite=True)])
    assert below(store, "up")["a.txt"] == "new"


def test_a_script_that_fails_has_uploaded_what_it_wrote(store: Any, finish: Finish) -> None:
    code = "import sys\nopen(sys.argv[1] + '/x', 'w').write('x')\nsys.exit(3)"
    run = finish(code, arguments=[store.path("n").as_upload()])
    assert run.get_status() == "Failed" and below(store, "n") == {"x": "x"}


def test_a_mounted_place_that_is_not_there_is_made_to_write_to(store: Any, finish: Finish) -> None:
    finish("import sys; open(sys.argv[1] + '/x', 'w').write('x')", arguments=[store.path("fresh/place").as_mount()])
    assert below(store, "fresh") == {"place/x": "x"}


def test_a_place_to_download_that_is_not_there_is_told(store: Any, finish: Finish) -> None:
    said = failed_with(finish(SHOW, arguments=[store.path("nothing", "r").as_download()]))
    assert "Data reference 'r' could not be prepared. The place it names is not in its datastore." in said


# -- outputs

WRITE = "import sys, os\nfor n in ('a.csv', 'b.txt'): open(os.path.join(sys.argv[1], n), 'w').write(n)\n"


def test_an_output_lands_in_its_own_place_by_default(store: Any, finish: Finish) -> None:
    check = """
from azureml.core import Run
assert Run.get_context().output_datasets["out"] == os.environ["out"] == sys.argv[1]
"""
    for output in (OutputFileDatasetConfig("out"), OutputFileDatasetConfig("out").as_upload()):
        run = finish(WRITE + check, arguments=[output])
        assert run.get_status() == "Completed", text_of(run)
        assert below(store, f"dataset/{run.id}/out") == {"a.csv": "a.csv", "b.txt": "b.txt"}


def test_an_output_is_registered_when_the_run_completes(store: Any, workspace: Workspace, finish: Finish) -> None:
    output = OutputFileDatasetConfig("out", destination=(store, "made/{output-name}/{run-id}"))
    output = output.as_upload(source_globs="*.csv").register_on_complete("cleaned", "by a run", {"k": "v"})
    run = finish(WRITE, arguments=["--to", output][1:])
    assert run.get_status() == "Completed", text_of(run)
    assert below(store, f"made/out/{run.id}") == {"a.csv": "a.csv"}
    made = Dataset.get_by_name(workspace, "cleaned")
    assert (made.version, made.description, made.tags, made.to_path()) == (1, "by a run", {"k": "v"}, ["/a.csv"])
    (written,) = run.get_details()["outputDatasets"]
    assert written["identifier"] == {"savedId": made.id} and written["outputDetails"] == {"outputName": "out"}
    assert (written["dataset"].name, written["dataset"].version) == ("cleaned", 1)
    assert finish(WRITE, arguments=[output.as_mount()]).get_details()["outputDatasets"][0]["dataset"].version == 2


def test_an_output_can_be_kept_as_a_table(store: Any, workspace: Workspace, finish: Finish) -> None:
    pytest.importorskip("pyarrow")
    code = "import sys, os\nfor n in 'ab': open(os.path.join(sys.argv[1], n + '.csv'), 'w').write(f'x,y\\n{n},1\\n')\n"
    code += "open(os.path.join(sys.argv[1], 'notes.txt'), 'w').write('no table')"
    output = OutputFileDatasetConfig("out").read_delimited_files(path_glob="*.csv").keep_columns("x")
    run = finish(code, arguments=[output.as_upload().register_on_complete("rows")])
    assert run.get_status() == "Completed", text_of(run)
    made = Dataset.get_by_name(workspace, "rows")
    assert made.to_pandas_dataframe().to_dict("list") == {"x": ["a", "b"]}
    assert sorted(below(store, f"dataset/{run.id}/out")) == ["a.csv", "b.csv", "notes.txt"]
    first, second = output.drop_columns(["y"]).random_split(0.5, seed=1)
    assert first.as_mount().name == second.name == first.as_input().name == "out"
    assert OutputFileDatasetConfig("p").read_parquet_files().name == "p"


def test_an_output_has_partition_keys(workspace: Workspace, finish: Finish) -> None:
    output = OutputFileDatasetConfig("out", partition_format="/{town}.txt").register_on_complete("parted")
    assert finish("import sys\nopen(sys.argv[1] + '/ghent.txt', 'w').write('x')", arguments=[output])
    assert Dataset.get_by_name(workspace, "parted").get_partition_key_values() == [{"town": "ghent"}]


def test_an_output_is_not_registered_when_the_run_fails_or_wrote_nothing(workspace: Workspace, finish: Finish) -> None:
    output = OutputFileDatasetConfig("out").register_on_complete("cleaned")
    assert finish(WRITE + "sys.exit(1)", arguments=[output]).get_status() == "Failed"
    empty = finish("print('nothing')", arguments=[output])
    assert empty.get_status() == "Completed"
    assert "Output 'out' was not registered: No file matches" in empty.get_details()["warnings"][0]["message"]
    assert workspace.datasets == {}


def test_a_mounted_output_appears_where_the_script_wants_it(store: Any, finish: Finish) -> None:
    output = OutputFileDatasetConfig("out", destination=(store, "made"), source="results/here")
    run = finish("open('results/here/x', 'w').write('x')", arguments=[output])
    assert run.get_status() == "Completed", text_of(run)
    assert below(store, "made") == {"x": "x"}


def test_a_configuration_is_never_changed_by_its_own_calls() -> None:
    output = OutputFileDatasetConfig("out")
    upload = output.as_upload(overwrite=True).register_on_complete("name")
    assert (output.mode, upload.mode, upload.name) == ("mount", "upload", "out")
    assert output._registration is None and upload.as_mount()._registration is not None
    assert str(output) == "DatasetOutputConfig:out"
    assert OutputFileDatasetConfig().name != OutputFileDatasetConfig().name


def test_help_explains_an_output() -> None:
    text = pydoc.render_doc(OutputFileDatasetConfig, renderer=pydoc.plaintext)
    assert "register_on_complete" in text and "{run-id}" in text


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda ds: OutputFileDatasetConfig("a b"), "Output name 'a b'"),
        (lambda ds: OutputFileDatasetConfig("x", destination="somewhere"), "destination is a place in a datastore"),
        (lambda ds: OutputFileDatasetConfig("x", destination=(ds, "../up")), "cannot be used"),
        (lambda ds: OutputFileDatasetConfig("x").as_upload(source_globs=[5]), "source_globs is a list of patterns"),
        (lambda ds: OutputFileDatasetConfig("x").register_on_complete(""), "Dataset name ''"),
        (lambda ds: OutputFileDatasetConfig("x", partition_format="y"), "partition_format looks like"),
        (lambda ds: OutputFileDatasetConfig("x").read_delimited_files(separator="::"), "separator must be one"),
        (lambda ds: OutputFileDatasetConfig("x").read_parquet_files(path_glob="../*"), "A pattern of files"),
        (lambda ds: OutputTabularDatasetConfig(), "is made by OutputFileDatasetConfig"),
        (lambda ds: OutputFileDatasetConfig("x").register_on_complete("n", tags=["t"]), "tags must be a dictionary"),
    ],
)
def test_an_output_that_cannot_be_is_refused(store: Any, make: Any, says: str) -> None:
    with pytest.raises(UserErrorException, match=says):
        make(store)


def test_data_in_a_run_configuration_is_as_good_as_in_arguments(
    store: Any, web: Web, workspace: Workspace, experiment: Experiment, script: Any
) -> None:
    kept = from_files((store, "up")).register(workspace, "kept")
    config = ScriptRunConfig(script(SHOW + WRITE.replace("sys.argv[1]", "os.environ['out']")), "train.py")
    run_config = config.run_config
    run_config.data = {
        "by_id": Data(DataLocation(dataset=DatasetSection(kept.id)), mechanism="Mount"),
        "by_name": Data(DataLocation(dataset=DatasetSection(None, "kept", "1")), mechanism="download"),
        "by_path": Data(DataLocation(data_path=DataPath(store.name, "up/a.txt")), mechanism="mount"),
        "by_url": Data(DataLocation(uri=Uri(web.put("/w", b"W"))), mechanism="mount"),
        "as_it_is": kept.as_named_input("as_it_is"),
    }
    options = OutputOptions(
        None, RegistrationOptions("made", "text", {"k": "v"}), UploadOptions(True, GlobsOptions(["*.csv"]))
    )
    place = DataLocation(data_path=DataPath(store.name, "made"))
    run_config.output_data = {"out": OutputData(place, "upload", options)}
    words = [f"DatasetConsumptionConfig:{name}" for name in run_config.data]
    run_config.save(".", "saved")
    loaded = RunConfiguration.load(".", "saved")  # and as good from a file
    for each in (run_config, loaded):
        each.script, each.arguments = "train.py", [*words, "DatasetConsumptionConfig:unknown"]
        config.run_config = each
        run = experiment.submit(config)
        run.wait_for_completion(raise_on_error=False)
        everything = {"a.txt": "A", "sub/b.txt": "B"}
        assert seen(run) == [everything, everything, "A", "W", kept.id, "DatasetConsumptionConfig:unknown"]
        made = Dataset.get_by_name(workspace, "made")
        assert (made.description, made.tags, made.to_path()) == ("text", {"k": "v"}, ["/a.csv"])


@pytest.mark.parametrize(
    ("data", "outputs", "says"),
    [
        ({"x": Data()}, {}, "data\\['x'\\] of the run configuration does not say where"),
        (
            {"x": Data(DataLocation(dataset=DatasetSection(None, "no")))},
            {},
            'Cannot find dataset registered with name "no"',
        ),
        ({}, {"x": OutputData(mechanism="hdfs")}, "mounted or uploaded, not 'hdfs'"),
    ],
)
def test_a_run_configuration_with_data_that_cannot_be_is_refused(
    experiment: Experiment, script: Any, data: Any, outputs: Any, says: str
) -> None:
    config = ScriptRunConfig(script("pass"), "train.py")
    config.run_config.data, config.run_config.output_data = data, outputs
    with pytest.raises(UserErrorException, match=says):
        experiment.submit(config)


# -- lineage


def test_from_a_version_to_its_runs_and_back(store: Any, workspace: Workspace, finish: Finish) -> None:
    first = from_files((store, "up")).register(workspace, "data")
    second = from_files((store, "up/a.txt")).register(workspace, "data", create_new_version=True)
    output = OutputFileDatasetConfig("out").register_on_complete("made")
    run = finish(WRITE, arguments=[output, first.as_named_input("one").as_mount()])
    made = Dataset.get_by_name(workspace, "made")

    def runs_of(dataset: Any) -> list[tuple[str, str, str]]:
        rows = workspace._client.call("GET", f"{workspace._base}/datasets/{dataset.id}/runs")["runs"]
        return [(row["run_id"], row["role"], row["name"]) for row in rows]

    assert runs_of(first) == [(run.id, "input", "one")]
    assert runs_of(second) == []
    assert runs_of(made) == [(run.id, "output", "out")]
    uses = workspace._client.call("GET", f"{workspace._base}/runs/{run.id}/datasets")["datasets"]
    seen = [(use["role"], use["dataset"]["name"], use["dataset"]["version"]) for use in uses]
    assert seen == [("input", "data", 1), ("output", "made", 1)]
    (read,) = run.get_details()["inputDatasets"]
    assert read["dataset"].id == first.id and read["dataset"].to_path() == first.to_path()
    assert read["consumptionDetails"] == {"type": "RunInput", "inputName": "one", "mechanism": "Mount"}
    made.unregister_all_versions()
    (gone,) = run.get_details()["outputDatasets"]
    assert gone["dataset"] == {"id": gone["identifier"]["savedId"]}
    with pytest.raises(UserErrorException, match="no-such"):
        workspace._client.call("GET", f"{workspace._base}/datasets/no-such/runs")


def test_what_was_never_registered_is_in_the_lineage_too(store: Any, workspace: Workspace, finish: Finish) -> None:
    read = from_files((store, "up")).take(1)
    arguments = [OutputFileDatasetConfig("out"), read.as_named_input("one").as_mount()]
    for code, state in ((WRITE, "Completed"), (WRITE + "sys.exit(1)", "Failed")):
        run = finish(code, arguments=arguments)
        assert run.get_status() == state, text_of(run)
        details = run.get_details()
        (used,), (written,) = details["inputDatasets"], details["outputDatasets"]
        assert (
            used["dataset"] == read and used["dataset"].id and used["dataset"].name is used["dataset"].version is None
        )
        again = Dataset.get_by_id(workspace, written["identifier"]["savedId"])
        assert again == written["dataset"] and again.to_path() == ["/a.csv", "/b.txt"]
        assert again._definition["sources"][0]["path"] == f"dataset/{run.id}/out"
    assert workspace.datasets == {}
    with pytest.raises(UserErrorException, match="Only a registered dataset can be changed"):
        again.add_tags({"k": "v"})
    with pytest.raises(UserErrorException, match="Only a registered dataset can be changed"):
        workspace._client.call("PATCH", f"{workspace._base}/datasets/{again.id}", {"tags": {"k": "v"}})
    assert again.register(workspace, "kept").name == "kept"


def test_a_run_that_never_started_its_script_wrote_nothing(finish: Finish, tmp_path: Path) -> None:
    absent = Dataset.File.from_files(str(tmp_path / "absent"), validate=False)
    run = finish(WRITE, arguments=[OutputFileDatasetConfig("out"), absent.as_mount()])
    assert run.get_status() == "Failed" and run.get_details()["outputDatasets"] == []


def test_a_dataset_of_another_workspace_cannot_be_looked_up(workspace: Workspace, finish: Finish) -> None:
    other = Workspace.create("other-" + os.urandom(4).hex(), show_output=False)
    dataset = Dataset.File.from_files((other.get_default_datastore(), "x"), validate=False)
    with pytest.raises(UserErrorException, match="Mount or download it"):
        finish(SHOW, arguments=[dataset.as_named_input("data")])


def test_a_dataset_that_a_script_registers_is_there(store: Any, workspace: Workspace, finish: Finish) -> None:
    run = finish(
        """
from azureml.core import Dataset, Run
ws = Run.get_context().experiment.workspace
Dataset.File.from_files((ws.get_default_datastore(), "up")).register(ws, "by script")
"""
    )
    assert run.get_status() == "Completed", text_of(run)
    assert Dataset.get_by_name(workspace, "by script").to_path() == ["/a.txt", "/sub/b.txt"]


def test_a_datastore_that_is_registered_serves_runs(workspace: Workspace, tmp_path: Path, finish: Finish) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x.txt").write_text("X")
    mine = Datastore.register_folder(workspace, "mine", tmp_path / "mine")
    assert seen(finish(SHOW, arguments=[mine.as_mount(), from_files((mine, "/")).as_mount()])) == [{"x.txt": "X"}, "X"]

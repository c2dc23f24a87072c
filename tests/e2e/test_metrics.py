"""What is logged comes back as SDK v1 gives it, wherever it was logged from; what cannot be stored is refused."""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy
import pytest

from azureml.core import Experiment, Run, ScriptRunConfig, Workspace
from azureml.exceptions import UserErrorException
from lapis.testing import Home

Submit = Callable[..., Any]

MATRIX = {"class_labels": ["cat", "dog"], "matrix": [[3, 1], [0, 4]]}
TABLES = {
    "probability_tables": [[[1, 2, 3, 4], [4, 3, 2, 1]]],
    "percentile_tables": [[[1, 2, 3, 4], [4, 3, 2, 1]]],
    "probability_thresholds": [0.0, 1.0],
    "percentile_thresholds": [0.0, 0.5],
    "class_labels": ["cat"],
}
PREDICTIONS = {"bin_averages": [0.25, 0.75], "bin_errors": [0.1, 0.2], "bin_counts": [5, 7], "bin_edges": [0, 0.5, 1]}
RESIDUALS = {"bin_edges": [-1.0, 0.0, 1.0], "bin_counts": [4, 6]}
PLOTS = {"confusion_matrix": MATRIX, "accuracy_table": TABLES, "predictions": PREDICTIONS, "residuals": RESIDUALS}

EVERYTHING = f"""
run.log("loss", 0.5)
run.log("accuracy", 0.1); run.log("accuracy", 0.2, "described", step=7); run.log("accuracy", 1)
run.log("note", "grüße")
run.log_list("squares", [1, 4, 9])
run.log_list("evens", (n * 2 for n in range(3)))
run.log_row("point", x=1, y=2.5)
run.log_row("curve", "a description by position", epoch=1, loss=0.9)
run.log_row("curve", epoch=2, loss=0.8)
run.log_table("table", {{"name": ["a", "b"], "value": [1, 2]}})
with open("picture.png", "wb") as file: file.write(b"not really a picture")
run.log_image("picture", path="picture.png")
run.log_confusion_matrix("matrix", {MATRIX!r})
run.log_accuracy_table("tables", {TABLES!r})
run.log_predictions("predictions", {PREDICTIONS!r})
run.log_residuals("residuals", {RESIDUALS!r})
"""


@pytest.fixture(params=["in a job", "interactively"])
def logged(request: pytest.FixtureRequest, experiment: Experiment, submit: Submit) -> Callable[[str], Any]:
    """`logged(code)` gives the completed run that `code` logged to under the name `run`."""

    def go(code: str) -> Any:
        if request.param == "in a job":
            run = submit("import numpy\nfrom azureml.core import Run\nrun = Run.get_context()\n" + code)
            run.wait_for_completion()
        else:
            with experiment.start_logging() as run:
                exec(code, {"run": run, "numpy": numpy})
        return Run.get(experiment.workspace, run.id)

    return go


def reference(run: Any, value: str) -> str:
    """The file in the run that a logged image or plot refers to."""
    start = f"aml://artifactId/ExperimentRun/dcid.{run.id}/"
    assert value.startswith(start)
    return value[len(start) :]


# -- what comes back


def test_everything_that_can_be_logged_comes_back(logged: Callable[[str], Any], tmp_path: Path) -> None:
    run = logged(EVERYTHING)
    metrics = run.get_metrics()
    expected = {
        "loss": 0.5,
        "accuracy": [0.1, 0.2, 1],
        "note": "grüße",
        "squares": [1, 4, 9],
        "evens": [0, 2, 4],
        "point": {"x": 1, "y": 2.5},
        "curve": {"epoch": [1, 2], "loss": [0.9, 0.8]},
        "table": {"name": ["a", "b"], "value": [1, 2]},
    }
    assert {name: metrics[name] for name in expected} == expected
    assert list(metrics) == [*expected, "picture", "matrix", "tables", "predictions", "residuals"]
    picture = reference(run, metrics["picture"])
    assert picture.startswith("picture_") and picture.endswith(".png") and picture in run.get_file_names()
    run.download_file(picture, tmp_path / "got.png")
    assert (tmp_path / "got.png").read_bytes() == b"not really a picture"


def test_plots_are_documents_that_populate_brings_in(logged: Callable[[str], Any]) -> None:
    run = logged(
        "".join(f"run.log_{kind}('{kind}', {value!r})\n" for kind, value in PLOTS.items())
        + "run.log('plain', 'aml://not a reference')\n"
    )
    found = run.get_metrics(populate=True)
    assert found.pop("plain") == "aml://not a reference"
    for kind, data in PLOTS.items():
        assert found[kind] == {"schema_type": kind, "schema_version": "1.0.0", "data": data}
    assert reference(run, run.get_metrics()["residuals"]).endswith(".json")


def test_numbers_of_numpy_are_numbers(logged: Callable[[str], Any]) -> None:
    run = logged(
        "run.log('float32', numpy.float32(0.5)); run.log('int64', numpy.int64(-3))\n"
        "run.log('bool', numpy.bool_(True))\n"
        "run.log('zero dimensions', numpy.array(2.5)); run.log('text', numpy.str_('x'))\n"
        "run.log_list('array', numpy.array([1.5, 2.5])); run.log_list('mixed', [numpy.int8(1), 2, 'three'])\n"
        "run.log_row('row', a=numpy.float64(1.25), b=numpy.uint8(7))\n"
        "run.log_table('table', {'x': numpy.arange(3), 'y': [numpy.float16(0.5)] * 3})\n"
        "run.log('stepped', 1.0, step=numpy.int64(4))\n"
        "run.log_confusion_matrix('matrix', {'class_labels': ['a'], 'matrix': numpy.array([[4]])})\n"
    )
    metrics = run.get_metrics(populate=True)
    assert metrics.pop("matrix")["data"]["matrix"] == [[4]]
    assert metrics == {
        "float32": 0.5,
        "int64": -3,
        "bool": True,
        "zero dimensions": 2.5,
        "text": "x",
        "array": [1.5, 2.5],
        "mixed": [1, 2, "three"],
        "row": {"a": 1.25, "b": 7},
        "table": {"x": [0, 1, 2], "y": [0.5, 0.5, 0.5]},
        "stepped": 1.0,
    }


def test_unusual_numbers_and_texts_come_back_as_they_were(logged: Callable[[str], Any]) -> None:
    run = logged(
        "from decimal import Decimal\n"
        "nan, inf = float('nan'), float('inf')\n"
        "for value in (nan, inf, -inf): run.log('edge', value)\n"
        "run.log_list('list', [nan, 1.0]); run.log('true', True); run.log('huge', 2 ** 70); run.log('nothing', None)\n"
        "run.log('tiny', 5e-324); run.log('decimal', Decimal('0.25'))\n"
        "run.log('text', 'a \"quote\"\\n\\0 \\u2028 \\U0001f600'); run.log('empty', '')\n"
        "run.log('long', 'x' * 100_000)\n"
    )
    metrics = run.get_metrics()
    assert math.isnan(metrics["edge"][0]) and metrics["edge"][1:] == [math.inf, -math.inf]
    assert math.isnan(metrics["list"][0]) and metrics["list"][1] == 1.0
    assert metrics["true"] is True and metrics["huge"] == 2**70 and metrics["nothing"] is None
    assert metrics["tiny"] == 5e-324 and metrics["decimal"] == 0.25
    assert metrics["text"] == 'a "quote"\n\0 \u2028 \U0001f600'
    assert metrics["long"] == "x" * 100_000 and metrics["empty"] == ""


def test_the_same_name_again_adds_to_it(logged: Callable[[str], Any]) -> None:
    run = logged(
        "with open('a.png', 'wb'), open('b.png', 'wb'): pass\n"
        "run.log_list('list', [1, 2]); run.log_list('list', [3])\n"
        "run.log_table('table', {'x': [1], 'y': [2]}); run.log_table('table', {'x': [3, 4]})\n"
        "run.log_row('rows', a=1); run.log_row('rows', b=2); run.log_row('rows', a=3, b=4)\n"
        "run.log_image('image', path='a.png'); run.log_image('image', path='b.png')\n"
        f"run.log_residuals('plot', {RESIDUALS!r}); run.log_residuals('plot', {RESIDUALS!r})\n"
    )
    metrics = run.get_metrics(populate=True)
    assert metrics["list"] == [1, 2, 3]
    assert metrics["table"] == {"x": [1, 3, 4], "y": [2, None, None]}
    assert metrics["rows"] == {"a": [1, None, 3], "b": [None, 2, 4]}
    assert len({reference(run, value) for value in metrics["image"]}) == 2
    assert [plot["data"] for plot in metrics["plot"]] == [RESIDUALS, RESIDUALS]


def test_matplotlib_plots_are_stored_as_pictures(logged: Callable[[str], Any], tmp_path: Path) -> None:
    run = logged(
        "import matplotlib; matplotlib.use('Agg')\n"
        "import matplotlib.pyplot as plt\n"
        "plt.plot([1, 2, 3]); run.log_image('current plot', plot=plt)\n"
        "figure = plt.figure(); run.log_image('a figure', plot=figure); plt.close('all')\n"
    )
    for value in run.get_metrics().values():
        run.download_file(reference(run, value), tmp_path / "plot.png")
        assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_metrics_can_be_read_inside_the_job_that_logs_them(finish: Submit) -> None:
    run = finish(
        "from azureml.core import Run\n"
        "run = Run.get_context()\n"
        "run.log('a', 1); run.log('a', 2)\n"
        f"run.log_residuals('plot', {RESIDUALS!r})\n"
        "assert run.get_metrics('a') == {'a': [1, 2]}, run.get_metrics()\n"
        f"assert run.get_metrics(populate=True)['plot']['data'] == {RESIDUALS!r}\n"
        "child = run.child_run('fold')\n"
        "child.log('b', 3)\n"
        "assert child.get_metrics() == {'b': 3}\n"
    )
    assert run.get_status() == "Completed", run.get_details()["error"]


# -- filters


def test_one_name_can_be_asked_for(experiment: Experiment) -> None:
    with experiment.start_logging() as run:
        run.log("a", 1)
        run.log("b", 2)
    assert run.get_metrics(name="b") == {"b": 2}
    assert run.get_metrics("c") == {}


def test_recursive_metrics_come_by_run_id(experiment: Experiment) -> None:
    with experiment.start_logging() as parent:
        parent.log("level", 0)
        with parent.child_run() as child:
            child.log("level", 1)
            child.log_residuals("plot", RESIDUALS)
            with child.child_run() as grandchild:
                grandchild.log("level", 2)
                grandchild.log("other", 3)
    found = parent.get_metrics("level", recursive=True)
    assert found == {parent.id: {"level": 0}, child.id: {"level": 1}, grandchild.id: {"level": 2}}
    assert parent.get_metrics() == {"level": 0}
    populated = parent.get_metrics("plot", recursive=True, populate=True)
    assert populated[child.id]["plot"]["data"] == RESIDUALS


def test_metrics_can_be_narrowed_to_a_type_of_run(experiment: Experiment, script: Submit) -> None:
    code = "from azureml.core import Run; Run.get_context().log('a', 1)"
    with experiment.start_logging() as parent:
        parent.log("a", 0)
        child = parent.submit_child(ScriptRunConfig(script(code), script="train.py"))
        child.wait_for_completion()
    assert parent.get_metrics(recursive=True, run_type="azureml.scriptrun") == {child.id: {"a": 1}}


# -- many of them


def test_three_thousand_rows_of_fifteen_columns_take_no_time(experiment: Experiment) -> None:
    names = [f"column {number}" for number in range(15)]
    with experiment.start_logging() as run:
        began = time.monotonic()
        for number in range(3000):
            run.log_row("rows", **{name: number + 0.5 for name in names})
        assert time.monotonic() - began < 3
        rows = run.get_metrics("rows")["rows"]
        assert time.monotonic() - began < 10
    assert list(rows) == names
    assert rows["column 14"] == [number + 0.5 for number in range(3000)]


def test_a_list_of_two_hundred_thousand_numbers_is_one_metric(experiment: Experiment) -> None:
    numbers = [number / 7 for number in range(200_000)]
    with experiment.start_logging() as run:
        run.log("before", 1)
        run.log_list("many", numbers)
        run.log("after", 2)
    metrics = run.get_metrics()
    assert metrics["many"] == numbers and (metrics["before"], metrics["after"]) == (1, 2)


def test_a_thousand_names_are_a_thousand_metrics(experiment: Experiment) -> None:
    with experiment.start_logging() as run:
        for number in range(1000):
            run.log(f"metric {number}", number)
    assert run.get_metrics() == {f"metric {number}": number for number in range(1000)}


def test_threads_lose_no_point(experiment: Experiment) -> None:
    with experiment.start_logging() as run:

        def log_some(which: int) -> None:
            for number in range(500):
                run.log(f"thread {which}", number)
                run.log("all", which * 1000 + number)

        threads = [threading.Thread(target=log_some, args=(which,)) for which in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    metrics = run.get_metrics()
    assert all(metrics[f"thread {which}"] == list(range(500)) for which in range(8))
    assert sorted(metrics["all"]) == [which * 1000 + number for which in range(8) for number in range(500)]


FORKS = """
import multiprocessing, os, threading
def log_some(which):
    def go(part):
        for number in range(100): run.log("all", which * 1000 + part * 100 + number)
    threads = [threading.Thread(target=go, args=(part,)) for part in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    open(f"{which}.png", "wb").close()
    run.log_image("image", path=f"{which}.png")
forks = [multiprocessing.get_context("fork").Process(target=log_some, args=(which,)) for which in range(1, 9)]
for fork in forks: fork.start()
log_some(0)
for fork in forks: fork.join()
assert all(fork.exitcode == 0 for fork in forks)
"""
FORKED = sorted(which * 1000 + number for which in range(9) for number in range(200))


def test_threads_and_forked_processes_of_a_job_lose_no_point(finish: Submit) -> None:
    run = finish("from azureml.core import Run\nrun = Run.get_context()\n" + FORKS)
    assert run.get_status() == "Completed", run.get_details()["error"]
    assert sorted(run.get_metrics()["all"]) == FORKED
    assert len(set(run.get_metrics()["image"])) == 9
    assert all(reference(run, value) in run.get_file_names() for value in run.get_metrics()["image"])


def test_threads_and_forked_processes_of_an_interactive_run_lose_no_point(
    workspace: Workspace, python: Callable[..., str]
) -> None:
    python(
        "import sys\nfrom azureml.core import Experiment, Workspace\n"
        "run = Experiment(Workspace.get(sys.argv[1]), 'trial').start_logging(run_id='forking')\n"
        f"{FORKS}\nrun.complete()\n",
        workspace.name,
    )
    run = Run.get(workspace, "forking")
    assert run.get_status() == "Completed"
    assert sorted(run.get_metrics()["all"]) == FORKED
    assert all(reference(run, value) in run.get_file_names() for value in run.get_metrics()["image"])


def test_a_second_process_can_log_to_a_run(experiment: Experiment, python: Callable[..., str]) -> None:
    run = experiment.start_logging()
    run.log("from", "the first")
    run.flush()
    code = (
        "import sys\nfrom azureml.core import Run, Workspace\n"
        "run = Run.get(Workspace.get(sys.argv[1]), sys.argv[2])\n"
        "run.log('from', 'the second'); open('p.png', 'wb').close(); run.log_image('image', path='p.png')\n"
    )
    python(code, experiment.workspace.name, run.id)
    assert run.get_metrics()["from"] == ["the first", "the second"]
    assert reference(run, run.get_metrics()["image"]) in run.get_file_names()
    run.complete()
    python(code, experiment.workspace.name, run.id)
    assert run.get_metrics()["from"] == ["the first", "the second", "the second"], "also when it has ended"


def test_a_server_that_is_away_neither_blocks_nor_raises(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = Experiment(Workspace.from_config(), "away").start_logging()
    child = run.child_run()
    home.kill_server()
    began = time.monotonic()
    for number in range(1000):
        run.log("number", number)
        child.log("number", -number)
    run.log_residuals("plot", RESIDUALS)
    assert time.monotonic() - began < 2
    run.complete()  # starts the server again
    assert run.get_metrics()["number"] == list(range(1000))
    assert child.get_metrics()["number"] == [-number for number in range(1000)]
    assert run.get_metrics(populate=True)["plot"]["data"] == RESIDUALS


def test_a_picture_of_a_child_waits_for_a_server_that_is_away(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parent = Experiment(Workspace.from_config(), "away").start_logging()
    child = parent.child_run()
    home.kill_server()
    began = time.monotonic()
    child.log_residuals("plot", RESIDUALS)
    assert time.monotonic() - began < 0.5
    parent.complete()
    assert child.get_metrics(populate=True)["plot"]["data"] == RESIDUALS
    assert [name for name in parent.get_file_names() if name.startswith("plot")] == []


# -- what cannot be stored


class Odd:
    """Nothing that could be a value."""


DEEP: Any = []
for _ in range(2000):
    DEEP = [DEEP]
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize("name", ["", "   ", "x" * 256, "a\nb", "a\0b", "half \ud800", 5, None, b"bytes", ["a"]])
def test_a_name_that_cannot_be_stored_is_refused(name: Any, run: Any) -> None:
    for log in (run.log, run.log_list, run.log_table, run.log_confusion_matrix):
        with pytest.raises(UserErrorException, match="name"):
            log(name, 1)
    with pytest.raises(UserErrorException, match="name"):
        run.log_row(name, x=1)
    with pytest.raises(UserErrorException, match="name"):
        run.log_image(name, path=__file__)


@pytest.mark.parametrize(
    "log, value",
    [
        *(("log", value) for value in (Odd(), b"bytes", {"a": 1}, [1], {1}, 1j, numpy.array([1, 2]), 10**5000, print)),
        *(("log_list", value) for value in ("text", b"bytes", {"a": 1}, [Odd()], [{"a": 1}], Odd(), DEEP, CIRCLE)),
        *(("log_table", value) for value in ([1], {}, "text", None, {"x": Odd()}, {"x": DEEP}, {"x": [10**5000]})),
        ("log_confusion_matrix", {"class_labels": ["a"]}),
        ("log_confusion_matrix", "not JSON"),
        ("log_confusion_matrix", {"class_labels": ["a"], "matrix": [[Odd()]]}),
        ("log_confusion_matrix", [1]),
        ("log_accuracy_table", MATRIX),
        ("log_predictions", json.dumps(RESIDUALS)),
        ("log_residuals", None),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_value_that_cannot_be_stored_is_refused(log: str, value: Any, run: Any) -> None:
    with pytest.raises(UserErrorException, match="'metric'"):
        getattr(run, log)("metric", value)


def test_a_row_that_cannot_be_stored_is_refused(run: Any) -> None:
    for columns in ({}, {"x": [1, 2]}, {"x": Odd()}, {"x": 1, "": 2}, {"x": 1, "half \ud800": 2}):
        with pytest.raises(UserErrorException):
            run.log_row("metric", **columns)


@pytest.mark.parametrize("step", ["one", 1.5, Odd(), 2**63, float("nan"), [1]])
def test_a_step_that_is_no_whole_number_is_refused(step: Any, run: Any) -> None:
    with pytest.raises(UserErrorException, match="step"):
        run.log("metric", 1.0, step=step)


def test_an_image_that_is_not_there_or_no_plot_is_refused(run: Any, tmp_path: Path) -> None:
    for given in ({}, {"path": "a.png", "plot": Odd()}, {"path": tmp_path / "no.png"}, {"plot": Odd()}, {"path": 5}):
        with pytest.raises(UserErrorException, match="'metric'"):
            run.log_image("metric", **given)


def test_an_image_of_a_long_name_is_stored(experiment: Experiment) -> None:
    with experiment.start_logging() as run:
        run.log_residuals("ü" * 255, RESIDUALS)
        run.log_residuals("../../etc/passwd", RESIDUALS)
    found = run.get_metrics(populate=True)
    assert [found[name]["data"] for name in ("ü" * 255, "../../etc/passwd")] == [RESIDUALS, RESIDUALS]


@pytest.fixture
def run(experiment: Experiment) -> Any:
    """A run that was refused something has stored nothing, and takes the next point."""
    with experiment.start_logging() as run:
        yield run
        assert run.get_metrics() == {} and run.get_file_names() == []
        run.log("good", 1)
    assert run.get_metrics() == {"good": 1}


def test_text_logged_as_json_is_read_as_a_plot(experiment: Experiment) -> None:
    document = {"schema_type": "confusion_matrix", "schema_version": "v1", "data": MATRIX}
    with experiment.start_logging() as run:
        run.log_confusion_matrix("text", json.dumps(MATRIX))
        run.log_confusion_matrix("document", document)
    found = run.get_metrics(populate=True)
    assert found["text"]["data"] == MATRIX
    assert found["document"] == document


def test_a_decimal_and_a_fraction_are_numbers(experiment: Experiment) -> None:
    from fractions import Fraction

    with experiment.start_logging() as run:
        run.log("half", Fraction(1, 2))
        run.log("quarter", Decimal("0.25"))
    assert run.get_metrics() == {"half": 0.5, "quarter": 0.25}
    assert not os.path.exists("half")

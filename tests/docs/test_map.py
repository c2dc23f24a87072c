"""The maps are true: what docs/life-of-a-run.md names exists and lies on the path, CONTRIBUTING's tree is the tree."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.traced import called_by

ROOT = Path(__file__).parents[2]
LAPIS = ROOT / "src" / "lapis"
PAGE = (ROOT / "docs" / "life-of-a-run.md").read_text()
TREE = (ROOT / "CONTRIBUTING.md").read_text()

# What the story below does not come to: each needs a fault, a server elsewhere, MPI or much time.
NOT_IN_THE_STORY = {
    ("agent/mpi.py", "members"),
    ("agent/mpi.py", "blamed"),
    ("agent/hanging.py", "save_stacks"),
    ("agent/service.py", "take_up"),
    ("domain/service_moves.py", "ended"),
    ("domain/stopping.py", "looks_at"),
    ("files/streaming.py", "offer"),
    ("server/control/bayesian.py", "next"),
    ("server/control/bayesian.py", "started"),
    ("server/control/bayesian.py", "ended"),
}

STORY = '''
import json, os

def file(name, text):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    open(name, "w").write(text)

file("train/train.py", """
import sys
from azureml.core import Run
run = Run.get_context()
print(open(sys.argv[1]).read())
for step in range(10):
    run.log("loss", 1.0 / (step + 1))
open("outputs/model.txt", "w").write("weights")
""")
file("nodes/train.py", "import os; print('rank', os.environ['RANK'])")
file("trial/train.py", "from azureml.core import Run; Run.get_context().log('accuracy', 0.5)")
file("score/score.py", "def init(): pass\\ndef run(data): return data\\n")
file("data/a.txt", "hello")

from azureml.core import Dataset, Environment, Experiment, Model, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.conda_dependencies import CondaDependencies
from azureml.core.model import InferenceConfig
from azureml.core.runconfig import PyTorchConfiguration
from azureml.core.webservice import LocalWebservice
from azureml.train.hyperdrive import (
    BanditPolicy, HyperDriveConfig, PrimaryMetricGoal, RandomParameterSampling, choice, uniform,
)

ws = Workspace.from_config()
exp = Experiment(ws, "story")
store = ws.get_default_datastore()
store.upload("data", "data")
environment = Environment("story")
environment.python.conda_dependencies = CondaDependencies.create(pip_packages=["six"], pin_sdk_version=False)
data = Dataset.File.from_files((store, "data/a.txt")).as_named_input("text").as_mount()
config = ScriptRunConfig("train", script="train.py", arguments=[data], environment=environment)
run = exp.submit(config)
run.wait_for_completion(show_output=True)
assert run.get_status() == "Completed" and len(run.get_metrics()["loss"]) == 10, run.get_details()

cluster = ComputeTarget.create(ws, "two", AmlCompute.provisioning_configuration("STANDARD_D2_V2", max_nodes=2))
cluster.wait_for_completion()
nodes = exp.submit(ScriptRunConfig(
    "nodes", script="train.py", compute_target="two",
    distributed_job_config=PyTorchConfiguration(process_count=2, node_count=2)))
nodes.wait_for_completion()
assert nodes.get_status() == "Completed", nodes.get_details()

search = exp.submit(HyperDriveConfig(
    run_config=ScriptRunConfig("trial", script="train.py"),
    hyperparameter_sampling=RandomParameterSampling({"--a": choice(1, 2), "--b": uniform(0, 1)}),
    primary_metric_name="accuracy", primary_metric_goal=PrimaryMetricGoal.MAXIMIZE, max_total_runs=2))
search.wait_for_completion()
assert search.get_status() == "Completed", search.get_details()

service = Model.deploy(
    ws, "story", [], InferenceConfig(entry_script="score.py", source_directory="score"),
    LocalWebservice.deploy_configuration())
service.wait_for_deployment()
assert service.run(json.dumps({"a": 1})) is not None
service.update()
service.wait_for_deployment()
service.delete()
'''


class Named(NamedTuple):
    file: str
    function: str


def _rows() -> list[Named]:
    rows = re.findall(r"^\| \d+ \| ([^|]+) \| ([^|]+) \|", PAGE, re.M)
    return [
        Named(file, function)
        for files, functions in rows
        for function in re.findall(r"`([\w.]+)(?:\(\))?`", functions)
        for file in [_home(re.findall(r"`([\w/.]+\.py)`", files), function)]
    ]


def _home(files: list[str], function: str) -> str:
    """Of several files in one row, the one that has the function."""
    return next((file for file in files if _defines(file, function)), files[0])


def _defines(file: str, function: str) -> bool:
    path = LAPIS / file
    return path.is_file() and any(_is(name, function) for name in _definitions(path))


def _definitions(path: Path) -> set[str]:
    found = set()

    def walk(node: ast.AST, above: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(above + child.name)
                walk(child, f"{above}{child.name}.")

    walk(ast.parse(path.read_text()), "")
    return found


def _is(qualified: str, named: str) -> bool:
    return qualified == named or qualified.endswith("." + named)


def test_the_rows_are_numbered_one_after_the_other_and_the_first_table_has_ten() -> None:
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \| `", PAGE, re.M)]
    assert numbers == list(range(1, len(numbers) + 1))
    first = PAGE[PAGE.index("## Ten files") : PAGE.index("## Side story")]
    assert len(re.findall(r"^\| \d+ \|", first, re.M)) == 10


@pytest.mark.parametrize("named", _rows(), ids=lambda named: f"{named.file}:{named.function}")
def test_what_the_page_names_is_there(named: Named) -> None:
    assert _defines(named.file, named.function)


def test_every_other_file_that_the_page_names_is_there() -> None:
    named = {path for path in re.findall(r"`((?:[\w-]+/)+[\w-]+\.py)`", PAGE) if not path.startswith("tests/")}
    assert [path for path in sorted(named) if not (LAPIS / path).is_file()] == []
    of_tests = re.findall(r"`(tests/[\w/]+\.py)`", PAGE)
    assert [path for path in of_tests if not (ROOT / path).is_file()] == []


def test_what_the_page_names_is_called_when_a_run_a_search_and_a_service_live(tmp_path: Path) -> None:
    called = called_by(STORY, tmp_path)
    missed = [
        named
        for named in _rows()
        if tuple(named) not in NOT_IN_THE_STORY
        and not any(file == f"lapis/{named.file}" and _is(name, named.function) for file, name in called)
    ]
    assert missed == [], [tuple(named) for named in missed]


def test_the_glossary_names_files_that_are_there() -> None:
    named = re.findall(r"\| `([\w/.]+)` \|", (ROOT / "docs" / "glossary.md").read_text())
    assert [path for path in named if not (LAPIS / path).exists()] == [] and len(named) > 20


def test_the_tree_of_contributing_names_every_package() -> None:
    drawn, at = set(), {0: ""}
    for line in TREE[TREE.index("src/lapis/\n") : TREE.index("tests/  ")].splitlines()[1:]:
        depth = len(line) - len(line.lstrip())
        for word in re.findall(r"^ +([\w.]+/?)|(?<=/)  ([\w]+/)", line):
            name = next(filter(None, word))
            drawn.add(at[max(key for key in at if key < depth)] + name.rstrip("/"))
            at = {key: value for key, value in at.items() if key < depth} | {depth: drawn_path(at, depth, name)}
    there = {
        str(path.parent.relative_to(LAPIS)) for path in LAPIS.rglob("__init__.py") if "migrations" not in path.parts
    }
    modules = {path.name for path in LAPIS.glob("*.py")} - {"__init__.py"}
    assert sorted(((there - {"."}) | modules) - drawn) == []
    assert sorted(path for path in drawn if not (LAPIS / path).exists()) == []


def drawn_path(at: dict[int, str], depth: int, name: str) -> str:
    return at[max(key for key in at if key < depth)] + name

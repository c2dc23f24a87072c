"""How the Ray engine speaks to its driver, without Ray: the lines that go to and fro, and what goes wrong with them."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lapis.domain.job import Job
from lapis.domain.launch import Assignment
from lapis.engines import ray as ray_engine
from lapis.engines.base import JobSpec, JobState
from lapis.engines.ray import RayEngine, pack_sources
from lapis.engines.ray_driver import serve, why_waiting
from lapis.errors import ComputeTargetException
from lapis.testing import until
from tests.launches import work

# Answers each question from a table, and writes down what it was asked.
DRIVER = """
import json, os, sys
answers, asked = json.loads(sys.argv[1]), open(sys.argv[2], "a", buffering=1)
print(json.dumps(answers.pop("first", {"ready": True})), flush=True)
for line in sys.stdin:
    question = json.loads(line)
    asked.write(json.dumps([os.getpid(), question["do"], question["with"]]) + "\\n")
    if question["do"] in answers:
        print(json.dumps({"id": question["id"], "result": answers[question["do"]]}), flush=True)
    elif question["do"] == "die":
        sys.exit(1)
    else:
        print(json.dumps({"id": question["id"], "error": "ValueError: no such thing"}), flush=True)
"""
Make = Callable[..., RayEngine]


@pytest.fixture
def port() -> Iterator[int]:
    """Something answers at that port of loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def make(tmp_path: Path, port: int) -> Iterator[Make]:
    made: list[RayEngine] = []

    def go(server_address: str | None = None, **answers: object) -> RayEngine:
        command = [sys.executable, "-c", DRIVER, json.dumps(answers), str(tmp_path / "asked")]
        made.append(RayEngine(str(tmp_path / "work"), f"127.0.0.1:{port}", server_address, command=command))
        return made[-1]

    yield go
    for engine in made:
        engine.close()


def asked(tmp_path: Path) -> list[tuple[int, str, dict[str, object]]]:
    return [tuple(json.loads(line)) for line in (tmp_path / "asked").read_text().splitlines()]


def test_a_run_is_launched_with_the_shape_of_its_nodes_and_the_address_of_the_server(
    make: Make, tmp_path: Path
) -> None:
    engine = make("http://10.0.0.5:8787/", launch=["run-1/2/0/n", "run-1/2/1/n"])
    given = work(Job(script="train.py"), address_file="/a", blobs="/b", attempt=2)
    nodes = tuple(engine.start_node(f"node-{n}", n, {"cores": 6, "gpus": 1, "max_nodes": 2}) for n in range(2))
    handle = engine.launch(JobSpec("run-1", given, nodes))
    assert handle == {"job": "run-1", "agents": ["run-1/2/0/n", "run-1/2/1/n"]}
    ((_, do, what),) = asked(tmp_path)
    assert (do, what["job"], what["attempt"]) == ("launch", "run-1", 2)
    assert what["shapes"] == [{"cores": 6, "gpus": 1}] * 2
    sent = Assignment.from_json(what["assignment"]).work
    expected = replace(given.launch, server="http://10.0.0.5:8787", address_file=None, blobs=None)
    assert sent == replace(given, launch=expected)


def test_many_jobs_are_one_question(make: Make, tmp_path: Path) -> None:
    engine = make(poll=["alive", "waiting", "lost", "gone"], about={})
    handles = [{"job": name, "agents": [f"{name}/0/0/n"]} for name in "abcd"]
    assert engine.poll(handles) == [JobState.ALIVE] * 4, "nobody waits until Ray has let the driver in"
    until(lambda: engine.poll(handles) == [JobState.ALIVE, JobState.WAITING, JobState.LOST, JobState.GONE])
    assert [do for _, do, _ in asked(tmp_path)] == ["about", "poll"]


def test_a_driver_that_was_killed_is_replaced(make: Make, tmp_path: Path) -> None:
    engine = make(explain="Node a died")
    assert engine.explain({"agents": []}) == "Node a died"
    ((first, *_),) = asked(tmp_path)
    os.kill(first, signal.SIGKILL)
    process = engine._driver._process
    assert process is not None
    process.wait()
    assert engine.explain({"agents": []}) == "Node a died"
    assert asked(tmp_path)[1][0] != first


def test_jobs_are_alive_while_ray_does_not_answer_and_gone_after_long(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make()  # refuses to poll
    monkeypatch.setattr(ray_engine, "TRY_AGAIN_AFTER", 0.0)
    for _ in range(3):
        assert engine.poll([{"agents": []}]) == [JobState.ALIVE]
    monkeypatch.setattr(ray_engine, "GIVE_UP_AFTER", 0.0)
    until(lambda: engine.poll([{"agents": []}]) == [JobState.GONE])
    engine.stop({"agents": []}, hard=True)
    engine.forget("run-1")


def test_an_address_where_nobody_is_is_told_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"127.0.0.1:{listener.getsockname()[1]}"
    engine = RayEngine(str(tmp_path), nobody, command=["/nonexistent"])
    with pytest.raises(ComputeTargetException, match=f"No Ray cluster answers at {nobody}.*`ray status`"):
        engine.check({"address": nobody})
    with pytest.raises(ComputeTargetException, match="is no address of a Ray cluster"):
        RayEngine(str(tmp_path), "http://here", command=["/nonexistent"]).check({"address": "http://here"})


def test_a_server_without_ray_says_how_to_get_it(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = RayEngine(str(tmp_path), f"127.0.0.1:{port}")
    monkeypatch.setattr(ray_engine, "find_spec", lambda name: None)
    with pytest.raises(ComputeTargetException, match=r"pip install 'lapis-ml\[ray\]'.*LAPIS_RAY_PYTHON"):
        engine.check({})
    monkeypatch.setenv("LAPIS_RAY_PYTHON", "/nonexistent/python")
    with pytest.raises(ComputeTargetException, match="'/nonexistent/python' is no interpreter"):
        engine.check({})


def test_another_version_of_ray_is_told_with_what_to_do(make: Make) -> None:
    why = "RuntimeError: Version mismatch: The cluster was started with Ray: 2.9.0"
    with pytest.raises(ComputeTargetException, match=r"another version of Ray or Python.*2\.9\.0.*LAPIS_RAY_PYTHON"):
        make(first={"fatal": why}).check({})
    with pytest.raises(ComputeTargetException, match=r"runs Python 3\.9\.1, and agents need 3\.11"):
        make(about={"python": "3.9.1"}).check({})


def test_nodes_that_do_not_reach_the_server_are_told(make: Make) -> None:
    engine = make("http://10.0.0.5:8787", about={"python": "3.11.7"}, reach="Connection refused")
    with pytest.raises(
        ComputeTargetException, match=r"do not reach this server at http://10\.0\.0\.5:8787.*LAPIS_HOST"
    ):
        engine.check({})
    make("http://10.0.0.5:8787", about={"python": "3.11.7"}, reach="").check({})


def test_what_fails_is_an_answer_and_the_next_question_is_answered() -> None:
    said = io.StringIO()
    questions = [{"id": 1, "do": "divide", "with": {"by": 0}}, {"id": 2, "do": "divide", "with": {"by": 2}}]
    serve([json.dumps(question) for question in questions], said, {"divide": lambda by: 4 // by})
    first, second = map(json.loads, said.getvalue().splitlines())
    assert first["id"] == 1 and first["error"].startswith("ZeroDivisionError")
    assert second == {"id": 2, "result": 2}


def test_the_sources_that_go_to_a_node_are_all_that_an_agent_imports(tmp_path: Path) -> None:
    import subprocess

    packed = pack_sources(str(tmp_path))
    assert pack_sources(str(tmp_path)) == packed, "the same sources are the same file"
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(tmp_path / "node")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import lapis.agent.fork_server, azureml.core, lapis.engines.local"
    )
    program += "; print(lapis.agent.fork_server.__file__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, str(tmp_path / "node")],
        capture_output=True, text=True, check=True, env={}, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.startswith(str(tmp_path / "node"))


@pytest.mark.parametrize(
    ("bundles", "says"),
    [
        ([{"CPU": 2}], "it wants a node with 2 CPUs, and of Ray's 2 nodes 1 CPU are free"),
        ([{"CPU": 6, "GPU": 1}] * 2, "2 nodes with 6 CPUs and 1 GPU each, and Ray has none that large among 2 nodes"),
        ([{"CPU": 2}] * 3, "Ray has 2 that large among 2 nodes, so its autoscaler must bring up more"),
    ],
)
def test_a_run_that_waits_says_what_ray_lacks(bundles: list[dict[str, float]], says: str) -> None:
    assert says in why_waiting(bundles, [("a", {"CPU": 2}), ("b", {"CPU": 4})], {"CPU": 1})

"""A job as a value: the same after a journey through JSON, refused at the door by the name of what is wrong."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lapis.domain import job as job_module
from lapis.domain import launch as launch_module
from lapis.domain.job import (
    DatasetInput,
    InDatastore,
    InputName,
    Job,
    Mpi,
    Output,
    Plain,
    PyTorch,
    Reference,
    Registration,
    Search,
    ServedModel,
    ServicePart,
    TensorFlow,
    TrialTemplate,
    WantedEnvironment,
)
from lapis.domain.launch import Assignment, Container, FrontLaunch, Owner, Place, Recovery, Work
from lapis.domain.run import RunRecord
from lapis.domain.tree import Tree, TreeEntry
from lapis.domain.values import Value, _shape
from lapis.errors import UserErrorException
from tests.launches import launch

# What a release before jobs were values wrote into its database: nulls and defaults too.
OLD_ROW: dict[str, Any] = {
    "script": "train.py",
    "command": None,
    "arguments": ["--rate", "0.1", {"input": "data"}],
    "python": "/usr/bin/python3",
    "environment": {"name": "sklearn", "lock": "0" * 32, "said": []},
    "environment_variables": {"A": "1"},
    "max_seconds": None,
    "framework": "Python",
    "communicator": "None",
    "node_count": 2,
    "distribution": {"kind": "tensorflow", "workers": 2, "parameter_servers": 1},
    "priority": None,
    "watch": ["logs"],
    "collect_outputs": True,
    "notices": [],
    "inputs": [
        {"type": "reference", "name": "raw", "mode": "mount", "path_on_compute": None, "place": "/raw",
         "overwrite": False}
    ],
    "outputs": [
        {
            "type": "output", "name": "out", "mode": "mount", "path_on_compute": None, "overwrite": False,
            "place": {"datastore": "blobs", "path": "r/out"}, "globs": None, "glob": None,
            "definition": {"sources": [{"kind": "datastore", "datastore": "blobs", "path": "r/out"}]},
            "register": {"name": "made", "description": None, "tags": {}},
        }
    ],
    "url_mirrors": None,
    "mount": None,
}  # fmt: skip

_words = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20)
_names = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
_definitions = st.dictionaries(_names, st.lists(_words, max_size=2), max_size=2)
_places = st.one_of(_words, st.builds(InDatastore, _names, _words))
_several = st.lists(_words, max_size=2).map(tuple)
_command_words = st.lists(st.one_of(_words, st.builds(InputName, _names)), max_size=3).map(tuple)
_jobs = st.builds(
    Job,
    script=st.one_of(st.none(), _words),
    command=st.one_of(st.none(), _words, _command_words),
    arguments=_command_words,
    environment=st.one_of(st.none(), st.builds(WantedEnvironment, _names, _names, _several)),
    environment_variables=st.dictionaries(_names, _words, max_size=2),
    max_seconds=st.one_of(st.none(), st.integers(0, 1000), st.floats(0, 1e6)),
    node_count=st.integers(1, 100),
    distribution=st.one_of(
        st.none(), st.builds(Plain), st.builds(Mpi, st.integers(1, 9)), st.builds(PyTorch, st.integers(0, 9)),
        st.builds(TensorFlow, st.integers(1, 9), st.integers(0, 9)),
    ),
    watch=st.lists(_names, max_size=2).map(tuple),
    collect_outputs=st.booleans(),
    inputs=st.lists(
        st.one_of(
            st.builds(DatasetInput, _names, st.sampled_from(["direct", "mount"]), _definitions,
                      folders=st.dictionaries(_names, st.one_of(st.none(), _words), max_size=2)),
            st.builds(Reference, _names, st.just("mount"), _places, overwrite=st.booleans()),
        ),
        max_size=2,
    ).map(tuple),
    outputs=st.lists(
        st.builds(Output, _names, st.just("upload"), _places, _definitions, globs=_several,
                  register=st.one_of(st.none(), st.builds(Registration, _names))),
        max_size=2,
    ).map(tuple),
)  # fmt: skip


def through_json(value: Value) -> Any:
    return json.loads(json.dumps(value.to_json()))


def refused(kind: type[Value], value: Any) -> str:
    with pytest.raises(UserErrorException) as caught:
        kind.checked(value)
    return str(caught.value.message)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault of a job
@given(_jobs)
def test_a_job_is_the_same_after_a_journey(job: Job) -> None:
    assert Job.from_json(through_json(job)) == job
    assert Search.from_json(through_json(Search({"goal": "maximize"}, TrialTemplate(job)))).trial.job == job
    if job.script or job.command:
        assert Job.checked(through_json(job)) == job


def test_what_an_agent_is_given_is_the_same_after_a_journey() -> None:
    service = ServicePart("s", "name", "", 1, 8000, "p", models=(ServedModel.from_json({"name": "m", "version": 2}),))
    given = launch(
        code=Tree([TreeEntry("train.py", "0" * 64, 3)]), packs=("a", "b"), number=3, attempt=1, web={"A": "1"},
        lock={"python": "3.8"}, environments="/e", front=FrontLaunch({"auth": {}}, "mark"),
    )  # fmt: skip
    works = [
        Work(Job(service=service, resumes="r1"), given, Container("image", ("--rm",))),
        Recovery("r", "w", "http://here", "token", Owner("host", 7, "0"), "/j", "/s"),
    ]
    for work in works:
        assignment = Assignment(work, Place(1, 2, None, "node-1", "10.0.0.1", "ns", (0, 3)))
        assert Assignment.from_json(through_json(assignment)) == assignment


def test_every_declared_type_is_understood() -> None:
    for module in (job_module, launch_module):
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, Value) and is_dataclass(each):
                assert set(_shape(each).readers) == {field.name for field in fields(each)}


def test_a_job_of_an_earlier_release_is_read() -> None:
    job = Job.from_json(OLD_ROW)
    assert job.wrong == () and Job.checked(OLD_ROW) == job
    assert job.arguments == ("--rate", "0.1", InputName("data"))
    assert job.distribution == TensorFlow(2, 1) and job.environment == WantedEnvironment("0" * 32, "sklearn")
    assert job.inputs == (Reference("raw", "mount", "/raw"),) and job.outputs[0].globs == ()
    assert job.outputs[0].register == Registration("made")
    assert Job.from_json(job.to_json()) == job


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("max_seconds", "abc", "job.max_seconds must be a number, not 'abc'."),
        ("max_seconds", True, "job.max_seconds must be a number, not True."),
        ("max_seconds", float("nan"), "job.max_seconds must be a number, not nan."),
        ("node_count", 1.5, "job.node_count must be a whole number, not 1.5."),
        ("script", ["a"], "job.script must be text, not ['a']."),
        ("arguments", "--rate", "job.arguments must be a list, not '--rate'."),
        ("arguments", ["a", 3], "job.arguments[1] must be a dictionary or text, not 3."),
        ("environment_variables", {"A": 1}, "job.environment_variables['A'] must be text, not 1."),
        ("environment", {"name": "sklearn"}, "job.environment lacks the field 'lock'."),
        ("distribution", {"kind": "spark"},
         "job.distribution.kind must be one of plain, mpi, tensorflow, pytorch, not 'spark'."),
        ("inputs", [{"type": "reference", "name": "a", "mode": "mount"}], "job.inputs[0] lacks the field 'place'."),
    ],
)  # fmt: skip
def test_a_wrong_type_is_named_at_the_door_and_kept_apart_in_what_is_stored(field: str, value: Any, said: str) -> None:
    given = {"script": "train.py", field: value}
    assert refused(Job, given) == said
    stored = Job.from_json(given)
    assert stored.wrong == (said,)
    assert Job.from_json(through_json(stored)) == stored, "it stays known when the run is stored again"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("node_count", 0, "job.node_count must be between 1 and 10000, not 0."),
        ("max_seconds", 1e12, "job.max_seconds must be between 0 and 315360000, not 1000000000000.0."),
        ("distribution", {"kind": "mpi", "processes_per_node": 0},
         "job.distribution.processes_per_node must be between 1 and 10000, not 0."),
        ("arguments", ["a"] * 10_001, "job.arguments can hold at most 10000 items, not 10001."),
        ("arguments", ["a" * 200_000], "job.arguments[0] can be at most 131071 characters long, not 200000."),
        ("script", "a" * 2000, "job.script can be at most 1024 characters long, not 2000."),
        ("command", "a\0b", "job.command cannot hold a null character."),
        ("environment_variables", {"A=B": ""}, "job.environment_variables cannot be used: 'A=B' is no name"),
        ("watch", ["../.."], "job.watch cannot be used: The name '../..' cannot be used"),
        ("inputs", [{"type": "dataset", "name": "a", "mode": "teleport", "definition": {}}],
         "job.inputs[0].mode must be one of direct, mount, download, not 'teleport'."),
    ],
)  # fmt: skip
def test_bounds_hold_at_the_door_and_not_for_what_is_stored(field: str, value: Any, said: str) -> None:
    given = {"script": "train.py", field: value}
    assert refused(Job, given).startswith(said)
    assert Job.from_json(given).wrong == ()


def test_an_unknown_field_is_refused_at_the_door_and_left_out_of_what_is_stored() -> None:
    given = {"script": "train.py", "sevrer": "http://elsewhere"}
    assert refused(Job, given).startswith("job has no field 'sevrer'. Known: script, command, arguments, ")
    assert Job.from_json(given) == Job(script="train.py")
    trial = {"job": {"script": "train.py", "server": "http://elsewhere"}}
    assert refused(Search, {"spec": {}, "trial": trial}).startswith("search.trial.job has no field 'server'.")


@pytest.mark.parametrize(("field", "value"), [("service", {"id": "s"}), ("wrong", ["x"])])
def test_what_the_server_sets_nobody_else_does(field: str, value: Any) -> None:
    assert refused(Job, {"script": "train.py", field: value}) == f"job.{field} is set by the server."


def test_a_job_that_runs_nothing_is_refused_at_the_door() -> None:
    said = "has neither a script nor a command: there is nothing to run."
    for empty in ({}, {"command": []}, {"script": None, "command": ""}):
        assert refused(Job, empty) == f"job {said}"
        assert refused(Search, {"trial": {"job": empty}}) == f"search.trial.job {said}"
    assert refused(Search, {"spec": {}}) == "search lacks the trial."


def test_a_trial_says_of_what_it_uses_what_where_and_how() -> None:
    trial = {"job": {"script": "train.py"}, "uses": [["asset", "input"]]}
    assert refused(Search, {"trial": trial}) == "search.trial has uses that are not asset id, role and name."


@pytest.mark.parametrize("stored", ["abc", 3, [], {"trial": 5}, {"trial": {"job": "x"}}])
def test_a_run_is_read_whatever_its_row_holds(stored: Any) -> None:
    run = RunRecord("r", "w", "e", 1.0).to_json()
    read = RunRecord.from_json({**run, "job": stored, "sweep": stored, "owner": {"pid": "x"}})
    assert read.job is not None and read.sweep is not None and read.owner is not None
    assert read.owner.wrong == ("owner.pid must be a whole number, not 'x'.",)


def test_an_output_of_another_run_has_that_runs_place() -> None:
    output = Output("o", "mount", InDatastore("blobs", "HD_1/o"), {"sources": [{"path": "HD_1/o"}]})
    expected = replace(output, place=InDatastore("blobs", "HD_1_3/o"), definition={"sources": [{"path": "HD_1_3/o"}]})
    assert output.of_run("HD_1", "HD_1_3") == expected

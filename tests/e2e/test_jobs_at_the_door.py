"""What a client says of a job is checked when it comes in; what lies in a database harms no run but its own."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, Run, ScriptRunConfig, Workspace
from lapis.errors import UserErrorException
from lapis.sdk.runs.submission import run_body
from lapis.testing import Home, until

Script = Callable[..., str]


def described(experiment: Experiment, folder: str, run_id: str) -> dict[str, Any]:
    """The request for a run, as the SDK makes it."""
    return run_body(experiment, ScriptRunConfig(folder, "train.py"), None, None, {}, run_id)


def send(workspace: Workspace, *bodies: Any) -> Any:
    return workspace._client.call("POST", workspace._base + "/runs", {"runs": list(bodies)})


def test_a_field_that_is_wrong_or_unknown_is_named_and_nothing_is_stored(
    experiment: Experiment, script: Script
) -> None:
    body = described(experiment, script("print(1)"), "door-1")
    for change, said in [
        ({"max_seconds": "abc"}, "job.max_seconds must be a number, not 'abc'."),
        ({"sevrer": "http://x"}, "job has no field 'sevrer'. Known: script, command"),
        ({"server": "http://x"}, "job has no field 'server'."),
        ({"agent_token": "mine"}, "job has no field 'agent_token'."),
        ({"service": {}}, "job.service is set by the server."),
        ({"node_count": 0}, "job.node_count must be between 1 and 10000, not 0."),
        ({"script": None}, "job has neither a script nor a command"),
    ]:
        with pytest.raises(UserErrorException) as caught:
            send(experiment.workspace, {**body, "job": {**body["job"], **change}})
        assert said in caught.value.message
    with pytest.raises(UserErrorException, match="owner.pid must be a whole number, not 'abc'"):
        send(experiment.workspace, {**body, "job": None, "owner": {"pid": "abc"}})
    with pytest.raises(UserErrorException, match="job must be a dictionary, not 'abc'"):
        send(experiment.workspace, {**body, "job": "abc"})
    trial = {"job": {**body["job"], "max_seconds": "abc"}}
    with pytest.raises(UserErrorException, match=r"sweep\.trial\.job\.max_seconds must be a number"):
        send(experiment.workspace, {**body, "job": None, "sweep": {"spec": {}, "trial": trial}})
    assert list(experiment.get_runs()) == []


def test_a_child_is_checked_as_any_run_is(experiment: Experiment, script: Script) -> None:
    parent = experiment.start_logging()
    body = described(experiment, script("print(1)"), "door-2")
    with pytest.raises(UserErrorException, match=r"job\.priority must be a whole number, not 'high'"):
        send(experiment.workspace, {**body, "parent_id": parent.id, "job": {**body["job"], "priority": "high"}})
    parent.complete()


def test_a_stored_job_that_makes_no_sense_fails_its_run_and_the_others_go_on(
    home: Home, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAPIS_MAX_RUNS", "1")
    experiment = Experiment(Workspace.create("rows", show_output=False), "trial")
    go = tmp_path / "go"
    first = experiment.submit(
        ScriptRunConfig(script(f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)"), "train.py")
    )
    waiting = [experiment.submit(ScriptRunConfig(script("print('ran')"), "train.py")) for _ in range(4)]
    until(lambda: first.get_status() == "Running")
    home.kill_server()
    damage(home, waiting[0].id, {"max_seconds": "abc"})
    damage(home, waiting[3].id, {"node_count": 10**30})
    damage(home, waiting[1].id, {"from_the_future": 1, "node_count": None})
    go.touch()
    home.start()
    for run in (first, *waiting):
        run.wait_for_completion(raise_on_error=False)
    states = [run.get_status() for run in (first, *waiting)]
    assert states == ["Completed", "Failed", "Completed", "Completed", "Failed"]
    reason = "It cannot be launched: job.max_seconds must be a number, not 'abc'."
    assert reason in json.dumps(Run.get(experiment.workspace, waiting[0].id).get_details())
    reason = "It cannot be launched: job.node_count must be between"
    assert reason in json.dumps(Run.get(experiment.workspace, waiting[3].id).get_details())


def damage(home: Home, run_id: str, changes: dict[str, Any]) -> None:
    """Write into the database what no release writes."""
    (path,) = home.path.glob("*.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        (text,) = connection.execute("SELECT body FROM runs WHERE id = ?", (run_id,)).fetchone()
        body = json.loads(text)
        body["job"].update(changes)
        connection.execute("UPDATE runs SET body = ? WHERE id = ?", (json.dumps(body), run_id))

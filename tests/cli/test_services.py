"""`lapis service`: deployed models, from the command line."""

from __future__ import annotations

from pathlib import Path

from lapis.sdk.models.inference_config import InferenceConfig
from lapis.sdk.models.model import Model
from lapis.sdk.workspace.workspace import Workspace
from lapis.testing import until
from tests.cli.conftest import Lapis


def test_a_service_is_listed_shown_called_and_deleted(lapis: Lapis, here: Workspace, tmp_path: Path) -> None:
    empty = lapis("service", "list")
    assert empty.status == 0 and "No services" in empty.err
    Path("score.py").write_text("def init(): print('here we are')\ndef run(data): return {'said': data}\n")
    Model.deploy(here, "echo", [], InferenceConfig("score.py")).wait_for_deployment()
    (row,) = lapis("service", "list").out.splitlines()[1:]
    assert row.split()[:3] == ["echo", "ACI", "Healthy"]
    assert lapis("service", "call", "echo", "hello").out == '{"said": "hello"}\n'
    Path("body.txt").write_text("from a file")
    assert lapis("service", "call", "echo", "@body.txt", "--json").json["answer"] == {"said": "from a file"}
    assert lapis("service", "call", "echo", "@nowhere").status == 2
    shown = lapis("service", "show", "echo").out
    assert "Opened by  anybody" in shown and "Replicas   1" in shown
    document = lapis("service", "show", "echo", "--json").json
    assert document["state"] == "Healthy" and document["versions"][0]["revision"] == 1
    until(lambda: "here we are" in lapis("service", "logs", "echo").out)
    assert lapis("status", "--json").json["services"] == 1
    assert "No run is under way, and 1 service goes on answering" in lapis("stop").out
    assert lapis("service", "call", "echo", "hello").out == '{"said": "hello"}\n'  # which starts a server
    assert lapis("service", "delete", "echo").out == "Service 'echo' is deleted.\n"
    gone = lapis("service", "show", "echo")
    assert gone.status == 1 and "No service named 'echo'" in gone.err

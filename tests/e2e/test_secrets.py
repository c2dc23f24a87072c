"""Secrets reach the job that needs them and nobody else: not the database, not a viewer, not a page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Dataset, Environment, Experiment, Keyvault, ScriptRunConfig, Workspace
from azureml.exceptions import UserErrorException
from lapis.domain.secrets import MASK
from lapis.server.control.access import Access
from lapis.testing import Home, until
from tests.server.test_gate import ask
from tests.web import Web

Submit = Callable[..., Any]

# -- the key vault


@pytest.fixture
def vault(workspace: Workspace) -> Keyvault:
    return workspace.get_default_keyvault()


def test_a_secret_is_kept_changed_listed_and_removed(vault: Keyvault) -> None:
    vault.set_secret("db-password", "first")
    vault.set_secrets({"db-password": "second", "api-key": "ü\n" * 10})
    assert vault.get_secret("db-password") == "second"
    assert vault.get_secrets(["api-key", "nobody"]) == {"api-key": "ü\n" * 10, "nobody": None}
    assert [each["name"] for each in vault.list_secrets()] == ["api-key", "db-password"]
    assert vault.get_secret_content_type("api-key") == "" and "second" not in str(vault.list_secrets())
    vault.delete_secret("db-password")
    vault.delete_secrets(["db-password", "nobody"])  # what is not there is gone
    assert vault.get_secret("db-password") is None
    assert [each["name"] for each in vault.list_secrets()] == ["api-key"]


@pytest.mark.parametrize("name", ["", "under_score", "a b", "x" * 128, "../x", "ü", None, 5])
def test_a_name_that_azure_would_refuse_is_refused(vault: Keyvault, name: Any) -> None:
    for use in (lambda: vault.set_secret(name, "v"), lambda: vault.get_secret(name), lambda: vault.delete_secret(name)):
        with pytest.raises(UserErrorException, match="1 to 127 letters, digits and dashes"):
            use()


@pytest.mark.parametrize("value", ["", None, 5, "canary" + "x" * 25 * 1024, "canary\ud800"])
def test_a_value_that_cannot_be_is_refused_without_being_repeated(vault: Keyvault, value: Any) -> None:
    with pytest.raises(UserErrorException, match="value of secret 'mine'") as refused:
        vault.set_secrets({"fine": "v", "mine": value})
    assert "canary" not in refused.value.message
    assert vault.list_secrets() == [], "none is kept if one cannot be"


def test_secrets_and_names_are_given_as_the_calls_say(vault: Keyvault) -> None:
    with pytest.raises(UserErrorException, match="dictionary"):
        vault.set_secrets([("a", "b")])  # type: ignore[arg-type]
    with pytest.raises(UserErrorException, match="list of names, not str"):
        vault.get_secrets("abc")


def test_a_script_gets_secrets_of_its_own_workspace(vault: Keyvault, finish: Submit, on_shared_server: Home) -> None:
    vault.set_secret("db-password", "for-the-script")
    other = on_shared_server.workspace()
    other.get_default_keyvault().set_secret("of-another", "not-for-the-script")
    run = finish(
        "from azureml.core import Run\nrun = Run.get_context()\n"
        "print(run.get_secret('db-password')[::-1], run.get_secrets(['of-another', 'db-password'])['of-another'])\n"
        f"base = '/workspaces/{other._workspace_id}'\n"
        "for path, body in (('/secrets/read', {'names': ['of-another']}), ('/secrets', {'secrets': []})):\n"
        "    for where in (base, run.experiment.workspace._base) if path == '/secrets' else (base,):\n"
        "        try:\n"
        "            print(run._client.call('POST', where + path, body))\n"
        "        except Exception as error:\n"
        "            print(type(error).__name__)\n"
    )
    said = run.get_logs()["user_logs/std_log.txt"].splitlines()
    assert said == ["tpircs-eht-rof None", "Forbidden", "Forbidden", "Forbidden"]
    assert run.get_secret("db-password") == "for-the-script"


def test_a_viewer_gets_neither_secrets_nor_their_names(vault: Keyvault, on_shared_server: Home) -> None:
    vault.set_secret("db-password", "canary")
    viewer = Access(str(on_shared_server.path)).viewer_key
    base = f"/api/v1{vault.workspace._base}/secrets"
    body = json.dumps({"names": ["db-password"]}).encode()
    for method, path, data in (("GET", base, None), ("POST", base + "/read", body), ("POST", base + "/delete", body)):
        refused = ask(on_shared_server, method, path, viewer, data, Content_Type="application/json")
        assert refused.status == 403 and b"canary" not in refused.body


# -- secrets of runs

SCRIPT = """
import os, sys
print("got", os.environ["API_KEY"][::-1], *[word[::-1] for word in sys.argv[1:]], os.environ["PLAIN"])
for line in open(sys.argv[2]): print(line)
"""


def holding(home: Path, canary: str) -> list[str]:
    """Which files of a LAPIS_HOME hold that text."""
    files = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
    return [str(path.relative_to(home)) for path in files if canary.encode() in path.read_bytes()]


def around(content: bytes, canary: bytes) -> bytes:
    at = content.find(canary)
    return content[max(0, at - 200) : at + 50] if at >= 0 else b""


def test_what_a_run_was_given_in_secret_is_in_no_file_and_no_answer(
    home: Home, script: Callable[..., str], web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workspace = home.workspace()
    workspace.get_default_keyvault().set_secret("vaulted", "canary-vault")
    environment = Environment("mine")
    environment.python.user_managed_dependencies = True
    environment.docker.base_image_registry.address = "registry.example"
    environment.docker.base_image_registry.password = "canary-registry"
    environment.environment_variables = {"API_KEY": "canary-variable", "PLAIN": "shown"}
    environment.register(workspace)
    signed = web.put("/data.txt?sv=1&sig=canary-signature", b"the data")
    dataset = Dataset.File.from_files(signed, validate=False).register(workspace, "signed")
    data = dataset.as_named_input("data").as_download()
    arguments = ["--data", data, "--password", "canary-argument", "canary-vault"]
    again = Environment.get(workspace, "mine")
    assert "canary" not in str(again.environment_variables) + str(again.docker.base_image_registry.password)
    config = ScriptRunConfig(script(SCRIPT), "train.py", arguments, environment=again)
    run = Experiment(workspace, "trial").submit(config)
    run.wait_for_completion()
    said = run.get_logs()["user_logs/std_log.txt"]
    assert "got elbairav-yranac" in said and "tnemugra-yranac" in said and "tluav-yranac" in said
    assert "the data" in said and "shown" in said
    shown = run.get_details()["runDefinition"]
    assert shown["environment"]["environmentVariables"]["PLAIN"] == "shown"
    assert shown["environment"]["environmentVariables"]["API_KEY"].startswith("lapis-sealed:")
    assert shown["arguments"][-3:] == ["--password", MASK, MASK]
    viewer = Access(str(home.path)).viewer_key
    base = f"/api/v1{workspace._base}"
    by_id = f"datasets/{dataset.id}"
    paths = [f"runs/{run.id}", "runs", f"runs/{run.id}/datasets", "datasets", "dataset?name=signed", by_id]
    paths += [f"{by_id}/files", "environments", "environments/mine"]
    pages = [f"{base}/{path}" for path in paths]
    for page in [*pages, f"/studio/{workspace._workspace_id}/runs/{run.id}"]:
        seen = ask(home, "GET", page, viewer)
        assert around(seen.body, b"canary") == b"", page
        assert seen.status == 200, (page, seen.body)
        assert b"lapis-sealed:" not in seen.body, page
    assert Dataset.get_by_name(workspace, "signed").to_path(), "whoever reads it gets the whole address"
    config.run_config.environment = run.get_environment()
    again_submitted = Experiment(workspace, "trial").submit(config)
    again_submitted.wait_for_completion()
    assert "got elbairav-yranac" in again_submitted.get_logs()["user_logs/std_log.txt"]
    until(lambda: not (home.path / "work" / again_submitted.id).exists())
    until(lambda: not (home.path / "work" / run.id).exists())
    assert holding(home.path, "canary-") == []


def test_the_same_secret_definition_again_is_the_same(workspace: Workspace, web: Web) -> None:
    signed = web.put("/again.txt?sig=canary", b"x")
    first = Dataset.File.from_files(signed, validate=False).register(workspace, "signed")
    assert Dataset.File.from_files(signed, validate=False).register(workspace, "signed").version == first.version
    environment = Environment("mine")
    environment.docker.base_image_registry.password = "canary"
    version = environment.register(workspace).version
    assert environment.register(workspace).version == version
    back = Environment.get(workspace, "mine")
    assert back.register(workspace).version == version, "given back as it came"
    environment.docker.base_image_registry.password = "another"
    assert environment.register(workspace).version != version


def test_a_sealed_secret_opens_in_its_own_workspace_only(
    workspace: Workspace, experiment: Experiment, on_shared_server: Home, script: Callable[..., str]
) -> None:
    environment = Environment("mine")
    environment.python.user_managed_dependencies = True
    environment.environment_variables = {"API_KEY": "canary"}
    taken = environment.register(workspace)
    other = Experiment(on_shared_server.workspace(), "trial")
    for home, status in ((experiment, "Completed"), (other, "Failed")):
        run = home.submit(ScriptRunConfig(script("import os; assert os.environ['API_KEY'] == 'canary'"), "train.py",
                                          environment=taken))  # fmt: skip
        run.wait_for_completion(raise_on_error=False)
        assert run.get_status() == status
    assert "sealed for another workspace" in run.get_details()["error"]["error"]["message"]


def test_a_token_in_the_address_of_a_repository_is_not_kept(experiment: Experiment, script: Callable[..., str]) -> None:
    about = {"azureml.git.repository_uri": "https://canary-token@example.org/x"}
    run = experiment.submit(ScriptRunConfig(script(""), "train.py"), properties=about)
    assert run.get_properties()["azureml.git.repository_uri"] == f"https://{MASK}@example.org/x"

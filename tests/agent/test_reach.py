"""What a run is given of this machine: its own, and nothing that is the server's or another run's."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from lapis.agent import reach
from lapis.agent.crew import Member
from lapis.domain.job import Job, Reference
from lapis.environments import containers
from lapis.errors import UserErrorException
from tests.launches import work


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    for name in ("token", "secrets.key", "lapis.db", "work/r/job.json", "work/other/job.json"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("secret")
    monkeypatch.setenv("LAPIS_HOME", str(home))
    monkeypatch.setenv("LAPIS_OPEN_FOLDERS", "none")
    return home


def member(folder: Path) -> Member:
    return Member("", str(folder), str(folder / "log"), "log", ["/bin/sh"], {"LAPIS_MEMBER": "r"}, str(folder))


def test_no_path_that_a_run_is_given_holds_a_secret_of_the_server(home: Path) -> None:
    reach.make_folders(str(home / "work" / "r"))
    given = reach.of_run(work(Job(script="train.py")), [member(home / "work" / "r")], str(home / "work" / "r"))
    secrets = [path for path in home.rglob("*") if path.is_file() and path.read_text() == "secret"]
    assert len(secrets) == 5 and str(home) in given.hidden
    for path in (*given.readable, *given.writable):
        assert not any(str(secret) == path or str(secret).startswith(path + os.sep) for secret in secrets), path


def test_the_environment_of_what_a_member_starts_is_given_to_it(home: Path) -> None:
    """A model that became ONNX is served in another environment than the one that its service was deployed with."""
    folder, environment = home / "work" / "r", home / "environments" / "onnx"
    (environment / "bin").mkdir(parents=True)
    (environment / "lib" / "python3.11").mkdir(parents=True)
    (environment / "bin" / "python").touch()
    front = replace(member(folder), starts=[str(environment / "bin" / "python")])
    given = reach.of_run(work(Job(script="train.py")), [front], str(folder))
    assert str(environment) in given.readable


def test_the_users_own_files_are_open_to_his_scripts_and_the_servers_folder_is_hidden_in_them(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAPIS_OPEN_FOLDERS")
    folder = str(home / "work" / "r")
    given = reach.of_run(work(Job(script="train.py")), [member(Path(folder))], folder)
    assert "/tmp" in given.writable and "/etc" not in given.writable and str(home) in given.hidden
    monkeypatch.setenv("LAPIS_OPEN_FOLDERS", "/srv/data:/scratch")
    given = reach.of_run(work(Job(script="train.py")), [member(Path(folder))], folder)
    assert "/srv/data" in given.writable and "/tmp" not in given.writable


def test_a_container_gets_the_same_and_may_write_to_what_is_the_runs_alone(home: Path) -> None:
    folder = home / "work" / "r"
    reach.make_folders(str(folder))
    given = reach.of_container(work(Job(script="train.py")), [member(folder)], str(folder))
    command = containers.inside("docker", "image", ["sh"], [], given.writable, "/", read_only=given.readable)
    volumes = [command[at + 1] for at, word in enumerate(command) if word == "--volume"]
    assert f"{folder / 'files'}:{folder / 'files'}" in volumes
    assert not any(each.startswith((f"{home}:", f"{folder}:", f"{home / 'work'}:")) for each in volumes)
    assert all(each.endswith(":ro") for each in volumes if not each.startswith((f"{folder}/", f"{home}/stores/")))


def test_data_in_the_servers_own_folder_is_refused_but_for_the_workspaces_stores(home: Path) -> None:
    run, folder = work(Job(script="train.py")), str(home / "work" / "r")
    reach.check_data(str(home / "stores" / "w" / "workspaceblobstore"), run, folder)
    reach.check_data("/data/of/mine", run, folder)
    for place in (home, home / "token", home / "stores" / "another", home / "work" / "other"):
        with pytest.raises(UserErrorException, match="no data of this workspace"):
            reach.check_data(str(place), run, folder)
    asked = Reference("x", "mount", str(home / "work" / "other"))
    with pytest.raises(UserErrorException, match="no data of this workspace"):
        reach.of_run(work(Job(script="train.py", inputs=(asked,))), [member(home)], folder)


def test_a_link_that_leads_to_the_servers_own_folder_opens_nothing(home: Path) -> None:
    folder = home / "work" / "r"
    (folder / "data").mkdir()
    (folder / "data" / "innocent").symlink_to(home / "token")
    given = reach.of_run(work(Job(script="train.py")), [member(folder)], str(folder))
    assert str(home / "token") not in given.readable

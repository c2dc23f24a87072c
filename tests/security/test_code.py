"""Classes 18, 19, 23, 25 and 26: commands, addresses, and what lies where others could change it."""

from __future__ import annotations

import ast
import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

import lapis
from azureml.core import Dataset, Datastore, Experiment, ScriptRunConfig, Workspace
from azureml.exceptions import UserErrorException
from lapis.environments import indexes
from lapis.testing import Home
from tests.security.attack import Site
from tests.web import Page, Web

SHELLS = (
    "; touch {0}",
    "$(touch {0})",
    "`touch {0}`",
    "| touch {0}",
    "&& touch {0}",
    "\ntouch {0}\n",
    "' ; touch {0} ; '",
    "${{IFS}}",
)
NOBODY = 65534


def test_class_18_no_argument_is_read_by_a_shell(site: Site, workspace: Workspace, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    hostile = [shell.format(canary) for shell in SHELLS]
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text("import sys, json, os\nprint(json.dumps([sys.argv[1:], os.environ['GIVEN']]))\n")
    config = ScriptRunConfig(str(source), "train.py", arguments=hostile)
    config.run_config.environment_variables = {"GIVEN": hostile[0]}
    run = Experiment(workspace, "shell").submit(config, tags={hostile[1]: hostile[2]})
    run.wait_for_completion()
    told = run.get_all_logs(str(tmp_path))
    logs = "".join(Path(path).read_text() for path in told if path.endswith(("std_log.txt", "70_driver_log.txt")))
    assert json.dumps([hostile, hostile[0]]) in logs
    for name in ("envs", "computes", "models"):
        for each in hostile:
            site.ask("GET", f"{site.api}/{name}/{each!r}", site.user)
    assert not canary.exists()


def test_class_18_there_is_no_shell_in_the_tree() -> None:
    for source in Path(lapis.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "shell":
                assert isinstance(node.value, ast.Constant) and node.value.value is False, source
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) not in (("os", "system"), ("os", "popen")), source


def test_class_19_addresses_that_are_forbidden_are_not_asked_not_even_by_a_detour(
    home: Home, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPIS_FORBIDDEN_ADDRESSES", "127.0.0.0/8")
    home.start()
    monkeypatch.delenv("LAPIS_FORBIDDEN_ADDRESSES")
    workspace = Workspace.from_config()
    web.pages["/detour"] = Page(b"", leads_to=web.put("/secret", b"secret"))
    (tmp_path / "train.py").write_text("print('started')\n")
    for host, place in (("127.0.0.1", "/secret"), ("localhost", "/detour")):
        data = Dataset.File.from_files(f"http://{host}:{web.port}{place}", validate=False).as_download()
        run = Experiment(workspace, "web").submit(ScriptRunConfig(str(tmp_path), "train.py", arguments=[data]))
        run.wait_for_completion(raise_on_error=False)
        assert run.get_status() == "Failed"
    with pytest.raises(UserErrorException, match="metadata service"):
        Datastore.register_s3_bucket(workspace, "meta", "bucket", endpoint="http://169.254.169.254")
    assert web.asked == []


def test_class_23_a_file_that_was_changed_in_the_store_is_not_run(
    site: Site, workspace: Workspace, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    source = tmp_path / "source"
    source.mkdir()
    mark = os.urandom(8).hex()
    (source / "train.py").write_text(f"# {mark}\nprint('honest')\n")
    config = ScriptRunConfig(str(source), "train.py")
    Experiment(workspace, "honest").submit(config).wait_for_completion()
    changed = 0
    for path in (site.home.path / "blobs").rglob("*"):
        if path.is_file() and mark.encode() in (held := path.read_bytes()):
            evil = f"open({str(canary)!r}, 'w')#".encode()
            at = held.index(f"# {mark}".encode())
            path.chmod(0o600)
            path.write_bytes(held[:at] + evil[: len(held) - at] + held[at + len(evil) :])
            changed += 1
    assert changed
    run = Experiment(workspace, "tampered").submit(config)
    run.wait_for_completion(raise_on_error=False)
    assert not canary.exists()
    assert run.get_status() == "Failed"


def test_class_25_another_user_of_this_machine_neither_reads_nor_plants_anything(site: Site) -> None:
    assert stat.S_IMODE(site.home.path.stat().st_mode) == 0o700
    for path in site.home.path.rglob("*"):
        if not path.is_symlink():
            assert path.stat().st_uid == os.getuid() or path.is_relative_to(site.home.path / "live"), path
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    attempt = (
        "import os, sys\nfor path in sys.argv[1:]:\n"
        "    for act in (lambda: open(path).read(), lambda: open(path + '/planted', 'w'), lambda: os.listdir(path)):\n"
        "        try: act(); print(path)\n        except OSError: pass\n"
    )
    targets = [str(site.home.path / name) for name in ("token", "lapis.db", "environments", "blobs", "live", ".")]
    command = ["/usr/bin/env", "python3", "-c", attempt, *targets]
    said = subprocess.run(
        command, user=NOBODY, group=NOBODY, extra_groups=(), env={"PATH": "/usr/bin:/bin"}, cwd="/",
        capture_output=True, text=True,
    )  # fmt: skip
    assert said.stdout == "", said
    assert said.returncode == 0 or "python3" in said.stderr, said


def test_class_26_a_public_package_never_stands_in_for_a_private_one() -> None:
    """The attack itself, with two real indexes, is in tests/environments/test_indexes.py."""
    private = "https://packages.company.example/simple"
    _, variables = indexes.arranged(["--extra-index-url", private, "pandas"], {})
    assert variables["UV_INDEX"] == private, "asked before the public one"
    assert "UV_INDEX_STRATEGY" not in variables, "uv's own: the first index that knows a name decides"

"""serve, status, stop, open: the server as the command line sees it."""

from __future__ import annotations

import json
import os
import signal
import stat
from pathlib import Path

import pytest

from lapis.testing import Home
from lapis.version import VERSION
from tests.cli.conftest import Finished, Lapis, Start


def test_status_says_that_no_server_runs_and_starts_none(lapis: Lapis, home: Home) -> None:
    said = lapis("status")
    assert said.status == 0 and f"No server runs for {home.path}." in said.out
    assert lapis("status", "--json").json == {"running": False, "address": None, "home": str(home.path)}
    assert home.server_pid is None and list(home.path.iterdir()) == []


def test_status_of_a_server_that_was_killed(lapis: Lapis, home: Home) -> None:
    home.start()
    home.kill_server()
    assert lapis("status", "--json").json["running"] is False


def test_status_tells_about_the_running_server(lapis: Lapis, on_shared_server: Home) -> None:
    on_shared_server.start()
    about = lapis("status", "--json").json
    assert about["running"] is True and about["version"] == VERSION
    assert about["home"] == str(on_shared_server.path) and about["pid"] == on_shared_server.server_pid
    assert about["uptime_seconds"] >= 0 and isinstance(about["active_runs"], int)
    shown = lapis("status").out
    assert f"running at {about['address']}" in shown and VERSION in shown


def test_status_of_another_server_that_does_not_answer(
    lapis: Lapis, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPIS_SERVER", "http://127.0.0.1:9")
    monkeypatch.setenv("LAPIS_TOKEN", "t")
    said = lapis("status", "--json")
    assert said.status == 0 and said.json["running"] is False and said.json["address"] == "http://127.0.0.1:9"


def test_serve_runs_until_ctrl_c(lapis: Lapis, start: Start, home: Home) -> None:
    server = start("serve")
    assert server.stdout is not None
    line = server.stdout.readline()
    about = lapis("status", "--json").json
    assert about["running"] and line.startswith(f"Lapis serves {home.path} at {about['address']}. Ctrl-C stops it")
    second = lapis("serve", "--json")
    assert second.status == 1 and second.json["error"]["code"] == "Conflict"
    assert about["address"] in second.err
    server.send_signal(signal.SIGINT)
    assert server.wait() == 0
    assert lapis("status", "--json").json["running"] is False


def test_serve_with_json_prints_one_document(start: Start, home: Home) -> None:
    server = start("serve", "--json")
    assert server.stdout is not None
    lines = iter(server.stdout.readline, "}\n")
    about = json.loads("".join(lines) + "}")
    assert about["home"] == str(home.path) and about["address"].startswith("http://127.0.0.1:")
    server.terminate()
    assert server.wait() == 0 and server.stdout.read() == ""


def test_serve_refuses_an_address_that_it_cannot_use(start: Start, home: Home) -> None:
    server = start("serve", "--host", "192.0.2.1", "--json")
    out, err = server.communicate()
    assert server.returncode == 1
    assert "192.0.2.1" in err and "Traceback" not in err
    assert json.loads(out)["error"]["message"] == "The server could not start."


def test_a_port_that_is_none_is_a_usage_error(lapis: Lapis, home: Home) -> None:
    assert lapis("serve", "--port", "99999").status == 2


def test_stop_leaves_runs_going(lapis: Lapis, start: Start, home: Home, tmp_path: Path) -> None:
    go = tmp_path / "go"
    (tmp_path / "train.py").write_text(
        f"import os, time\nprint('up', flush=True)\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\nprint('ended')\n"
    )
    run = lapis("run", "submit", "--json", "--source", str(tmp_path), "train.py").json["id"]
    following = start("run", "logs", "-f", run)
    assert following.stdout is not None and following.stdout.readline() == "up\n"
    said = lapis("stop")
    assert said.status == 0 and "1 run carries on" in said.out
    go.touch()
    assert lapis("run", "logs", "-f", run).out == "up\nended\n"  # it starts a server, which takes the run over
    assert lapis("run", "show", "--json", run).json["status"] == "Completed"


def test_stop_without_a_server_has_nothing_to_do(lapis: Lapis, home: Home) -> None:
    said = lapis("stop", "--json")
    assert said.status == 0 and said.json == {"stopped": False, "address": None}
    assert "nothing to stop" in lapis("stop").out


def test_stop_says_what_it_stopped(lapis: Lapis, home: Home) -> None:
    home.start()
    address = lapis("status", "--json").json["address"]
    assert lapis("stop", "--json").json == {
        "stopped": True,
        "address": address,
        "active_runs": 0,
        "services": 0,
        "failed_services": 0,
    }
    assert home.server_pid is None


def test_open_prints_the_address_of_a_runs_page(lapis: Lapis, finished: Finished) -> None:
    address = lapis("status", "--json").json["address"]
    said = lapis("open", "--print", *finished.where, finished.id)
    assert said.out.startswith(f"{address}/studio/") and f"/runs/{finished.id}#key=" in said.out
    all_runs = lapis("open", "--print", "--json", *finished.where).json
    assert "/runs#key=" in all_runs["address"] and all_runs["opened"] is False


def test_open_hands_the_browser_a_page_that_only_this_user_reads(
    start: Start, finished: Finished, on_shared_server: Home, tmp_path: Path
) -> None:
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    browser.chmod(0o755)
    environment = {**os.environ, "DISPLAY": ":0", "BROWSER": f"{browser} %s"}
    process = start("open", "--json", *finished.where, finished.id, env=environment)
    out, _ = process.communicate()
    told = json.loads(out)
    assert process.returncode == 0 and told["opened"] is True
    page = Path(seen.read_text().strip().removeprefix("file://"))
    assert "key=" not in seen.read_text()
    assert told["address"] in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_open_of_an_unknown_run(lapis: Lapis, finished: Finished) -> None:
    said = lapis("open", "--print", *finished.where, "nobody")
    assert (said.status, said.out) == (1, "") and "No run with id 'nobody'" in said.err

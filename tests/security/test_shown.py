"""Classes 16, 17, 21 and 27: what jobs and users wrote, where it is shown."""

from __future__ import annotations

import io
import os
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from azureml.core import Environment, Experiment, ScriptRunConfig, Workspace
from lapis.cli.__main__ import main
from lapis.testing import until
from tests.security.attack import Site, files_with
from tests.server.browser import Browser, browser

__all__ = ["browser"]  # the fixture

PAYLOADS = [
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(2)>", "javascript:alert(3)",
    "</script><svg onload=alert(4)>",
    "{{constructor.constructor('alert(5)')()}}", "'-alert(6)-'",
]  # fmt: skip


@pytest.mark.full
def test_class_16_no_text_of_a_user_is_executed_in_the_browser(site: Site, browser: Browser) -> None:
    for number, payload in enumerate(PAYLOADS):
        site.run.tag(payload, payload)
        site.run.add_properties({payload: payload})
        site.run.log(payload[:200], number)
        site.run.log_row("rows", **{f"column {payload}": payload})
        site.ask("PUT", f"{site.runs}/files/outputs/{number}.svg", site.token, f"<svg>{payload}</svg>".encode())
    site.run.display_name = PAYLOADS[0]
    site.run.description = PAYLOADS[1]
    site.run.flush()
    for page in ("/studio/", site.pages.rpartition("/")[0], site.pages):
        browser.open(f"{site.home.address}{page}#key={site.viewer}")
        browser.wait_for("document.querySelector('main') !== null")
        assert browser.dialogs() == [] and browser.complaints() == []


def test_class_17_nothing_that_a_script_wrote_is_a_page_of_this_origin(site: Site) -> None:
    for ending in ("html", "htm", "xhtml", "svg", "xml", "js", "mht", "pdf", "txt", "png", "unknown"):
        name = f"outputs/x.{ending}"
        site.ask("PUT", f"{site.runs}/files/{name}", site.token, b"<script>alert(1)</script>")
        cookie = site.ask("POST", "/studio/login", None, site.viewer.encode()).headers["set-cookie"].split(";")[0]
        served = [site.ask("GET", f"{site.runs}/files/{name}", site.user),
                  site.ask("GET", f"{site.pages}/file/{name}", None, Cookie=cookie)]  # fmt: skip
        for reply in served:
            kind = reply.headers["content-type"]
            assert reply.status == 200 and reply.headers["x-content-type-options"] == "nosniff"
            assert kind.startswith(("text/plain", "image/png", "image/jpeg", "image/gif")) or (
                reply.headers["content-disposition"].startswith("attachment") and "html" not in kind
            )


def test_class_21_a_secret_of_a_run_is_written_down_nowhere(site: Site, workspace: Workspace, tmp_path: Path) -> None:
    canary = "canary" + os.urandom(12).hex()
    (tmp_path / "train.py").write_text(
        "import os\nfrom azureml.core import Run\n"
        f"assert os.environ['SERVICE_PASSWORD'] == {canary[::-1]!r}[::-1]\n"
        f"assert Run.get_context().get_secret('mine') == {canary[::-1]!r}[::-1]\n"
    )
    workspace.get_default_keyvault().set_secret("mine", canary)
    environment = Environment("with-registry")
    environment.python.user_managed_dependencies = True
    environment.docker.base_image_registry.address = "registry.example"
    environment.docker.base_image_registry.username = "me"
    environment.docker.base_image_registry.password = canary
    environment.register(workspace)
    config = ScriptRunConfig(str(tmp_path), "train.py")
    config.run_config.environment_variables = {"SERVICE_PASSWORD": canary}
    run = Experiment(workspace, "secrets").submit(config)
    run.wait_for_completion()
    until(lambda: not (site.home.path / "work" / run.id).exists())  # its agent's own folder, which goes with it
    assert files_with(site.home.path, canary.encode()) == []
    for path in (f"{site.api}/runs/{run.id}", f"{site.api}/environments/with-registry", f"{site.api}/environments",
                 f"/studio/{workspace._workspace_id}/runs/{run.id}"):  # fmt: skip
        assert canary.encode() not in site.ask("GET", path, site.viewer).body, path


def test_class_27_what_a_job_prints_does_nothing_to_the_terminal(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = [
        "\x1b]0;title\x07",
        "\x1b]52;c;cm0gLXJm\x07",
        "\x1b[2J",
        "\x1b]8;;http://evil\x07link\x1b]8;;\x07",
        "\x9b2J",
        "\x1bP+q\x1b\\",
    ]
    (tmp_path / "train.py").write_text(f"print('begin', *{hostile!r}, 'end')\n")
    run = Experiment(workspace, "terminal").submit(
        ScriptRunConfig(str(tmp_path), "train.py"), tags={"t": "\x1b]0;tag\x07"}
    )
    shown = io.StringIO()
    with redirect_stdout(shown):
        run.wait_for_completion(show_output=True)
        print(run)
    main(["run", "logs", run.id])
    main(["run", "show", run.id])
    text = shown.getvalue() + capsys.readouterr().out
    assert "begin" in text and "end" in text
    assert re.findall(r"\x1b[\]P_^X]|\x9d|\x90|\x9b|\x1b\[\d*J", text) == []

"""How objects show themselves at the end of a cell: in a terminal and as HTML."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from azureml.core import Experiment, Run, ScriptRunConfig, Workspace
from azureml.exceptions import ActivityFailedException, UserErrorException
from lapis.client import local_server
from lapis.sdk.base.display import as_line
from lapis.server.studio.login import LOGIN_PATH
from lapis.testing import Home

Submit = Callable[..., Any]


def test_a_run_prints_what_and_how_it_is(finish: Submit) -> None:
    run = finish("print(1)")
    assert (
        str(run)
        == repr(run)
        == (f"Run(Experiment: trial,\nId: {run.id},\nType: azureml.scriptrun,\nStatus: Completed)")
    )


def test_a_run_prints_its_newest_status(experiment: Experiment) -> None:
    run = experiment.start_logging()
    other = Run.get(experiment.workspace, run.id)
    assert "Status: Running" in repr(other)
    run.complete()
    assert "Status: Completed" in repr(other)


def test_a_run_prints_inside_its_job(finish: Submit) -> None:
    run = finish("from azureml.core import Run\nprint(Run.get_context())")
    assert run.get_logs()["user_logs/std_log.txt"].startswith(f"Run(Experiment: trial,\nId: {run.id},")


def test_a_deleted_run_can_still_be_shown(experiment: Experiment) -> None:
    with experiment.start_logging() as run:
        pass
    run.delete()
    assert f"Id: {run.id}" in repr(run) and "Status: Completed" in repr(run)
    assert run.id in run._repr_html_()


def test_experiments_and_workspaces_print(workspace: Workspace, experiment: Experiment) -> None:
    assert repr(experiment) == f"Experiment(Name: trial,\nWorkspace: {workspace.name})"
    assert workspace.name in repr(workspace) and workspace.resource_group in repr(workspace)
    assert "train.py" in repr(ScriptRunConfig(".", script="train.py", arguments=["--x", 1]))


class Page(HTMLParser):
    """The texts of a page's cells, its links, and every kind of tag in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")
        if tag == "a":
            self.links.append(dict(attributes)["href"])

    def handle_data(self, data: str) -> None:
        self.cells[-1] += data


def test_the_html_of_a_run_is_a_table_with_a_link_that_opens(finish: Submit) -> None:
    run = finish("print(1)")
    page = Page(run._repr_html_())
    half = len(page.cells) // 2
    shown = dict(zip(page.cells[:half], page.cells[half:], strict=True))
    assert shown["Experiment"] == "trial" and shown["Id"] == run.id and shown["Status"] == "Completed"
    assert page.links[0] == run.get_portal_url()
    assert_page_opens(page.links[0], run.id)


def test_the_html_of_an_experiment_links_to_its_runs(experiment: Experiment) -> None:
    with experiment.start_logging() as run:
        pass
    page = Page(experiment._repr_html_())
    assert page.cells[:3] == ["Name", "Workspace", "Report Page"] and page.cells[3] == "trial"
    assert_page_opens(page.links[0], run.id)


def assert_page_opens(link: str, expected: str) -> None:
    """Without the key, which a notebook must not keep; in a browser that was given it once, the page is there."""
    address = re.fullmatch(r"http://127\.0\.0\.1:\d+/[^#]+", link).group()  # type: ignore[union-attr]
    key = local_server.client().call("GET", "/about")["viewer_key"]
    browser = build_opener(HTTPCookieProcessor())
    with pytest.raises(HTTPError, match="401"):
        browser.open(address)
    browser.open(address.split("/studio")[0] + LOGIN_PATH, key.encode()).close()
    with browser.open(address) as answer:
        assert expected in answer.read().decode()


def test_html_escapes_whatever_it_is_given(on_shared_server: Home) -> None:
    evil = "<script>alert('x')</script>&\""
    workspace = Workspace.create(f"ws-{os.urandom(4).hex()}", resource_group=evil, location=evil, show_output=False)
    page = Page(workspace._repr_html_())
    assert page.tags == {"table", "tr", "th", "td"}
    assert page.cells.count(evil) == 2


def test_an_error_prints_as_those_of_sdk_v1_do(workspace: Workspace) -> None:
    with pytest.raises(UserErrorException) as caught:
        Run.get(workspace, "not-there")
    lines = str(caught.value).splitlines()
    assert lines[0] == "UserErrorException:"
    assert lines[1].startswith("\tMessage: No run with id 'not-there'")
    assert '"code": "UserError"' in str(caught.value)
    assert caught.value.message.startswith("No run with id") and caught.value.inner_exception is None


# -- what a job wrote gives no orders to the terminal

ORDERS = "\\x1b]0;a title\\x07\\x1b]52;c;bG9vdA==\\x07\\x1b[2J\\x9d0;x\\x9c"  # title, clipboard, clear, 8-bit


def test_waiting_shows_the_log_with_its_colours_and_without_orders(
    submit: Submit, capfd: pytest.CaptureFixture[str]
) -> None:
    run = submit(f"print('{ORDERS}\\x1b[31mred\\x1b[0m 10%\\r20%')\nraise SystemExit('{ORDERS}the end')")
    with pytest.raises(ActivityFailedException) as failed:
        run.wait_for_completion(show_output=True)
    shown = capfd.readouterr().out
    assert "\x1b[31mred\x1b[0m 10%\r20%" in shown and "the end" in shown
    for text in (shown.replace("\x1b[31m", "").replace("\x1b[0m", ""), failed.value.message, str(failed.value)):
        assert "\x1b" not in text and "\x07" not in text and "bG9vdA" not in text and "\x9d" not in text


def test_a_name_gives_no_orders_either(experiment: Experiment) -> None:
    with experiment.start_logging(display_name="\x1b]0;a title\x07mine") as run:
        pass
    with pytest.raises(Exception, match="no file named") as refused:
        run.download_file("outputs/x")
    assert "\x1b" not in str(run) and "\x1b" not in str(refused.value)
    assert "\x1b" not in as_line("Run", {"Name": "\x1b]0;a title\x07mine"})

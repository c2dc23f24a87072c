"""The pages, asked for as a browser asks, on a real server; and at the end by a real browser."""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from collections.abc import Mapping, Sequence
from email.message import Message
from html.parser import HTMLParser
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import Request, urlopen

import pytest

from azureml.core import Experiment, ScriptRunConfig, Workspace
from azureml.train.hyperdrive import GridParameterSampling, HyperDriveConfig, PrimaryMetricGoal, choice
from lapis.client import local_server
from lapis.domain import frames
from lapis.domain.metrics import ARTIFACT_PREFIX, Point, to_line
from lapis.testing import Home
from tests.server.browser import Browser, browser

__all__ = ["browser"]  # the fixture

LOG = "user_logs/std_log.txt"
HOSTILE = "</pre><script>alert('tag')</script><img src=x onerror=\"alert('image')\">"


class Reply(NamedTuple):
    status: int
    headers: Message[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Studio:
    """A workspace of its own on the server, and a browser's cookie for its pages."""

    def __init__(self) -> None:
        self.client = local_server.client()
        self.url = self.client.endpoint.find()[0]
        self.key = self.client.call("GET", "/about")["viewer_key"]
        self.workspace = self.client.call("POST", "/workspaces", {"name": f"pages-{os.urandom(4).hex()}"})["id"]
        self.api = f"/workspaces/{self.workspace}/runs"
        self.base = f"/studio/{self.workspace}/runs"
        self.cookie = self.ask("POST", "/studio/login", self.key).headers["set-cookie"].split(";")[0]

    def ask(self, method: str, path: str, body: str | None = None, cookie: str | None = None) -> Reply:
        headers = {"Cookie": cookie} if cookie else {}
        request = Request(self.url + path, body.encode() if body else None, headers, method=method)
        try:
            with urlopen(request, timeout=30) as reply:
                return Reply(reply.status, reply.headers, reply.read().decode("utf-8", "replace"))
        except HTTPError as error:
            with error:
                return Reply(error.code, error.headers, error.read().decode())

    def get(self, path: str) -> Reply:
        return self.ask("GET", path, cookie=self.cookie)

    def run(self, run_id: str = "", **more: Any) -> str:
        run_id = run_id or f"run-{os.urandom(4).hex()}"
        new = {"experiment": "trial", "run_id": run_id, "nonce": os.urandom(4).hex(), "started": True, **more}
        self.client.call("POST", self.api, {"runs": [new]})
        return run_id

    def report(
        self,
        run_id: str,
        log: bytes = b"",
        offset: int = 0,
        points: Sequence[tuple[Any, ...]] = (),
        files: Mapping[str, bytes] | None = None,
        **header: Any,
    ) -> None:
        labels: list[dict[str, Any]] = [{"kind": "log", "name": LOG, "offset": offset}] if log else []
        parts = [log] if log else []
        if points:
            labels.append({"kind": "journal", "stream": os.urandom(4).hex(), "offset": 0})
            parts.append(b"".join(to_line(Point(kind, time.time(), *rest)) for kind, *rest in points))
        for name, content in (files or {}).items():
            labels.append({"kind": "file", "name": name})
            parts.append(content)
        if "verdict" in header:
            header["ends"] = {}
        body = frames.encode(dict(header, parts=labels), parts)
        self.client.call("POST", f"{self.api}/{run_id}/report", data=body)

    def end(self, run_id: str, how: str = "complete") -> None:
        self.client.call("POST", f"{self.api}/{run_id}/{how}", {} if how == "fail" else None)


def elements(html: str) -> list[tuple[str, dict[str, str | None]]]:
    """Every tag of the page with its attributes, as a browser reads them."""
    found = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, dict(attrs)))

    Reader().feed(html)
    return found


@pytest.fixture
def studio(on_shared_server: Home) -> Studio:
    return Studio()


# -- who comes in


def test_without_a_cookie_every_page_is_the_page_that_asks_for_the_key(studio: Studio) -> None:
    run_id = studio.run(display_name="secret-name")
    paths = ("", f"/{run_id}", f"/{run_id}/state.json", f"/{run_id}/log.json?name=x", f"/{run_id}/file/x")
    for path in [*(studio.base + path for path in paths), "/studio/", "/studio/static/app.js"]:
        reply = studio.ask("GET", path)
        assert reply.status == 401
        assert "secret-name" not in reply.text
    assert "This browser does not have the key" in studio.ask("GET", f"{studio.base}/{run_id}").text


def test_a_wrong_key_gives_no_cookie(studio: Studio) -> None:
    reply = studio.ask("POST", "/studio/login", "0" * 64)
    assert reply.status == 401
    assert "set-cookie" not in reply.headers


def test_the_cookie_opens_pages_and_nothing_else(studio: Studio) -> None:
    run_id = studio.run()
    api = f"/api/v1{studio.api}/{run_id}"
    for method, path in [("GET", api), ("POST", f"{api}/cancel"), ("PATCH", api), ("DELETE", api)]:
        assert studio.ask(method, path, "{}" if method != "GET" else None, studio.cookie).status == 401
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert studio.ask(method, f"{studio.base}/{run_id}", "{}", studio.cookie).status == 401
    assert studio.client.call("GET", f"{studio.api}/{run_id}")["status"] == "Running"


def test_every_answer_forbids_scripts_of_others_framing_and_guessing(studio: Studio) -> None:
    run_id = studio.run()
    studio.report(run_id, b"hello\n", points=[("scalar", "loss", 1.0)])
    for path in ("", f"/{run_id}", f"/{run_id}/state.json", f"/{run_id}/curve.json?name=loss", "/no-such-run"):
        headers = studio.get(studio.base + path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


# -- the page of a run


def test_a_run_is_told_in_full(studio: Studio) -> None:
    parent = studio.run(display_name="the parent")
    run_id = studio.run(
        parent_id=parent,
        display_name="brave lion",
        description="a second try",
        target="local",
        tags={"team": "vision", "bare": None},
        properties={"commit": "3f2a9c"},
        definition={"script": "train.py", "arguments": ["--lr", 0.01]},
        warnings=["one name was mapped"],
        created_by="ada",
    )
    child = studio.run(parent_id=run_id, display_name="fold one")
    studio.report(run_id, b"hello log\n", points=[("scalar", "loss", 0.5, 1), ("scalar", "loss", 0.25, 2)])
    text = studio.get(f"{studio.base}/{run_id}").text
    for piece in ("brave lion", "a second try", "team: vision", "bare", "commit: 3f2a9c", "one name was mapped",
                  "by ada", "hello log", "--lr", 'class="status busy">Running'):  # fmt: skip
        assert piece in text
    assert f'href="{studio.base}/{parent}"' in text
    assert f'href="{studio.base}/{child}">fold one' in text
    assert f'href="{studio.base}/{run_id}/file/{LOG}"' in text
    assert '<td class="number">0.25</td><td class="number">0.25</td><td class="number">0.5</td>' in text


def test_the_page_of_a_search_shows_what_each_run_tried_and_how_well_it_did(studio: Studio, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import sys\nfrom azureml.core import Run\nRun.get_context().log('score', int(sys.argv[2]))\n"
    )
    search = Experiment(Workspace.create(f"search-{os.urandom(4).hex()}", show_output=False), "trial").submit(
        HyperDriveConfig(
            run_config=ScriptRunConfig(str(tmp_path), "train.py"),
            hyperparameter_sampling=GridParameterSampling({"--width": choice(3, 7)}),
            primary_metric_name="score",
            primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
            max_total_runs=2,
        )
    )
    search.wait_for_completion()
    text = studio.get(urlsplit(search.get_portal_url()).path).text
    assert '<th class="number">Best score</th>' in text
    for number, width in enumerate((3, 7)):
        assert f">…_{number}</a>" in text and f"--width: {width}" in text and f'<td class="number">{width}</td>' in text
    assert text.index('class="best"') > text.index(">…_0</a>")


def test_a_wait_says_why_and_what_ends_it(studio: Studio) -> None:
    run_id = studio.run()
    step = {"state": "Running", "reason": "Waiting for node 2", "until": "ends when it reports", "at": time.time()}
    studio.report(run_id, steps=[step])
    text = studio.get(f"{studio.base}/{run_id}").text
    assert "Waiting for node 2 – ends when it reports" in text
    assert "<em>ends when it reports</em>" in text


def test_a_failed_run_shows_its_last_lines(studio: Studio) -> None:
    run_id = studio.run()
    error = {"code": "ExitCode", "message": "Ended with exit code 1. Last lines:\n\x1b[31mKeyError\x1b[0m: 'lr'"}
    studio.report(run_id, verdict={"state": "Failed", "reason": "Ended with exit code 1", "error": error})
    text = studio.get(f"{studio.base}/{run_id}").text
    assert '<span class="status bad">Failed</span>' in text
    assert "<strong>ExitCode</strong><pre>Ended with exit code 1. Last lines:\nKeyError: &#39;lr&#39;</pre>" in text


def test_nothing_that_users_wrote_becomes_markup(studio: Studio) -> None:
    run_id = studio.run(
        display_name=HOSTILE,
        description=HOSTILE,
        tags={HOSTILE: HOSTILE},
        properties={HOSTILE: HOSTILE},
        definition={HOSTILE: HOSTILE},
        warnings=[HOSTILE],
        created_by=HOSTILE,
        target=HOSTILE,
        type=HOSTILE,
    )
    points = [
        ("scalar", HOSTILE, 1.0), ("scalar", "text", HOSTILE), ("row", "row" + HOSTILE, {HOSTILE: HOSTILE}),
        ("list", "list", [HOSTILE]), ("reference", "ref" + HOSTILE, f"{ARTIFACT_PREFIX}{run_id}/{HOSTILE}.png"),
    ]  # fmt: skip
    verdict = {"state": "Failed", "reason": HOSTILE, "error": {"code": HOSTILE, "message": HOSTILE}}
    files = {"outputs/<script>alert(1)<x>.txt": b"x", "logs/<script>alert(2)<x>.txt": b"x"}
    studio.report(run_id, HOSTILE.encode(), points=points, files=files, verdict=verdict)
    state = studio.get(f"{studio.base}/{run_id}/state.json").json
    texts = [studio.get(studio.base).text, studio.get(f"{studio.base}/{run_id}").text, *state["sections"].values()]
    for text in texts:
        for tag, attributes in elements(text):
            assert not [name for name in attributes if name.startswith("on")]
            if tag in ("script", "img", "iframe", "object", "link"):
                assert (attributes.get("src") or attributes.get("href") or "").startswith("/studio/")
    assert "&lt;script&gt;alert(&#39;tag&#39;)" in texts[1]


def test_what_a_script_logs_cannot_break_the_page(studio: Studio) -> None:
    run_id = studio.run()
    studio.report(
        run_id,
        points=[
            ("row", "no row", 5), ("list", "no list", 7), ("table", "uneven", {"x": [1, 2], "y": 3}),
            ("scalar", "infinite", float("inf")), ("scalar", "infinite", float("nan")), ("scalar", "none", None),
            ("reference", "elsewhere", "file:///etc/passwd"), ("row", "half a character", {"x": "\ud800"}),
            ("reference", "half a name", f"{ARTIFACT_PREFIX}{run_id}/\ud800.png"),
            ("reference", "half a document", f"{ARTIFACT_PREFIX}{run_id}/\ud800.json"),
        ],
        steps=[{"state": "Running", "reason": "in ages", "at": 2.0**39}],
    )  # fmt: skip
    assert studio.get(f"{studio.base}/{run_id}").status == 200
    assert studio.get(f"{studio.base}/{run_id}/state.json").json["ended"] is False
    for name in ("infinite", "none"):
        assert studio.get(f"{studio.base}/{run_id}/curve.json?name={quote(name)}").status == 200


def test_rows_images_and_confusion_matrices_are_shown(studio: Studio) -> None:
    run_id = studio.run()
    matrix = {"schema_type": "confusion_matrix", "data": {"class_labels": ["cat", "dog"], "matrix": [[9, 1], [0, 8]]}}
    studio.report(
        run_id,
        points=[
            ("row", "per class", {"name": "cat", "recall": 0.5}), ("row", "per class", {"name": "dog", "recall": 1}),
            ("table", "long", {"x": list(range(250))}),
            ("reference", "plot", f"{ARTIFACT_PREFIX}{run_id}/plot_1.png"),
            ("reference", "confusion", f"{ARTIFACT_PREFIX}{run_id}/confusion_1.json"),
        ],
        files={"plot_1.png": b"", "confusion_1.json": json.dumps(matrix).encode()},
    )  # fmt: skip
    text = studio.get(f"{studio.base}/{run_id}").text
    assert "<th>name</th><th>recall</th>" in text
    assert "<td>cat</td><td>0.5</td>" in text
    assert "The last 100 of 250 rows." in text and "<td>249</td>" in text and "<td>149</td>" not in text
    assert f'<img src="{studio.base}/{run_id}/file/plot_1.png"' in text
    assert '<tr><th>cat</th><td class="heat9">9</td><td class="heat1">1</td></tr>' in text


def test_a_run_that_is_not_there_is_a_page_that_says_which_and_leads_on(studio: Studio) -> None:
    reply = studio.get(f"{studio.base}/no-such-run")
    assert (reply.status, reply.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "no-such-run" in reply.text
    assert f'href="{studio.base}"' in reply.text


@pytest.mark.parametrize("path", ["/studio/no-such-workspace/runs", "/studio/no/such/page", "/studio/static/../x"])
def test_other_places_that_are_not_there_lead_to_the_workspaces(studio: Studio, path: str) -> None:
    reply = studio.get(path)
    assert reply.status == 404
    assert 'href="/studio/"' in reply.text


def test_an_address_that_cannot_be_read_says_so(studio: Studio) -> None:
    assert studio.get(f"{studio.base}?cursor=x").status == 400
    reply = studio.get(f"{studio.base}/{studio.run()}/log.json?name=x&offset=-1")
    assert (reply.status, reply.json["error"]["code"]) == (400, "UserError")
    assert studio.get(f"{studio.base}/{studio.run()}/curve.json?name=nothing").status == 404


# -- news


def test_state_waits_for_news_and_comes_with_it(studio: Studio) -> None:
    run_id = studio.run()
    first = studio.get(f"{studio.base}/{run_id}/state.json").json
    reporting = Timer(0.3, studio.report, (run_id, b"news\n"))
    reporting.start()
    asked = time.monotonic()
    second = studio.get(f"{studio.base}/{run_id}/state.json?seen={first['mark']}&wait=20").json
    reporting.join()
    assert time.monotonic() - asked < 15
    assert second["mark"] != first["mark"]
    assert second["logs"] == {LOG: 5}
    assert LOG in second["sections"]["files"]


def test_time_that_passes_is_no_news(studio: Studio) -> None:
    run_id = studio.run()
    first = studio.get(f"{studio.base}/{run_id}/state.json").json
    second = studio.get(f"{studio.base}/{run_id}/state.json?seen={first['mark']}&wait=0.2").json
    assert second["mark"] == first["mark"]
    assert second["sections"] == {}


def test_a_log_is_read_by_offset_as_it_grows(studio: Studio) -> None:
    run_id = studio.run()
    studio.report(run_id, b"one\n 10%\r 20%")
    address = f"{studio.base}/{run_id}/log.json?name={LOG}"
    first = studio.get(f"{address}&offset=0").json
    assert (first["text"], first["open"], first["size"]) == ("one\n", " 20%", 13)
    studio.report(run_id, b"\r 30%\nnext\n", offset=13)
    second = studio.get(f"{address}&offset={first['next']}").json
    assert (second["text"], second["open"], second["next"]) == (" 30%\nnext\n", "", 24)
    assert studio.get(f"{address}&offset=24").json["text"] == ""
    assert studio.get(f"{address}&offset=9999").json["next"] == 24
    studio.end(run_id)
    assert studio.get(f"{address}&offset=0").json["text"] == "one\n 30%\nnext\n"


def test_of_a_long_log_the_page_shows_the_end(studio: Studio) -> None:
    run_id = studio.run()
    studio.report(run_id, b"".join(b"line %06d\n" % number for number in range(50_000)))
    text = studio.get(f"{studio.base}/{run_id}").text
    assert "line 049999" in text and "line 000001" not in text
    assert '<p id="log-skipped" class="quiet">' in text
    tail = studio.get(f"{studio.base}/{run_id}/log.json?name={LOG}").json
    assert tail["text"].startswith("line ") and tail["next"] == tail["size"] == 600_000


def test_another_log_can_be_chosen(studio: Studio) -> None:
    run_id = studio.run()
    studio.report(run_id, b"of the script", files={"system_logs/agent.txt": b"of the agent"})
    text = studio.get(f"{studio.base}/{run_id}?log=system_logs/agent.txt").text
    assert "of the agent" in text and "of the script" not in text
    assert "of the script" in studio.get(f"{studio.base}/{run_id}?log=outputs/nothing.txt").text


def test_a_curve_goes_by_step_where_steps_were_logged(studio: Studio) -> None:
    run_id = studio.run()
    studio.report(
        run_id,
        points=[("scalar", "loss", 3.0, 2), ("scalar", "loss", 5.0, 1), ("scalar", "rate", 7.0), ("scalar", "rate", 8),
                ("list", "folds", [1, None, 2]), ("scalar", "up", float("inf"), 1), ("scalar", "up", 1.0, 2)],
    )  # fmt: skip

    def curve(name: str) -> Any:
        return studio.get(f"{studio.base}/{run_id}/curve.json?name={name}").json

    assert curve("loss") == {"x_is": "step", "x": [1, 2], "y": [5, 3]}
    assert curve("rate") == {"x_is": "number", "x": [1, 2], "y": [7, 8]}
    assert curve("folds") == {"x_is": "number", "x": [1, 3], "y": [1, 2]}
    assert curve("up")["y"] == [None, 1]
    studio.report(run_id, points=[("scalar", "many", float(number % 7)) for number in range(3000)])
    many = curve("many")
    assert many["x_is"] == "seconds" and len(many["x"]) <= 2000 and max(many["y"]) == 6
    metrics = studio.get(f"{studio.base}/{run_id}/state.json").json["metrics"]
    assert {metric["name"] for metric in metrics if metric["curve"]} == {"loss", "rate", "folds", "up", "many"}


# -- files


def test_a_file_is_a_picture_or_something_to_save_and_never_a_page(studio: Studio) -> None:
    run_id = studio.run()
    names = ("a b#c?%.html", "x.svg", "x.js", "x", "x.png")
    studio.report(run_id, files={f"outputs/{name}": b"<script>" for name in names})
    for name in names:
        picture = name == "x.png"
        reply = studio.get(f"{studio.base}/{run_id}/file/outputs/{quote(name)}")
        assert (reply.status, reply.text) == (200, "<script>")
        assert reply.headers["content-type"] == ("image/png" if picture else "application/octet-stream")
        assert picture or reply.headers["content-disposition"].startswith("attachment;")
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in reply.headers["content-security-policy"]
    page = studio.get(f"{studio.base}/{run_id}").text
    assert f'href="{studio.base}/{run_id}/file/outputs/a%20b%23c%3F%25.html"' in page
    assert studio.get(f"{studio.base}/{run_id}/file/outputs/other").status == 404
    assert studio.get(f"{studio.base}/{run_id}/file/..%2f..%2ftoken").status in (400, 404)


# -- lists


def test_the_newest_runs_come_first_page_by_page(studio: Studio) -> None:
    names = [studio.run(f"run-{number:03d}") for number in range(53)]
    first = studio.get(studio.base).text
    assert first.index(names[-1]) < first.index(names[-2])
    assert names[3] in first and names[2] not in first
    older = first.split("cursor=")[1].split('"')[0]
    second = studio.get(f"{studio.base}?cursor={older}").text
    assert names[2] in second and names[3] not in second and "cursor=" not in second


def test_runs_can_be_narrowed_to_an_experiment_and_leave_out_children(studio: Studio) -> None:
    mine, other = studio.run("mine"), studio.run("foreign", experiment="another")
    studio.run("a-child", parent_id=mine)
    text = studio.get(f"{studio.base}?experiment=trial").text
    assert mine in text and other not in text and "a-child" not in text
    assert "<option selected>trial</option>" in text and "<option>another</option>" in text


def test_runs_can_be_sorted_by_a_metric_and_the_address_says_so(studio: Studio) -> None:
    for name, value in (("middle", 0.5), ("best", 0.9), ("worst", 0.1)):
        run = studio.run(name, tags={"kind": name})
        studio.report(run, points=[("scalar", "acc & more", value), ("scalar", "acc & more", 0.3)])
    studio.run("without")

    def order(address: str) -> list[str]:
        text = studio.get(studio.base + address).text
        named = [dict(attributes).get("href") or "" for tag, attributes in elements(text) if tag == "a"]
        return [href.rpartition("/")[2] for href in named if href.startswith(studio.base + "/")]

    text = studio.get(studio.base).text
    (head,) = [a["href"] or "" for tag, a in elements(text) if tag == "a" and "sort=" in (a.get("href") or "")]
    assert order("") == ["without", "worst", "best", "middle"]
    assert order(head) == ["best", "middle", "worst"], "a click on the head of the column: the greatest first"
    again = studio.get(studio.base + head).text
    assert 'aria-sort="descending"' in again and "0.9" in again
    (head,) = [a["href"] or "" for tag, a in elements(again) if tag == "a" and ":asc" in unquote(a.get("href") or "")]
    assert order(head) == ["worst", "middle", "best"], "and once more: the least first"
    assert order("?where=acc+%26+more>0.4") == ["best", "middle"]
    assert order("?tag=kind%3Dbest") == ["best"] and order("?status=Completed") == []
    assert "is no order of runs" in studio.get(f"{studio.base}?sort=size").text
    assert studio.get(f"{studio.base}?sort=size").status == 400


def test_the_front_page_leads_to_the_runs(studio: Studio) -> None:
    assert f'href="{studio.base}"' in studio.get("/studio/").text  # two workspaces at least: this one and the default


# -- in a real browser


@pytest.mark.full
def test_a_browser_follows_a_run_from_its_link_to_its_end(studio: Studio, browser: Browser, tmp_path: Path) -> None:
    run_id = studio.run(display_name=HOSTILE, tags={HOSTILE: "x"})
    studio.report(run_id, HOSTILE.encode() + b"\n", points=[("scalar", "loss", 3.0, 1), ("scalar", HOSTILE, 1.0)])
    browser.open(f"{studio.url}{studio.base}/{run_id}#key={studio.key}")
    browser.wait_for(f"document.getElementById('log-text')?.textContent.includes({json.dumps(HOSTILE)})")
    assert browser.ask("location.hash") == ""
    length = len(HOSTILE) + 1
    for step in range(2, 40):  # enough to scroll
        line = b"step %d\n" % step
        points = [("scalar", "loss", 3.0 / step, step), ("scalar", HOSTILE, 2.0)]
        studio.report(run_id, line, offset=length, points=points)
        length += len(line)
    browser.wait_for("document.getElementById('log-text').textContent.includes('step 39')")
    browser.wait_for("document.querySelectorAll('#curves figure canvas').length == 2")
    browser.wait_for("document.querySelector('[data-live=metrics]').innerText.includes('0.0769231')")
    assert browser.ask("(b => b.scrollHeight - b.scrollTop - b.clientHeight < 5)(document.getElementById('log-text'))")
    browser.ask("document.getElementById('log-text').scrollTop = 0")
    studio.report(run_id, b"the end\n", offset=length)
    browser.wait_for("document.getElementById('log-text').textContent.includes('the end')")
    assert browser.ask("document.getElementById('log-text').scrollTop") == 0  # whoever scrolled up is left there
    studio.report(
        run_id,
        points=[("reference", "plot", f"{ARTIFACT_PREFIX}{run_id}/plot.png")],
        files={"plot.png": _white_png()},
    )
    studio.end(run_id)
    browser.wait_for("document.querySelector('.bar .status').innerText == 'Completed'")
    browser.wait_for("document.querySelector('[data-live=exhibits] img')?.naturalWidth == 1")
    browser.picture(tmp_path / "run.png")
    assert browser.dialogs() == []
    assert browser.complaints() == []


@pytest.mark.full
def test_the_list_in_a_browser_shows_a_run_end(studio: Studio, browser: Browser) -> None:
    run_id = studio.run()
    browser.open(f"{studio.url}{studio.base}#key={studio.key}")
    browser.wait_for("document.querySelector('#runs .status')?.innerText == 'Running'")
    studio.end(run_id)
    browser.wait_for("document.querySelector('#runs .status').innerText == 'Completed'")
    assert browser.ask("document.querySelector('#runs[data-live-list]')") is None


@pytest.mark.full
def test_a_browser_without_scripts_sees_the_same_state(studio: Studio, browser: Browser) -> None:
    run_id = studio.run()
    studio.report(run_id, b"plain text\n", points=[("scalar", "loss", 0.125)])
    name, _, value = studio.cookie.partition("=")
    browser.do("Network.setCookie", name=name, value=value, url=f"{studio.url}/studio/", path="/studio")
    browser.do("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(f"{studio.url}{studio.base}/{run_id}")
    browser.wait_for("document.body && document.body.innerText.includes('plain text')")
    assert "0.125" in browser.text() and "Running" in browser.text()


def _white_png() -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")

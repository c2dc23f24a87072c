"""A real Chromium for tests, driven over its debugging pipe: open a page, ask it something, take its picture."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.needs import need

_PATIENCE = 20.0
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)  # fmt: skip


class Unanswered(Exception):
    """The browser could not do it; most often the page that was asked has made way for another one."""


class Browser:
    """One tab in a profile of its own."""

    def __init__(self, width: int = 1280, height: int = 1800, dark: bool = False) -> None:
        chromium = shutil.which("chromium")
        assert chromium is not None
        self._profile = tempfile.mkdtemp(prefix="lapis-chromium-")
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        self._process = subprocess.Popen(
            # Chromium reads commands from descriptor 3 and answers on 4; the shell puts ours there.
            ["bash", "-c", f'exec "$0" "$@" 3<&{commands} 4>&{answers}', chromium, *_FLAGS,
             f"--user-data-dir={self._profile}"],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(commands)
        os.close(answers)
        self._number = 0
        self._held = b""
        self.events: list[dict[str, Any]] = []
        self._session = ""
        try:
            self._begin(width, height, dark)
        except BaseException:
            self.close()
            raise

    def _begin(self, width: int, height: int, dark: bool) -> None:
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.do(f"{domain}.enable")
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        self.do("Page.navigate", url=url)

    def ask(self, expression: str) -> Any:
        """What the expression gives in the page."""
        given = self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in given, given
        return given["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """What the expression gives as soon as that is something."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            try:
                value = self.ask(expression)
            except Unanswered:
                value = None
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"{expression} was never true. The page shows:\n{self.text()}\n{self.complaints()}")

    def text(self) -> str:
        return str(self.ask("document.body.innerText"))

    def complaints(self) -> list[str]:
        """Errors that the page ran into, refusals of its content security policy among them.

        That a page was refused before its link had logged the browser in is none.
        """
        found = []
        for event in self.events:
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(event["params"]["exceptionDetails"]))
            if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(event["params"]["entry"]["text"] + " " + event["params"]["entry"].get("url", ""))
        return [text for text in found if "status of 401" not in text]

    def dialogs(self) -> list[str]:
        """What alert() and its like said: the sign that somebody's text was executed."""
        return [e["params"]["message"] for e in self.events if e["method"] == "Page.javascriptDialogOpening"]

    def picture(self, path: Path) -> None:
        shot = self.do("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)
        shutil.rmtree(self._profile, ignore_errors=True)

    def do(self, method: str, **params: Any) -> Any:
        """One command of the DevTools protocol; events that come meanwhile are kept."""
        self._number += 1
        self._send(self._number, method, params)
        while True:
            message = self._next_message()
            if message.get("id") == self._number:
                if "error" in message:
                    raise Unanswered(message["error"]["message"])
                return message["result"]
            if "method" in message:
                self.events.append(message)
            if message.get("method") == "Page.javascriptDialogOpening":  # an open dialog would hold the page
                self._send(0, "Page.handleJavaScriptDialog", {"accept": True})

    def _send(self, number: int, method: str, params: dict[str, Any]) -> None:
        command: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")

    def _next_message(self) -> dict[str, Any]:
        while b"\0" not in self._held:
            chunk = os.read(self._answers, 1 << 20)
            if not chunk:
                raise AssertionError("Chromium has gone away.")
            self._held += chunk
        line, _, self._held = self._held.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message


@pytest.fixture
def browser() -> Iterator[Browser]:
    need("chromium", "chromium")
    opened = Browser()
    yield opened
    opened.close()

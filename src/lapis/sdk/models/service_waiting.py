"""Waiting for a service with something to see: what it waits for, how its environment is built, what it prints."""

from __future__ import annotations

import sys
import time
from typing import Any

from lapis.domain.log_names import STD_LOG
from lapis.domain.terminal_escapes import Colours, plain
from lapis.errors import NotFound, WebserviceException
from lapis.sdk.runs.waiting import whole_characters

_BUILDSTD_LOG = "azureml-logs/20_image_build_log.txt"
_FIRST, _LONGEST_PAUSE = 0.05, 0.5
_TAIL = 30  # lines of the log that go with a failure


def wait_for_deployment(service: Any, show_output: bool, timeout: float | None) -> None:
    screen = _Screen(service) if show_output else None
    began = time.monotonic()
    pause = _FIRST
    while True:
        service.update_deployment_state()
        if screen is not None:
            screen.show()
        state = service._view["state"]
        if state == "Healthy":
            break
        if state == "Failed":
            raise _failure(service)
        if timeout is not None and time.monotonic() - began > timeout:
            waits = "; ".join(each["stage"] for each in service._view["versions"].values())
            raise WebserviceException(
                f"Service '{service.name}' is {state} after {timeout:g} s: {waits}. It goes on: wait_for_deployment() "
                "waits for it again."
            )
        time.sleep(pause)
        pause = min(pause * 1.3, _LONGEST_PAUSE)
    if screen is not None:
        screen.end()
        print(f'Succeeded\n{service.compute_type} service creation operation finished, operation "Succeeded"')


def _failure(service: Any) -> WebserviceException:
    """With what the script itself said: its traceback, or the last lines of the log."""
    broken = [each for each in service._view["versions"].values() if each["error"]]
    error = broken[0]["error"] if broken else {"message": "it failed, and nobody said why"}
    parts = [f"Service deployment polling reached non-successful terminal state, current service state: Failed. "
             f"Service '{service.name}': {error.get('message')}"]  # fmt: skip
    if error.get("traceback"):
        parts.append(str(error["traceback"]).rstrip())
    elif not error.get("lastLines"):
        parts.append(service._logs(_TAIL))
    parts.append("service.get_logs() gives the whole log.")
    return WebserviceException(plain("\n".join(filter(None, parts))))


class _Screen:
    def __init__(self, service: Any) -> None:
        self._service = service
        self._told: str | None = None
        self._at: dict[tuple[str, str], int] = {}
        self._headed: tuple[str, str] | None = None
        self._colours = Colours()
        print("Tips: You can try get_logs(): it shows what the service prints.\nRunning", flush=True)

    def show(self) -> None:
        """What is new: a line for a new stage, and what the logs say since the last look."""
        for version in self._service._view["versions"].values():
            stage = version["stage"]
            if stage and stage != self._told:
                self._told = stage
                print(plain(f"{version['state']}: {stage}"), flush=True)
            if version["run_id"]:
                self._follow(version["run_id"], _BUILDSTD_LOG)
                self._follow(version["run_id"], STD_LOG)

    def _follow(self, run_id: str, log: str) -> None:
        workspace, key = self._service.workspace, (run_id, log)
        at = self._at.get(key, 0)
        pieces: list[bytes] = []
        try:
            path = f"{workspace._base}/runs/{run_id}/files/{log}"
            workspace._client.download(path, pieces.append, {"offset": at})
        except NotFound:
            return
        data = b"".join(pieces)
        whole = whole_characters(data)
        if not whole:
            return
        if self._headed != key:
            self._headed = key
            print(f"--- {log}", flush=True)
        sys.stdout.write(self._colours.feed(data[:whole].decode("utf-8", "replace")))
        sys.stdout.flush()
        self._at[key] = at + whole

    def end(self) -> None:
        sys.stdout.write(self._colours.end())
        sys.stdout.flush()

"""Keeps what the loggers say in a file, for as long as it is switched on."""

from __future__ import annotations

import logging
from typing import Any, Iterable

_DEFAULT_PATH = "azureml.log"
_DEFAULT_NAMESPACES = ("azureml", "lapis")
_FORMAT = "%(asctime)s|%(name)s|%(levelname)s|%(message)s"


class diagnostic_log:  # the name is SDK v1's
    """`with diagnostic_log("debug.log"):`, or `start_capture()` and `stop_capture()`. Adds to the file."""

    def __init__(
        self,
        log_path: str | None = None,
        namespaces: Iterable[str] | None = None,
        context_name: str | None = None,
    ) -> None:
        self._path = log_path or _DEFAULT_PATH
        self._loggers = [logging.getLogger(name) for name in namespaces or _DEFAULT_NAMESPACES]
        self._name = (context_name or "diagnostic_log").replace("%", "%%")
        self._handler: logging.Handler | None = None
        self._levels: list[int] = []

    def start_capture(self) -> None:
        if self._handler is not None:
            return
        self._handler = logging.FileHandler(self._path, encoding="utf-8")
        self._handler.setFormatter(logging.Formatter(f"{self._name}|{_FORMAT}"))
        self._levels = [logger.level for logger in self._loggers]
        for logger in self._loggers:
            logger.addHandler(self._handler)
            logger.setLevel(logging.DEBUG)

    def stop_capture(self) -> None:
        if self._handler is None:
            return
        for logger, level in zip(self._loggers, self._levels):
            logger.removeHandler(self._handler)
            logger.setLevel(level)
        self._handler.close()
        self._handler = None

    def __enter__(self) -> diagnostic_log:
        self.start_capture()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.stop_capture()

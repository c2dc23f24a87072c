"""Diagnostics collection as SDK v1 names it: every call is accepted, nothing is kept or sent."""

from __future__ import annotations

import logging
from typing import Any

HBI_MODE = False
INSTRUMENTATION_KEY = "00000000-0000-0000-0000-000000000000"  # whose account events go to: nobody's


class SilentEventLogger:
    """Takes events and forgets them."""

    def log_event(self, *args: Any, **kwargs: Any) -> None:
        pass

    def flush(self) -> None:
        pass


def set_diagnostics_collection(
    send_diagnostics: bool = True, verbosity: int = logging.INFO, reason: str = "", path: str | None = None
) -> None:
    pass


def get_diagnostics_collection_info(
    component_name: str | None = None, path: str | None = None, proceed_in_hbi_mode: bool = False
) -> tuple[bool, None]:
    """Return whether diagnostics are sent, and how much: never, and nothing."""
    return False, None


def is_diagnostics_collection_info_available() -> bool:
    return False


def set_diagnostics_properties(properties: Any) -> None:
    pass


def add_diagnostics_properties(properties: Any) -> None:
    pass


def get_telemetry_log_handler(
    instrumentation_key: str | None = None,
    component_name: str | None = None,
    path: str | None = None,
    proceed_in_hbi_mode: bool = False,
) -> logging.Handler:
    """Return a handler that may be added to any logger and writes nowhere."""
    return logging.NullHandler()


def get_event_logger(*args: Any, **kwargs: Any) -> SilentEventLogger:
    return SilentEventLogger()


_user_agent = ["lapis"]


def append_user_agent(key: str, value: str | None = None) -> None:
    """Name a further program in what get_user_agent() gives."""
    _user_agent.append(f"{key}/{value}" if value else str(key))


def get_user_agent() -> str:
    return " ".join(_user_agent)

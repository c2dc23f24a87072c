"""How a client names itself: accepted, and sent nowhere."""

from lapis.sdk.base.telemetry import append_user_agent as append
from lapis.sdk.base.telemetry import get_user_agent as get_user_agent

__all__ = ["append", "get_user_agent"]

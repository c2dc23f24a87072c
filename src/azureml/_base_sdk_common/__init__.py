"""Private to SDK v1, but scripts reach into it."""

from lapis.sdk.base.names import on_demand as _on_demand

__getattr__, __dir__ = _on_demand(__name__, {})

"""Diagnostics collection: accepted, and nothing is collected."""

from lapis.errors import UserErrorException as UserErrorException
from lapis.sdk.base.telemetry import HBI_MODE as HBI_MODE
from lapis.sdk.base.telemetry import INSTRUMENTATION_KEY as INSTRUMENTATION_KEY
from lapis.sdk.base.telemetry import add_diagnostics_properties as add_diagnostics_properties
from lapis.sdk.base.telemetry import get_diagnostics_collection_info as get_diagnostics_collection_info
from lapis.sdk.base.telemetry import get_event_logger as get_event_logger
from lapis.sdk.base.telemetry import get_telemetry_log_handler as get_telemetry_log_handler
from lapis.sdk.base.telemetry import (
    is_diagnostics_collection_info_available as is_diagnostics_collection_info_available,
)
from lapis.sdk.base.telemetry import set_diagnostics_collection as set_diagnostics_collection
from lapis.sdk.base.telemetry import set_diagnostics_properties as set_diagnostics_properties

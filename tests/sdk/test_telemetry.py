"""Diagnostics collection is accepted and does nothing."""

import logging

import pytest

import azureml.telemetry as telemetry


def test_switching_it_on_says_and_collects_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    telemetry.set_diagnostics_collection(send_diagnostics=True, verbosity=logging.DEBUG, reason="", path=None)
    telemetry.set_diagnostics_properties({"team": "vision"})
    telemetry.add_diagnostics_properties({"team": "vision"})
    assert telemetry.get_diagnostics_collection_info(component_name="notebook") == (False, None)
    assert telemetry.is_diagnostics_collection_info_available() is False
    assert telemetry.HBI_MODE is False
    assert capfd.readouterr() == ("", "")


def test_its_handler_and_its_event_logger_take_what_they_are_given(capfd: pytest.CaptureFixture[str]) -> None:
    logger = logging.Logger("someone's")
    logger.addHandler(telemetry.get_telemetry_log_handler("key", component_name="notebook"))
    logger.warning("kept nowhere")
    events = telemetry.get_event_logger(component="notebook")
    events.log_event({"name": "opened"})
    events.flush()
    assert capfd.readouterr() == ("", "")

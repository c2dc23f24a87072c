"""A diagnostic log holds what was said while it was on, and leaves the loggers as it found them."""

import logging
from pathlib import Path

from azureml.core import diagnostic_log


def test_what_is_said_inside_is_kept_and_the_rest_is_not(tmp_path: Path) -> None:
    logger = logging.getLogger("azureml.somewhere")
    path = tmp_path / "debug.log"
    logger.debug("before")
    with diagnostic_log(str(path), context_name="100% mine"):
        logger.debug("inside")
    logger.debug("after")
    (line,) = path.read_text().splitlines()
    assert line.startswith("100% mine|")
    assert line.endswith("|azureml.somewhere|DEBUG|inside")


def test_the_loggers_are_left_as_they_were(tmp_path: Path) -> None:
    logger = logging.getLogger("a.namespace.of.the.script")
    logger.setLevel(logging.ERROR)
    log = diagnostic_log(str(tmp_path / "debug.log"), namespaces=[logger.name])
    log.start_capture()
    log.start_capture()
    assert (logger.level, len(logger.handlers)) == (logging.DEBUG, 1)
    log.stop_capture()
    log.stop_capture()
    assert (logger.level, logger.handlers) == (logging.ERROR, [])

"""Values and rules, no I/O. Standard library only; runs on Python 3.7 and later."""

from lapis.later import load_late

load_late(__name__)

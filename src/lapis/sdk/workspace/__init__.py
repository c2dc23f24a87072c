"""The workspace, signing in, and config.json."""

from lapis.later import load_late

load_late(__name__)

"""Registered models, and the services that answer with them."""

from lapis.later import load_late

load_late(__name__)

"""Pages for people: server-rendered, no build step, nothing from outside."""

from lapis.later import load_late

load_late(__name__)  # templates and their engine are for who opens a page

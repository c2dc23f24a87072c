"""Rows and columns: files and queries read as tables, filtered and converted. Light; PyArrow is imported late."""

from lapis.later import load_late

load_late(__name__)

"""Rows and columns: files and queries read as tables, filtered and converted. Light; PyArrow is imported late."""

"""How objects show themselves: one line in a terminal, a small table in a notebook."""

from __future__ import annotations

from html import escape
from typing import Any, Mapping


def as_line(kind: str, facts: Mapping[str, Any]) -> str:
    """`Run(Experiment: tf-mnist,\nId: ...)`: what print() gives. Names and tags give no orders to the terminal."""
    from lapis.domain.terminal_escapes import plain

    facts = {key: plain(str(value)) for key, value in facts.items()}
    return "{}({})".format(kind, ",\n".join(f"{key}: {value}" for key, value in facts.items()))


def as_html(facts: Mapping[str, Any], links: Mapping[str, str] | None = None) -> str:
    """A table with one row; a fact named in `links` is shown as a link."""
    heads = "".join(f"<th>{escape(str(key))}</th>" for key in facts)
    cells = "".join(f"<td>{_cell(key, value, links or {})}</td>" for key, value in facts.items())
    return f'<table style="width:100%"><tr>{heads}</tr><tr>{cells}</tr></table>'


def _cell(key: str, value: Any, links: Mapping[str, str]) -> str:
    if key in links:
        return f'<a href="{escape(links[key], quote=True)}" target="_blank" rel="noopener">{escape(str(value))}</a>'
    return escape(str(value))


def when(seconds: float | None) -> str | None:
    """ISO 8601 in UTC, as SDK v1 gives times."""
    if seconds is None:
        return None
    from datetime import datetime, timezone

    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

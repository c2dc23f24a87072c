"""Turns values into pages: the templates, the words they use for times and sizes, and the headers of every answer."""

from __future__ import annotations

import hashlib
import json
import math
import mimetypes
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

from lapis.domain import in_words
from lapis.server.studio import log_text

_HERE = Path(__file__).parent

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
}


@dataclass(frozen=True)
class StaticFile:
    content: bytes
    media_type: str
    address: str  # holds the content's hash, so that a browser may keep it for good


def _static(name: str) -> StaticFile:
    content = (_HERE / "static" / name).read_bytes()
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return StaticFile(content, kind, f"/studio/static/{name}?{hashlib.sha256(content).hexdigest()[:16]}")


STATIC = {
    name: _static(name)
    for name in ("app.js", "app.css", "icon.svg", "vendor/uPlot.iife.min.js", "vendor/uPlot.min.css")
}


def page(template: str, status: int = 200, **values: Any) -> Response:
    text = _templates.get_template(template).render(values)
    return Response(text.encode("utf-8", "replace"), status, media_type="text/html")


def blocks(template: str, names: Iterable[str], values: Mapping[str, Any]) -> dict[str, str]:
    """Parts of a page, rendered as the whole page would: what a page that is open already puts in their place."""
    found = _templates.get_template(template)
    return {name: "".join(found.blocks[name](found.new_context(dict(values)))) for name in names}


def data(value: Any) -> Response:
    """JSON as browsers read it, which know no NaN and no infinity."""
    return Response(json.dumps(_finite(value), separators=(",", ":")), media_type="application/json")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def when(at: float | None) -> Markup:
    """A moment; the page's script puts it into the reader's own time zone."""
    try:
        moment = datetime.fromtimestamp(at, UTC) if at is not None else None
    except (OverflowError, ValueError, OSError):  # whoever reports a run may say anything
        moment = None
    if moment is None:
        return Markup("–")
    return Markup('<time datetime="{}">{}</time>').format(
        moment.isoformat(timespec="milliseconds"), moment.strftime("%Y-%m-%d %H:%M:%S UTC")
    )


def duration(seconds: float | None) -> str:
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02d} h"


def value(given: Any, most: int = 200) -> str:
    """One logged value in few characters."""
    if given is None:
        return "–"
    if isinstance(given, float) and given.is_integer() and abs(given) < 1e15:
        return str(int(given))
    if isinstance(given, float):
        return f"{given:.6g}"
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return text if len(text) <= most else text[: most - 1] + "…"


_COLOURS = {
    "Completed": "good", "Failed": "bad", "Running": "busy", "Finalizing": "busy", "Preparing": "busy",
    "NotResponding": "odd", "CancelRequested": "odd",
}  # fmt: skip


def status(word: str) -> Markup:
    return Markup('<span class="status {}">{}</span>').format(_COLOURS.get(word, "idle"), word)


def _as_json(given: Any) -> str:
    return json.dumps(given, indent=2, ensure_ascii=False, default=str)


_templates = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_templates.filters.update(
    when=when, duration=duration, size=in_words.size, value=value, status=status, as_json=_as_json, clean=log_text.clean
)
_templates.globals["static"] = {name: file.address for name, file in STATIC.items()}

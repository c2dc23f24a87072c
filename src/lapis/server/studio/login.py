"""The page shown to a browser without a cookie: it takes the key from after the # and trades it for one.

What follows the # is never sent to a server nor told to other pages, so no credential stands in a log or a referrer.
"""

from __future__ import annotations

import base64
import hashlib

LOGIN_PATH = "/studio/login"

_SCRIPT = """
const key = location.hash.slice(1).replace(/^key=/, '');
history.replaceState(null, '', location.pathname + location.search);
if (key) {
  fetch('/studio/login', {method: 'POST', body: key}).then(reply => {
    if (reply.ok) location.reload();
    else document.getElementById('what').textContent = 'This link is not for this server, or is an old one.';
  });
}
"""
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:34em;padding:0 1em;color:#1c2733}"
    "code{background:#eef1f5;padding:.1em .3em}"
)

LOGIN_PAGE = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Lapis</title><style>{_STYLE}</style></head>
<body><h1>Lapis</h1>
<p id="what">This browser does not have the key yet.</p>
<p>Run <code>lapis open</code> once, where the server's home is: it opens an address that holds the key. From then on
every link to a page of this server works in this browser.</p>
<script>{_SCRIPT}</script></body></html>
"""


def _sha(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


PAGE_HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "content-security-policy": (
        f"default-src 'none'; script-src {_sha(_SCRIPT)}; style-src {_sha(_STYLE)}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}

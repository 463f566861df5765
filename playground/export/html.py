"""A run as one HTML file: the viewer and the trace, to be opened offline from disk.

Nothing a model or a person wrote can get out of its place: the trace is inert JSON without a single "<", the title is
escaped, and the page's own policy lets nothing run or load but the one script and the one stylesheet whose sums it
names. Must not know how the viewer draws.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json

from playground import __version__
from playground.export.bundle import bundle, stylesheet
from playground.export.lines import trace_text
from playground.export.reading import DATA_ID
from playground.trace import Trace, well_formed

ENTRY = "exported.js"
STYLES = ("player.css", "exported.css")
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main id="unmask"></main>
<noscript><p>Playing this run needs JavaScript. Its text:</p><p class="exported-text">{text}</p></noscript>
<footer class="exported-foot"><span>{made}</span><button type="button" id="theme">Light or dark</button></footer>
<script type="application/json" id="{data_id}">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def trace_html(trace: Trace) -> str:
    """The page. `read_traces` reads the trace back out of it."""
    script, style = f"\n{bundle(ENTRY)}", f"\n{stylesheet(*STYLES)}"
    header = trace.header
    prompt = " ".join(header.prompt.split())
    made = f"{header.model_name or header.model}, {header.created[:10]}. Made with Unmask {__version__}."
    return _PAGE.format(
        policy=_policy(script, style),
        title=_text(f"{prompt[:80]}{'…' if len(prompt) > 80 else ''} · Unmask"),
        style=style,
        script=script,
        text=_text(trace_text(trace)),
        made=_text(made),
        data_id=DATA_ID,
        data=inert_json(trace.to_lines()),
    )


def inert_json(value: str) -> str:
    """A text as JSON that neither ends its element nor starts another or a comment."""
    return json.dumps(well_formed(value), ensure_ascii=False).translate(_ESCAPED)


_ESCAPED = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029\x7f\ufeff\ufffe\uffff"}


def _text(text: str) -> str:
    return html.escape(well_formed(text))


def _policy(script: str, style: str) -> str:
    """Only this script and this stylesheet, and nothing from anywhere."""
    return (
        f"default-src 'none'; script-src '{_sum(script)}'; style-src '{_sum(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _sum(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"

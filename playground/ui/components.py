"""Two components with constant templates: the canvas viewer, and a line of text.

Gradio compiles a component's template with its value inside, and what looks like `${…}` in a value would run. So the
templates here hold one empty element, and the value reaches the page only through a script that writes
text nodes. This module must not know what is shown.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import gradio as gr

STATIC_URL = "unmask/static"
"""Where the page finds static/ (relative to the page, so that a path prefix in front of the app works)."""

_VIEWER_SCRIPT = f"""
import(new URL("{STATIC_URL}/mount.js", document.baseURI).href).then((module) => {{
  const act = (detail) => trigger("submit", detail);
  const feed = module.mountViewer(element.querySelector(".unmask-mount"), act);
  feed(props.value);
  watch("value", () => feed(props.value));
}});
"""
_LINE_SCRIPT = """
const line = element.querySelector(".unmask-line");
const show = () => { line.textContent = props.value || ""; line.hidden = !props.value; };
show();
watch("value", show);
"""
_COMPARISON_SCRIPT = f"""
import(new URL("{STATIC_URL}/compare.js", document.baseURI).href).then((module) => {{
  const show = () => module.showComparison(element.querySelector(".unmask-sides"), props.value || "");
  show();
  watch("value", show);
}});
"""


def viewer(value: str = "", **options: Any) -> gr.HTML:
    """The canvas viewer; its value is one growing string of JSON lines: a trace or its start, and control lines.

    Its `submit` event says what people want done with the run (see `playground.ui.branching`).
    """
    # Functions and not subclasses: beside a subclass Gradio writes a .pyi file into the source tree.
    return gr.HTML(
        value,
        html_template='<div class="unmask-mount"></div>',
        js_on_load=_VIEWER_SCRIPT,
        apply_default_css=False,
        **options,
    )


def text_line(value: str = "", **options: Any) -> gr.HTML:
    """A sentence that may hold anything; empty hides it."""
    return gr.HTML(
        value,
        html_template='<p class="unmask-line" role="status"></p>',
        js_on_load=_LINE_SCRIPT,
        apply_default_css=False,
        **options,
    )


def comparison(value: str = "", **options: Any) -> gr.HTML:
    """Two texts side by side; its value is JSON (see static/compare.js)."""
    return gr.HTML(
        value,
        html_template='<div class="unmask-sides"></div>',
        js_on_load=_COMPARISON_SCRIPT,
        apply_default_css=False,
        **options,
    )


def plain(lines: str) -> str:
    """JSON lines without "<", which JSON can do without: Gradio warns of values that seem to hold scripts."""
    return lines.replace("<", "\\u003c")


def control_line(
    *,
    status: str | None = None,
    autoplay: bool | None = None,
    ended: bool | None = None,
    turn: int | None = None,
    stream: str | None = None,
    after: int | None = None,
) -> str:
    """A line for the viewer that is not part of a trace.

    Args:
        status: a sentence while waiting.
        autoplay: play from the start.
        ended: nothing more will come, even if the run has no outcome.
        turn: as `turn_line` gives it.
        stream: id of the run whose lines the viewer is to go on reading by itself.
        after: how many of them it has.
    """
    body: dict[str, Any] = {"type": "control"}
    given = {
        "status": status,
        "autoplay": autoplay,
        "ended": ended,
        "turn": turn,
        "stream": stream,
        "after": after,
    }
    body |= {name: value for name, value in given.items() if value is not None}
    return plain(json.dumps(body, ensure_ascii=False, separators=(",", ":"))) + "\n"


class _Turns:
    """Counts up through restarts, since a page may stay open through one; microseconds still fit a JS number."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def next(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1000)
            return self._last


_turns = _Turns()


def turn_line() -> str:
    """The first line of a value that takes the viewer over.

    A cancelled run's last value may reach the page after what was shown in its place; the viewer passes over values of
    an earlier turn than the one it shows.
    """
    return control_line(turn=_turns.next())

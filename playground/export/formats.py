"""Every kind of file a run can be taken along as: what it is called, what it is good for, and what makes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from playground.export.html import trace_html
from playground.export.lines import trace_csv, trace_jsonl, trace_text
from playground.trace import Trace


@dataclass(frozen=True, slots=True)
class Look:
    """Choices that pictures take: the step shown (None: the last), and light or dark."""

    step: int | None = None
    dark: bool = False


@dataclass(frozen=True, slots=True)
class Format:
    """A title for a button, the end of the file's name, and a sentence."""

    title: str
    suffix: str
    sentence: str
    write: Callable[[Trace, Look], bytes]


def _png(trace: Trace, look: Look) -> bytes:
    # Here, because pillow takes its time to load and most runs are never drawn.
    from playground.export.images import trace_png

    return trace_png(trace, look.step, dark=look.dark)


def _gif(trace: Trace, look: Look) -> bytes:
    from playground.export.images import trace_gif

    return trace_gif(trace, dark=look.dark)


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "html": Format(
            "Player",
            "html",
            "One page that plays the run, opened from disk; needs no network.",
            lambda trace, _: trace_html(trace).encode(),
        ),
        "gif": Format("GIF", "gif", "The run as a moving picture.", _gif),
        "png": Format("PNG", "png", "The canvas at the step shown.", _png),
        "jsonl": Format(
            "JSON lines",
            "jsonl",
            "The trace itself, everything in it; opens here again.",
            lambda trace, _: trace_jsonl(trace).encode(),
        ),
        "csv": Format(
            "CSV",
            "csv",
            "One line a step: masks left, confidence, seconds, what changed.",
            lambda trace, _: trace_csv(trace).encode(),
        ),
        "text": Format("Text", "txt", "The text alone.", lambda trace, _: trace_text(trace).encode()),
    }
)


def file_name(trace: Trace, name: str) -> str:
    """Such as "unmask-why-is-the-sky-blue-1a2b3c4d.html": words of the prompt, then of the run's id; plain ASCII."""
    words = re.findall(r"[a-z0-9]+", trace.header.prompt[:200].lower())[:6]
    run = re.sub(r"[^A-Za-z0-9]", "", trace.header.run_id)[:8].lower()
    stem = "-".join(filter(None, ["unmask", *(word[:20] for word in words), run]))
    return f"{stem}.{FORMATS[name].suffix}"

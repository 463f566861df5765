"""A trace as lines: JSON, a CSV of what each step did, the plain text. Pure functions on plain data.

The CSV holds numbers only, so nothing in it can be taken for a formula.
"""

from __future__ import annotations

import csv
import io
from collections import Counter

from playground.export.looks import canvas_text
from playground.trace import Frame, Kind, Trace

_FIGURES = ("step", "block", "nfe", "masks_left", "confidence_min", "confidence_mean", "model_seconds", "elapsed")
STEP_COLUMNS = (*_FIGURES, "batch", *(kind.value for kind in Kind), "entropy_left")
"""Headings of `trace_csv`: a frame's figures, then how many changes of each kind it made."""


def trace_jsonl(trace: Trace) -> str:
    """The trace as JSON lines, which `Trace.from_lines` reads back."""
    return trace.to_lines()


def trace_csv(trace: Trace) -> str:
    """One line for each step (RFC 4180, CRLF); an empty cell where a figure does not apply."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(STEP_COLUMNS)
    writer.writerows(_step(frame) for frame in trace.frames)
    return buffer.getvalue()


def trace_text(trace: Trace) -> str:
    """The text alone, ended by a newline; of a run that has not ended, what stands on its canvas so far."""
    if trace.outcome is not None:
        text = trace.outcome.text
    else:
        text = canvas_text(trace.canvas_at(len(trace.frames)), frozenset(trace.header.stop_ids))
    return f"{text}\n" if text else ""


def _step(frame: Frame) -> list[float | int | None]:
    kinds = Counter(change.kind for change in frame.changes)
    return [
        *(getattr(frame, name) for name in _FIGURES),
        frame.batch,
        *(kinds[kind] for kind in Kind),
        frame.entropy_left,
    ]

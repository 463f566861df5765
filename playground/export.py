"""A trace as a file: JSON lines, or a CSV of what each step did. Pure functions on plain data.

The CSV holds numbers only, so nothing in it can be taken for a formula. This module must not know models,
databases or pages.
"""

from __future__ import annotations

import csv
import io
from collections import Counter

from playground.trace import Frame, Kind, Trace

_FIGURES = ("step", "block", "nfe", "masks_left", "confidence_min", "confidence_mean", "model_seconds", "elapsed")
STEP_COLUMNS = (*_FIGURES, "batch", *(kind.value for kind in Kind))
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


def _step(frame: Frame) -> list[float | int | None]:
    kinds = Counter(change.kind for change in frame.changes)
    return [*(getattr(frame, name) for name in _FIGURES), frame.batch, *(kinds[kind] for kind in Kind)]

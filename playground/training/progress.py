"""A run's progress in lines, curves and a table. Knows the log's and the evaluation's shape, not what makes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from playground.training.checkpoint import curve
from playground.training.data import read_lines
from playground.training.patterns import PATTERNS

SMOOTH = 25
"""Steps whose mean is drawn."""


def line_of(entry: Mapping[str, Any], steps: int) -> str:
    """One step of the log as a line."""
    line = (
        f"step {entry['step']} of {steps}, {entry['pattern']}: loss {entry['cross_entropy']:.3f}, "
        f"{entry['accuracy']:.0%} right, {entry['masks']:,} masks, {entry['seconds']:.1f} s"
    )
    if (figures := entry.get("validation")) is None:
        return line
    shown = ", ".join(
        f"{name} {figures[name]['cross_entropy']:.3f} ({figures[name]['accuracy']:.0%})" for name in PATTERNS
    )
    near = " ".join(f"{accuracy:.0%}" for _, accuracy in figures["near"] if accuracy is not None)
    return f"{line}\n  validation: {shown}; right by distance from the text: {near}"


def draw_curves(run: Path) -> Path:
    """`curves.html`: training loss and validation against masked tokens seen, one file that opens offline."""
    figure = make_subplots(1, 2, subplot_titles=("Loss of a mask, nats", "Right by distance from the text, validation"))
    for pattern in PATTERNS:
        lines = [line for line in read_lines(run / "log.jsonl") if line["pattern"] == pattern]
        means = [
            sum(line["cross_entropy"] for line in some) / len(some)
            for some in (lines[max(0, i - SMOOTH) : i + 1] for i in range(len(lines)))
        ]
        figure.add_scatter(x=[line["masks"] for line in lines], y=means, name=pattern, mode="lines", row=1, col=1)
        points = [(masks, figures[pattern]["cross_entropy"]) for _, masks, figures in curve(run)]
        figure.add_scatter(
            x=[x for x, _ in points],
            y=[y for _, y in points],
            name=f"{pattern}, validation",
            mode="markers",
            row=1,
            col=1,
        )
    distances = max((len(figures["near"]) for _, _, figures in curve(run)), default=0)
    for distance in range(distances):
        points = [(masks, figures["near"][distance][1]) for _, masks, figures in curve(run)]
        figure.add_scatter(
            x=[x for x, _ in points], y=[y for _, y in points], name=f"distance {distance + 1}", row=1, col=2
        )
    figure.update_xaxes(title="masked tokens seen")
    figure.update_layout(template=go.layout.Template(), height=520)
    path = run / "curves.html"
    figure.write_html(path, include_plotlyjs=True)
    return path


def decoding_table(body: Mapping[str, Any]) -> str:
    """The decodings and presets of an evaluation, one a line, as a Markdown table."""
    titles = (
        "decoding, length, commits a forward",
        "tokens a forward",
        "perplexity",
        "times the base's",
        "H",
        "repeated",
    )
    rows = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for name, entry in {**body.get("decoding", {}), **body.get("presets", {})}.items():
        figures = entry["figures"]

        def cell(key: str, digits: int = 2, figures: Mapping[str, Any] = figures) -> str:
            value = figures[key]
            return f"{value['value']:.{digits}f} ({value['low']:.{digits}f} to {value['high']:.{digits}f})"

        cells = [cell("tokens_per_forward"), cell("perplexity", 1), cell("ratio"), cell("entropy"), cell("repetition")]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)

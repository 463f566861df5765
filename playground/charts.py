"""Charts of many runs, drawn from the run log's rows.

They stand on light and dark pages and in greyscale prints: one blue, mid-grey text, and marker shapes where
another chart would use colours. Text of models and visitors is escaped, because plotly renders some HTML.
This module must not know databases or pages.
"""

from __future__ import annotations

import html
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import plotly.graph_objects as go

from playground.runlog.rows import RunRow

BLUE = "#2f5bea"
GREY = "#7a7a7a"
"""Text: over 4:1 against white and against a near-black page."""
GRID = "rgba(128,128,128,0.25)"
CLEAR = "rgba(0,0,0,0)"

# Longest canvas of a bucket, and its marker. The last one takes what is longer.
_BUCKETS: tuple[tuple[float, str, str], ...] = (
    (32, "up to 32 tokens", "circle"),
    (64, "33 to 64 tokens", "square"),
    (128, "65 to 128 tokens", "diamond"),
    (256, "129 to 256 tokens", "triangle-up"),
    (math.inf, "over 256 tokens", "pentagon"),
)
_HOVER = (
    "%{customdata[0]}<br>%{x} forwards, %{y:.3g} s<br>length %{customdata[1]}, block %{customdata[2]}, "
    "schedule %{customdata[3]}<br>%{customdata[4]}"
)


def time_against_steps(rows: Iterable[RunRow]) -> go.Figure:
    """Seconds over model forwards: filled markers for the model's time, hollow ones for the whole run.

    Runs without a forward (refused, or stopped while waiting) have no place on it and are left out.
    """
    figure = _figure("model forwards", "seconds")
    buckets: dict[int, list[RunRow]] = defaultdict(list)
    for row in rows:
        if row.forwards > 0 and math.isfinite(row.model_seconds) and math.isfinite(row.total_seconds):
            buckets[_bucket(row.length)].append(row)
    if not buckets:
        return _say(figure, "No runs to show yet. Generate a few with different numbers of steps.")
    for index, members in sorted(buckets.items()):
        _, name, symbol = _BUCKETS[index]
        figure.add_trace(_points(members, f"model, {name}", symbol, total=False))
        figure.add_trace(_points(members, f"whole run, {name}", f"{symbol}-open", total=True))
    return figure


def _points(rows: Sequence[RunRow], name: str, symbol: str, *, total: bool) -> go.Scatter:
    size = 12 if total else 9
    return go.Scatter(
        x=[row.forwards for row in rows],
        y=[row.total_seconds if total else row.model_seconds for row in rows],
        name=name,
        mode="markers",
        marker={"symbol": symbol, "size": size, "color": BLUE, "opacity": 0.85, "line": {"width": 1.5, "color": BLUE}},
        customdata=[_labels(row) for row in rows],
        hovertemplate=f"{_HOVER}<extra>{'whole run' if total else 'model'}</extra>",
    )


def _labels(row: RunRow) -> list[str]:
    block = "whole canvas" if row.block == 0 else str(row.block or "–")
    return [
        _plain(row.model_name or row.model, 60),
        str(row.length),
        block,
        _plain(row.schedule or "–", 40),
        _plain(row.prompt, 60),
    ]


def _plain(text: str, longest: int) -> str:
    """User text on one line, as plotly shows it letter by letter: no tags, links or entities."""
    text = " ".join(text.split())
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    return html.escape(short, quote=False)


def _bucket(length: int) -> int:
    return next(index for index, (longest, _, _) in enumerate(_BUCKETS) if length <= longest)


def _figure(x_title: str, y_title: str) -> go.Figure:
    axis = {"gridcolor": GRID, "linecolor": GRID, "zerolinecolor": GRID, "rangemode": "tozero"}
    return go.Figure(
        layout=go.Layout(
            # Without it plotly's default template paints its own backgrounds and colours.
            template=go.layout.Template(),
            paper_bgcolor=CLEAR,
            plot_bgcolor=CLEAR,
            font={"color": GREY, "size": 13},
            xaxis={**axis, "title": {"text": x_title}},
            yaxis={**axis, "title": {"text": y_title}},
            legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "bgcolor": CLEAR},
            margin={"l": 60, "r": 20, "t": 20, "b": 60},
            hovermode="closest",
        )
    )


def _say(figure: go.Figure, text: str) -> go.Figure:
    """An empty chart with a sentence in its middle."""
    figure.update_layout(xaxis={"visible": False}, yaxis={"visible": False})
    figure.add_annotation(text=html.escape(text), showarrow=False, x=0.5, y=0.5, xref="paper", yref="paper")
    return figure

"""Charts show every run once as model time and once as whole time, on any background, and run no text."""

from __future__ import annotations

import json
import math

import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground import charts
from playground.charts import time_against_steps
from playground.runlog.rows import RunRow
from tests.samples import sample_row


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _points(figure: go.Figure) -> list[tuple[float, float]]:
    return [point for trace in figure.data for point in zip(trace.x, trace.y, strict=True)]


@given(st.lists(st.tuples(st.integers(1, 1024), st.integers(1, 2000), st.floats(0, 1e4)), max_size=30))
def test_every_run_has_two_points_in_the_bucket_of_its_length(runs: list[tuple[int, int, float]]) -> None:
    rows = [
        sample_row(str(i), length=length, forwards=forwards, model_seconds=seconds, total_seconds=seconds + 1)
        for i, (length, forwards, seconds) in enumerate(runs)
    ]
    figure = time_against_steps(rows)
    wanted = [(row.forwards, row.model_seconds) for row in rows] + [(row.forwards, row.total_seconds) for row in rows]
    assert sorted(_points(figure)) == sorted(wanted)
    assert all(len(trace.customdata) == len(trace.x) for trace in figure.data)


def test_buckets_and_kinds_differ_by_shape_and_not_by_colour() -> None:
    rows = [sample_row(str(length), length=length) for length in (16, 33, 128, 200, 1024)]
    figure = time_against_steps(rows)
    assert len({trace.marker.symbol for trace in figure.data}) == len(figure.data) == 10
    assert {trace.marker.color for trace in figure.data} == {"#2f5bea"}
    assert len({trace.name for trace in figure.data}) == 10


def test_the_figure_fits_light_and_dark_pages() -> None:
    figure = time_against_steps([sample_row()])
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    # Otherwise plotly's default template brings its own backgrounds.
    assert figure.layout.template.layout.plot_bgcolor is None
    for page in ("#ffffff", "#0b0f19"):
        assert _contrast(figure.layout.font.color, page) >= 4
        assert _contrast(charts.BLUE, page) >= 3


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [sample_row(forwards=0)],
        [sample_row(model_seconds=math.nan)],
        [sample_row(total_seconds=math.inf)],
    ],
)
def test_without_runs_to_show_it_says_so(rows: list[RunRow]) -> None:
    figure = time_against_steps(rows)
    assert len(figure.data) == 0
    (note,) = figure.layout.annotations
    assert "Generate" in note.text
    assert figure.layout.xaxis.visible is False


@pytest.mark.parametrize(
    "text",
    ["<b>bold</b>", '<a href="javascript:alert(1)">x</a>', "<script>alert(1)</script>", "a<br>b", "&lt;b&gt;", "a\nb"],
)
def test_text_of_models_and_visitors_is_no_markup(text: str) -> None:
    row = sample_row(model_name=text, prompt=text, schedule=text)
    for trace in time_against_steps([row]).data:
        for label in trace.customdata[0]:
            assert "<" not in label
            assert ">" not in label
            assert "\n" not in label
        assert text not in trace.name
        assert text not in trace.hovertemplate
    # An entity that the visitor typed is shown as typed.
    if text == "&lt;b&gt;":
        assert time_against_steps([row]).data[0].customdata[0][0] == "&amp;lt;b&amp;gt;"


def test_labels_are_short_and_settings_that_do_not_apply_are_a_dash() -> None:
    row = sample_row(model_name="m" * 500, prompt="p" * 5000, block=None, schedule=None)
    labels = list(time_against_steps([row]).data[0].customdata[0])
    assert max(map(len, labels)) <= 60
    assert labels[2:4] == ["–", "–"]
    assert time_against_steps([sample_row(block=0)]).data[0].customdata[0][2] == "whole canvas"


def test_it_is_plain_json_for_the_page() -> None:
    figure = json.loads(time_against_steps([sample_row(prompt="שלום 😀 ${x} %{y}")]).to_json())
    assert figure["data"][0]["x"] == [48]

"""Sizes of exported players add up, and stay what a mail can carry."""

from __future__ import annotations

from playground.export import read_traces
from playground.export.html import trace_html
from playground.labs.export_sizes import SIZES, made_up, player_size, player_sizes


def test_sizes_add_up() -> None:
    trace = made_up(24, 8)
    size = player_size(trace)
    assert (size.positions, size.steps) == (24, 8)
    assert size.page == len(trace_html(trace).encode())
    assert size.viewer + size.trace < size.page
    assert size.per_step * 8 == size.trace


def test_a_made_up_run_is_a_run() -> None:
    trace = made_up(50, 7)
    assert read_traces(trace_html(trace).encode()) == [trace]
    assert [frame.masks_left for frame in trace.frames][-1] == 0
    assert all(cell.token_id is not None for cell in trace.canvas_at(7))
    assert made_up(50, 7) == trace
    assert made_up(2, 5).frames[0].changes == ()


def test_recorded_runs_and_made_up_ones_are_measured() -> None:
    sizes = player_sizes(SIZES[:1])
    assert [(size.positions, size.steps) for size in sizes[-1:]] == list(SIZES[:1])
    assert len(sizes) > 1
    # What the viewer itself weighs, with room to grow; a picture or a font that slipped in would not fit.
    assert all(size.viewer < 250_000 for size in sizes)

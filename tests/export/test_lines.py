"""What `playground.export` writes can be read back and adds up."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.export import STEP_COLUMNS, trace_csv, trace_jsonl
from playground.trace import Change, Frame, Kind, Result, Trace
from tests.samples import sample_trace


def _read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@given(frames=st.integers(0, 12), length=st.integers(1, 40), result=st.sampled_from([*Result, None]))
def test_jsonl_reads_back_to_the_same_trace(frames: int, length: int, result: Result | None) -> None:
    trace = sample_trace(frames=frames, length=length, result=result)
    assert Trace.from_lines(trace_jsonl(trace)) == trace


def test_jsonl_has_one_line_for_each_event() -> None:
    trace = sample_trace(frames=3, prompt="one\ntwo\u2028three")
    assert len(trace_jsonl(trace).splitlines()) == 1 + 3 + 1


@given(frames=st.integers(1, 12), length=st.integers(1, 40))
def test_csv_has_a_line_for_each_step_and_counts_every_commit(frames: int, length: int) -> None:
    rows = _read(trace_csv(sample_trace(frames=frames, length=length)))
    assert [int(row["step"]) for row in rows] == list(range(1, frames + 1))
    assert sum(int(row["commit"]) for row in rows) == length
    assert rows[-1]["masks_left"] == "0"


def test_csv_of_a_run_without_steps_is_its_headings() -> None:
    assert trace_csv(sample_trace(frames=0)) == ",".join(STEP_COLUMNS) + "\r\n"


def test_csv_leaves_a_figure_that_does_not_apply_empty() -> None:
    trace = sample_trace(frames=0, result=None)
    trace.append(Frame(1, 0, 1, 8, (Change(0, Kind.REMASK, None, "=HYPERLINK(1)"),), None, None, 0.5))
    (row,) = _read(trace_csv(trace))
    assert (row["confidence_min"], row["confidence_mean"]) == ("", "")
    assert (row["remask"], row["commit"]) == ("1", "0")
    assert float(row["model_seconds"]) == pytest.approx(0.5)


def test_csv_holds_no_text_that_a_spreadsheet_could_run() -> None:
    trace = sample_trace(frames=2)
    lines = trace_csv(trace).splitlines()[1:]
    assert all(cell == "" or float(cell) >= 0 for line in lines for cell in line.split(","))

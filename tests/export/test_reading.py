"""What is read in again: every export that holds a trace; anything else is refused with one sentence."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from playground.export import read_traces, trace_jsonl
from playground.export.reading import MAX_BYTES
from playground.trace import Trace, TraceError
from tests.export.traces import hostile_trace, traces
from tests.samples import sample_trace


@settings(deadline=None)
@given(traces())
def test_export_import_export_is_the_identity(trace: Trace) -> None:
    first = trace_jsonl(trace)
    (again,) = read_traces(first.encode())
    assert trace_jsonl(again) == first
    assert again == Trace.from_lines(first)


@settings(deadline=None)
@given(traces(), traces())
def test_several_runs_come_back_in_their_order(one: Trace, other: Trace) -> None:
    lines = [trace.to_lines() for trace in (one, other, one)]
    assert [trace.to_lines() for trace in read_traces("".join(lines).encode())] == lines


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n\n"])
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_marks_and_line_ends_of_editors_do_not_matter(before: bytes, ends: bytes) -> None:
    trace = hostile_trace()
    data = before + trace.to_lines().encode().replace(b"\n", ends)
    assert read_traces(data) == [Trace.from_lines(trace.to_lines())]


def test_a_file_of_another_program_may_order_a_header_otherwise() -> None:
    lines = "".join(sample_trace(str(number)).to_lines() for number in range(2))
    moved = lines.replace('{"type":"header","format":1,', '{"format": 1, "type": "header",')
    assert [trace.header.run_id for trace in read_traces(moved.encode())] == ["0", "1"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"Dear diary,",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xfe{\x00",
        b"[1, 2, 3]",
        b"{}",
        b'{"a": 1}\n',
        b"<!doctype html><title>A page</title>",
        b'<script type="application/json" id="unmask-trace">{"not": "text"}</script>',
        b'<script type="application/json" id="unmask-trace">oops</script>',
        b"step,block\r\n1,0\r\n",
    ],
)
def test_what_is_no_trace_is_refused_with_a_sentence(data: bytes) -> None:
    with pytest.raises(TraceError, match=r"^notes\.txt is not a trace; [^\n]+\.$"):
        read_traces(data, "notes.txt")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (sample_trace().to_lines().replace('"step":2', '"step":"two"').encode(), "not part of a trace"),
        (sample_trace().to_lines().split("\n", 1)[1].encode(), "header line"),
        (sample_trace().to_lines().replace('"format":1', '"format":99').encode(), "update the app"),
        (sample_trace().to_lines().replace('"position":3', '"position":300').encode(), "outside its canvas"),
        (b"[" * 100_000 + b'"type"', "not a trace"),
        (b'{"type":"header",' + b'"a":[' * 50_000, "not part of a trace"),
    ],
)
def test_a_damaged_trace_is_refused_with_a_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(TraceError, match=sentence) as refusal:
        read_traces(data)
    assert "\n" not in str(refusal.value)


def test_a_file_too_large_is_refused_before_it_is_read() -> None:
    with pytest.raises(TraceError, match="larger than 32 MB"):
        read_traces(b" " * (MAX_BYTES + 1))

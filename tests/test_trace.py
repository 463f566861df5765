"""A trace survives its JSON lines exactly, any step can be rebuilt, and what is not a trace is refused."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, asdict, fields, replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from playground.trace import (
    FORMAT,
    Candidate,
    Cell,
    Change,
    Frame,
    Guess,
    Header,
    Kind,
    Outcome,
    Result,
    Timings,
    Trace,
    TraceError,
    from_line,
    to_line,
)
from tests.samples import sample_trace

# --- random traces -------------------------------------------------------------------------------

AWKWARD = ['"', "\\", "\u2028", "\u2029", "\x85", "\n", "\r\n", "\t", "😀", "é", "</script>", "${x}", "\x00", "\x1e"]
texts = st.one_of(st.text(max_size=8), st.sampled_from(AWKWARD), st.lists(st.sampled_from(AWKWARD)).map("".join))
numbers = st.floats(allow_nan=False, allow_infinity=False)
shares = st.floats(0, 1)
counts = st.integers(0, 10**6)
raws = st.none() | st.binary(min_size=1, max_size=4).map(bytes.hex)
candidates = st.builds(Candidate, counts, texts, shares, raws)
plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def changes_for(draw: st.DrawFn, size: int) -> tuple[list[Change], int]:
    """Changes that can happen to a canvas of `size` positions, one after another, and its size after them."""
    changes = []
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(Kind))
        last = size if kind is Kind.INSERT else size - 1
        if last < 0:
            continue
        size += {Kind.INSERT: 1, Kind.DELETE: -1}.get(kind, 0)
        gone = kind in (Kind.REMASK, Kind.DELETE)
        changes.append(
            Change(
                position=draw(st.integers(0, last)),
                kind=kind,
                token_id=None if gone else draw(counts),
                text="" if gone else draw(texts),
                confidence=draw(st.none() | shares),
                raw=None if gone else draw(raws),
                alternatives=tuple(draw(st.lists(candidates, max_size=3))),
            )
        )
    return changes, size


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Any trace that this version could write."""
    size = draw(st.integers(0, 6))
    header = draw(
        st.builds(
            Header,
            run_id=texts,
            created=texts,
            model=texts,
            model_name=texts,
            request=st.dictionaries(texts, plain_json, max_size=3),
            seed=counts,
            prompt=texts,
            prompt_tokens=counts,
            length=st.just(size),
            blocks=st.lists(st.tuples(counts, counts, counts), max_size=3).map(tuple),
            stop_ids=st.lists(counts, max_size=3).map(tuple),
            stop_texts=st.lists(texts, max_size=3).map(tuple),
            device=texts,
            dtype=texts,
            versions=st.dictionaries(texts, texts, max_size=2),
            mode=texts,
            note=texts,
        )
    )
    trace = Trace(header)
    for step in range(1, draw(st.integers(0, 4)) + 1):
        changes, size = draw(changes_for(size))
        trace.append(
            Frame(
                step=step,
                block=draw(counts),
                nfe=draw(counts),
                masks_left=draw(counts),
                changes=tuple(changes),
                confidence_min=draw(st.none() | shares),
                confidence_mean=draw(st.none() | shares),
                model_seconds=draw(numbers),
                elapsed=draw(numbers),
                batch=draw(counts),
                guesses=tuple(draw(st.lists(st.builds(Guess, counts, texts, shares), max_size=3))),
            )
        )
    if draw(st.booleans()):
        timings = draw(st.builds(Timings, numbers, numbers, st.none() | numbers, numbers, numbers))
        trace.append(draw(st.builds(Outcome, st.sampled_from(Result), texts, texts, counts, counts, st.just(timings))))
    return trace


# --- lines ---------------------------------------------------------------------------------------


@given(traces())
@example(sample_trace())
@example(sample_trace(prompt='He said: "na\u2028ïve" 😀\u2029\x85', text="\ufffd ￿ \x7f", note="\\u2028"))
def test_lines_give_the_trace_back(trace: Trace) -> None:
    lines = trace.to_lines()
    assert Trace.from_lines(lines) == trace
    assert Trace.from_lines(lines.splitlines()) == trace
    assert Trace.from_lines(iter(lines.split("\n"))) == trace
    assert Trace.from_lines(lines.encode().decode()) == trace


@given(traces())
def test_each_event_is_one_line_however_lines_are_cut(trace: Trace) -> None:
    lines = trace.to_lines()
    count = len(list(trace.events()))
    assert lines.count("\n") == count
    assert lines.endswith("\n")
    assert len(lines.splitlines()) == count
    for line in lines.splitlines():
        # parse_constant is called for NaN and the infinities, which JSON does not have.
        assert "type" in json.loads(line, parse_constant=pytest.fail)


@given(traces())
def test_each_event_survives_by_itself(trace: Trace) -> None:
    for event in trace.events():
        assert from_line(to_line(event)) == event
    assert "".join(to_line(event) for event in trace.events()) == trace.to_lines()


def test_numbers_that_are_not_json_are_never_written() -> None:
    frame = sample_trace().frames[0]
    for number in (math.nan, math.inf):
        with pytest.raises(ValueError, match="JSON"):
            to_line(replace(frame, model_seconds=number))


# --- replay --------------------------------------------------------------------------------------


def plain_replay(trace: Trace, k: int) -> list[tuple[Any, ...]]:
    """The canvas after k frames, stated plainly: a list of what stands where, and since when."""
    canvas: list[tuple[Any, ...]] = [(None, "", None, None, 0, None) for _ in range(trace.header.length)]
    for frame in trace.frames[:k]:
        for change in frame.changes:
            new = (change.token_id, change.text, change.raw, change.confidence, frame.step, change.kind)
            before, after = canvas[: change.position], canvas[change.position :]
            match change.kind:
                case Kind.INSERT:
                    canvas = [*before, new, *after]
                case Kind.DELETE:
                    canvas = [*before, *after[1:]]
                case _:
                    canvas = [*before, new, *after[1:]]
    return canvas


@given(traces())
def test_any_step_is_rebuilt(trace: Trace) -> None:
    for k in range(len(trace.frames) + 1):
        shown = [(c.token_id, c.text, c.raw, c.confidence, c.step, c.kind) for c in trace.canvas_at(k)]
        assert shown == plain_replay(trace, k)


@given(traces())
def test_looking_at_a_step_changes_nothing(trace: Trace) -> None:
    lines = trace.to_lines()
    last = trace.canvas_at(len(trace.frames))
    trace.canvas_at(0)
    assert trace.canvas_at(len(trace.frames)) == last
    assert trace.to_lines() == lines


def test_the_first_canvas_is_all_masks_and_every_kind_does_what_it_says() -> None:
    trace = Trace(replace(sample_trace().header, length=3))
    assert trace.canvas_at(0) == [Cell()] * 3

    def frame(step: int, *changes: Change) -> Frame:
        return Frame(step, 0, step, 0, changes, None, None, 0.0)

    trace.append(frame(1, Change(0, Kind.COMMIT, 5, "a", 0.5), Change(2, Kind.FORCE, 2, "", None)))
    trace.append(frame(2, Change(0, Kind.EDIT, 6, "b", 0.9), Change(1, Kind.RENOISE, 9, "?", None)))
    trace.append(frame(3, Change(0, Kind.REMASK, None, ""), Change(1, Kind.INSERT, 7, "c", 0.1)))
    trace.append(frame(4, Change(1, Kind.DELETE, None, ""), Change(2, Kind.DELETE, None, "")))
    assert [[c.token_id for c in trace.canvas_at(k)] for k in range(5)] == [
        [None, None, None],
        [5, None, 2],
        [6, 9, 2],
        [None, 7, 9, 2],
        [None, 9],
    ]
    assert trace.canvas_at(3)[0] == Cell(step=3, kind=Kind.REMASK)


def test_steps_that_are_not_there_are_refused() -> None:
    trace = sample_trace(frames=4)
    for k in (-1, 5, 100):
        with pytest.raises(IndexError, match=str(k)):
            trace.canvas_at(k)


def test_an_ended_trace_takes_no_more() -> None:
    trace = sample_trace()
    for event in (trace.frames[0], trace.outcome):
        assert event is not None
        with pytest.raises(TraceError, match=r"ended\.$"):
            trace.append(event)


# --- what is not a trace -------------------------------------------------------------------------


def check_sentence(error: TraceError) -> str:
    """The error's text, which is one sentence."""
    text = str(error)
    assert text.endswith(".")
    assert "\n" not in text
    assert text[0].isupper()
    assert len(text) < 250
    text.encode()
    return text


def refused(lines: str | list[str]) -> str:
    """The sentence for lines that are not a trace."""
    with pytest.raises(TraceError) as caught:
        Trace.from_lines(lines)
    return check_sentence(caught.value)


HEADER, *FRAMES, OUTCOME = sample_trace().to_lines().splitlines()


def changed(line: str, **fields: Any) -> str:
    """A line with some fields replaced, or left out where the new value is `...`."""
    return json.dumps({k: v for k, v in {**json.loads(line), **fields}.items() if v is not ...})


def test_no_trace_at_all() -> None:
    assert "empty" in refused("")
    assert "empty" in refused("\n \n\t\n")
    assert "empty" in refused([])


def test_a_newer_format_asks_for_an_update() -> None:
    for version in (FORMAT + 1, 99):
        said = refused(changed(HEADER, format=version, surprise="new"))
        assert str(version) in said
        assert "update" in said
    assert "update" in refused([HEADER, '{"type":"branch","of":"x"}'])


def test_order_is_checked() -> None:
    assert "header" in refused(FRAMES[0])
    assert "header" in refused([OUTCOME])
    assert "two" in refused([HEADER, HEADER])
    assert "ended" in refused([HEADER, OUTCOME, FRAMES[0]])
    assert "ended" in refused([HEADER, OUTCOME, OUTCOME])


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "{",
        "null",
        "7",
        '"type"',
        "[]",
        "{}",
        '{"type":null}',
        '{"type":["header"]}',
        '{"type":"header"}',
        "\ud800",
        "{" * 100_000,
        "[" * 100_000,
        "9" * 10_000,
        "<html>\u2028</html>",
        HEADER[:-5],
        HEADER + HEADER,
        changed(HEADER, format="1"),
        changed(HEADER, format=None),
        changed(HEADER, format=0),
        changed(HEADER, format=...),
        changed(HEADER, length="8"),
        changed(HEADER, length=8.5),
        changed(HEADER, length=-1),
        changed(HEADER, length=True),
        changed(HEADER, length=10**12),
        changed(HEADER, prompt=None),
        changed(HEADER, prompt=...),
        changed(HEADER, seed="x"),
        changed(HEADER, request=[]),
        changed(HEADER, versions="x"),
        changed(HEADER, blocks=3),
        changed(HEADER, blocks=[1]),
        changed(HEADER, blocks=[[1, 2]]),
        changed(HEADER, blocks=[["a", "b", "c"]]),
        changed(HEADER, stop_ids=["x"]),
        changed(HEADER, stop_texts=[2]),
        changed(HEADER, surprise=1),
    ],
)
def test_damaged_headers_are_refused(line: str) -> None:
    refused(line)
    refused([line, *FRAMES])


def _change(**fields: Any) -> list[dict[str, Any]]:
    return [{"position": 0, "kind": "commit", "token_id": 1, "text": "a", **fields}]


@pytest.mark.parametrize(
    "fields",
    [
        {"step": "1"},
        {"step": None},
        {"step": ...},
        {"nfe": 1.5},
        {"masks_left": []},
        {"model_seconds": "fast"},
        {"model_seconds": None},
        {"confidence_min": "x"},
        {"confidence_mean": False},
        {"elapsed": {}},
        {"batch": None},
        {"changes": ...},
        {"changes": 5},
        {"changes": [5]},
        {"changes": [{}]},
        {"changes": _change(kind="explode")},
        {"changes": _change(position=-1)},
        {"changes": _change(position=8)},
        {"changes": _change(position=9, kind="insert")},
        {"changes": _change(position=8, kind="delete")},
        {"changes": _change(position="0")},
        {"changes": _change(position=0.0)},
        {"changes": _change(token_id="x")},
        {"changes": _change(text=None)},
        {"changes": _change(raw=7)},
        {"changes": _change(raw="zz")},
        {"changes": _change(confidence="high")},
        {"changes": _change(alternatives=[[1]])},
        {"changes": _change(alternatives=[[1, 2, 3]])},
        {"changes": _change(alternatives=[[1, "a", 0.5, None, 9]])},
        {"guesses": [[1, "a"]]},
        {"guesses": [["1", "a", 0.5]]},
        {"guesses": ...},
        {"surprise": 1},
    ],
)
def test_damaged_frames_are_refused(fields: dict[str, Any]) -> None:
    refused([HEADER, changed(FRAMES[0], **fields)])


@pytest.mark.parametrize(
    "fields",
    [
        {"result": "won"},
        {"result": None},
        {"text": 5},
        {"tokens": "x"},
        {"forwards": None},
        {"timings": ...},
        {"timings": []},
        {"timings": {"total": "x"}},
        {"timings": {"surprise": 1}},
        {"surprise": 1},
    ],
)
def test_damaged_outcomes_are_refused(fields: dict[str, Any]) -> None:
    refused([HEADER, *FRAMES, changed(OUTCOME, **fields)])


def test_numbers_that_are_not_json_are_not_read() -> None:
    refused([HEADER, FRAMES[0].replace('"model_seconds":0.02', '"model_seconds":NaN')])
    refused([HEADER, FRAMES[0].replace('"model_seconds":0.02', '"model_seconds":-Infinity')])
    refused([HEADER, FRAMES[0].replace('"model_seconds":0.02', '"model_seconds":1e999')])


@given(st.data())
def test_any_line_that_is_read_can_be_replayed_and_written_again(data: st.DataObject) -> None:
    """One field of one line becomes anything at all: the trace is refused, or is whole."""
    lines = [HEADER, *FRAMES, OUTCOME]
    at = data.draw(st.integers(0, len(lines) - 1))
    body = json.loads(lines[at])
    target = body
    while data.draw(st.booleans()) and (deeper := [v for v in _values(target) if isinstance(v, dict | list) and v]):
        target = data.draw(st.sampled_from(deeper))
    key = data.draw(st.sampled_from(list(target) if isinstance(target, dict) else list(range(len(target)))))
    target[key] = data.draw(plain_json)
    lines[at] = json.dumps(body)
    try:
        trace = Trace.from_lines(lines)
    except TraceError as error:
        check_sentence(error)
        return
    assert Trace.from_lines(trace.to_lines()) == trace
    for k in range(len(trace.frames) + 1):
        trace.canvas_at(k)


def _values(of: Any) -> list[Any]:
    return list(of.values()) if isinstance(of, dict) else list(of)


def test_events_are_plain_data() -> None:
    for event in sample_trace().events():
        assert event == replace(event)
        json.dumps(asdict(event))
        for entry in fields(event):
            with pytest.raises(FrozenInstanceError):
                setattr(event, entry.name, None)

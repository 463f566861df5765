"""Traces for the tests of exports: any that the format allows, and some that mean harm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from playground.trace import Candidate, Change, Frame, Guess, Kind, Outcome, Result, Timings, Trace
from tests.samples import sample_trace

HOSTILE = (
    "</script><script>window.pwned=1</script><!--<script>--> ]]> </style></title></noscript>"
    '<img src=x onerror="window.pwned=1"> \u2028\u2029\x85\x00\x1b[31m\ufeff\uffff ${window.pwned=1} {{constructor}} '
    "\\u003c/script> &lt;/script&gt; שלום 你好 😀"
)

_texts = st.one_of(
    st.sampled_from(
        [HOSTILE, "", " ", "\n", "\t", "é", " the", "</script", "<!--", "\u2028", "\r\n", "”", "\u202e", "☃"]
    ),
    st.text(max_size=8),
)
_shares = st.floats(0, 1, allow_nan=False)
_ids = st.integers(0, 60_000)
_raws = st.one_of(st.none(), st.binary(min_size=1, max_size=4).map(bytes.hex))
_candidates = st.builds(Candidate, _ids, _texts, _shares, _raws)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """A run that changes, takes back, inserts and deletes, and may not have ended."""
    length = draw(st.integers(1, 9))
    start = sample_trace(draw(_texts), "hello", frames=0, length=length, result=None)
    shown = {name: draw(_texts) for name in ("prompt", "model", "model_name", "device", "note", "created", "mode")}
    kept = sorted(draw(st.sets(st.integers(0, length - 1), max_size=3)))
    given = tuple(Change(at, Kind.GIVEN, draw(_ids), draw(_texts), raw=draw(_raws)) for at in kept)
    parent = draw(st.none() | st.just("0123456789abcdef01234567"))
    branch = {"start": given, "pinned": tuple(kept[:2]), "parent_run_id": parent, "parent_step": parent and 3}
    header = replace(start.header, **shown, **branch, stop_ids=(2,), stop_texts=(draw(_texts),))
    trace, size = Trace(header), length
    for step in range(1, draw(st.integers(0, 5)) + 1):
        changes = []
        for _ in range(draw(st.integers(0, 4))):
            kind = draw(st.sampled_from(Kind))
            if kind is Kind.INSERT or size:
                changes.append(draw(_change(kind, size)))
                size += (kind is Kind.INSERT) - (kind is Kind.DELETE)
        trace.append(draw(_frame(step, tuple(changes), size)))
    if draw(st.booleans()):
        timings = Timings(total=draw(_shares), first_canvas=draw(st.none() | _shares))
        trace.append(Outcome(draw(st.sampled_from(Result)), draw(_texts), draw(_texts), size, 3, timings))
    return trace


@st.composite
def _change(draw: st.DrawFn, kind: Kind, size: int) -> Change:
    at = draw(st.integers(0, size if kind is Kind.INSERT else size - 1))
    if kind in (Kind.REMASK, Kind.DELETE):
        return Change(at, kind, None, "")
    alternatives = tuple(draw(st.lists(_candidates, max_size=2)))
    token = draw(_ids | st.just(2))
    return Change(at, kind, token, draw(_texts), draw(st.none() | _shares), draw(_raws), alternatives)


@st.composite
def _frame(draw: st.DrawFn, step: int, changes: tuple[Change, ...], size: int) -> Frame:
    guesses = draw(st.lists(st.builds(Guess, st.integers(0, max(0, size - 1)), _texts, _shares), max_size=2))
    least, mean = draw(st.none() | _shares), draw(st.none() | _shares)
    return Frame(step, 0, step, draw(st.integers(0, size)), changes, least, mean, 0.1, 0.2 * step, 1, tuple(guesses))


def hostile_trace(**header: Any) -> Trace:
    """A finished run in which every text that can mean harm does."""
    plain = sample_trace("hostile-1", "Hello", message=HOSTILE, text=HOSTILE, model_name=HOSTILE, note=HOSTILE)
    frames = [
        replace(
            frame,
            changes=tuple(
                replace(change, text=HOSTILE, alternatives=(Candidate(1, HOSTILE, 0.9), Candidate(3, HOSTILE, 0.05)))
                for change in frame.changes
            ),
            guesses=tuple(Guess(guess.position, HOSTILE, 0.5) for guess in frame.guesses),
        )
        for frame in plain.frames
    ]
    return Trace(replace(plain.header, prompt=HOSTILE, device=HOSTILE, **header), frames, plain.outcome)

"""Pictures show what the viewer shows: the same looks, by two programs."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from playground.export import trace_text
from playground.export.looks import Look, Stills
from playground.labs import examples
from playground.trace import Change, Frame, Kind, Trace
from tests.export.traces import hostile_trace
from tests.samples import sample_trace

STATIC = Path(__file__).parents[2] / "static"
ASK = """
import { Trace } from "%s/trace.js";
import { viewsOf } from "%s/views.js";
const trace = new Trace();
trace.feed(%s);
const steps = [];
for (let k = 0; k <= trace.frames.length; k++)
  steps.push(viewsOf(trace, k).map((view) => [view.look, view.pieces.map((piece) => [piece.kind, piece.text])]));
console.log(JSON.stringify(steps));
"""
MARKS = {"back": "taken-back"}


def seen_by_python(look: Look) -> tuple[str, set[str], str]:
    pieces = "".join(piece.text for piece in look.pieces)
    return look.kind, {MARKS.get(mark, mark) for mark in look.marks}, pieces


def seen_by_viewer(look: str, pieces: list[list[str]]) -> tuple[str, set[str], str]:
    kind, *marks = look.split(" ")
    text = "".join(piece[1] for piece in pieces).replace("\u200b", "").replace("·", "·")
    return "text" if kind == "joined" else kind, set(marks) - {"dot"}, text


def mixed_trace() -> Trace:
    """Every kind of change, halves of characters, an end with padding behind it."""
    start = (Change(8, Kind.GIVEN, 30, " given"), Change(9, Kind.GIVEN, 31, " pinned"))
    header = sample_trace("mixed", frames=0, length=10, result=None).header
    trace = Trace(replace(header, start=start, pinned=(9,)))
    euro = [
        Change(0, Kind.COMMIT, 10, "", 0.9, "20e2"),
        Change(1, Kind.COMMIT, 11, "", 0.9, "82"),
        Change(2, Kind.COMMIT, 12, "", 0.4, "ac21"),
    ]
    trace.append(Frame(1, 0, 1, 7, tuple(euro), 0.4, 0.7, 0.1))
    more = (
        Change(3, Kind.COMMIT, 13, " a\tb\n", 0.3),
        Change(4, Kind.RENOISE, 14, " noise"),
        Change(5, Kind.COMMIT, 2, "<end>", 0.9),
        Change(6, Kind.COMMIT, 15, " behind", 0.9),
        Change(7, Kind.FORCE, 16, "pad"),
        Change(1, Kind.REMASK, None, ""),
    )
    trace.append(Frame(2, 0, 2, 3, more, 0.3, 0.7, 0.1))
    last = (Change(3, Kind.EDIT, 17, "", 0.2), Change(0, Kind.INSERT, 18, "Oh", 0.9), Change(9, Kind.DELETE, None, ""))
    trace.append(Frame(3, 0, 3, 3, last, 0.2, 0.7, 0.1))
    return trace


@pytest.mark.parametrize(
    "trace",
    [*(example.trace for example in examples.load()), hostile_trace(), mixed_trace()],
    ids=lambda t: t.header.run_id,
)
def test_a_picture_shows_what_the_viewer_shows(trace: Trace, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("install Node (apt install nodejs)")
    script = tmp_path / "ask.mjs"
    script.write_text(ASK % (STATIC.as_uri(), STATIC.as_uri(), json.dumps(trace.to_lines())), "utf-8")
    said = subprocess.run([node, str(script)], capture_output=True, text=True, timeout=60, check=True).stdout
    stills = Stills(trace)
    for k, views in enumerate(json.loads(said)):
        assert [seen_by_python(look) for look in stills.at(k)] == [seen_by_viewer(*view) for view in views], k


def test_stills_only_go_forwards() -> None:
    stills = Stills(sample_trace())
    stills.at(3)
    with pytest.raises(IndexError):
        stills.at(2)
    with pytest.raises(IndexError):
        stills.at(5)


def test_the_text_of_a_run_that_goes_on_is_what_stands_there() -> None:
    going_on = sample_trace(frames=4, length=8, result=None)
    assert trace_text(Trace(going_on.header, going_on.frames[:2])) == "word0 word1 word2 word3\n"
    assert trace_text(sample_trace(text="The end.")) == "The end.\n"
    assert trace_text(Trace(going_on.header)) == ""
    assert trace_text(mixed_trace()).startswith("Oh")

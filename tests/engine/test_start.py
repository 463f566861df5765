"""Runs that start from a canvas: what is pinned stays, what is banned never comes, what is paused waits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.engine.pipeline import DenoisingPipeline
from playground.engine.run import Run
from playground.request import RequestError, parse_request
from playground.trace import Kind, Outcome, Result, Trace
from tests.fakes import MASK, PATIENCE, STOP, FakeDenoiser, Gate, ask, running

pytestmark = pytest.mark.timeout(120)

LETTERS = st.text("abcdefgh ", max_size=5)
PARTS = st.lists(
    st.one_of(
        LETTERS.map(lambda text: {"text": text}),
        st.integers(0, 5).map(lambda size: {"blank": size}),
        st.lists(st.integers(4, 20), max_size=4).map(lambda ids: {"tokens": ids}),
        st.lists(st.integers(4, 20), max_size=4).map(lambda ids: {"tokens": ids, "pinned": False}),
    ),
    min_size=1,
    max_size=6,
)


def ended(run: Run) -> Trace:
    assert run.wait(PATIENCE) is not None, "the run did not end"
    assert run.trace is not None
    return run.trace


def outcome_of(run: Run) -> Outcome:
    outcome = ended(run).outcome
    assert outcome is not None
    return outcome


def size_of(part: dict[str, Any]) -> int:
    return part["blank"] if "blank" in part else len(part.get("text", part.get("tokens", ())))


@given(
    PARTS,
    st.integers(0, 6),
    st.integers(1, 9),
    st.sampled_from(["even", "cosine", "threshold", "entropy-bound", "ramp"]),
    st.sampled_from(["probability", "random", "leftmost"]),
)
@settings(deadline=None, max_examples=60)
def test_what_is_given_stands_in_every_frame_and_only_blanks_are_filled(
    parts: list[dict[str, Any]], block: int, steps: int, schedule: str, confidence: str
) -> None:
    with running(FakeDenoiser()) as engine:
        run = engine.submit(ask("ab", start=parts, block=block, steps=steps, schedule=schedule, confidence=confidence))
        trace = ended(run)
    length = sum(map(size_of, parts))
    assert trace.outcome is not None
    if length == 0:
        assert trace.outcome.result is Result.FAILED
        assert "nothing on the canvas" in trace.outcome.message
        return
    assert trace.outcome.result is Result.FINISHED
    assert trace.header.length == length
    blanks, at = [], 0
    for part in parts:
        if "blank" in part:
            blanks += range(at, at + part["blank"])
        at += size_of(part)
    start = trace.canvas_at(0)
    assert [i for i, cell in enumerate(start) if cell.token_id is None] == blanks
    for k in range(len(trace.frames) + 1):
        now = trace.canvas_at(k)
        assert [cell for i, cell in enumerate(now) if i not in blanks] == [
            cell for i, cell in enumerate(start) if i not in blanks
        ]
    assert all(cell.token_id not in (None, MASK) for cell in trace.canvas_at(len(trace.frames)))
    assert trace.outcome.tokens <= len(blanks)
    if schedule == "even":
        assert len(trace.frames) <= min(steps, max(1, len(blanks))) or not blanks
    assert Trace.from_lines(trace.to_lines()) == trace


def test_text_behind_a_blank_keeps_the_model_from_ending_there() -> None:
    with running(FakeDenoiser(stop_from=0)) as engine:
        trace = ended(engine.submit(ask("a", start=[{"blank": 3}, {"text": "bc"}, {"blank": 3}], stop_rule="off")))
    tokens = [cell.token_id for cell in trace.canvas_at(len(trace.frames))]
    assert STOP not in tokens[:5]
    assert tokens[5:] == [STOP] * 3
    assert trace.outcome is not None
    assert trace.outcome.text == "aaabc"


def test_a_canvas_without_blanks_is_finished_before_its_first_forward() -> None:
    denoiser = FakeDenoiser()
    with running(denoiser) as engine:
        outcome = outcome_of(engine.submit(ask("a", start=[{"text": "abc"}])))
    assert (outcome.result, outcome.text, outcome.forwards, outcome.tokens) == (Result.FINISHED, "abc", 0, 0)
    assert denoiser.forwards == []


@pytest.mark.parametrize("word", ["aa", "AB", "a", "ba", "bab"])
@pytest.mark.parametrize("steps", [1, 3, 8])
def test_a_banned_word_never_comes_to_stand_there(word: str, steps: int) -> None:
    with running(FakeDenoiser()) as engine:
        trace = ended(engine.submit(ask("ab", length=8, steps=steps, banned=[word], temperature=1.0, seed=3)))
    assert trace.outcome is not None
    assert trace.outcome.result is Result.FINISHED
    assert word.casefold() not in trace.outcome.text.casefold()
    assert len(trace.outcome.text) == 8


def test_a_word_is_also_kept_from_forming_across_the_edge_of_kept_text() -> None:
    with running(FakeDenoiser()) as engine:
        trace = ended(engine.submit(ask("a", start=[{"text": "ba"}, {"blank": 1}, {"text": "ab"}], banned=["aaa"])))
    assert trace.outcome is not None
    assert trace.outcome.result is Result.FINISHED
    assert "aaa" not in trace.outcome.text


def test_where_nothing_may_stand_the_run_says_so_and_keeps_its_text() -> None:
    with running(FakeDenoiser()) as engine:
        letters = [*"abcdefghijklmnopqrstuvwxyz", " ", "é"]
        outcome = outcome_of(
            engine.submit(ask("a", start=[{"text": "b"}, {"blank": 1}, {"text": "c"}], banned=letters))
        )
    assert outcome.result in (Result.FAILED, Result.FINISHED)
    if outcome.result is Result.FAILED:
        assert "No token may stand" in outcome.message


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ([{"text": "a", "blank": 1}], "one of text, tokens and blank"),
        ([{}], "one of text, tokens and blank"),
        ([{"blank": -1}], "start"),
        ([{"blank": 1.5}], "whole number"),
        ([{"blank": True}], "whole number"),
        ([{"tokens": ["a"]}], "whole number"),
        ([{"text": "\ud800"}], "broken character"),
        ([{"text": "a\0b"}], "NUL"),
        ([{"words": "a"}], "start"),
        ("abc", "start"),
        ([7], "start"),
    ],
)
def test_a_start_that_is_none_is_refused_in_one_sentence(start: object, said: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_request({"prompt": "a", "start": start})
    text = str(caught.value)
    assert said in text.lower() or said in text
    assert text.endswith(".")
    assert "\n" not in text


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"start": [{"tokens": [10_000]}, {"blank": 1}]}, "does not have"),
        ({"start": [{"tokens": [MASK]}, {"blank": 1}]}, "does not have"),
        ({"start": [{"blank": 1000}, {"blank": 1000}]}, "over this app's limit"),
        ({"start": [{"blank": 1}], "scored": True}, "left to right"),
        ({"start": [{"blank": 1}], "correction": "rescore"}, "left to right"),
    ],
)
def test_a_start_that_this_model_cannot_take_fails_with_a_sentence(knobs: dict[str, Any], said: str) -> None:
    with running(FakeDenoiser()) as engine:
        outcome = outcome_of(engine.submit(ask("a", **knobs)))
    assert outcome.result is Result.FAILED
    assert said in outcome.message


# --- pausing --------------------------------------------------------------------------------------


def test_a_paused_run_waits_between_forwards_and_goes_on_where_it_was() -> None:
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate) as engine:
        plain = FakeDenoiser()
        run = engine.submit(ask("ab", length=6, steps=6))
        gate.wait()
        run.pause()
        gate.release()
        while run.trace is None or len(run.trace.frames) < 1:
            run.next_events(1, 0.05)
        assert run.paused
        assert not run.wait(0.3)
        assert run.trace is not None
        assert len(run.trace.frames) == 1
        run.resume()
        gate.open()
        paused = ended(run)
    with running(plain) as engine:
        alone = ended(engine.submit(ask("ab", length=6, steps=6)))
    assert [frame.changes for frame in paused.frames] == [frame.changes for frame in alone.frames]
    assert run.paused_seconds > 0.25


def test_others_run_while_one_is_paused_and_a_stop_ends_the_pause() -> None:
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate, max_active=1) as engine:
        first = engine.submit(ask("a"))
        gate.wait()
        first.pause()
        gate.open()
        other = engine.submit(ask("b"))
        assert outcome_of(other).result is Result.FINISHED
        assert not first.done
        first.cancel()
        outcome = outcome_of(first)
    assert outcome.result is Result.STOPPED
    assert outcome.text


def test_an_engine_that_closes_ends_paused_runs() -> None:
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate) as engine:
        run = engine.submit(ask("a"))
        gate.wait()
        run.pause()
        gate.open()
    assert outcome_of(run).result is Result.STOPPED


# --- the real model -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pocket() -> Any:
    with DenoisingPipeline() as pipeline:
        yield pipeline


TEXTS = ["The baker opened his", " before sunrise.\r\n\tThe naïve 🙂 end"]


@pytest.mark.parametrize("correction", ["none", "causal", "rescore"])
def test_text_around_blanks_is_byte_identical_in_every_frame(pocket: DenoisingPipeline, correction: str) -> None:
    start = [{"text": TEXTS[0]}, {"blank": 2}, {"text": TEXTS[1]}, {"blank": 3}, {"text": "  "}]
    trace = pocket.trace("Write.", start=start, correction=correction, schedule="even", steps=2, block=0, candidates=4)
    tokens = pocket.tokens
    for k in range(len(trace.frames) + 1):
        cells = trace.canvas_at(k)
        held = [cell.token_id for at, cell in enumerate(cells) if at in trace.header.pinned]
        assert tokens.decode([token for token in held if token is not None]) == "".join([*TEXTS, "  "])
    assert trace.outcome is not None
    assert trace.outcome.text.startswith(TEXTS[0])
    assert trace.outcome.text.endswith("  ")


def test_rescoring_never_makes_the_text_less_probable_and_scores_are_the_models(pocket: DenoisingPipeline) -> None:
    start = [
        {"text": "She forgot her"},
        {"blank": 1},
        {"text": " at home, so she had to"},
        {"blank": 1},
        {"text": " at the door."},
    ]
    asked = {"schedule": "even", "steps": 8, "block": 0, "scored": True}
    plain = pocket.trace("Write a short text.", start=start, **asked)
    better = pocket.trace("Write a short text.", start=start, correction="rescore", candidates=12, **asked)
    assert plain.outcome is not None
    assert better.outcome is not None
    assert plain.outcome.score is not None
    assert better.outcome.score is not None
    assert better.outcome.score >= plain.outcome.score - 1e-3
    assert better.outcome.forwards > len(better.frames)
    edits = [change for frame in better.frames for change in frame.changes if change.kind is Kind.EDIT]
    for edit in edits:
        assert edit.confidence is not None
        assert edit.alternatives[0].probability == edit.confidence


@pytest.mark.parametrize("word", ["cat", "Cats", " animal"])
def test_real_words_are_kept_out_however_they_are_cut(pocket: DenoisingPipeline, word: str) -> None:
    trace = pocket.trace("Tell me about cats.", 24, banned=[word], schedule="even", steps=12, block=0)
    assert trace.outcome is not None
    assert word.strip().casefold() not in trace.outcome.text.casefold() or word.startswith(" ")
    assert word.casefold() not in trace.outcome.text.casefold()


def test_one_line_stays_one_line(pocket: DenoisingPipeline) -> None:
    inside = pocket.trace(
        "Write a list.", start=[{"text": "1."}, {"blank": 8}, {"text": "\n2."}], one_line=True, block=0
    )
    assert inside.outcome is not None
    assert inside.outcome.text.count("\n") == 1
    behind = pocket.trace("Write a poem of two lines.", 24, one_line=True, schedule="even", steps=24, block=8)
    assert behind.outcome is not None
    assert "\n" not in behind.outcome.text.rstrip("\n")

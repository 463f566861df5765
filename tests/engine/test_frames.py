"""What a trace says is what happened: header, frames, outcome, for any request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import playground
from playground.engine.engine import Engine
from playground.engine.run import Run
from playground.request import GenerationRequest, parse_request
from playground.sampling.schedule import STEPPED
from playground.trace import Candidate, Cell, Frame, Header, Kind, Outcome, Result, Timings, Trace
from tests.engine.test_batching import ended, trace_of
from tests.fakes import HALF_FIRST, MASK, STOP, VOCABULARY, FakeDenoiser, FakeTokens, ask, id_of, running
from tests.sampling.plain import argmax, requests, softmax

pytestmark = pytest.mark.timeout(120)

STOPPING = 7
"""Where the text of the second engine's model ends."""


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[Engine, Engine]]:
    """One whose model never ends a text, one whose model ends it early."""
    with running(FakeDenoiser()) as endless, running(FakeDenoiser(stop_from=STOPPING)) as ending:
        yield endless, ending


def untimed(trace: Trace) -> Trace:
    """A trace without what differs from run to run: id, date and times."""
    assert trace.outcome is not None
    frames = [replace(frame, model_seconds=0.0, elapsed=0.0, batch=1) for frame in trace.frames]
    return Trace(replace(trace.header, run_id="", created=""), frames, replace(trace.outcome, timings=Timings()))


def run(engine: Engine, request: GenerationRequest) -> Trace:
    """A whole run."""
    return trace_of(engine.submit(request))


@given(request_=requests(seed=st.integers(0, 99)), ends=st.booleans())
def test_a_trace_holds_together(engines: tuple[Engine, Engine], request_: GenerationRequest, ends: bool) -> None:
    trace = run(engines[ends], request_)
    header, outcome = trace.header, trace.outcome
    assert outcome is not None
    assert outcome.result is Result.FINISHED
    assert outcome.message == ""
    # The header says what was asked, enough to ask it again.
    assert parse_request(header.request) == request_
    assert (header.length, header.seed, header.prompt) == (request_.length, request_.seed, "x")
    assert header.blocks[0][0] == 0
    assert header.blocks[-1][1] == request_.length
    steps = request_.steps if request_.schedule in STEPPED else request_.length
    assert sum(planned for *_, planned in header.blocks) == min(steps, request_.length)
    # Frames are counted, and say how many masks the canvas still has.
    assert [(f.step, f.nfe) for f in trace.frames] == [(n, n) for n in range(1, len(trace.frames) + 1)]
    assert outcome.forwards == len(trace.frames) <= request_.length
    assert [f.masks_left for f in trace.frames] == [
        sum(cell.token_id is None for cell in trace.canvas_at(k)) for k in range(1, len(trace.frames) + 1)
    ]
    assert trace.frames[-1].masks_left == 0
    masked: set[int] = set(range(request_.length))
    last_guess: dict[int, tuple[str, float]] = {}
    for frame in trace.frames:
        start, end, _ = header.blocks[frame.block]
        committed = [c for c in frame.changes if c.kind is Kind.COMMIT]
        forced = [c for c in frame.changes if c.kind is Kind.FORCE]
        assert [*committed, *forced] == list(frame.changes)
        assert {c.position for c in committed} <= masked & set(range(start, end))
        for change in frame.changes:
            assert change.position in masked
            assert change.token_id is not None
            assert change.token_id != MASK
            raw = VOCABULARY[change.token_id]
            assert (bytes.fromhex(change.raw) if change.raw else change.text.encode()) == raw
        masked -= {c.position for c in frame.changes}
        # Confidences are the committed tokens' own; a forced token has none.
        sure = [c.confidence for c in committed]
        assert all(s is not None and 0 <= s <= 1 for s in sure)
        assert frame.confidence_min == min(sure)
        assert frame.confidence_mean == pytest.approx(sum(sure) / len(sure), abs=2e-4)
        assert all(c.confidence is None and c.alternatives == () and c.token_id == STOP for c in forced)
        assert all(isinstance(a, Candidate) and a.token_id != MASK for c in committed for a in c.alternatives)
        # A guess is for a mask of the block at work, and is news.
        for guess in frame.guesses:
            assert guess.position in masked & set(range(start, end))
            text, probability = last_guess.get(guess.position, ("", -1.0))
            assert guess.text != text or abs(guess.probability - probability) >= 0.1 - 1e-4
            last_guess[guess.position] = (guess.text, guess.probability)
        assert frame.batch == 1
    assert masked == set()
    # The outcome's text is the canvas up to the first stop.
    ids = [cell.token_id for cell in trace.canvas_at(len(trace.frames))]
    useful = ids[: ids.index(STOP)] if STOP in ids else ids
    assert outcome.tokens == len(useful)
    assert outcome.text == FakeTokens().decode([i for i in useful if i is not None])
    # And the whole survives its lines.
    assert Trace.from_lines(trace.to_lines()) == trace


@given(request_=requests(seed=st.integers(0, 99)))
def test_the_same_seed_gives_the_same_trace(engines: tuple[Engine, Engine], request_: GenerationRequest) -> None:
    first, second = (run(engines[0], request_) for _ in range(2))
    assert untimed(first) == untimed(second)
    assert first.header.run_id != second.header.run_id


def test_different_seeds_give_different_traces(engines: tuple[Engine, Engine]) -> None:
    texts = {ended(engines[0].submit(ask("abcdefgh", seed=seed, temperature=1.0, length=8))).text for seed in range(6)}
    assert len(texts) == 6


def test_the_end_is_forced_and_costs_no_forwards(engines: tuple[Engine, Engine]) -> None:
    trace = run(engines[1], ask("a", length=20, steps=20, confidence="leftmost"))
    assert trace.outcome is not None
    assert (trace.outcome.text, trace.outcome.tokens, trace.outcome.forwards) == (
        "a" * STOPPING,
        STOPPING,
        STOPPING + 1,
    )
    last = trace.frames[-1]
    assert [(c.position, c.kind) for c in last.changes] == [
        (STOPPING, Kind.COMMIT),
        *[(at, Kind.FORCE) for at in range(STOPPING + 1, 20)],
    ]
    assert last.guesses == ()
    all_of_it = run(engines[1], ask("a", length=20, steps=20, confidence="leftmost", end_at_stop=False))
    assert all_of_it.outcome is not None
    assert (all_of_it.outcome.text, all_of_it.outcome.forwards) == ("a" * STOPPING, 20)


def test_what_is_shown_live_is_what_is_rebuilt_later(engines: tuple[Engine, Engine]) -> None:
    """A viewer that applies each frame as it comes sees, at k, what a scrubber rebuilds for k."""
    submitted = engines[0].submit(ask("abc", length=16, steps=5, block=7, temperature=1.0))
    shown: list[list[Cell]] = []
    live: Trace | None = None
    for event in submitted.events():
        if isinstance(event, Header):
            live = Trace(event)
            shown.append(live.canvas_at(0))
        elif isinstance(event, Frame):
            assert live is not None
            live.append(event)
            shown.append(live.canvas_at(len(live.frames)))
    trace = trace_of(submitted)
    assert [trace.canvas_at(k) for k in range(len(trace.frames) + 1)] == shown
    assert len(shown) == 6


@pytest.mark.parametrize("seed", range(4))
def test_a_guess_is_sent_when_its_token_changes_or_its_probability_moves(seed: int) -> None:
    """And only then: the model's best for each mask that is left, against what was last said of it."""
    seen: list[list[list[float]]] = []
    state = torch.Generator().manual_seed(seed)

    def remember(_: str, logits: Tensor) -> None:
        """Two likely tokens a row, now closer, now further apart."""
        for row in logits:
            row[:] = -100.0
            row[[id_of("a"), id_of("b")]] = torch.rand(2, generator=state) * torch.tensor([1.0, 0.9])
        seen.append(logits.tolist())

    with running(FakeDenoiser(on_logits=remember)) as engine:
        trace = run(engine, ask("a", length=10, steps=10, stop_rule="off", confidence="leftmost"))
    said: dict[int, tuple[int, float]] = {}
    kept = 0
    for k, (frame, rows) in enumerate(zip(trace.frames, seen, strict=True)):
        expected = []
        for at, row in zip(range(k, 10), rows, strict=True):
            shares = softmax(row)
            best = argmax(shares)
            before, sure = said.get(at, (-1, 0.0))
            if at == k:
                continue
            if best == before and abs(shares[best] - sure) < 0.1:
                kept += 1
                continue
            said[at] = (best, shares[best])
            expected.append((at, VOCABULARY[best].decode(), pytest.approx(shares[best], abs=1e-4)))
        assert [(g.position, g.text, g.probability) for g in frame.guesses] == expected
    assert kept > 3
    assert sum(len(frame.guesses) for frame in trace.frames) > 12


def test_halves_of_a_character_are_given_as_bytes() -> None:
    denoiser = FakeDenoiser(on_logits=lambda _, logits: logits[:, HALF_FIRST].add_(99))
    with running(denoiser) as engine:
        trace = run(engine, ask("a", length=2, steps=2))
        assert [(c.text, c.raw) for f in trace.frames for c in f.changes] == [("", "c3")] * 2
        assert trace.outcome is not None
        assert trace.outcome.text == ""
        assert trace.outcome.tokens == 2


def test_the_header_names_model_machine_and_versions(engines: tuple[Engine, Engine]) -> None:
    before = datetime.now(UTC)
    header = run(engines[0], ask("abc")).header
    assert (header.model, header.model_name, header.prompt_tokens) == ("pocket", "Fake", 3)
    assert header.stop_ids == (STOP,)
    assert header.device.startswith("cpu: ")
    assert header.dtype == "float32"
    assert header.versions["unmask"] == playground.__version__
    assert set(header.versions) == {"unmask", "torch", "python"}
    assert header.mode == "diffusion"
    assert before - timedelta(seconds=1) <= datetime.fromisoformat(header.created) <= datetime.now(UTC)
    assert len(header.run_id) == 24


def test_times_add_up(engines: tuple[Engine, Engine]) -> None:
    trace = run(engines[0], ask("a", length=6, steps=6))
    outcome = trace.outcome
    assert isinstance(outcome, Outcome)
    times = outcome.timings
    assert times.first_canvas is not None
    assert 0 <= times.queue <= times.queue + times.prefill <= times.first_canvas <= times.total
    assert times.model == pytest.approx(sum(f.model_seconds for f in trace.frames), abs=1e-4)
    assert times.queue + times.model <= times.total
    assert [f.elapsed for f in trace.frames] == sorted(f.elapsed for f in trace.frames)


def test_a_run_has_no_trace_before_it_starts_and_takes_none_after_its_end() -> None:
    waiting = Run(ask(), seed=1, place=lambda _: 3)
    assert (waiting.trace, waiting.done, waiting.place) == (None, False, 3)
    assert waiting.next_events(0, 0) == []
    frame = Frame(1, 0, 1, 0, (), None, None, 0.0)
    with pytest.raises(RuntimeError, match="header"):
        waiting.append(frame)
    assert Run(ask(), seed=1, place=lambda _: 0).id != waiting.id


def test_the_letters_of_the_fake_are_as_these_tests_think() -> None:
    assert VOCABULARY[id_of("a")] == b"a"
    assert FakeTokens().encode_prompt("a b") == [id_of("a"), id_of(" "), id_of("b")]

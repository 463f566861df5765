"""A run as a growing string: whole, in order, not too often, and with a word while it waits."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from playground.engine.engine import Engine
from playground.engine.run import Run
from playground.settings import Settings
from playground.trace import Outcome, Result, Trace
from playground.ui import live
from playground.ui.components import control_line, turn_line
from playground.ui.live import Sessions, stream, waiting_sentence
from tests.fakes import PATIENCE, FakeDenoiser, Gate, ask, running


def trace_of(value: str) -> Trace:
    """A viewer's value without its control lines."""
    return Trace.from_lines([line for line in value.split("\n") if not line.startswith('{"type":"control"')])


def controls_of(value: str) -> list[dict[str, Any]]:
    """The control lines alone."""
    return [json.loads(line) for line in value.split("\n") if line.startswith('{"type":"control"')]


def test_values_grow_until_the_outcome() -> None:
    """Each value extends the one before by whole lines; the last is the run's own trace."""
    with running(FakeDenoiser()) as engine:
        run = engine.submit(ask("abc"))
        values = list(stream(run, engine))
    for before, after in zip(values, values[1:], strict=False):
        assert after.startswith(before)
        assert len(after) > len(before)
    assert all(value.endswith("\n") for value in values)
    assert run.trace is not None
    assert trace_of(values[-1]) == run.trace
    assert run.trace.outcome is not None
    assert run.trace.outcome.result is Result.FINISHED


def test_fast_runs_come_in_few_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes within one interval is one value, however many steps it is; the end does not wait for it."""
    monkeypatch.setattr(live, "YIELD_SECONDS", PATIENCE)
    with running(FakeDenoiser()) as engine:
        run = engine.submit(ask("abc", length=64, steps=64))
        values = list(stream(run, engine))
    assert run.trace is not None
    assert len(run.trace.frames) == 64
    # The first events go out at once, all others together with the outcome.
    assert len([value for value in values if '"type":"header"' in value]) <= 2


def test_first_frame_does_not_wait() -> None:
    """While the second forward is held, the first one's frame is already there."""
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate) as engine:
        run = engine.submit(ask("abc"))
        values = stream(run, engine)
        gate.wait()
        gate.let()
        value = next(value for value in values if '"type":"frame"' in value)
        trace = trace_of(value)
        assert len(trace.frames) == 1
        assert trace.outcome is None
        gate.open()
        *_, last = values
        assert trace_of(last).outcome is not None


def test_stopped_run_ends_the_stream() -> None:
    """With what it has, and the reason."""
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate) as engine:
        run = engine.submit(ask("abc"))
        gate.wait()
        gate.let()
        run.cancel("Enough.")
        gate.open()
        *_, last = stream(run, engine)
    outcome = trace_of(last).outcome
    assert isinstance(outcome, Outcome)
    assert (outcome.result, outcome.message) == (Result.STOPPED, "Enough.")


def test_waiting_run_says_its_place() -> None:
    """Once for each place, and never again after it has begun."""
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate, max_active=1) as engine:
        first = engine.submit(ask("first"))
        gate.wait()
        second = engine.submit(ask("second"))
        values = stream(second, engine)
        assert controls_of(next(values))[1:] == [{"type": "control", "status": "Waiting: place 1 in the queue."}]
        gate.open()
        *_, last = values
    assert first.done
    assert all(control["status"] for control in controls_of(last)[1:])
    begun = last.index('{"type":"header"')
    assert '"type":"control"' not in last[begun:]
    assert trace_of(last).outcome is not None


def test_loading_model_is_named() -> None:
    """A run may be asked for before the model is there."""
    loading = threading.Event()

    def load(*_: object) -> FakeDenoiser:
        assert loading.wait(PATIENCE)
        return FakeDenoiser()

    engine = Engine(Settings(), load=load, models=frozenset({"pocket"}))
    try:
        run = engine.submit(ask("abc"))
        values = stream(run, engine)
        _, control = controls_of(next(values))
        assert control["status"].startswith("Loading the model (")
        assert control["status"].endswith("The run starts by itself.")
        loading.set()
        *_, last = values
        assert trace_of(last).outcome is not None
        assert waiting_sentence(run, engine) == "Starting."
    finally:
        loading.set()
        engine.close()


def test_run_stopped_while_the_model_loads_ends_at_once() -> None:
    """Nobody should have to wait for a model that is no longer wanted."""
    loading = threading.Event()

    def load(*_: object) -> FakeDenoiser:
        assert loading.wait(PATIENCE)
        return FakeDenoiser()

    engine = Engine(Settings(), load=load, models=frozenset({"pocket"}))
    try:
        run = engine.submit(ask("abc"))
        values = stream(run, engine)
        next(values)
        run.cancel()
        rest = list(values)
        assert not loading.is_set()
        assert not run.done
        assert controls_of(rest[-1])[-1]["status"] == "Stopped before it began."
    finally:
        loading.set()
        engine.close()


def test_control_line() -> None:
    """One line that a viewer can tell from a trace's."""
    line = control_line(status='Waiting: "place" 1\n', autoplay=True)
    assert line.startswith('{"type":"control"')
    assert line.count("\n") == 1
    assert json.loads(line) == {"type": "control", "status": 'Waiting: "place" 1\n', "autoplay": True}


def test_later_values_have_later_turns() -> None:
    """So that the viewer can tell a cancelled run's last value from what took its place."""
    with running(FakeDenoiser()) as engine:
        streams = [list(stream(engine.submit(ask("abc")), engine)) for _ in range(3)]
    turns = [{controls_of(value)[0]["turn"] for value in values} for values in streams]
    assert all(len(turn) == 1 for turn in turns)
    assert turns == sorted(turns, key=min)
    assert len(set.union(*turns)) == 3
    assert min(turns[0]) < int(json.loads(turn_line())["turn"]) < 2**53


def new_run() -> Run:
    """A run that nobody works on."""
    return Run(ask(), seed=1, place=lambda run: 0)


def test_stop_reaches_the_page_s_own_run() -> None:
    """And no other's."""
    sessions, mine, theirs = Sessions(), new_run(), new_run()
    sessions.start("mine", mine)
    sessions.start("theirs", theirs)
    sessions.stop("mine")
    sessions.stop("nobody")
    assert mine.cancelled.is_set()
    assert not theirs.cancelled.is_set()


def test_next_run_of_a_page_stops_the_one_before() -> None:
    """A page shows one run; what it no longer shows is not worth the time."""
    sessions, before, after = Sessions(), new_run(), new_run()
    sessions.start("page", before)
    sessions.start("page", after)
    assert before.cancelled.is_set()
    assert not after.cancelled.is_set()


def test_run_that_is_over_is_forgotten() -> None:
    """But a late goodbye does not take the next run's place."""
    sessions, before, after = Sessions(), new_run(), new_run()
    sessions.start("page", before)
    sessions.start("page", after)
    sessions.forget("page", before)
    sessions.stop("page")
    assert after.cancelled.is_set()
    sessions.forget("page", after)
    sessions.stop("page")

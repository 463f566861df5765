"""A run as viewer values: a word while it waits, its first lines, where the others are."""

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


def streamed(value: str) -> dict[str, Any] | None:
    """The control line that says where the viewer reads on, if there is one."""
    named = [control for control in controls_of(value) if "stream" in control]
    assert len(named) < 2
    return named[0] if named else None


def test_a_run_that_ended_comes_whole() -> None:
    """One value, nothing left to read."""
    with running(FakeDenoiser()) as engine:
        run = engine.submit(ask("abc"))
        run.wait(PATIENCE)
        [value] = stream(run, engine)
    assert run.trace is not None
    assert trace_of(value) == run.trace
    assert run.trace.outcome is not None
    assert run.trace.outcome.result is Result.FINISHED
    assert streamed(value) is None


def test_a_run_that_goes_on_says_where_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """First lines, then their number: those with the ones after it are the whole trace. Nothing new until the end."""
    monkeypatch.setattr(live, "STATUS_SECONDS", 0.01)
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate) as engine:
        run = engine.submit(ask("abc"))
        values = stream(run, engine)
        gate.wait()
        value = next(value for value in values if streamed(value))
        assert next(values) == next(values) == value, "the page is asked again and again whether it is there"
        gate.open()
        assert set(values) <= {value}
    control = streamed(value)
    assert control is not None
    assert (control["stream"], control["after"]) == (run.id, 1)
    assert run.trace is not None
    begun = trace_of(value)
    assert [begun.header, *begun.frames] == run.next_events(0, 0)[: control["after"]]
    assert value.endswith("\n")
    assert run.trace.outcome is not None


def test_first_lines_do_not_wait() -> None:
    """While the first forward is held, the header is already there."""
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate) as engine:
        run = engine.submit(ask("abc"))
        values = stream(run, engine)
        gate.wait()
        value = next(value for value in values if '"type":"header"' in value)
        assert not trace_of(value).frames
        gate.open()
        list(values)


def test_stopped_run_ends_the_stream() -> None:
    """With what it has, and the reason."""
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate) as engine:
        run = engine.submit(ask("abc"))
        gate.wait()
        gate.let()
        run.cancel("Enough.")
        gate.open()
        list(stream(run, engine))
        # The stream ends with the run, so this does not wait.
        [value] = stream(run, engine)
    outcome = trace_of(value).outcome
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
    assert all(control.get("status") or "stream" in control for control in controls_of(last)[1:])
    begun = last.index('{"type":"header"')
    assert '"status"' not in last[begun:]
    assert second.done


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
        assert trace_of(last).header.run_id == run.id
        assert run.done
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

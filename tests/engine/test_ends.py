"""How runs end: finished, stopped, out of time or failed; always once, always with the text there is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
import torch
from torch import Tensor

from playground.denoisers.base import Denoiser, DenoiserError, TokenText
from playground.engine import batching, denoise, run
from playground.engine.engine import Engine
from playground.engine.run import Run
from playground.engine.state import ModelState
from playground.request import RequestError
from playground.settings import Settings
from playground.trace import Outcome, Result, Trace
from tests.engine.test_batching import ended, trace_of
from tests.fakes import MASK, PATIENCE, STOP, Clock, FakeDenoiser, FakeTokens, Gate, Log, ask, id_of, running

pytestmark = pytest.mark.timeout(60)


def sentence(outcome: Outcome) -> str:
    """The message of an outcome, which is one sentence."""
    assert outcome.message.endswith(".")
    assert "\n" not in outcome.message
    assert outcome.message[0].isupper()
    return outcome.message


def complete(trace: Trace) -> None:
    """A finished trace rebuilds to its text, one frame a forward."""
    assert trace.outcome is not None
    assert trace.outcome.result is Result.FINISHED
    cells = trace.canvas_at(len(trace.frames))
    assert all(cell.token_id is not None for cell in cells)
    assert "".join(cell.text for cell in cells) == trace.outcome.text
    assert [frame.nfe for frame in trace.frames] == list(range(1, trace.outcome.forwards + 1))
    assert trace.frames[-1].masks_left == 0


# --- stopped -----------------------------------------------------------------------------------------


def test_a_waiting_run_can_be_stopped() -> None:
    gate, log = Gate(), Log()
    with running(FakeDenoiser(on_forward=gate), gate=gate, on_end=log, max_active=1) as engine:
        engine.submit(ask("a"))
        gate.wait()
        waiting = engine.submit(ask("b"), "ann")
        waiting.cancel()
        gate.let()
        outcome = ended(waiting)
        assert (outcome.result, outcome.text, outcome.forwards, outcome.tokens) == (Result.STOPPED, "", 0, 0)
        assert sentence(outcome)
        assert log.wait(1) == [(waiting.trace, "ann")]


class CancelledMeanwhile(threading.Event):
    """Not set at the first look, set at the second."""

    looks = 0

    def is_set(self) -> bool:
        """Counts the looks."""
        self.looks += 1
        if self.looks > 1:
            self.set()
        return super().is_set()


def test_a_run_that_is_stopped_while_the_queue_is_looked_through_is_not_lost() -> None:
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate, max_active=1) as engine:
        engine.submit(ask("a", length=8, steps=8))
        gate.wait()
        waiting = engine.submit(ask("b"))
        waiting.cancelled = CancelledMeanwhile()
        gate.let(2)
        assert ended(waiting).result is Result.STOPPED


def test_a_run_can_be_stopped_midway_and_keeps_its_text() -> None:
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate) as engine:
        run = engine.submit(ask("ab", length=9, steps=9, confidence="leftmost"))
        gate.wait()
        gate.let(3)
        run.cancel("Enough of this.")
        run.cancel("Too late to give another reason.")
        gate.release()
        outcome = ended(run)
        assert outcome.result is Result.STOPPED
        assert outcome.message == "Enough of this."
        trace = trace_of(run)
        assert outcome.forwards == len(trace.frames) == outcome.tokens == 4
        assert outcome.text == "".join(change.text for frame in trace.frames for change in frame.changes)
        assert len(outcome.text) == 4
    run.cancel()
    assert run.trace is not None
    assert run.trace.outcome == outcome


def test_stopping_one_run_leaves_its_neighbours() -> None:
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate) as engine:
        stopped, other = engine.submit(ask("a")), engine.submit(ask("b"))
        gate.wait()
        stopped.cancel()
        gate.open()
        assert ended(stopped).result is Result.STOPPED
        complete(trace_of(other))


# --- out of time -------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time that the test moves on."""
    clock = Clock()
    for module in (batching, denoise, run):
        monkeypatch.setattr(module, "time", clock.module())
    return clock


def test_a_deadline_ends_a_run_and_keeps_its_text(clock: Clock) -> None:
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate) as engine:
        timed = engine.submit(ask("a", length=8, steps=8, deadline=5.0, confidence="leftmost"))
        free = engine.submit(ask("b", length=8, steps=8))
        gate.wait()
        clock.now += 4
        gate.let(2)
        clock.now += 2
        gate.open()
        outcome = ended(timed)
        assert outcome.result is Result.DEADLINE
        assert "5 s" in sentence(outcome)
        assert outcome.text == "aaa"
        assert outcome.timings.total == pytest.approx(6)
        complete(trace_of(free))


def test_time_in_the_queue_does_not_count_against_a_deadline(clock: Clock) -> None:
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate, max_active=1) as engine:
        engine.submit(ask("a"))
        gate.wait()
        timed = engine.submit(ask("b", deadline=1.0))
        clock.now += 100
        gate.open()
        outcome = ended(timed)
        assert outcome.result is Result.FINISHED
        assert outcome.timings.queue == pytest.approx(100)


def test_a_deadline_may_pass_before_the_first_forward(clock: Clock) -> None:
    def slow_prompt(_: str) -> None:
        clock.now += 2

    with running(FakeDenoiser(on_prepare=slow_prompt)) as engine:
        outcome = ended(engine.submit(ask(deadline=1.0)))
        assert (outcome.result, outcome.text, outcome.forwards) == (Result.DEADLINE, "", 0)
        assert outcome.timings.prefill == pytest.approx(2)
        assert outcome.timings.first_canvas is None


def test_no_run_holds_a_place_longer_than_the_app_allows(clock: Clock) -> None:
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate, max_seconds=30) as engine:
        run = engine.submit(ask("a", deadline=1000.0, length=6, steps=6))
        gate.wait()
        gate.let()
        clock.now += 31
        gate.open()
        outcome = ended(run)
        assert outcome.result is Result.DEADLINE
        assert "30 s" in sentence(outcome)
        assert outcome.text.replace(" … ", "") == "aa"


# --- failed ------------------------------------------------------------------------------------------


def spoil(prompt: str, logits: Tensor) -> None:
    """NaN for one prompt."""
    if prompt == "x":
        logits[0, 5] = torch.nan


def raise_for_rows(prompt: str, logits: Tensor) -> None:
    """An error in the middle of a shared forward's rows."""
    del logits
    if prompt == "x":
        raise RuntimeError("first line\nsecond line")


def raise_for_forward(prompts: Sequence[str]) -> None:
    """An error of any forward that a certain run takes part in."""
    if "x" in prompts:
        raise RuntimeError("first line\nsecond line")


@pytest.mark.parametrize(
    "hooks", [{"on_logits": spoil}, {"on_logits": raise_for_rows}, {"on_forward": raise_for_forward}]
)
@pytest.mark.parametrize("prompts", ["xab", "axb", "abx"])
@pytest.mark.parametrize("length", [1, 4])
def test_one_runs_failure_leaves_its_neighbours_whole(
    hooks: dict[str, Callable[..., None]], prompts: str, length: int
) -> None:
    """Whatever fails, whoever stands first: the others' traces have every frame, as if alone."""
    hold, log = threading.Event(), Log()

    def hold_first(prompt: str) -> None:
        if prompt == prompts[0]:
            hold.wait(PATIENCE)

    denoiser = FakeDenoiser(on_prepare=hold_first, **hooks)
    with running(denoiser, on_end=log) as engine:
        runs = {prompt: engine.submit(ask(prompt, length=length, temperature=1.0)) for prompt in prompts}
        hold.set()
        outcome = ended(runs["x"])
        assert outcome.result is Result.FAILED
        assert sentence(outcome)
        for prompt in "ab":
            complete(trace_of(runs[prompt]))
            assert ended(runs[prompt]).text == prompt * length
            assert len(trace_of(runs[prompt]).frames) == length
        log.wait(3)
        after = engine.submit(ask("c"))
        complete(trace_of(after))
    assert sorted(trace.header.prompt for trace, _ in log.ended) == sorted([*prompts, "c"])


def test_a_failure_keeps_the_text_so_far() -> None:
    seen = 0

    def fail_third(_: Sequence[str]) -> None:
        nonlocal seen
        seen += 1
        if seen == 3:
            raise MemoryError

    with running(FakeDenoiser(on_forward=fail_third)) as engine:
        outcome = ended(engine.submit(ask("a", confidence="leftmost")))
        assert outcome.result is Result.FAILED
        assert outcome.text == "aa"
        assert "memory" in sentence(outcome)


def test_a_prompt_that_cannot_be_prepared_fails_alone() -> None:
    def prepare(prompt: str) -> None:
        if prompt == "x":
            raise ValueError("bad\nprompt" * 100)

    with running(FakeDenoiser(on_prepare=prepare)) as engine:
        runs = [engine.submit(ask(prompt)) for prompt in "axb"]
        outcome = ended(runs[1])
        assert (outcome.result, outcome.text, outcome.forwards) == (Result.FAILED, "", 0)
        assert len(sentence(outcome)) < 400
        for run in (runs[0], runs[2]):
            complete(trace_of(run))


class Mute(FakeTokens):
    """Tokens that cannot be shown, for one letter, or decoded at all."""

    def __init__(self, *, at_the_end: bool) -> None:
        self._at_the_end = at_the_end

    def token(self, token_id: int) -> TokenText:
        """Fails for x."""
        if token_id == id_of("x") and not self._at_the_end:
            raise IndexError("no such token")
        return super().token(token_id)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Fails for a whole text of x."""
        if list(token_ids) == [id_of("x")] * 4:
            raise IndexError("no such token")
        return super().decode(token_ids)


@pytest.mark.parametrize("at_the_end", [False, True])
def test_a_text_that_cannot_be_shown_fails_alone_and_ends_once(at_the_end: bool) -> None:
    gate, log = Gate(), Log()

    def keep_to_themselves(prompt: str, logits: Tensor) -> None:
        """The others never so much as consider an x."""
        if prompt != "x":
            logits[:, id_of("x")] = -torch.inf

    denoiser = FakeDenoiser(on_forward=gate, on_logits=keep_to_themselves)
    denoiser.tokens = Mute(at_the_end=at_the_end)
    with running(denoiser, gate=gate, on_end=log) as engine:
        runs = [engine.submit(ask(prompt)) for prompt in "axb"]
        gate.wait()
        gate.open()
        assert ended(runs[1]).result is Result.FAILED
        assert sentence(ended(runs[1]))
        for run in (runs[0], runs[2]):
            complete(trace_of(run))
        complete(trace_of(engine.submit(ask("c"))))
        assert len(log.wait(4)) == 4


# --- loading -----------------------------------------------------------------------------------------


class Loader:
    """Loads nothing for a while, then a fake."""

    def __init__(self, *errors: Exception | None, hold: threading.Event | None = None) -> None:
        self._errors, self._hold = list(errors), hold
        self.calls = 0

    def __call__(self, name: str, settings: Settings) -> Denoiser:
        """The next error, or a model."""
        del name, settings
        self.calls += 1
        error = self._errors.pop(0) if self._errors else None
        if self._hold is not None:
            self._hold.wait(PATIENCE)
        if error is not None:
            raise error
        return FakeDenoiser()


@pytest.fixture
def open_engine() -> Callable[..., Engine]:
    """Engines with a loader of their own; closed after the test."""
    return lambda load, **more: Engine(Settings(), load=load, models=frozenset({"pocket"}), **more)


@pytest.mark.parametrize("error", [DenoiserError("The model has no files; fetch them."), OSError("disk\ngone.")])
def test_a_model_that_does_not_load_fails_its_runs_and_is_tried_again(
    error: Exception, open_engine: Callable[..., Engine]
) -> None:
    hold, log = threading.Event(), Log()
    load = Loader(error, hold=hold)
    engine = open_engine(load, on_end=log)
    try:
        runs = [engine.submit(ask(prompt)) for prompt in "ab"]
        assert engine.status("pocket").state is ModelState.LOADING
        assert [run.place for run in runs] == [1, 2]
        hold.set()
        for run in runs:
            outcome = ended(run)
            assert (outcome.result, outcome.text) == (Result.FAILED, "")
            said = sentence(outcome)
            assert (said == str(error)) == isinstance(error, DenoiserError)
            assert ".." not in said
        status = engine.status("pocket")
        assert status.state is ModelState.FAILED
        assert status.message == said
        assert load.calls == 1
        complete(trace_of(engine.submit(ask("c"))))
        assert load.calls == 2
        assert engine.status("pocket").state is ModelState.READY
        assert len(log.wait(3)) == 3
    finally:
        engine.close()


def test_asking_how_a_model_stands_does_not_load_it_again(open_engine: Callable[..., Engine]) -> None:
    load = Loader(DenoiserError("No."), DenoiserError("No."))
    engine = open_engine(load)
    try:
        assert engine.ready("pocket", PATIENCE).state is ModelState.FAILED
        for _ in range(3):
            assert engine.status("pocket").state is ModelState.FAILED
            engine.wait("pocket", 1)
        assert load.calls == 1
        assert engine.ready("pocket", PATIENCE).state is ModelState.FAILED
        assert load.calls == 2
        assert engine.warm("pocket").state in (ModelState.LOADING, ModelState.READY)
        assert engine.ready("pocket", PATIENCE).state is ModelState.READY
        assert engine.denoiser("pocket") is not None
    finally:
        engine.close()


def test_a_model_loads_once_however_many_ask(open_engine: Callable[..., Engine]) -> None:
    load = Loader()
    engine = open_engine(load)
    try:
        runs = [engine.submit(ask(prompt)) for prompt in "abc"]
        engine.warm("pocket")
        for run in runs:
            complete(trace_of(run))
        assert load.calls == 1
        assert engine.status("pocket").seconds >= 0
    finally:
        engine.close()


def test_trying_again_never_stops_those_who_wait_for_the_first_try(open_engine: Callable[..., Engine]) -> None:
    """A new run comes after loading failed and before the runs that waited for it were told."""
    told, hold = threading.Event(), threading.Event()
    engine: Engine

    def on_end(trace: Trace, visitor: str) -> None:
        del trace, visitor
        told.wait(PATIENCE)

    engine = open_engine(Loader(DenoiserError("No files."), hold=hold), on_end=on_end)
    try:
        old = [engine.submit(ask(prompt)) for prompt in "abc"]
        hold.set()
        ended(old[0])
        new: list[Run] = []
        submitting = threading.Thread(target=lambda: new.append(engine.submit(ask("d"))))
        submitting.start()
        submitting.join(PATIENCE / 4)
        assert not submitting.is_alive(), "a new run had to wait for the old worker"
        complete(trace_of(new[0]))
        told.set()
        for run in old:
            assert (ended(run).result, ended(run).message) == (Result.FAILED, "No files.")
    finally:
        told.set()
        engine.close()


# --- shutting down -----------------------------------------------------------------------------------


def close_in_background(engine: Engine) -> threading.Thread:
    """`close` waits for the forward under way, which a test may be holding."""
    thread = threading.Thread(target=engine.close)
    thread.start()
    return thread


def test_closing_ends_all_runs_and_keeps_their_texts() -> None:
    gate, log = Gate(), Log()
    with running(FakeDenoiser(on_forward=gate), gate=gate, on_end=log, max_active=2) as engine:
        runs = [engine.submit(ask(prompt, length=6, steps=6, confidence="leftmost")) for prompt in "abc"]
        gate.wait()
        gate.let(2)
        closing = close_in_background(engine)
        for run in runs:
            assert run.cancelled.wait(PATIENCE)
        gate.open()
        closing.join(PATIENCE)
        assert not closing.is_alive()
        assert [run.done for run in runs] == [True] * 3
        for run in runs:
            assert ended(run).result is Result.STOPPED
            assert "shut down" in sentence(ended(run))
        assert len(ended(runs[0]).text) >= 3
        assert ended(runs[2]).text == ""
        assert len(log.ended) == 3
        for call in (lambda: engine.submit(ask()), lambda: engine.warm("pocket"), lambda: engine.status("pocket")):
            with pytest.raises(RequestError, match=r"shutting down; .*\.$"):
                call()
        engine.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "worker-pocket"]


def test_closing_while_a_prompt_is_prepared_ends_that_run_too() -> None:
    preparing, go_on = threading.Event(), threading.Event()

    def prepare(_: str) -> None:
        preparing.set()
        go_on.wait(PATIENCE)

    denoiser = FakeDenoiser(on_prepare=prepare)
    with running(denoiser) as engine:
        run = engine.submit(ask("a"))
        assert preparing.wait(PATIENCE)
        closing = close_in_background(engine)
        closing.join(0.2)
        go_on.set()
        closing.join(PATIENCE)
        assert ended(run).result is Result.STOPPED
        assert denoiser.forwards == []


def test_closing_while_the_model_loads_ends_those_who_wait(open_engine: Callable[..., Engine]) -> None:
    hold = threading.Event()
    engine = open_engine(Loader(hold=hold))
    runs = [engine.submit(ask(prompt)) for prompt in "ab"]
    closing = close_in_background(engine)
    assert runs[1].cancelled.wait(PATIENCE)
    hold.set()
    closing.join(PATIENCE)
    assert [ended(run).result for run in runs] == [Result.STOPPED] * 2


def test_a_run_that_comes_as_the_engine_closes_is_refused_or_ended() -> None:
    for _ in range(20):
        with running(FakeDenoiser(), max_queue=100) as engine:
            engine.ready("pocket", PATIENCE)
            closing = close_in_background(engine)
            taken = []
            with suppress(RequestError):
                taken.extend(engine.submit(ask("a")) for _ in range(50))
            closing.join(PATIENCE)
            for run in taken:
                assert ended(run).result in (Result.FINISHED, Result.STOPPED)


# --- told once ---------------------------------------------------------------------------------------


def test_each_end_is_told_once_with_its_visitor_even_if_the_listener_fails() -> None:
    log = Log(error=RuntimeError("the disk is full"))
    with running(FakeDenoiser(), on_end=log, max_queue=100, max_queue_per_visitor=50) as engine:
        runs = [engine.submit(ask(prompt), visitor) for prompt, visitor in zip("abcdef", "uvwuvw", strict=True)]
        for run in runs:
            complete(trace_of(run))
        told = log.wait(6)
    assert len(log.ended) == 6
    assert {(trace.header.run_id, visitor) for trace, visitor in told} == {(run.id, run.visitor) for run in runs}
    assert all(trace.outcome is not None for trace, _ in told)


# --- text --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("canvas", "text", "useful"),
    [
        ("ab", "ab", 2),
        ("", "", 0),
        ("____", "", 0),
        ("a_b", "a … b", 2),
        ("a___b_c", "a … b … c", 3),
        ("__ab__", "ab", 2),
        ("ab.cd", "ab", 2),
        ("a_.b", "a", 1),
        (".ab", "", 0),
        ("_b.", "b", 1),
    ],
)
def test_masks_inside_a_text_become_a_gap(canvas: str, text: str, useful: int) -> None:
    ids = [{"_": MASK, ".": STOP}.get(letter, id_of(letter)) for letter in canvas]
    assert denoise.text_of(ids, MASK, (STOP,), FakeTokens()) == (text, useful)


def test_halves_of_a_character_join_but_not_across_a_gap() -> None:
    first, second = 2, 3
    tokens = FakeTokens()
    assert denoise.text_of([first, second], MASK, (STOP,), tokens) == ("é", 2)
    assert "\ufffd" not in denoise.text_of([first, MASK, second], MASK, (STOP,), tokens)[0]


@pytest.mark.parametrize(
    ("kept", "text", "useful"), [((), "ab", 2), ((0,), "ab", 1), ((0, 3), "abcd", 2), ((1, 2), "abcd", 2)]
)
def test_what_stands_behind_the_end_of_the_line_is_no_text(kept: tuple[int, ...], text: str, useful: int) -> None:
    """`b` ends the line where nothing kept is behind it; it is the line's last token."""
    ids = [id_of(letter) for letter in "abcd"]
    assert denoise.text_of(ids, MASK, (STOP,), FakeTokens(), kept, enders={id_of("b")}) == (text, useful)

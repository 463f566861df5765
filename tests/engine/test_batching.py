"""Who waits, who shares a forward, and who is refused a place."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from playground.engine.engine import Engine, QueueFullError
from playground.engine.run import Run
from playground.engine.state import ModelState
from playground.request import MAX_SEED, RequestError
from playground.settings import Settings
from playground.trace import Frame, Outcome, Result, Trace
from tests.fakes import PATIENCE, FakeDenoiser, Gate, Log, ask, running

pytestmark = pytest.mark.timeout(60)


def ended(run: Run) -> Outcome:
    """The outcome of a run that ends soon."""
    outcome = run.wait(PATIENCE)
    assert outcome is not None, "the run did not end"
    return outcome


def trace_of(run: Run) -> Trace:
    """The trace of a run that has ended."""
    ended(run)
    assert run.trace is not None
    return run.trace


def batches(run: Run) -> list[int]:
    """How many canvases shared each of a run's forwards."""
    return [frame.batch for frame in trace_of(run).frames]


# --- order -------------------------------------------------------------------------------------------


def test_runs_start_in_the_order_they_came_and_know_their_places() -> None:
    gate = Gate()
    denoiser = FakeDenoiser(on_forward=gate)
    with running(denoiser, gate=gate, max_active=1) as engine:
        runs = [engine.submit(ask(prompt)) for prompt in "abcd"]
        gate.wait()
        assert [run.place for run in runs] == [0, 1, 2, 3]
        assert [run.trace is None for run in runs] == [False, True, True, True]
        gate.let(4)
        assert runs[0].done
        assert [run.place for run in runs] == [0, 0, 1, 2]
        gate.open()
        assert [ended(run).result for run in runs] == [Result.FINISHED] * 4
        assert [run.place for run in runs] == [0, 0, 0, 0]
    assert [prompts[0] for prompts in denoiser.forwards] == list("aaaabbbbccccdddd")


def test_a_run_that_gives_up_lets_the_others_move_up() -> None:
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate, max_active=1) as engine:
        _, second, third = (engine.submit(ask(prompt)) for prompt in "abc")
        gate.wait()
        second.cancel()
        gate.let()
        assert third.place == 1
        assert second.place == 0
        assert ended(second).result is Result.STOPPED


# --- company -----------------------------------------------------------------------------------------


def test_runs_join_and_leave_between_forwards() -> None:
    gate = Gate()
    denoiser = FakeDenoiser(on_forward=gate)
    with running(denoiser, gate=gate, max_active=3) as engine:
        first = engine.submit(ask("a", length=5, steps=5))
        gate.wait()
        second = engine.submit(ask("b", length=2, steps=2))
        gate.let()
        third = engine.submit(ask("c", length=3, steps=3))
        gate.open()
        assert batches(first) == [1, 2, 3, 2, 2]
        assert batches(second) == [2, 3]
        assert batches(third) == [3, 2, 2]
    assert denoiser.forwards == [["a"], ["a", "b"], ["a", "b", "c"], ["a", "c"], ["a", "c"]]


def test_no_more_runs_share_a_forward_than_are_allowed() -> None:
    gate = Gate()
    denoiser = FakeDenoiser(on_forward=gate)
    with running(denoiser, gate=gate, max_active=2) as engine:
        runs = [engine.submit(ask(prompt)) for prompt in "abcde"]
        gate.wait()
        gate.open()
        assert all(ended(run).result is Result.FINISHED for run in runs)
    assert max(map(len, denoiser.forwards)) == 2
    # The first may have started before the second came; from then on, no place stays empty while others wait.
    assert len(denoiser.forwards) <= 4 + 4 + 4


def test_a_run_that_must_be_reproducible_runs_alone_and_keeps_its_turn() -> None:
    gate = Gate()
    denoiser = FakeDenoiser(on_forward=gate)
    with running(denoiser, gate=gate, max_active=8) as engine:
        first = engine.submit(ask("a"))
        gate.wait()
        alone = engine.submit(ask("r", reproducible=True))
        later = [engine.submit(ask(prompt)) for prompt in "bc"]
        another = engine.submit(ask("s", reproducible=True))
        gate.let()
        assert [run.place for run in (alone, *later, another)] == [1, 2, 3, 4]
        gate.open()
        for run in (first, alone, *later, another):
            assert ended(run).result is Result.FINISHED
    assert denoiser.forwards == [["a"]] * 4 + [["r"]] * 4 + [["b", "c"]] * 4 + [["s"]] * 4


def test_company_does_not_show_in_a_trace() -> None:
    """The fake's logits are a function of one canvas, so any difference would be the engine's."""

    def frames(run: Run) -> list[object]:
        return [
            (f.step, f.block, f.nfe, f.masks_left, f.changes, f.guesses, f.confidence_min, f.confidence_mean)
            for f in trace_of(run).frames
        ]

    requests = [
        ask(p, length=n, steps=n, block=3, temperature=t, seed=7)
        for p, n, t in [("a", 6, 0), ("bc", 9, 1.0), ("de", 4, 0.5)]
    ]
    with running(FakeDenoiser(), max_active=1) as engine:
        alone = [frames(engine.submit(request)) for request in requests]
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate, max_active=8) as engine:
        runs = [engine.submit(request) for request in requests]
        gate.wait()
        gate.open()
        assert [frames(run) for run in runs] == alone
        assert max(map(max, map(batches, runs))) == 3


def test_no_runs_text_reaches_another() -> None:
    """Each prompt is one letter, and its text is of that letter alone."""
    runs: list[tuple[str, Run]] = []
    lock = threading.Lock()
    with running(FakeDenoiser(), max_active=4, max_queue=100) as engine:

        def submit(letters: str) -> None:
            for i, letter in enumerate(letters):
                run = engine.submit(ask(letter, length=3 + i % 4, steps=8, temperature=1.0, seed=i), visitor="")
                with lock:
                    runs.append((letter, run))

        threads = [threading.Thread(target=submit, args=(part,)) for part in ("abcde", "fghij", "klmno", "pqrst")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({run.id for _, run in runs}) == 20
        for letter, run in runs:
            trace = trace_of(run)
            assert trace.header.prompt == letter
            assert trace.header.run_id == run.id
            assert set(ended(run).text) == {letter}
            assert {change.text for frame in trace.frames for change in frame.changes} == {letter}


# --- who is refused ----------------------------------------------------------------------------------


def refused(engine: Engine, visitor: str = "", **knobs: object) -> RequestError:
    """The error for a run that is not taken; its text is one sentence."""
    with pytest.raises(RequestError) as caught:
        engine.submit(ask(**{"prompt": "a", **knobs}), visitor)  # type: ignore[arg-type]
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_full_queue_refuses_and_opens_again() -> None:
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate, max_active=1, max_queue=2) as engine:
        engine.submit(ask("a"))
        gate.wait()
        waiting = [engine.submit(ask("b")) for _ in range(2)]
        assert isinstance(refused(engine), QueueFullError)
        waiting[0].cancel()
        gate.let()
        engine.submit(ask("c"))
        assert isinstance(refused(engine), QueueFullError)


def test_without_a_queue_a_run_still_finds_a_free_place() -> None:
    with running(FakeDenoiser(), max_queue=0) as engine:
        assert engine.ready("pocket", PATIENCE).state is ModelState.READY
        assert ended(engine.submit(ask())).result is Result.FINISHED


def test_a_visitor_has_so_many_runs_and_others_are_not_held_up() -> None:
    gate = Gate()
    limits = {"max_active": 1, "max_queue": 50, "max_queue_per_visitor": 2}
    with running(FakeDenoiser(on_forward=gate), gate=gate, **limits) as engine:
        first = engine.submit(ask("a"), "ann")
        gate.wait()
        engine.submit(ask("b"), "ann")
        error = refused(engine, "ann")
        assert isinstance(error, QueueFullError)
        assert "2" in str(error)
        engine.submit(ask("c"), "bob")
        for _ in range(5):
            engine.submit(ask("d"))
        # An active run counts as much as a waiting one; an ended one does not.
        first.cancel()
        gate.let()
        engine.submit(ask("e"), "ann")
        refused(engine, "ann")


@pytest.mark.parametrize("limits", [{"max_queue": 5}, {"max_queue": 100, "max_queue_per_visitor": 5}])
def test_limits_hold_however_many_ask_at_once(limits: dict[str, int]) -> None:
    gate = Gate()
    with running(FakeDenoiser(on_prepare=lambda _: None, on_forward=gate), gate=gate, max_active=1, **limits) as engine:
        engine.submit(ask("a"))
        gate.wait()
        taken: list[Run] = []
        together = threading.Barrier(16)

        def submit() -> None:
            together.wait(PATIENCE)
            for _ in range(3):
                try:
                    taken.append(engine.submit(ask("b"), "ann"))
                except QueueFullError:
                    continue

        threads = [threading.Thread(target=submit) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(taken) == (5 if "max_queue_per_visitor" in limits else min(5, Settings().max_queue_per_visitor))


def test_limits_of_the_deployment_are_named() -> None:
    with running(FakeDenoiser(), max_length=8, max_steps=6, max_prompt_characters=10) as engine:
        assert "8" in str(refused(engine, length=9))
        assert "6" in str(refused(engine, steps=7))
        error = str(refused(engine, prompt="x" * 11))
        assert "11" in error
        assert "10" in error
        known = str(refused(engine, model="gpt\n" * 50))
        assert "pocket" in known
        for call in (engine.warm, engine.ready, engine.status, engine.denoiser):
            with pytest.raises(RequestError, match=r"choose from: pocket\.$"):
                call("gpt")
        assert ended(engine.submit(ask("x" * 10, length=8, steps=6))).result is Result.FINISHED


def test_a_prompt_and_canvas_beyond_the_context_are_refused_in_the_outcome() -> None:
    with running(FakeDenoiser(context_limit=10)) as engine:
        fits = engine.submit(ask("a" * 6))
        beyond = engine.submit(ask("a" * 7))
        assert ended(fits).result is Result.FINISHED
        outcome = ended(beyond)
        assert outcome.result is Result.FAILED
        assert outcome.message.endswith("shorten one of them.")
        assert all(number in outcome.message for number in ("7 tokens", "canvas of 4", "10 tokens"))
        assert trace_of(beyond).frames == []


def test_a_seed_is_drawn_where_none_is_given() -> None:
    log = Log()
    with running(FakeDenoiser(), on_end=log, max_queue=100) as engine:
        runs = [engine.submit(ask(seed=None)) for _ in range(8)]
        seeds = {trace_of(run).header.seed for run in runs}
        assert len(seeds) == 8
        assert all(0 <= seed <= MAX_SEED for seed in seeds)
        assert trace_of(engine.submit(ask(seed=5))).header.seed == 5
        assert trace_of(runs[0]).header.request["seed"] is None


def test_every_frame_is_seen_by_readers_of_any_speed() -> None:
    gate = Gate()

    def at_once(run: Run) -> Sequence[object]:
        return list(run.events())

    def in_gulps(run: Run) -> Sequence[object]:
        seen: list[object] = []
        while not (seen and isinstance(seen[-1], Outcome)):
            seen += run.next_events(len(seen), 0.05)
        return seen

    def afterwards(run: Run) -> Sequence[object]:
        ended(run)
        return [*run.next_events(0, 0), *run.next_events(10_000, 0)]

    def leaving(run: Run) -> Sequence[object]:
        """Goes away after two events, comes back."""
        events = run.events()
        seen = [next(events), next(events)]
        del events
        return [*seen, *list(run.events())[2:]]

    with running(FakeDenoiser(on_forward=gate), gate=gate) as engine:
        run = engine.submit(ask("ab", length=12, steps=12))
        results: dict[str, Sequence[object]] = {}
        readers = [
            threading.Thread(target=lambda read=read: results.update({read.__name__: read(run)}))
            for read in (at_once, in_gulps, afterwards, leaving)
        ]
        for reader in readers:
            reader.start()
        gate.wait()
        gate.let(5)
        gate.open()
        for reader in readers:
            reader.join(PATIENCE)
        expected = list(trace_of(run).events())
        assert len(expected) == 14
        assert results == dict.fromkeys(["at_once", "in_gulps", "afterwards", "leaving"], expected)


def test_waiting_for_events_that_do_not_come_ends_in_time() -> None:
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate) as engine:
        run = engine.submit(ask())
        gate.wait()
        assert run.next_events(1, 0.01) == []
        assert run.wait(0.01) is None
        assert not run.done
        gate.let()
        (frame,) = run.next_events(1, PATIENCE)
        assert isinstance(frame, Frame)

"""Which runs can still be watched by their id."""

from __future__ import annotations

from playground.engine.recent import RecentRuns
from playground.engine.run import Run
from playground.trace import Result
from tests.fakes import PATIENCE, FakeDenoiser, ask, running
from tests.samples import sample_trace


def run_with(frames: int, *, ended: bool = True) -> Run:
    """A run of so many frames."""
    trace, run = sample_trace(frames=frames), Run(ask(), seed=1, place=lambda run: 0)
    run.start(trace.header)
    for frame in trace.frames:
        run.append(frame)
    if ended:
        assert trace.outcome is not None
        run.append(trace.outcome)
    return run


def kept(recent: RecentRuns, runs: list[Run]) -> list[bool]:
    """Whether each can be found."""
    return [recent.get(run.id) is run for run in runs]


def test_the_oldest_go_first() -> None:
    recent, runs = RecentRuns(most_runs=2), [run_with(1) for _ in range(4)]
    for run in runs:
        recent.add(run)
    assert kept(recent, runs) == [False, False, True, True]
    assert recent.get("none") is None


def test_what_they_hold_is_bounded() -> None:
    frames = sample_trace(frames=4).frames
    notes = sum(len(frame.changes) + len(frame.guesses) for frame in frames)
    recent, runs = RecentRuns(most_notes=2 * notes), [run_with(4) for _ in range(4)]
    for run in runs:
        recent.add(run)
    assert kept(recent, runs) == [False, False, True, True]


def test_a_run_that_goes_on_stays() -> None:
    """However many end meanwhile."""
    recent, live = RecentRuns(most_runs=1), run_with(1, ended=False)
    recent.add(live)
    for _ in range(3):
        recent.add(run_with(1))
    assert recent.get(live.id) is live


def test_the_engine_finds_its_runs() -> None:
    """While they go on, and afterwards."""
    with running(FakeDenoiser()) as engine:
        run = engine.submit(ask("abc"))
        assert engine.find(run.id) is run
        outcome = run.wait(PATIENCE)
        assert outcome is not None
        assert outcome.result is Result.FINISHED
        assert engine.find(run.id) is run
        assert engine.find("") is None

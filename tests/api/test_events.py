"""A run's lines as the viewer reads them: whole, in order, each once, from wherever a broken connection left off."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from playground.api import events
from playground.api.events import events_route
from playground.engine.engine import Engine
from playground.engine.run import Run
from playground.trace import Header, Trace, from_line
from tests.fakes import PATIENCE, FakeDenoiser, Gate, ask, running


@pytest.fixture
def engine() -> Iterator[Engine]:
    """One with a small denoiser."""
    with running(FakeDenoiser()) as engine:
        yield engine


@pytest.fixture
def client(engine: Engine) -> TestClient:
    """Asks the route alone."""
    return TestClient(Starlette(routes=[events_route(engine)]))


def ended(engine: Engine) -> Run:
    """A run with its outcome."""
    run = engine.submit(ask("abc", length=16, steps=16))
    assert run.wait(PATIENCE) is not None
    return run


def test_a_run_that_ended_comes_whole(engine: Engine, client: TestClient) -> None:
    run = ended(engine)
    answer = client.get(f"/unmask/runs/{run.id}/events")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert answer.headers["cache-control"] == "no-store"
    assert Trace.from_lines(answer.text) == run.trace


def test_lines_that_are_there_already_are_left_out(engine: Engine, client: TestClient) -> None:
    """From every place, down to nothing at all."""
    run = ended(engine)
    assert run.trace is not None
    lines = run.trace.to_lines().splitlines(keepends=True)
    for after in range(len(lines) + 2):
        answer = client.get(f"/unmask/runs/{run.id}/events", params={"after": after})
        assert answer.text == "".join(lines[after:])


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "", "٣", "9" * 5000])
def test_no_number_is_a_sentence(engine: Engine, client: TestClient, after: str) -> None:
    answer = client.get(f"/unmask/runs/{ended(engine).id}/events", params={"after": after})
    assert (answer.status_code, answer.text) == (400, "`after` must be a whole number of lines.")


@pytest.mark.parametrize("run_id", ["0" * 24, "..", "%3Cb%3E"])
def test_unknown_run_is_a_sentence(client: TestClient, run_id: str) -> None:
    answer = client.get(f"/unmask/runs/{run_id}/events")
    assert answer.status_code == 404
    assert "<" not in answer.text


def test_frames_come_as_they_are_made() -> None:
    """Each while the next forward is held; then the rest; and the worker forgets a reader that has gone."""

    async def follow(run: Run, gate: Gate) -> list[str]:
        got, held = "", -1
        await asyncio.to_thread(gate.wait)
        async for part in events._lines(run, 0):
            got += part
            if held < 3:
                held += 1
                assert got.count('"type":"frame"') == held, "a frame for each forward that was let through"
                await asyncio.to_thread(gate.let)
            else:
                gate.open()
        assert held == 3
        return got.splitlines()

    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate) as engine:
        run = engine.submit(ask("abc", length=8, steps=8))
        lines = asyncio.run(asyncio.wait_for(follow(run, gate), PATIENCE))
    assert run.trace is not None
    assert [from_line(line) for line in lines] == list(run.trace.events())
    assert run._told == []


def test_a_run_that_waits_keeps_the_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """With empty lines, before its header too."""
    monkeypatch.setattr(events, "SILENCE_SECONDS", 0.01)

    async def first(run: Run) -> str:
        lines = events._lines(run, 0)
        try:
            return await anext(lines)
        finally:
            await lines.aclose()

    run = Run(ask(), seed=1, place=lambda run: 1)
    assert asyncio.run(first(run)) == "\n"
    assert run._told == []


def test_a_reader_whose_loop_is_gone_does_not_hurt_the_run() -> None:
    """As when the app is being stopped while a page still reads: the worker goes on writing."""
    loop = asyncio.new_event_loop()
    with running(FakeDenoiser()) as engine:
        header = ended(engine).next_events(0, 0)[0]
    assert isinstance(header, Header)
    run = Run(ask(), seed=1, place=lambda run: 0)
    lines = events._lines(run, 0)

    async def begin() -> asyncio.Task[str]:
        task = asyncio.ensure_future(anext(lines))
        await asyncio.sleep(0.01)
        return task

    task = loop.run_until_complete(begin())
    assert len(run._told) == 1
    loop.close()
    run.start(header)
    assert run.next_events(0, 0) == [header]
    # It was never awaited, and its loop, where asyncio would say so, is gone.
    task._log_destroy_pending = False  # type: ignore[attr-defined]

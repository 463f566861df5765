"""The Python door, on the fake and on the real model."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch

import playground
from playground import DenoisingPipeline
from playground.denoisers.base import Job
from playground.denoisers.pocket import PocketDenoiser
from playground.engine.engine import Engine
from playground.engine.pipeline import PipelineError
from playground.request import RequestError
from playground.settings import Settings
from playground.trace import Frame, Kind, Result, Trace
from tests.engine.test_frames import untimed
from tests.fakes import PATIENCE, FakeDenoiser, Gate, Log, running

pytestmark = pytest.mark.timeout(240)
SMALL: dict[str, Any] = {"target_length": 5, "steps": 5, "block": 0, "seed": 3}


def test_text_frames_and_trace_of_a_run_agree() -> None:
    with running(FakeDenoiser()) as engine:
        pipeline = DenoisingPipeline("pocket", engine=engine)
        text = pipeline.generate("ab", **SMALL)
        trace = pipeline.trace("ab", **SMALL)
        frames = list(pipeline.stream("ab", **SMALL))
        assert trace.outcome is not None
        assert trace.outcome.text == text
        assert len(text) == 5
        assert [frame.changes for frame in frames] == [frame.changes for frame in trace.frames]
        assert all(isinstance(frame, Frame) for frame in frames)


def test_bad_settings_are_refused_at_once() -> None:
    with running(FakeDenoiser()) as engine:
        pipeline = DenoisingPipeline("pocket", engine=engine)
        for knobs in ({"steps": 0}, {"lenght": 5}, {"temperature": float("nan")}, {"target_length": 5, "length": 5}):
            for door in (pipeline.generate, pipeline.trace, pipeline.stream):
                with pytest.raises(RequestError, match=r"\.$"):
                    door("ab", **knobs)
        with pytest.raises(RequestError, match="empty"):
            pipeline.stream(" ")
        with pytest.raises(RequestError, match=r"no model called 'gpt'.*\.$"):
            DenoisingPipeline("gpt", engine=engine)


def test_leaving_the_stream_stops_the_run() -> None:
    gate, log = Gate(), Log()
    with running(FakeDenoiser(on_forward=gate), gate=gate, on_end=log) as engine:
        frames = DenoisingPipeline("pocket", engine=engine).stream("a", target_length=50, steps=50)
        gate.wait()
        gate.let(2)
        for frame in frames:
            if frame.step == 2:
                break
        frames.close()  # type: ignore[attr-defined]
        gate.open()
        ((trace, _),) = log.wait(1)
        assert trace.outcome is not None
        assert trace.outcome.result is Result.STOPPED
        assert len(trace.frames) < 50


def test_a_stream_that_was_never_begun_stops_its_run_when_it_is_dropped() -> None:
    gate, log = Gate(), Log()
    with running(FakeDenoiser(on_forward=gate), gate=gate, on_end=log) as engine:
        frames = DenoisingPipeline("pocket", engine=engine).stream("a", target_length=50, steps=50)
        gate.wait()
        del frames
        gate.open()
        ((trace, _),) = log.wait(1)
        assert trace.outcome is not None
        assert trace.outcome.result is Result.STOPPED


def test_a_failed_run_raises_its_sentence() -> None:
    def fail(prompts: object) -> None:
        del prompts
        raise RuntimeError("no more")

    with running(FakeDenoiser(on_forward=fail)) as engine:
        pipeline = DenoisingPipeline("pocket", engine=engine)
        with pytest.raises(PipelineError, match=r"no more.*\.$"):
            pipeline.generate("a", **SMALL)
        with pytest.raises(PipelineError, match=r"no more.*\.$"):
            list(pipeline.stream("a", **SMALL))


def test_a_run_ended_by_its_deadline_gives_the_text_so_far() -> None:
    with running(FakeDenoiser()) as engine:
        assert DenoisingPipeline("pocket", engine=engine).generate("a", deadline=1e-9, **SMALL) == ""


def test_a_pipeline_frees_the_engine_it_made_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(FakeDenoiser()) as engine:
        with DenoisingPipeline("pocket", engine=engine) as pipeline:
            pass
        assert len(pipeline.generate("a", **SMALL)) == 5
    made: list[Engine] = []

    class Own(Engine):
        def __init__(self, settings: Settings | None = None) -> None:
            super().__init__(settings, load=lambda *_: FakeDenoiser())
            made.append(self)

    monkeypatch.setattr("playground.engine.pipeline.Engine", Own)
    with DenoisingPipeline("pocket") as pipeline:
        assert len(pipeline.generate("a", **SMALL)) == 5
    with pytest.raises(RequestError, match="shutting down"):
        made[0].warm("pocket")
    with pytest.raises(PipelineError, match="closed"):
        pipeline.generate("a", **SMALL)


def workers() -> list[threading.Thread]:
    """Threads of workers that are still there."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("worker-")]


def test_a_model_that_cannot_be_loaded_leaves_nothing_behind(tmp_path: Path) -> None:
    before = workers()
    with pytest.raises(PipelineError, match=r"lacks .*UNMASK_POCKET\.$"):
        DenoisingPipeline("pocket", settings=Settings(pocket=tmp_path, device="cpu", threads=1))
    for thread in workers():
        if thread not in before:
            thread.join(PATIENCE)
    assert workers() == before


def test_the_door_is_in_the_package() -> None:
    assert playground.DenoisingPipeline is DenoisingPipeline
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = playground.nothing_such


def test_the_real_model_from_prompt_to_text(pocket: PocketDenoiser) -> None:
    log = Log()
    knobs: dict[str, Any] = {"target_length": 12, "steps": 12, "block": 4, "seed": 1}
    prompt = "What is the capital of France?"
    engine = Engine(Settings(device="cpu"), on_end=log, load=lambda *_: pocket)
    try:
        pipeline = DenoisingPipeline("pocket", engine=engine)
        trace = pipeline.trace(prompt, **knobs)
        assert trace.outcome is not None
        assert trace.outcome.result is Result.FINISHED
        assert "Paris" in trace.outcome.text
        assert "\ufffd" not in trace.outcome.text
        cells = trace.canvas_at(len(trace.frames))
        assert all(cell.token_id not in (None, pocket.spec.mask_id) for cell in cells)
        ids = [cell.token_id for cell in cells if cell.token_id is not None]
        assert pocket.tokens.decode(ids[: trace.outcome.tokens]) == trace.outcome.text
        assert all(0 < (c.confidence or 1) <= 1 for f in trace.frames for c in f.changes if c.kind is Kind.COMMIT)
        assert trace.header.prompt_tokens == len(pocket.tokens.encode_prompt(prompt))
        assert trace.header.model_name == pocket.spec.name
        assert Trace.from_lines(trace.to_lines()) == trace
        # The same seed, the same trace.
        assert untimed(pipeline.trace(prompt, **knobs)) == untimed(trace)
        # Leaving early stops the run.
        for frame in pipeline.stream(prompt, **{**knobs, "target_length": 200, "steps": 200, "end_at_stop": False}):
            if frame.step == 2:
                break
        stopped, _ = log.wait(3)[-1]
        assert stopped.outcome is not None
        assert stopped.outcome.result is Result.STOPPED
        assert len(stopped.frames) < 10
    finally:
        engine.close()


@pytest.mark.parametrize("steps", [4, 12])
def test_a_corrected_run_ends_as_left_to_right_decoding(pocket: PocketDenoiser, steps: int) -> None:
    """At acceptance 1 the drafts do not matter: the text is the one committed token by token, each the base's best."""
    engine = Engine(Settings(device="cpu"), on_end=Log(), load=lambda *_: pocket)
    asked: dict[str, Any] = {"correction": "causal", "acceptance": 1, "confidence": "leftmost", "seed": 1}
    try:
        pipeline = DenoisingPipeline("pocket", engine=engine)
        trace = pipeline.trace("Why do cats purr?", target_length=12, steps=steps, block=12, **asked)
    finally:
        engine.close()
    canvas = pocket.tokens.encode_prompt("Why do cats purr?")
    prompt = len(canvas)
    context = pocket.prepare(canvas, 12)
    while len(canvas) < prompt + 12:
        at = len(canvas) - prompt
        written = canvas[prompt:]
        # The causal row behind the text so far, asked for through a stand-in at the next position.
        rows = next(iter(pocket.logits([Job(context, [*written, 17, *[16] * (11 - at)], [], [at])]))).clone()
        rows[0, [16, *((2,) if at == 0 else ())]] = -torch.inf
        canvas.append(int(rows[0].argmax()))
    assert [cell.token_id for cell in trace.canvas_at(len(trace.frames))] == canvas[prompt:]
    kinds = {change.kind for frame in trace.frames for change in frame.changes}
    # One a forward is looked at before the next is chosen: nothing has to be masked again.
    assert ({Kind.EDIT, Kind.REMASK} <= kinds) if steps < 12 else (Kind.REMASK not in kinds)

"""Traces and rows for tests: small, but with everything that a real one has."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from playground.request import GenerationRequest
from playground.runlog.rows import RunRow
from playground.trace import Candidate, Change, Frame, Guess, Header, Kind, Outcome, Result, Timings, Trace

CREATED = "2025-06-01T12:00:00.000Z"


def sample_trace(
    run_id: str = "run-1",
    prompt: str = "Write one sentence about rain.",
    frames: int = 4,
    *,
    length: int = 8,
    text: str | None = None,
    model: str = "pocket",
    model_name: str = "Pocket",
    mode: str = "diffusion",
    created: str = CREATED,
    seed: int = 7,
    result: Result | None = Result.FINISHED,
    message: str = "",
    model_seconds: float = 0.02,
    note: str = "",
    parent: str | None = None,
    **request: Any,
) -> Trace:
    """A run whose `frames` steps commit the canvas from left to right; `result = None` leaves out the outcome.

    Further keywords are settings of the request. A run that did not finish stops halfway through its canvas.
    """
    asked = GenerationRequest(
        **{"prompt": prompt, "model": model, "length": length, "steps": max(frames, 1), "block": 4, **request}
    )
    header = Header(
        run_id=run_id,
        created=created,
        model=model,
        model_name=model_name,
        request=asked.model_dump(mode="json"),
        seed=seed,
        prompt=asked.prompt,
        prompt_tokens=len(prompt.split()),
        length=length,
        blocks=tuple((start, min(start + 4, length), 2) for start in range(0, length, 4)),
        stop_ids=(2,),
        device="cpu",
        dtype="float32",
        versions={"unmask": "0.1.0", "torch": "2.9.0"},
        mode=mode,
        note=note,
        parent_run_id=parent,
        parent_step=None if parent is None else 2,
    )
    last = length if result in {Result.FINISHED, None} else length // 2
    edges = [last * step // frames for step in range(frames + 1)] if frames else [0]
    trace = Trace(header)
    for step, (start, end) in enumerate(pairwise(edges), start=1):
        trace.append(_frame(step, start, end, length, model_seconds))
    if result is not None:
        words = "".join(change.text for frame in trace.frames for change in frame.changes)
        timings = Timings(
            queue=0.01,
            prefill=0.05,
            first_canvas=0.06 + model_seconds if frames else None,
            model=frames * model_seconds,
            total=0.1 + frames * model_seconds,
        )
        said = words if text is None else text
        trace.append(Outcome(result, said, message, tokens=edges[-1], forwards=frames, timings=timings))
    return trace


def _frame(step: int, start: int, end: int, length: int, model_seconds: float) -> Frame:
    changes = [
        Change(
            position=at,
            kind=Kind.COMMIT,
            token_id=100 + at,
            text=f" word{at}",
            confidence=0.9 - at / 1000,
            alternatives=(Candidate(100 + at, f" word{at}", 0.9), Candidate(3, "\ufffd", 0.05, raw="f09f")),
        )
        for at in range(start, end)
    ]
    confidences = [change.confidence for change in changes if change.confidence is not None]
    return Frame(
        step=step,
        block=start // 4,
        nfe=step,
        masks_left=length - end,
        changes=tuple(changes),
        confidence_min=min(confidences, default=None),
        confidence_mean=sum(confidences) / len(confidences) if confidences else None,
        model_seconds=model_seconds,
        elapsed=0.1 + step * model_seconds,
        guesses=(Guess(end, " maybe", 0.25),) if end < length else (),
    )


def sample_row(run_id: str = "run-1", **columns: Any) -> RunRow:
    """A row of the run log; keywords replace its columns."""
    usual: dict[str, Any] = {
        "created": datetime(2025, 6, 1, 12, tzinfo=UTC),
        "model": "pocket",
        "model_name": "Pocket",
        "mode": "diffusion",
        "prompt": "Write one sentence about rain.",
        "text": "Rain falls.",
        "result": "finished",
        "message": "",
        "seed": 7,
        "length": 48,
        "steps": 48,
        "block": 8,
        "schedule": "even",
        "confidence": "probability",
        "threshold": 0.9,
        "entropy_bound": 0.1,
        "temperature": 0.0,
        "top_p": 1.0,
        "top_k": 0,
        "stop_rule": "never-first",
        "device": "cpu",
        "dtype": "float32",
        "tokens": 40,
        "forwards": 48,
        "queue_seconds": 0.0,
        "prefill_seconds": 0.05,
        "first_canvas_seconds": 0.1,
        "model_seconds": 1.2,
        "total_seconds": 1.5,
    }
    return RunRow(id=run_id, **{**usual, **columns})

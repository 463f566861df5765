"""Between a trace and its rows: what is stored, and how the trace is read back from it."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime
from typing import Any

from playground.runlog.problems import RunLogError
from playground.runlog.tables import Run, StoredTrace
from playground.trace import Outcome, Result, Timings, Trace, well_formed

# Stands in for an outcome that never came (the process died, or an unfinished trace was imported).
_NO_OUTCOME = Outcome(Result.STOPPED, "", "", 0, 0, Timings())


def storable(text: str) -> str:
    """`text` as every database takes it: PostgreSQL refuses NUL, and lone surrogates have no UTF-8."""
    return well_formed(text.replace("\0", ""))


def to_record(trace: Trace, visitor: str) -> Run:
    """The rows of one run; the frames go into the compressed trace alone.

    Raises:
        ValueError: the trace holds what JSON cannot, such as NaN.
    """
    header, outcome = trace.header, trace.outcome or _NO_OUTCOME
    request, timings = header.request, outcome.timings
    return Run(
        id=storable(header.run_id),
        created=_moment(header.created),
        visitor=storable(visitor),
        model=storable(header.model),
        model_name=storable(header.model_name),
        mode=storable(header.mode),
        prompt=storable(header.prompt),
        text=storable(outcome.text),
        result=outcome.result.value if trace.outcome else "",
        message=storable(outcome.message),
        seed=header.seed,
        length=header.length,
        steps=_whole(request, "steps"),
        block=_whole(request, "block"),
        schedule=_name(request, "schedule"),
        confidence=_name(request, "confidence"),
        threshold=_number(request, "threshold"),
        entropy_bound=_number(request, "entropy_bound"),
        temperature=_number(request, "temperature"),
        top_p=_number(request, "top_p"),
        top_k=_whole(request, "top_k"),
        stop_rule=_name(request, "stop_rule"),
        request=dict(request),
        versions=dict(header.versions),
        device=storable(header.device),
        dtype=storable(header.dtype),
        tokens=outcome.tokens,
        forwards=outcome.forwards if trace.outcome or not trace.frames else trace.frames[-1].nfe,
        queue_seconds=timings.queue,
        prefill_seconds=timings.prefill,
        first_canvas_seconds=timings.first_canvas,
        model_seconds=timings.model,
        total_seconds=timings.total,
        parent_run_id=None if header.parent_run_id is None else storable(header.parent_run_id),
        parent_step=header.parent_step,
        trace=_compressed(trace),
    )


def to_trace(stored: StoredTrace) -> Trace:
    """The trace as it was saved.

    Raises:
        RunLogError: the stored bytes are damaged.
        TraceError: the trace was written by a newer version of the app.
    """
    try:
        lines = zlib.decompress(stored.lines)
    except zlib.error:
        lines = b""
    if len(lines) != stored.size:
        raise RunLogError(
            f"The trace of run {stored.run_id} is damaged in the run log; delete the run and generate it again."
        )
    return Trace.from_lines(lines.decode())


def _compressed(trace: Trace) -> StoredTrace:
    lines = trace.to_lines().encode()
    return StoredTrace(run_id=storable(trace.header.run_id), lines=zlib.compress(lines), size=len(lines))


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _name(request: dict[str, Any], key: str) -> str | None:
    value = request.get(key)
    return storable(value) if isinstance(value, str) else None


def _number(request: dict[str, Any], key: str) -> float | None:
    value = request.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(request: dict[str, Any], key: str) -> int | None:
    value = request.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None

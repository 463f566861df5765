"""What a run did: header, frames, outcome; one format, JSON lines, for page, log, export and replay.

A frame holds only what changed (deltas), so `Trace.canvas_at(k)` rebuilds any step and a scrubber shows at
k exactly what was live at k. Autoregressive, speculative and remote runs emit the same frames. This module
must not know models, samplers, databases or pages; it is plain data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from playground.frames import (
    Candidate,
    Cell,
    Change,
    Event,
    Frame,
    Guess,
    Header,
    Kind,
    Outcome,
    Result,
    Timings,
)
from playground.typed import typed

__all__ = [
    "FORMAT",
    "MAX_CANVAS",
    "Candidate",
    "Cell",
    "Change",
    "Event",
    "Frame",
    "Guess",
    "Header",
    "Kind",
    "Outcome",
    "Result",
    "Timings",
    "Trace",
    "TraceError",
    "apply",
    "from_line",
    "to_line",
    "well_formed",
]

FORMAT = 1
"""Version of the JSON-lines format; readers refuse a newer one."""
MAX_CANVAS = 100_000
"""Longest canvas that is read, so that a damaged header cannot ask for all memory."""


class TraceError(ValueError):
    """Lines that are not a trace; its text is one sentence."""


@dataclass(slots=True)
class Trace:
    """A run from start to (perhaps) end. Frames are only ever appended."""

    header: Header
    frames: list[Frame] = field(default_factory=list)
    outcome: Outcome | None = None

    def canvas_at(self, k: int) -> list[Cell]:
        """The canvas after the first `k` frames; `canvas_at(0)` is all masks but for what the run started from.

        Raises:
            IndexError: k is negative or beyond the last frame.
        """
        if not 0 <= k <= len(self.frames):
            raise IndexError(f"step {k} is outside 0 to {len(self.frames)}")
        cells = [Cell()] * self.header.length
        for change in self.header.start:
            cells[change.position] = _cell(change, 0)
        for frame in self.frames[:k]:
            apply(cells, frame)
        return cells

    def append(self, event: Frame | Outcome) -> None:
        """Add the next frame, or the outcome that ends the trace."""
        if self.outcome is not None:
            raise TraceError("This trace has already ended.")
        if isinstance(event, Outcome):
            self.outcome = event
        else:
            self.frames.append(event)

    def events(self) -> Iterator[Event]:
        """Header, frames and, once there is one, the outcome."""
        yield self.header
        yield from self.frames
        if self.outcome is not None:
            yield self.outcome

    def to_lines(self) -> str:
        """The trace as JSON lines, each ended by a newline."""
        return "".join(to_line(event) for event in self.events())

    @classmethod
    def from_lines(cls, lines: str | Iterable[str]) -> Trace:
        """Read JSON lines back; `Trace.from_lines(t.to_lines())` equals t.

        Raises:
            TraceError: the lines are not a trace of a format this version reads.
        """
        trace: Trace | None = None
        # splitlines() would also cut at U+2028 and friends, which JSON strings may hold.
        for line in lines.split("\n") if isinstance(lines, str) else lines:
            if not line.strip():
                continue
            event = from_line(line)
            if trace is None:
                if not isinstance(event, Header):
                    raise TraceError("A trace starts with its header line; this one does not.")
                trace = cls(event)
            elif isinstance(event, Header):
                raise TraceError("A trace has one header line; this one has two.")
            else:
                trace.append(event)
        if trace is None:
            raise TraceError("There is no trace in this text: it is empty.")
        _check_positions(trace)
        return trace


def apply(cells: list[Cell], frame: Frame) -> None:
    """Carry out a frame's changes on `cells`, in order and in place."""
    for change in frame.changes:
        at = change.position
        if change.kind is Kind.DELETE:
            del cells[at]
            continue
        cell = _cell(change, frame.step)
        if change.kind is Kind.INSERT:
            cells.insert(at, cell)
        else:
            cells[at] = cell


def _cell(change: Change, step: int) -> Cell:
    return Cell(change.token_id, change.text, change.raw, change.confidence, step, change.kind)


def _check_positions(trace: Trace) -> None:
    """Refuse a trace that changes what is not on its canvas, so that every step of it can be rebuilt."""
    size = trace.header.length
    given = [change.position for change in trace.header.start]
    if not all(0 <= at < size for at in (*given, *trace.header.pinned)):
        raise TraceError("This trace starts from what is outside its canvas; export the run again.")
    for frame in trace.frames:
        for change in frame.changes:
            size += change.kind is Kind.INSERT
            if not 0 <= change.position < size:
                raise TraceError("This trace changes a position outside its canvas; export the run again.")
            size -= change.kind is Kind.DELETE


# --- JSON lines ---------------------------------------------------------------------------------

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """`text` with U+FFFD for each half of a pair, which has no UTF-8; a model elsewhere may send one."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def to_line(event: Event) -> str:
    """One event as one JSON line. Line and paragraph separators are escaped, so lines stay lines."""
    if isinstance(event, Header):
        body: dict[str, Any] = {"type": "header", "format": FORMAT, **asdict(event)}
        body["start"] = [_change_body(change) for change in event.start]
    elif isinstance(event, Frame):
        body = _frame_body(event)
    else:
        body = {"type": "outcome", **asdict(event)}
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return well_formed(text).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085") + "\n"


def from_line(line: str) -> Event:
    """Read one line written by `to_line`.

    Raises:
        TraceError: not JSON, not a known event, or of a newer format.
    """
    try:
        body = json.loads(line, parse_constant=int)  # int() refuses NaN and Infinity
        kind = body.pop("type")
        if kind == "header":
            return _header_from(body)
        if kind == "frame":
            return _frame_from(body)
        if kind == "outcome":
            timings = typed(Timings(**body["timings"]))
            return typed(Outcome(**{**body, "result": Result(body["result"]), "timings": timings}))
    except TraceError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise TraceError(f"This line is not part of a trace: {line[:60]!r}; export the run again.") from None
    raise TraceError(f"This line has an unknown type {str(kind)[:40]!r}; update the app.")


def _frame_body(frame: Frame) -> dict[str, Any]:
    """A frame as JSON; candidates and guesses are short arrays, since there are many of them."""
    return {
        "type": "frame",
        "step": frame.step,
        "block": frame.block,
        "nfe": frame.nfe,
        "masks_left": frame.masks_left,
        "confidence_min": frame.confidence_min,
        "confidence_mean": frame.confidence_mean,
        "model_seconds": frame.model_seconds,
        "elapsed": frame.elapsed,
        "batch": frame.batch,
        "changes": [_change_body(change) for change in frame.changes],
        "guesses": [_guess_body(guess) for guess in frame.guesses],
        **({} if frame.entropy_left is None else {"entropy_left": frame.entropy_left}),
    }


def _guess_body(guess: Guess) -> list[Any]:
    body: list[Any] = [guess.position, guess.text, guess.probability]
    return [*body, [_candidate_body(c) for c in guess.alternatives]] if guess.alternatives else body


def _change_body(change: Change) -> dict[str, Any]:
    others = [_candidate_body(candidate) for candidate in change.alternatives]
    return {
        "position": change.position,
        "kind": change.kind.value,
        "token_id": change.token_id,
        "text": change.text,
        **({} if change.confidence is None else {"confidence": change.confidence}),
        **({} if change.raw is None else {"raw": change.raw}),
        **({"alternatives": others} if others else {}),
    }


def _candidate_body(candidate: Candidate) -> list[Any]:
    body: list[Any] = [candidate.token_id, candidate.text, candidate.probability]
    return body if candidate.raw is None else [*body, candidate.raw]


def _header_from(body: dict[str, Any]) -> Header:
    version = body.pop("format")
    if type(version) is not int or version < 1:
        raise ValueError("no format")
    if version > FORMAT:
        raise TraceError(f"This trace has format {version}; this version reads up to {FORMAT}: update the app.")
    blocks = tuple((start, end, steps) for start, end, steps in body.pop("blocks"))
    stop_ids, stop_texts = tuple(body.pop("stop_ids")), tuple(body.pop("stop_texts", ()))
    start, pinned = tuple(_change_from(c) for c in body.pop("start", ())), tuple(body.pop("pinned", ()))
    header = typed(Header(**body, blocks=blocks, stop_ids=stop_ids, stop_texts=stop_texts, start=start, pinned=pinned))
    if not 0 <= header.length <= MAX_CANVAS:
        raise ValueError("no such canvas")
    if any(type(number) is not int for number in (*header.stop_ids, *sum(blocks, ()), *header.pinned)):
        raise TypeError("not whole numbers")
    if not all(isinstance(text, str) for text in stop_texts):
        raise TypeError("not texts")
    return header


def _frame_from(body: dict[str, Any]) -> Frame:
    changes = tuple(_change_from(c) for c in body.pop("changes"))
    guesses = tuple(
        typed(Guess(position, text, probability, tuple(typed(Candidate(*a)) for a in next(iter(others), ()))))
        for position, text, probability, *others in body.pop("guesses")
    )
    return typed(Frame(changes=changes, guesses=guesses, **body))


def _change_from(body: dict[str, Any]) -> Change:
    return typed(
        Change(
            position=body["position"],
            kind=Kind(body["kind"]),
            token_id=body["token_id"],
            text=body["text"],
            confidence=body.get("confidence"),
            raw=body.get("raw"),
            alternatives=tuple(typed(Candidate(*a)) for a in body.get("alternatives", ())),
        )
    )

"""JSON that holds to a schema: a skeleton whose lengths and choices are found, and whose values are filled together.

From left to right, each choice is made by reading its options in place, and each slot is filled at several lengths with
tokens that are legal there; the length whose text scores best stays (all of these are drafts). Then the whole skeleton,
with every slot masked, is one run. The result is validated; slots that fail are masked again, alone, a few times, as
branches of that run; what still fails is reported. Valid is not right: nothing here says whether a value is true. Must
not know pages.
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from playground.engine.engine import Engine, QueueFullError
from playground.engine.filling import CANDIDATE_TEMPERATURE, Progress, blank_texts, score_of
from playground.engine.run import Run
from playground.infill.checking import Check
from playground.infill.scaffold import Choice, Piece, Skeleton, Slot, skeleton_of
from playground.request import MAX_SEED, RequestError, parse_request
from playground.trace import Result, Trace

LENGTHS: Mapping[str, tuple[int, ...]] = {
    "string": (1, 2, 3, 4, 6, 8, 12),
    "whole": (1, 2, 3, 4),
    "fraction": (1, 2),
}
"""Tokens that are tried in a slot of each kind."""
ROUNDS = 3
"""Times that failing slots are masked again."""
DEFAULTS: Mapping[str, Any] = {
    "schedule": "even",
    "confidence": "leftmost",
    "block": 0,
    "correction": "none",
    "stop_rule": "off",
    "seed": 0,
}
STOPPED = "It was stopped before it was whole."


@dataclass(slots=True)
class SlotReport:
    """One slot or choice: what stands there, what was compared (option or length, score), and how often it was masked
    again."""

    path: str
    kind: str
    text: str = ""
    length: int = 0
    compared: list[tuple[str, float]] = field(default_factory=list)
    again: int = 0
    slot: Slot | None = None

    def blank(self, length: int | None = None) -> dict[str, Any]:
        """The slot, masked."""
        assert self.slot is not None
        names = {"whole": ("low", "high"), "string": ("high",)}.get(self.kind, ())
        bounds = {name: bound for name in names if (bound := getattr(self.slot, name)) is not None}
        return {"blank": self.length if length is None else length, "allow": self.kind, **bounds}

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths in tokens that are worth trying."""
        assert self.slot is not None
        low, high = self.slot.low, self.slot.high
        if self.kind == "whole" and (low is not None or high is not None):
            least = len(str(low or 0))  # one digit a position
            return tuple(range(least, (least + 3 if high is None else min(len(str(high)), least + 20)) + 1))
        # A token is a character at least, so as many tokens as characters are wanted will always do.
        wanted = {*LENGTHS[self.kind], *([low] if low else [])}
        return tuple(sorted(length for length in wanted if high is None or length <= high))


@dataclass(frozen=True, slots=True)
class Structured:
    """The JSON text, its value, whether the schema holds and if not why, what was filled, and the run that ended it."""

    text: str
    value: Any
    valid: bool
    problems: tuple[str, ...]
    slots: tuple[SlotReport, ...]
    trace: Trace | None


class StructuredFilling:
    """The filling of one schema; iterate over it to have it done, then read `result`.

    Args:
        engine: runs the tries.
        schema: a JSON Schema (draft 2020-12 where it names none), or a list of tools in OpenAI's shape.
        values: request fields, the prompt among them.
        visitor: whose runs these are.

    Attributes:
        kept: the runs of the whole skeleton that stay, in order; each a branch of the one before. These are logged.
        result: what came of it.

    Raises:
        SchemaError: the schema cannot be made into a skeleton.
        RequestError: the request is refused, or the model cannot read from left to right.
    """

    def __init__(self, engine: Engine, schema: object, values: Mapping[str, Any], *, visitor: str = "") -> None:
        self._engine, self._visitor = engine, visitor
        self._values = {**DEFAULTS, **values}
        self._check = Check(schema)
        self._left: list[Piece] = list(skeleton_of(self._check.schema))[::-1]
        self._pieces: list[str | SlotReport] = []
        self._reports: list[SlotReport] = []
        self._trace: Trace | None = None
        self._cut = ""  # why it ended early; empty while it has not
        self._runs: list[Run] = []
        self.kept: list[Trace] = []
        self.result: Structured | None = None
        model = str(self._values.get("model", "pocket"))
        status, denoiser = engine.ready(model), engine.denoiser(model)
        if denoiser is None:
            raise RequestError(status.message or "The model could not be loaded.")
        if not denoiser.spec.causal_check:
            raise RequestError(f"{denoiser.spec.name} cannot compare values, for it cannot read from left to right.")
        self._request([{"text": "{"}, {"blank": 1}], {})  # what is wrong with it is wrong with every try

    def __iter__(self) -> Iterator[Progress]:
        while self._left and not self._cut:
            piece = self._left.pop()
            if isinstance(piece, str):
                self._pieces.append(piece)
            elif isinstance(piece, Slot):
                yield from self._measure(piece)
            else:
                yield from self._choose(piece)
        if not self._cut:
            yield from self._together()
        for turn in range(1, ROUNDS + 1):
            for report in [] if self._cut else self._failing():
                yield from self._again(report, turn)
        self.result = self._concluded()

    def cancel(self) -> None:
        """Stop; what there is is kept, and is no whole text."""
        self._cut = STOPPED
        for run in self._runs:
            run.cancel()

    # --- slots and choices ----------------------------------------------------------------------

    def _measure(self, slot: Slot) -> Iterator[Progress]:
        """Find a slot's length by drafts."""
        report = SlotReport(slot.path, slot.kind, slot=slot)
        tries = [(length, [report.blank(length), *_texts(self._following())]) for length in report.lengths]
        best = -math.inf
        for length, run in (yield from self._draft(tries, f"trying lengths of {slot.path}")):
            report.compared.append((str(length), score_of(run)))
            if score_of(run) > best:
                best, report.length = score_of(run), length
                report.text = _filled(run, [length])[0]
        self._pieces.append(report)
        self._reports.append(report)

    def _choose(self, choice: Choice) -> Iterator[Progress]:
        """Read each option where it would stand; the likelier a token, the better."""
        report = SlotReport(choice.path, "choice")
        behind, before = self._following(), "".join(map(_shown, self._pieces))
        # A space belongs to the token behind it; cut off from it, every option would be a surprise.
        space = before[len(before.rstrip(" ")) :]
        start = _texts(before.removesuffix(space))
        tries = [
            (number, [*start, {"text": space + (_leading(option) or behind[:1] or " "), "pinned": False}])
            for number, option in enumerate(choice.options)
        ]
        best, kept = -math.inf, 0
        for number, run in (yield from self._draft(tries, f"choosing {choice.path}", whole=True)):
            report.compared.append((choice.shown[number], score_of(run)))
            if score_of(run) > best:
                best, kept = score_of(run), number
        report.text = choice.shown[kept]
        self._reports.append(report)
        self._left += list(choice.options[kept])[::-1]

    def _together(self) -> Iterator[Progress]:
        """Every slot masked on the whole skeleton."""
        slots = self._slots()
        start = _parts(piece if isinstance(piece, str) else piece.blank() for piece in self._pieces)
        if not slots:
            start = [{**part, "pinned": False} for part in start]  # nothing is open; it is read through
        run = yield from self._submitted(self._request(start, {}), "filling all values", logged=True)
        self._take(run, slots)
        self.kept += [run.trace] if run.trace else []

    def _again(self, report: SlotReport, turn: int) -> Iterator[Progress]:
        """Mask one slot and fill it anew at each length, everything else as it stands; the best that passes is kept."""
        parent = {} if self._trace is None else {"parent_run_id": self._trace.header.run_id}
        changes: dict[str, Any] = {"temperature": CANDIDATE_TEMPERATURE, "seed": self._seed(turn), **parent}
        if self._trace is not None:
            changes["parent_step"] = len(self._trace.frames)
        tries = []
        for length in report.lengths:
            pieces = [
                piece if isinstance(piece, str) else report.blank(length) if piece is report else piece.text
                for piece in self._pieces
            ]
            tries.append((length, _parts(pieces)))
        ended = yield from self._draft(tries, f"filling {report.path} again", changes, whole=True)
        before = report.length, report.text
        for length, run in sorted(ended, key=lambda pair: -score_of(pair[1])):
            report.length, report.again = length, turn
            self._take(run, [report])
            if report not in self._failing():
                self._engine.keep(run)
                self.kept += [run.trace] if run.trace else []
                return
        report.length, report.text = before

    def _take(self, run: Run, slots: list[SlotReport]) -> None:
        """What the run put into these slots."""
        if run.trace is None or run.trace.outcome is None:
            return
        self._trace = run.trace
        if run.trace.outcome.result is not Result.FINISHED:
            self._cut_short(run.trace.outcome.message)
            return
        for report, text in zip(slots, _filled(run, [report.length for report in slots]), strict=True):
            report.text = text

    def _slots(self) -> list[SlotReport]:
        return [piece for piece in self._pieces if isinstance(piece, SlotReport)]

    def _following(self) -> str:
        """The locked text behind the piece at work."""
        last = self._left[-1] if self._left else ""
        return last if isinstance(last, str) else ""

    # --- runs -----------------------------------------------------------------------------------

    def _draft(
        self,
        tries: list[tuple[int, list[dict[str, Any]]]],
        doing: str,
        changes: Mapping[str, Any] | None = None,
        *,
        whole: bool = False,
    ) -> Generator[Progress, None, list[tuple[int, Run]]]:
        """Run these continuations of the text so far (or these whole texts); gives those that finished."""
        text = [] if whole else _texts("".join(map(_shown, self._pieces)))
        left, active, ended = list(tries), list[tuple[int, Run]](), list[tuple[int, Run]]()
        failed = ""
        while (left or active) and not self._cut:
            while left:
                try:
                    request = self._request([*text, *left[0][1]], changes or {})
                    run = self._engine.submit(request, self._visitor, logged=False)
                except QueueFullError:
                    if not active:
                        raise
                    break  # the queue is full of our own
                except RequestError as error:
                    failed = str(error)
                    left.pop(0)
                    continue
                self._runs.append(run)
                active.append((left.pop(0)[0], run))
            if not active:
                break
            name, run = active.pop(0)
            yield Progress(run, [], doing)
            run.wait()
            outcome = run.trace.outcome if run.trace else None
            if outcome is not None and outcome.result is Result.FINISHED:
                ended.append((name, run))
            elif outcome is not None and outcome.result is Result.FAILED:
                failed = outcome.message  # one that is too long for the canvas, say; a shorter one may do
            else:
                self._cut = STOPPED
        self._runs = []
        if not ended and not self._cut:
            self._cut_short(failed)
        return ended

    def _cut_short(self, message: str) -> None:
        """End here, keeping what there is.

        Raises:
            RequestError: there is nothing to keep.
        """
        if not self._reports:
            raise RequestError(message or STOPPED)
        self._cut = message or STOPPED

    def _submitted(self, request: Any, doing: str, *, logged: bool) -> Generator[Progress, None, Run]:
        run = self._engine.submit(request, self._visitor, logged=logged)
        self._runs = [run]
        yield Progress(run, [], doing)
        run.wait()
        return run

    def _request(self, start: list[dict[str, Any]], changes: Mapping[str, Any]) -> Any:
        blanks = sum(part.get("blank", 0) for part in start)
        steps = max(1, min(blanks, self._engine.settings.limits["steps"]))
        return parse_request(
            {"steps": steps, "seed": self._seed(0), **self._values, **changes, "start": start, "scored": True},
            self._engine.settings.limits,
        )

    def _seed(self, turn: int) -> int:
        seed = self._values.get("seed")
        return (int(seed or 0) + turn) % (MAX_SEED + 1) if isinstance(seed, int) or seed is None else seed

    # --- checking -------------------------------------------------------------------------------

    def _text(self) -> str:
        return "".join(map(_shown, self._pieces))

    def _failing(self) -> list[SlotReport]:
        """Slots that the schema is not content with."""
        wrong = self._check.wrong(self._text())
        return [report for report in self._slots() if report.path in wrong]

    def _concluded(self) -> Structured:
        text, slots = self._text(), tuple(self._reports)
        if self._cut or self._left:
            return Structured(text, None, False, (self._cut or STOPPED,), slots, self._trace)
        problems = tuple(self._check.problems(text))
        return Structured(text, json.loads(text), not problems, problems, slots, self._trace)


def _shown(piece: str | SlotReport) -> str:
    return piece if isinstance(piece, str) else piece.text


def _texts(text: str) -> list[dict[str, Any]]:
    return [{"text": text}] if text else []


def _parts(pieces: Iterable[str | dict[str, Any]]) -> list[dict[str, Any]]:
    """Texts and blanks as a start; neighbouring texts as one, for so they are cut into tokens as they are read."""
    parts: list[dict[str, Any]] = []
    for piece in pieces:
        if not isinstance(piece, str):
            parts.append(piece)
        elif parts and "text" in parts[-1]:
            parts[-1] = {"text": parts[-1]["text"] + piece}
        elif piece:
            parts.append({"text": piece})
    return parts


def _leading(option: Skeleton) -> str:
    """The locked text an option begins with, choices inside it by their first option."""
    for piece in option:
        if isinstance(piece, str):
            return piece
        if isinstance(piece, Choice):
            return _leading(piece.options[0])
        return "1"  # a number without a sign
    return ""


def _filled(run: Run, lengths: list[int]) -> tuple[str, ...]:
    assert run.trace is not None
    return blank_texts(run.trace, lengths)


__all__ = ["SlotReport", "Structured", "StructuredFilling"]

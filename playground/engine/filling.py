"""Filling a template: which lengths its blanks get, several candidates, the best one kept.

Each try is a run of its own with its own trace, and the engine's batches carry them together. What they are compared
by is `Outcome.score`: log probability a token, of the text from the first blank on, for a left-to-right reader of the
same model. Where a model has none, the mean log probability that the tokens were committed with. Must not know pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from playground.engine.engine import Engine, QueueFullError
from playground.engine.run import Run
from playground.infill.markup import Blank, Template
from playground.request import MAX_SEED, GenerationRequest, RequestError, parse_request
from playground.trace import Kind, Result, Trace

INSTRUCTION = "Write a short text."
"""What the model is asked where nobody says."""
DEFAULTS: Mapping[str, Any] = {
    "prompt": INSTRUCTION,
    "schedule": "even",
    "confidence": "probability",
    "block": 0,
    "correction": "rescore",
    "candidates": 16,
    "stop_rule": "off",
}
CANDIDATE_TEMPERATURE = 1.0
"""Of all candidates but the first, where the request's own is 0 and would give the same text each time."""


@dataclass(frozen=True, slots=True)
class Filled:
    """One try that has ended: the whole text, what stands in each blank, its lengths in tokens, its score and its
    trace.

    `score` is minus infinity for a try that did not finish.
    """

    text: str
    blanks: tuple[str, ...]
    lengths: tuple[int, ...]
    score: float
    trace: Trace
    draft: bool = False
    """Only there to find a length; neither rescored nor logged."""

    @property
    def failed(self) -> str:
        """Why it did not finish; "" where it did."""
        outcome = self.trace.outcome
        return "" if outcome is None or outcome.result is Result.FINISHED else outcome.message


@dataclass(slots=True)
class Progress:
    """What there is so far: the run to watch, tries that have ended (in order), and what is being done."""

    run: Run
    tries: list[Filled] = field(default_factory=list)
    doing: str = ""


class Filling:
    """The filling of one template; iterate over it to have it done.

    Args:
        engine: runs the tries.
        template: text and blanks.
        values: request fields; those of `DEFAULTS` where left out.
        keep: candidates wanted, the best first.
        visitor: whose runs these are.

    Raises:
        RequestError: the request is refused.
    """

    def __init__(
        self, engine: Engine, template: Template, values: Mapping[str, Any], *, keep: int = 1, visitor: str = ""
    ) -> None:
        self._engine, self._template, self._visitor = engine, template, visitor
        self._values = {**DEFAULTS, **values}
        self._keep = keep
        self._runs: list[Run] = []
        self.tries: list[Filled] = []
        self._stopped = False
        self.lengths = [blank.lengths[len(blank.lengths) // 2] for blank in template.blanks]
        self._denoiser_reads = self._reads()
        self._request(self.lengths, 0)  # what is wrong with it is wrong with every try

    def __iter__(self) -> Iterator[Progress]:
        for number, blank in enumerate(self._template.blanks):
            if not blank.fixed and not self._stopped:
                yield from self._find_length(number, blank)
        if self._stopped and self.tries:
            self._keep_draft()
            return
        doing = f"filling, {self._keep} candidates" if self._keep > 1 else "filling"
        yield from self._try([(self.lengths, turn) for turn in range(self._keep)], doing)
        if self.best.draft:
            self._keep_draft()

    @property
    def template(self) -> Template:
        """Text and blanks."""
        return self._template

    @property
    def best(self) -> Filled:
        """The best try with the lengths that were found."""
        return self.candidates[0]

    @property
    def candidates(self) -> list[Filled]:
        """Tries with the lengths that were found, each text once, best first, as many as were wanted.

        Drafts are among them only if nothing else came to its end.
        """
        mine = [found for found in self.tries if list(found.lengths) == self.lengths]
        mine = [found for found in mine if not found.draft and not found.failed] or mine
        best_of: dict[str, Filled] = {}
        for found in sorted(mine, key=lambda found: -found.score):
            best_of.setdefault(found.text, found)
        return list(best_of.values())[: self._keep]

    def cancel(self) -> None:
        """Stop what is under way and begin nothing more; what has ended is kept."""
        self._stopped = True
        for run in self._runs:
            run.cancel()

    def _keep_draft(self) -> None:
        """It was stopped: the best draft is what there is."""
        self.lengths = list(max(self.tries, key=lambda tried: tried.score).lengths)
        self._engine.keep(self._runs[self.tries.index(self.best)])

    # --- tries ----------------------------------------------------------------------------------

    def _find_length(self, number: int, blank: Blank) -> Iterator[Progress]:
        """Try a blank's lengths, the other blanks as they stand, and settle on the one whose text scores best."""
        wanted = [[*self.lengths[:number], length, *self.lengths[number + 1 :]] for length in blank.lengths]
        first = len(self.tries)
        # Drafts will do: rescoring each length would take many times as long.
        doing = f"trying lengths of blank {number + 1}"
        yield from self._try([(lengths, 0) for lengths in wanted], doing, {"correction": "none"}, logged=False)
        found = self.tries[first:]
        if found:
            self.lengths = list(max(found, key=lambda tried: tried.score).lengths)

    def _try(
        self,
        wanted: Sequence[tuple[list[int], int]],
        doing: str,
        changes: Mapping[str, Any] | None = None,
        *,
        logged: bool = True,
    ) -> Iterator[Progress]:
        """Run these tries, as many at once as the engine gives places."""
        left = list(wanted)
        active: list[tuple[Run, list[int]]] = []
        while left or active:
            while left:
                try:
                    run = self._engine.submit(self._request(*left[0], changes), self._visitor, logged=logged)
                except QueueFullError:
                    if not active:
                        raise
                    break
                self._runs.append(run)
                active.append((run, left.pop(0)[0]))
            run, lengths = active[0]
            yield Progress(run, self.tries, doing)
            run.wait()
            active.pop(0)
            self.tries.append(filled(run, self._template, lengths, draft=not logged))
            if run.cancelled.is_set():
                left = []
        if self._runs:
            yield Progress(self._runs[-1], self.tries, doing)

    def _request(
        self, lengths: Sequence[int], turn: int, changes: Mapping[str, Any] | None = None
    ) -> GenerationRequest:
        values = {"steps": max(1, min(sum(lengths), self._engine.settings.limits["steps"])), **self._values}
        if turn and not values.get("temperature"):
            # Rescored, all would end as the same text.
            values |= {"temperature": CANDIDATE_TEMPERATURE, "correction": "none"}
        values |= changes or {}
        if values.get("seed") is not None:
            values["seed"] = (int(values["seed"]) + turn) % (MAX_SEED + 1)
        sizes = iter(lengths)
        values["start"] = [
            {"text": piece} if isinstance(piece, str) else {"blank": next(sizes)} for piece in self._template.pieces
        ]
        values["scored"] = self._denoiser_reads
        if not self._denoiser_reads and values["correction"] != "none":
            values["correction"] = "none"
        return parse_request(values, self._engine.settings.limits)

    def _reads(self) -> bool:
        """Whether the model can read a text from left to right; waits for it to load."""
        model = str(self._values.get("model", "pocket"))
        status = self._engine.ready(model)
        denoiser = self._engine.denoiser(model)
        if denoiser is None:
            raise RequestError(status.message or "The model could not be loaded.")
        return denoiser.spec.causal_check


def filled(run: Run, template: Template, lengths: Sequence[int], *, draft: bool = False) -> Filled:
    """What an ended run put into the blanks."""
    trace = run.trace
    assert trace is not None
    texts = blank_texts(trace, lengths)
    return Filled(template.filled(texts), texts, tuple(lengths), _score(trace), trace, draft)


def blank_texts(trace: Trace, lengths: Sequence[int]) -> tuple[str, ...]:
    """What stands in each blank of a trace that started from the template; masks are left out."""
    cells = trace.canvas_at(len(trace.frames))
    given = {change.position for change in trace.header.start}
    open_places = [at for at in range(len(cells)) if at not in given]
    texts, at = [], 0
    for length in lengths:
        raw = b""
        for place in open_places[at : at + length]:
            cell = cells[place]
            if cell.token_id in trace.header.stop_ids:
                break
            raw += bytes.fromhex(cell.raw) if cell.raw is not None else cell.text.encode()
        texts.append(raw.decode("utf-8", "replace"))
        at += length
    return tuple(texts)


def score_of(run: Run) -> float:
    """What tries are compared by; see the module. Minus infinity for one that did not finish."""
    return -math.inf if run.trace is None else _score(run.trace)


def _score(trace: Trace) -> float:
    outcome = trace.outcome
    if outcome is None or outcome.result is not Result.FINISHED:
        return -math.inf
    if outcome.score is not None:
        return outcome.score
    sure = [
        change.confidence
        for frame in trace.frames
        for change in frame.changes
        if change.kind is Kind.COMMIT and change.confidence is not None
    ]
    return sum(math.log(max(p, 1e-9)) for p in sure) / len(sure) if sure else 0.0

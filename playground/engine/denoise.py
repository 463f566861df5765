"""The denoising loop of one canvas: a sampler's steps become frames with text and times.

A `Lane` is a run on the device. It says what it needs for the next forward (`job`), takes the logits
(`take`) and ends with an outcome (`end`); who calls it, and with how many neighbours, is the worker's business.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from playground.denoisers.base import Denoiser, Job, Rescoring, Tokens
from playground.engine.run import Run
from playground.engine.start import StartCanvas, given, guard_of, newline_ids
from playground.request import Correction
from playground.sampling.commits import Commit, Step
from playground.sampling.rescoring import Rescorer
from playground.sampling.sampler import ALTERNATIVES, Sampler
from playground.trace import Candidate, Change, Frame, Guess, Header, Kind, Outcome, Result, Timings

GUESS_CHANGE = 0.1
"""A guess is sent again when its token changes or its probability moves by this much."""
GAP = " … "
"""Stands for masks in the text of a run that was stopped."""


class Lane:
    """One run under way; see the module. Creating it runs the prompt (`prepare`).

    Args:
        run: the request and its readers.
        denoiser: the loaded model.
        prompt_ids: the prompt in its template.
        start: what stands on the canvas at first.
    """

    def __init__(self, run: Run, denoiser: Denoiser, prompt_ids: Sequence[int], start: StartCanvas) -> None:
        self.run = run
        self.started_at = time.monotonic()
        self._tokens, self._spec = denoiser.tokens, denoiser.spec
        request, spec = run.request, denoiser.spec
        self._enders = newline_ids(denoiser.tokens, spec.vocabulary) if request.one_line else frozenset()
        self._sampler = Sampler(
            request,
            mask_id=spec.mask_id,
            stop_ids=spec.stop_ids,
            seed=run.seed,
            device=denoiser.device,
            start=start.ids,
            pinned=start.pinned,
            guard=guard_of(request, start, spec, denoiser.tokens),
            enders=self._enders,
        )
        self.given = given(start, spec.mask_id, denoiser.tokens) if request.start else ()
        self.given += tuple(self._forced(at, token) for at, token in self._sampler.forced_at_start)
        self._blanks = [at for at, token in enumerate(start.ids) if token == spec.mask_id]
        self._open = [at for at in range(len(start.ids)) if at not in start.pinned]
        self._kept = frozenset(at for at, token in enumerate(start.ids) if token != spec.mask_id)
        self._reader = denoiser if isinstance(denoiser, Rescoring) else None
        self._rescorer: Rescorer | None = None
        self._score: float | None = None
        self._context = denoiser.prepare(prompt_ids, len(start.ids))
        self._prefill = time.monotonic() - self.started_at
        self._nfe = self._frames = 0
        self._model_seconds = self._reading_seconds = 0.0
        self._first_canvas: float | None = None
        self._guesses: dict[int, tuple[int, float]] = {}

    @property
    def done(self) -> bool:
        """Nothing is left to denoise, nor to be read through."""
        return self._filled and not self._unread

    @property
    def _filled(self) -> bool:
        return self._sampler.done and (self._rescorer is None or self._rescorer.done)

    @property
    def _unread(self) -> bool:
        """The text is to be scored and has not been."""
        return self.run.request.scored and self._reader is not None and bool(self._open) and self._score is None

    @property
    def length(self) -> int:
        """Positions on the canvas."""
        return len(self._sampler.canvas)

    @property
    def blocks(self) -> tuple[tuple[int, int, int], ...]:
        """The plan, as the header states it."""
        return tuple((b.start, b.end, b.steps) for b in self._sampler.blocks)

    @property
    def overdue(self) -> bool:
        """The request's own deadline has passed, counted from the start on the device."""
        deadline = self.run.request.deadline
        waited = self.run.paused_seconds
        return deadline is not None and time.monotonic() - self.started_at - waited > deadline

    def job(self) -> Job:
        """This canvas's part of the next forward."""
        if self._filled:  # there was no mask; only the reading is left
            return Job(self._context, self._sampler.canvas, [], self._open[:1])
        if self._rescorer is not None:
            canvas, at = list(self._sampler.canvas), self._rescorer.position
            canvas[at] = self._sampler.mask_id
            return Job(self._context, canvas, [at])
        return Job(self._context, self._sampler.canvas, self._sampler.wanted(), self._sampler.checked())

    @torch.inference_mode()
    def take(self, logits: Tensor) -> Step:
        """Let the sampler commit. Raises `SamplerError` for logits that are not numbers."""
        nothing = Step(len(self.blocks) - 1, (), (), (), 0)
        step = nothing if self._filled else self._taken(logits)
        if self._filled and self._unread:
            self._score = self._read_through()
            return replace(step, forwards=step.forwards + 1)
        return step

    def _taken(self, logits: Tensor) -> Step:
        if self._rescorer is not None:
            return self._rescored(self._rescorer, logits)
        wanted = len(self._sampler.wanted())
        step = self._sampler.step(logits[:wanted], logits[wanted:])
        if self._sampler.done and self.run.request.correction is Correction.RESCORE:
            sampler = self._sampler
            places = [at for at in self._blanks if at < self._end()]
            self._rescorer = Rescorer(sampler.canvas, places, self.run.request.candidates, sampler.refuses)
        return step

    def _rescored(self, rescorer: Rescorer, logits: Tensor) -> Step:
        """Try the best candidates at one position; the reading of the texts is a forward of its own."""
        assert self._reader is not None
        canvas, at = self._sampler.canvas, rescorer.position
        self._sampler.ban(logits, [at])
        logits[:, list(self._sampler.stop_ids)] = -torch.inf  # how long the text is was settled with the draft
        tokens = rescorer.propose(logits[0])
        began = time.perf_counter()
        scores = self._reader.rescore(self._context, canvas[: self._end()], at, tokens)
        self._reading_seconds += time.perf_counter() - began
        edit = rescorer.decide(scores, ALTERNATIVES)
        return Step(len(self.blocks) - 1, (), (), (), 0, () if edit is None else (edit,), (), forwards=2)

    def _end(self) -> int:
        """Positions up to and with the first stop id."""
        canvas = self._sampler.canvas
        return next((at + 1 for at, token in enumerate(canvas) if token in self._sampler.stop_ids), len(canvas))

    def _read_through(self) -> float:
        """See `Outcome.score`; a forward."""
        assert self._reader is not None
        canvas, first = self._sampler.canvas[: self._end()], self._open[0]
        if first >= len(canvas):
            return 0.0
        began = time.perf_counter()
        (total,) = self._reader.rescore(self._context, canvas, first, [canvas[first]]).tolist()
        self._reading_seconds += time.perf_counter() - began
        return float(round(total / (len(canvas) - first), 4))

    def publish(self, step: Step, forward_seconds: float, batch: int) -> None:
        """Turn a step into the next frame, for everyone who watches."""
        self._nfe += step.forwards
        self._frames += 1
        forward_seconds, self._reading_seconds = forward_seconds + self._reading_seconds, 0.0
        self._model_seconds += forward_seconds
        frame = self._frame(step, forward_seconds, batch)
        if self._first_canvas is None:
            self._first_canvas = time.monotonic() - self.run.submitted_at
        self.run.append(frame)

    def end(self, result: Result, message: str, *, textless: bool = False) -> None:
        """Close the trace with what there is; `textless` where its text cannot be made."""
        text, useful = ("", 0) if textless else self._text()
        now = time.monotonic()
        timings = Timings(
            queue=round(self.started_at - self.run.submitted_at, 6),
            prefill=round(self._prefill, 6),
            first_canvas=None if self._first_canvas is None else round(self._first_canvas, 6),
            model=round(self._model_seconds, 6),
            total=round(now - self.run.submitted_at, 6),
        )
        self.run.append(Outcome(result, text, message, useful, self._nfe, timings, self._score))

    def _text(self) -> tuple[str, int]:
        sampler, tokens = self._sampler, self._tokens
        return text_of(sampler.canvas, sampler.mask_id, sampler.stop_ids, tokens, self._kept, enders=self._enders)

    # --- frames ---------------------------------------------------------------------------------

    def _frame(self, step: Step, forward_seconds: float, batch: int) -> Frame:
        confidences = [commit.confidence for commit in (*step.edits, *step.commits)]
        changes = [self._commit(edit, Kind.EDIT) for edit in step.edits]
        changes += [Change(position, Kind.REMASK, None, "") for position in step.remasked]
        changes += [self._commit(commit, Kind.COMMIT) for commit in step.commits]
        changes += [self._forced(position, token) for position, token in step.forced]
        return Frame(
            step=self._frames,
            block=step.block,
            nfe=self._nfe,
            masks_left=step.masks_left,
            changes=tuple(changes),
            confidence_min=round(min(confidences), 4) if confidences else None,
            confidence_mean=round(sum(confidences) / len(confidences), 4) if confidences else None,
            model_seconds=round(forward_seconds, 6),
            elapsed=round(time.monotonic() - self.started_at, 6),
            batch=batch,
            guesses=self._changed_guesses(step),
            entropy_left=None if step.entropy_left is None else round(step.entropy_left, 3),
        )

    def _commit(self, commit: Commit, kind: Kind) -> Change:
        token = self._tokens.token(commit.token_id)
        others = self._candidates(commit)
        confidence = round(commit.confidence, 4)
        return Change(commit.position, kind, commit.token_id, token.text, confidence, token.raw, others)

    def _candidates(self, commit: Commit) -> tuple[Candidate, ...]:
        """What else could stand there, for people."""
        texts = [(token_id, self._tokens.token(token_id), share) for token_id, share in commit.alternatives]
        return tuple(Candidate(token_id, text.text, round(share, 4), text.raw) for token_id, text, share in texts)

    def _forced(self, position: int, token_id: int) -> Change:
        token = self._tokens.token(token_id)
        return Change(position, Kind.FORCE, token_id, token.text, None, token.raw)

    def _changed_guesses(self, step: Step) -> tuple[Guess, ...]:
        changed = []
        for position in step.remasked:
            self._guesses.pop(position, None)
        for guess in step.guesses:
            before, sure = self._guesses.get(guess.position, (-1, 0.0))
            if before == guess.token_id and abs(sure - guess.confidence) < GUESS_CHANGE:
                continue
            self._guesses[guess.position] = (guess.token_id, guess.confidence)
            text = self._tokens.token(guess.token_id).text
            changed.append(Guess(guess.position, text, round(guess.confidence, 4), self._candidates(guess)))
        return tuple(changed)


def text_of(
    canvas: Sequence[int],
    mask_id: int,
    stop_ids: Sequence[int],
    tokens: Tokens,
    kept: Collection[int] = (),
    *,
    enders: Collection[int] = (),
) -> tuple[str, int]:
    """The text before the first stop id, and how many of its tokens are not at `kept` positions; masks in it become an
    ellipsis. One of `enders` behind all that is kept is its last token: what was committed behind that, before it was
    there, is no part of the text.
    """
    tail = max(kept, default=-1) + 1
    parts: list[list[int]] = [[]]
    useful = 0
    for at, token in enumerate(canvas):
        if token in stop_ids:
            break
        if token != mask_id:
            parts[-1].append(token)
            useful += at not in kept
            if at >= tail and token in enders:
                break
        elif parts[-1]:
            parts.append([])
    return GAP.join(tokens.decode(part) for part in parts if part), useful


def header_of(run: Run, denoiser: Denoiser, prompt_tokens: int, **facts: object) -> Header:
    """The header of a run on a loaded model; `facts` are its remaining fields."""
    return Header(
        run_id=run.id,
        created=run.created,
        model=denoiser.spec.model_id,
        model_name=denoiser.spec.name,
        request=run.request.model_dump(mode="json"),
        seed=run.seed,
        prompt=run.request.prompt,
        prompt_tokens=prompt_tokens,
        parent_run_id=run.request.parent_run_id,
        parent_step=run.request.parent_step,
        stop_ids=denoiser.spec.stop_ids,
        stop_texts=tuple(denoiser.tokens.token(at).text for at in denoiser.spec.stop_ids),
        dtype=str(denoiser.dtype).removeprefix("torch."),
        **facts,  # type: ignore[arg-type]
    )

"""The denoising loop of one canvas: a sampler's steps become frames with text and times.

A `Lane` is a run on the device. It says what it needs for the next forward (`job`), takes the logits
(`take`) and ends with an outcome (`end`); who calls it, and with how many neighbours, is the worker's business.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from torch import Tensor

from playground.denoisers.base import Denoiser, Job, Tokens
from playground.engine.run import Run
from playground.sampling.sampler import Commit, Sampler, Step
from playground.trace import Candidate, Change, Frame, Guess, Header, Kind, Outcome, Result, Timings

GUESS_CHANGE = 0.1
"""A guess is sent again when its token changes or its probability moves by this much."""
GAP = " … "
"""Stands for masks in the text of a run that was stopped."""


class Lane:
    """One run under way; see the module. Creating it runs the prompt (`prepare`)."""

    def __init__(self, run: Run, denoiser: Denoiser, prompt_ids: Sequence[int]) -> None:
        self.run = run
        self.started_at = time.monotonic()
        self._tokens = denoiser.tokens
        self._sampler = Sampler(
            run.request,
            mask_id=denoiser.spec.mask_id,
            stop_ids=denoiser.spec.stop_ids,
            seed=run.seed,
            device=denoiser.device,
        )
        self._context = denoiser.prepare(prompt_ids, run.request.length)
        self._prefill = time.monotonic() - self.started_at
        self._nfe = 0
        self._model_seconds = 0.0
        self._first_canvas: float | None = None
        self._guesses: dict[int, tuple[int, float]] = {}

    @property
    def done(self) -> bool:
        """Nothing is left to denoise."""
        return self._sampler.done

    @property
    def blocks(self) -> tuple[tuple[int, int, int], ...]:
        """The plan, as the header states it."""
        return tuple((b.start, b.end, b.steps) for b in self._sampler.blocks)

    @property
    def overdue(self) -> bool:
        """The request's own deadline has passed, counted from the start on the device."""
        deadline = self.run.request.deadline
        return deadline is not None and time.monotonic() - self.started_at > deadline

    def job(self) -> Job:
        """This canvas's part of the next forward."""
        return Job(self._context, self._sampler.canvas, self._sampler.wanted(), self._sampler.checked())

    def take(self, logits: Tensor) -> Step:
        """Let the sampler commit. Raises `SamplerError` for logits that are not numbers."""
        wanted = len(self._sampler.wanted())
        return self._sampler.step(logits[:wanted], logits[wanted:])

    def publish(self, step: Step, forward_seconds: float, batch: int) -> None:
        """Turn a step into the next frame, for everyone who watches."""
        self._nfe += 1
        self._model_seconds += forward_seconds
        frame = self._frame(step, forward_seconds, batch)
        if self._first_canvas is None:
            self._first_canvas = time.monotonic() - self.run.submitted_at
        self.run.append(frame)

    def end(self, result: Result, message: str, *, textless: bool = False) -> None:
        """Close the trace with what there is; `textless` where its text cannot be made."""
        canvas, spec_mask, stops = self._sampler.canvas, self._sampler.mask_id, self._sampler.stop_ids
        text, useful = ("", 0) if textless else text_of(canvas, spec_mask, stops, self._tokens)
        now = time.monotonic()
        timings = Timings(
            queue=round(self.started_at - self.run.submitted_at, 6),
            prefill=round(self._prefill, 6),
            first_canvas=None if self._first_canvas is None else round(self._first_canvas, 6),
            model=round(self._model_seconds, 6),
            total=round(now - self.run.submitted_at, 6),
        )
        self.run.append(Outcome(result, text, message, useful, self._nfe, timings))

    # --- frames ---------------------------------------------------------------------------------

    def _frame(self, step: Step, forward_seconds: float, batch: int) -> Frame:
        confidences = [commit.confidence for commit in (*step.edits, *step.commits)]
        changes = [self._commit(edit, Kind.EDIT) for edit in step.edits]
        changes += [Change(position, Kind.REMASK, None, "") for position in step.remasked]
        changes += [self._commit(commit, Kind.COMMIT) for commit in step.commits]
        changes += [self._forced(position, token) for position, token in step.forced]
        return Frame(
            step=self._nfe,
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
        )

    def _commit(self, commit: Commit, kind: Kind) -> Change:
        token = self._tokens.token(commit.token_id)
        others = []
        for token_id, probability in commit.alternatives:
            other = self._tokens.token(token_id)
            others.append(Candidate(token_id, other.text, round(probability, 4), other.raw))
        return Change(
            commit.position,
            kind,
            commit.token_id,
            token.text,
            round(commit.confidence, 4),
            token.raw,
            tuple(others),
        )

    def _forced(self, position: int, token_id: int) -> Change:
        token = self._tokens.token(token_id)
        return Change(position, Kind.FORCE, token_id, token.text, None, token.raw)

    def _changed_guesses(self, step: Step) -> tuple[Guess, ...]:
        changed = []
        for position in step.remasked:
            self._guesses.pop(position, None)
        for position, token_id, probability in step.guesses:
            before, sure = self._guesses.get(position, (-1, 0.0))
            if before == token_id and abs(sure - probability) < GUESS_CHANGE:
                continue
            self._guesses[position] = (token_id, probability)
            changed.append(Guess(position, self._tokens.token(token_id).text, round(probability, 4)))
        return tuple(changed)


def text_of(canvas: Sequence[int], mask_id: int, stop_ids: Sequence[int], tokens: Tokens) -> tuple[str, int]:
    """The text before the first stop id and its number of tokens; masks among it become an ellipsis."""
    parts: list[list[int]] = [[]]
    useful = 0
    for token in canvas:
        if token in stop_ids:
            break
        if token != mask_id:
            parts[-1].append(token)
            useful += 1
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
        length=run.request.length,
        stop_ids=denoiser.spec.stop_ids,
        stop_texts=tuple(denoiser.tokens.token(at).text for at in denoiser.spec.stop_ids),
        dtype=str(denoiser.dtype).removeprefix("torch."),
        **facts,  # type: ignore[arg-type]
    )

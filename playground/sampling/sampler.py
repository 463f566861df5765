"""One canvas from all masks to none: a sampler is asked what it needs, given logits, and commits.

`while not sampler.done: sampler.step(model(sampler.canvas)[sampler.wanted()])` is the whole loop; like a diffusers
scheduler it knows no model, no tokenizer and no clock, so one loop can drive it alone and a batcher can drive many.
The order inside a step: ban, propose, score, select, commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from playground.request import GenerationRequest, Schedule, StopRule
from playground.sampling import confidence, schedule
from playground.sampling.proposal import propose
from playground.sampling.schedule import COUNTED, Block, plan_blocks

ALTERNATIVES = 5
"""Candidates kept for each committed position."""


class SamplerError(RuntimeError):
    """Logits no sampler can use; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A position that got its token. `alternatives` are (token id, raw probability), best first."""

    position: int
    token_id: int
    confidence: float
    alternatives: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """What one forward changed: tokens committed, tokens forced (padding after the end), best guesses left."""

    block: int
    commits: tuple[Commit, ...]
    forced: tuple[tuple[int, int], ...]
    guesses: tuple[tuple[int, int, float], ...]
    masks_left: int


class Sampler:
    """The state of one canvas.

    Args:
        request: the knobs.
        mask_id: marks a masked position; never proposed.
        stop_ids: end the text; see `GenerationRequest.stop_rule`.
        seed: fixes every draw on a device.
        device: where the logits live.

    Attributes:
        canvas: token id at each position, `mask_id` where masked.
        done: nothing is left to do.
    """

    def __init__(
        self,
        request: GenerationRequest,
        *,
        mask_id: int,
        stop_ids: Sequence[int],
        seed: int,
        device: torch.device,
    ) -> None:
        self.request = request
        self.mask_id, self.stop_ids = mask_id, tuple(stop_ids)
        steps = request.steps if request.schedule in schedule.STEPPED else request.length
        self.blocks: tuple[Block, ...] = plan_blocks(request.length, request.block, steps)
        self.canvas: list[int] = [mask_id] * request.length
        self.done = False
        self._generator = torch.Generator(device=device).manual_seed(seed)
        self._block = 0
        self._step_in_block = 0
        self._counts = self._plan_counts()

    @property
    def masks_left(self) -> int:
        """Masked positions."""
        return self.canvas.count(self.mask_id)

    def wanted(self) -> list[int]:
        """Masked positions of the block at work, ascending: the rows `step` needs."""
        if self.done:
            return []
        block = self.blocks[self._block]
        return [at for at in range(block.start, block.end) if self.canvas[at] == self.mask_id]

    @torch.inference_mode()
    def step(self, logits: Tensor) -> Step:
        """Commit some of `wanted()`.

        Args:
            logits: `[len(wanted()), vocabulary]`, raw; changed in place.

        Raises:
            SamplerError: the run is over, the shape is wrong, or the logits are not numbers. The canvas and the
                seeded draws are then as they were.
        """
        positions = self.wanted()
        if self.done:
            raise SamplerError("This canvas is finished; it takes no more logits.")
        if logits.shape[0] != len(positions):
            raise SamplerError(
                f"The sampler wanted logits for {len(positions)} positions and was given {logits.shape[0]}."
            )
        self._ban(logits, positions)
        probabilities = logits.softmax(-1)
        # One value that is no number makes its whole row so. All rows count: guesses are shown too.
        if not bool(probabilities[:, 0].isfinite().all()):
            raise SamplerError("The model's output is not numbers (NaN); load the model again.")
        request = self.request
        proposals = propose(
            logits,
            temperature=request.temperature,
            top_k=request.top_k,
            top_p=request.top_p,
            generator=self._generator,
        )
        chosen = self._select(probabilities, proposals, positions)
        commits = self._commits(chosen, probabilities, proposals, positions)
        guesses = self._guesses(~chosen, probabilities, positions)
        # Only now does the canvas change, so that a device that fails midway leaves no half step.
        for commit in commits:
            self.canvas[commit.position] = commit.token_id
        block = self._block
        forced = self._advance()
        return Step(block, commits, forced, () if self.done else guesses, self.masks_left)

    # --- the parts of a step --------------------------------------------------------------------

    def _ban(self, logits: Tensor, positions: Sequence[int]) -> None:
        logits[:, self.mask_id] = -torch.inf
        rule, stops = self.request.stop_rule, list(self.stop_ids)
        if rule is StopRule.SUPPRESSED:
            logits[:, stops] = -torch.inf
        elif rule is StopRule.PENALTY:
            logits[:, stops] -= self.request.stop_penalty
        elif rule is StopRule.NEVER_FIRST and positions[0] == 0:
            logits[0, stops] = -torch.inf

    def _select(self, probabilities: Tensor, proposals: Tensor, positions: Sequence[int]) -> Tensor:
        """Which rows are committed, `[n]` of bool."""
        request = self.request
        scores = confidence.score(request.confidence, probabilities, proposals, positions, self._generator)
        name = request.schedule
        if name in COUNTED:
            return schedule.take_best(scores, self._counts[self._step_in_block])
        if name is Schedule.ENTROPY_BOUND:
            return schedule.within_entropy_bound(confidence.entropy(probabilities), request.entropy_bound, scores)
        proposed = confidence.proposed_probability(probabilities, proposals)
        if name is Schedule.RAMP:
            steps = self.blocks[self._block].steps
            return schedule.over_ramp(proposed, self._step_in_block, steps, scores)
        compared = scores if request.confidence in confidence.UNIT_SCALE else proposed
        return schedule.over_threshold(compared, request.threshold, scores)

    @staticmethod
    def _commits(
        chosen: Tensor, probabilities: Tensor, proposals: Tensor, positions: Sequence[int]
    ) -> tuple[Commit, ...]:
        rows = chosen.nonzero()[:, 0]
        picked = probabilities[rows]
        tokens = proposals[rows]
        sure = confidence.proposed_probability(picked, tokens).tolist()
        best = picked.topk(min(ALTERNATIVES, picked.shape[-1]), dim=-1)
        commits = []
        for row, token, p, ids, values in zip(
            rows.tolist(), tokens.tolist(), sure, best.indices.tolist(), best.values.tolist(), strict=True
        ):
            others = tuple((i, v) for i, v in zip(ids, values, strict=True) if v > 0)
            commits.append(Commit(positions[row], token, p, others))
        return tuple(commits)

    def _guesses(
        self, left: Tensor, probabilities: Tensor, positions: Sequence[int]
    ) -> tuple[tuple[int, int, float], ...]:
        rows = left.nonzero()[:, 0]
        if rows.numel() == 0:
            return ()
        best = probabilities.max(-1)
        values, tokens = best.values[rows].tolist(), best.indices[rows].tolist()
        return tuple((positions[row], token, p) for row, token, p in zip(rows.tolist(), tokens, values, strict=True))

    # --- from step to step ----------------------------------------------------------------------

    def _plan_counts(self) -> tuple[int, ...]:
        """Commits of each step of the block at work, for schedules that know them beforehand."""
        masks, steps = len(self.wanted()), self.blocks[self._block].steps
        if self.request.schedule is Schedule.COSINE:
            return schedule.cosine_split(masks, steps)
        return schedule.even_split(masks, steps)

    def _advance(self) -> tuple[tuple[int, int], ...]:
        """Move on to the next step, block or the end; gives the positions filled by force."""
        if self.request.end_at_stop and (forced := self._pad_after_stop()) is not None:
            self.done = True
            return forced
        if self.wanted():
            self._step_in_block += 1
        else:
            self._block += 1
            self._step_in_block = 0
            if self._block == len(self.blocks):
                self.done = True
            else:
                self._counts = self._plan_counts()
        return ()

    def _pad_after_stop(self) -> tuple[tuple[int, int], ...] | None:
        """Once the text before the first stop id is complete, fill what is behind it; None until then."""
        for at, token in enumerate(self.canvas):
            if token == self.mask_id:
                return None
            if token in self.stop_ids:
                rest = [i for i in range(at, len(self.canvas)) if self.canvas[i] == self.mask_id]
                for i in rest:
                    self.canvas[i] = token
                return tuple((i, token) for i in rest)
        return None

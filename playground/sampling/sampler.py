"""One canvas from all masks to none: a sampler is asked what it needs, given logits, and commits.

`while not sampler.done: sampler.step(model(sampler.canvas)[sampler.wanted()])` is the whole loop; like a diffusers
scheduler it knows no model, no tokenizer and no clock, so one loop can drive it alone and a batcher can drive many.
The order inside a step: ban, take back, propose, score, select, commit.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from playground.request import Correction, GenerationRequest, Schedule, StopRule
from playground.sampling import confidence, schedule
from playground.sampling.commits import Commit, Step
from playground.sampling.correction import first_rejected
from playground.sampling.guard import Guard, NoGuard
from playground.sampling.proposal import propose
from playground.sampling.schedule import COUNTED, Block, plan_masked

ALTERNATIVES = 5
"""Candidates kept for each committed position."""


class SamplerError(RuntimeError):
    """Logits no sampler can use; the text is one sentence."""


class Sampler:
    """The state of one canvas.

    Args:
        request: the knobs.
        mask_id: marks a masked position; never proposed.
        stop_ids: end the text; see `GenerationRequest.stop_rule`.
        seed: fixes every draw on a device.
        device: where the logits live.
        start: token id or mask id at each position; all masks when left out.
        pinned: positions that never change.
        guard: says what may not be committed.
        enders: tokens besides the stop ids that end the text where nothing pinned is behind them.

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
        start: Sequence[int] = (),
        pinned: Collection[int] = (),
        guard: Guard | None = None,
        enders: Collection[int] = (),
    ) -> None:
        self.request = request
        self.mask_id, self.stop_ids = mask_id, tuple(stop_ids)
        self.canvas: list[int] = list(start) or [mask_id] * request.length
        self.pinned = frozenset(pinned)
        self._tail = max(self.pinned, default=-1) + 1
        self._guard: Guard = guard or NoGuard()
        self._ends = frozenset(stop_ids) | frozenset(enders)
        masked = [at for at, token in enumerate(self.canvas) if token == mask_id]
        steps = request.steps if request.schedule in schedule.STEPPED else len(self.canvas)
        self.blocks: tuple[Block, ...] = plan_masked(len(self.canvas), masked, request.block, steps)
        self._generator = torch.Generator(device=device).manual_seed(seed)
        self._block = 0
        self._steps_in = [0] * len(self.blocks)
        self._counts: dict[int, tuple[int, ...]] = {}
        self._corrects = request.correction is Correction.CAUSAL
        self._settled = 0
        self._steps = 0
        self._committed_in = [0] * len(self.canvas)
        self.done = False
        self.forced_at_start = self._advance()

    @property
    def masks_left(self) -> int:
        """Masked positions."""
        return self.canvas.count(self.mask_id)

    def wanted(self) -> list[int]:
        """Masked positions of the block at work, ascending: the rows `step` needs."""
        if self.done or self._block == len(self.blocks):
            return []
        block = self.blocks[self._block]
        return [at for at in range(block.start, block.end) if self.canvas[at] == self.mask_id]

    def checked(self) -> list[int]:
        """Commits that a correction has not looked at and can now: those before the first mask, ascending."""
        if self.done or not self._corrects:
            return []
        return [at for at in range(self._settled, self._first_mask()) if at not in self.pinned]

    @torch.inference_mode()
    def step(self, logits: Tensor, causal: Tensor | None = None) -> Step:
        """Commit some of `wanted()`, or take back some of `checked()`.

        Args:
            logits: `[len(wanted()), vocabulary]`, raw; changed in place.
            causal: `[len(checked()), vocabulary]`, raw, each position's given the text before it; changed in place.
                May be left out where nothing is checked.

        Raises:
            SamplerError: the run is over, the shape is wrong, or the logits are not numbers. The canvas and the
                seeded draws are then as they were.
        """
        positions, checked = self.wanted(), self.checked()
        if self.done:
            raise SamplerError("This canvas is finished; it takes no more logits.")
        probabilities = self._probabilities(logits, positions)
        block = min(self._block, len(self.blocks) - 1)
        if checked:
            causal = logits[:0] if causal is None else causal
            believed = self._probabilities(causal, checked)
            tokens = torch.tensor([self.canvas[at] for at in checked], device=causal.device)
            wrong = first_rejected(believed, tokens, self.request.acceptance)
            if wrong is not None:
                edit, remasked = self._take_back(wrong, causal, believed, checked)
                forced = self._advance()
                filled = {at for at, _ in forced}
                remasked = tuple(at for at in remasked if at not in filled)
                return Step(block, (), forced, (), self.masks_left, (edit,), remasked)
        commits, guesses, entropy_left = self._commit(logits, probabilities, positions)
        # Only now does the canvas change, so that a device that fails midway leaves no half step.
        if checked:
            self._settled = checked[-1] + 1
        self._steps += 1
        for commit in commits:
            self.canvas[commit.position] = commit.token_id
            self._committed_in[commit.position] = self._steps
        if positions:
            self._steps_in[self._block] += 1
        forced = self._advance()
        guesses, entropy_left = ((), 0.0) if self.done else (guesses, entropy_left)
        return Step(block, commits, forced, guesses, self.masks_left, entropy_left=entropy_left)

    # --- the parts of a step --------------------------------------------------------------------

    def _probabilities(self, logits: Tensor, positions: Sequence[int]) -> Tensor:
        """Check, ban, and softmax."""
        if logits.shape[0] != len(positions):
            raise SamplerError(
                f"The sampler wanted logits for {len(positions)} positions and was given {logits.shape[0]}."
            )
        if positions:
            self._ban(logits, positions)
        probabilities = logits.softmax(-1)
        # One value that is no number makes its whole row so. All rows count: guesses are shown too.
        if not bool(probabilities[:, 0].isfinite().all()):
            raise SamplerError("The model's output is not numbers (NaN); load the model again.")
        return probabilities

    def _propose(self, logits: Tensor) -> Tensor:
        request = self.request
        return propose(
            logits,
            temperature=request.temperature,
            top_k=request.top_k,
            top_p=request.top_p,
            generator=self._generator,
        )

    def _take_back(
        self, wrong: int, causal: Tensor, believed: Tensor, checked: Sequence[int]
    ) -> tuple[Commit, tuple[int, ...]]:
        """Put another token in the wrong one's place, and mask what was chosen behind it beside it or in sight of it.

        What stood there before the wrong one came was chosen without it, and stays until it is checked itself.
        """
        position = checked[wrong]
        row = torch.zeros(len(checked), dtype=torch.bool, device=causal.device)
        row[wrong] = True
        proposals = self._propose(causal)
        self._guarded(row, causal, proposals, checked)
        (edit,) = self._commits(row, believed, proposals, checked)
        since = self._committed_in[position]
        self._steps += 1
        self.canvas[position], self._committed_in[position] = edit.token_id, self._steps
        behind = [at for at in range(position + 1, len(self.canvas)) if at not in self.pinned]
        remasked = tuple(at for at in behind if self.canvas[at] != self.mask_id and self._committed_in[at] >= since)
        for at in remasked:
            self.canvas[at] = self.mask_id
        self._settled = position + 1
        return edit, remasked

    def _commit(
        self, logits: Tensor, probabilities: Tensor, positions: Sequence[int]
    ) -> tuple[tuple[Commit, ...], tuple[Commit, ...], float]:
        """What to commit, the best guesses for the rest, and their entropy together."""
        if not positions:
            return (), (), 0.0
        proposals = self._propose(logits)
        chosen = self._select(probabilities, proposals, positions)
        self._guarded(chosen, logits, proposals, positions)
        commits = self._commits(chosen, probabilities, proposals, positions)
        left = ~chosen
        entropy_left = float(torch.special.entr(probabilities[left]).sum())
        return commits, self._guesses(left, probabilities, positions), entropy_left

    def _guarded(self, chosen: Tensor, logits: Tensor, proposals: Tensor, positions: Sequence[int]) -> None:
        """Put the next best proposal in place of each chosen one that the guard refuses, in order of position."""
        if isinstance(self._guard, NoGuard):
            return
        canvas = list(self.canvas)
        for row in chosen.nonzero()[:, 0].tolist():
            while self._guard.refuses(canvas, positions[row], token := int(proposals[row])):
                logits[row, token] = -torch.inf
                if not bool(logits[row].isfinite().any()):
                    raise SamplerError(
                        "No token may stand in one of the blanks; ban less, or change the text around it."
                    )
                proposals[row] = self._propose(logits[row : row + 1])[0]
            canvas[positions[row]] = token

    def ban(self, logits: Tensor, positions: Sequence[int]) -> None:
        """Minus infinity, in place, where a token may not stand; `[len(positions), vocabulary]`."""
        self._ban(logits, positions)

    def refuses(self, canvas: Sequence[int], position: int, token_id: int) -> bool:
        """Whether the guard refuses a token."""
        return self._guard.refuses(canvas, position, token_id)

    def _ban(self, logits: Tensor, positions: Sequence[int]) -> None:
        logits[:, self.mask_id] = -torch.inf
        rule, stops = self.request.stop_rule, list(self.stop_ids)
        if rule is StopRule.SUPPRESSED:
            logits[:, stops] = -torch.inf
        elif rule is StopRule.PENALTY:
            logits[:, stops] -= self.request.stop_penalty
        elif rule is StopRule.NEVER_FIRST and positions[0] == 0:
            logits[0, stops] = -torch.inf
        for row, position in enumerate(positions):
            if position < self._tail:
                logits[row, stops] = -torch.inf  # the text goes on behind it
            if (barred := self._guard.barred(position)) is not None:
                logits[row, barred] = -torch.inf

    def _select(self, probabilities: Tensor, proposals: Tensor, positions: Sequence[int]) -> Tensor:
        """Which rows are committed, `[n]` of bool."""
        request = self.request
        scores = confidence.score(request.confidence, probabilities, proposals, positions, self._generator)
        name = request.schedule
        if name in COUNTED:
            counts = self._counts.setdefault(self._block, self._plan_counts())
            # Beyond the plan only where commits were taken back: on at the plan's last pace.
            return schedule.take_best(scores, counts[min(self._steps_in[self._block], len(counts) - 1)])
        if name is Schedule.ENTROPY_BOUND:
            return schedule.within_entropy_bound(confidence.entropy(probabilities), request.entropy_bound, scores)
        proposed = confidence.proposed_probability(probabilities, proposals)
        if name is Schedule.RAMP:
            steps = self.blocks[self._block].steps
            return schedule.over_ramp(proposed, self._steps_in[self._block], steps, scores)
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

    @staticmethod
    def _guesses(left: Tensor, probabilities: Tensor, positions: Sequence[int]) -> tuple[Commit, ...]:
        """The best token of each row that is left, as if it were committed."""
        return Sampler._commits(left, probabilities, probabilities.argmax(-1), positions)

    def _first_mask(self) -> int:
        return self.canvas.index(self.mask_id) if self.mask_id in self.canvas else len(self.canvas)

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
        masked = self._first_mask()
        self._block = next((i for i, block in enumerate(self.blocks) if masked < block.end), len(self.blocks))
        self.done = masked == len(self.canvas) and not self.checked()
        return ()

    def _pad_after_stop(self) -> tuple[tuple[int, int], ...] | None:
        """Once the text before the first stop id is complete, fill what is behind it; None until then."""
        for at, token in enumerate(self.canvas):
            if token == self.mask_id or (self._corrects and at >= self._settled and at not in self.pinned):
                return None
            if at >= self._tail and token in self._ends:
                rest = [i for i in range(at, len(self.canvas)) if self.canvas[i] == self.mask_id]
                padding = token if token in self.stop_ids else self.stop_ids[0]
                for i in rest:
                    self.canvas[i] = padding
                return tuple((i, padding) for i in rest)
        return None

"""How many positions a forward commits, and how steps are shared out over blocks.

Counted schedules (`even_split`, `cosine_split`) are known before the first forward; adaptive ones
(`over_threshold`, `within_entropy_bound`, `over_ramp`) look at one forward's scores. Every one commits at least one
position a forward, so that no forward is wasted and every run ends. Must not know tokens or models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from playground.request import Schedule

COUNTED = frozenset({Schedule.EVEN, Schedule.COSINE})
STEPPED = COUNTED | {Schedule.RAMP}
"""Schedules that `steps` means something to."""


@dataclass(frozen=True, slots=True)
class Block:
    """Positions `start` (included) to `end` (excluded) of the canvas, denoised in `steps` forwards."""

    start: int
    end: int
    steps: int


def plan_blocks(length: int, block: int, steps: int) -> tuple[Block, ...]:
    """Cut a canvas into blocks and share `steps` out in proportion to their lengths.

    Any combination is accepted: the last block may be short, `block = 0` or more than `length` means one block,
    steps beyond one a position are dropped, and when there are fewer steps than blocks, neighbouring blocks are
    joined so that the run still takes `steps` forwards. Semi-autoregressive blocks: LLaDA (arXiv 2502.09992).
    """
    size = min(block or length, length)
    steps = min(steps, length)
    count = math.ceil(length / size)
    if count > steps:
        size *= math.ceil(count / steps)
        count = math.ceil(length / size)
    starts = [i * size for i in range(count)]
    lengths = [min(size, length - start) for start in starts]
    shares = _share(steps, lengths)
    return tuple(Block(start, start + size, share) for start, size, share in zip(starts, lengths, shares, strict=True))


def plan_masked(canvas_length: int, masked: Sequence[int], block: int, steps: int) -> tuple[Block, ...]:
    """The same for a canvas of which only some positions, ascending, are masked: `block` and `steps` count those.

    The blocks cover the whole canvas, so that a position that is masked again belongs to one.
    """
    if len(masked) == canvas_length:
        return plan_blocks(canvas_length, block, steps)
    if not masked:
        return (Block(0, canvas_length, 1),)
    plan = plan_blocks(len(masked), block, steps)
    starts = [0, *(masked[part.start] for part in plan[1:])]
    ends = [*starts[1:], canvas_length]
    return tuple(Block(start, end, part.steps) for start, end, part in zip(starts, ends, plan, strict=True))


def _share(steps: int, lengths: list[int]) -> list[int]:
    """Largest remainders: whole shares of `steps` in proportion to `lengths`, each 1 to its length."""
    total = sum(lengths)
    shares = [max(1, steps * size // total) for size in lengths]
    # A short last block may have been given its 1 already, though its proportion is less.
    below = [i for i, size in enumerate(lengths) if shares[i] * total < steps * size]
    by_remainder = sorted(below, key=lambda i: -(steps * lengths[i] % total))
    for i in by_remainder[: steps - sum(shares)]:
        shares[i] += 1
    return shares


def even_split(masks: int, steps: int) -> tuple[int, ...]:
    """Commits a step: `masks // steps` each, the first `masks % steps` one more; empty steps are dropped.

    LLaDA's `get_num_transfer_tokens` (arXiv 2502.09992), without its no-op steps.
    """
    each, more = divmod(masks, steps)
    counts = [each + 1] * more + [each] * (steps - more)
    return tuple(count for count in counts if count)


def cosine_split(masks: int, steps: int) -> tuple[int, ...]:
    """Few commits first, many last: after step s of S, floor(masks * cos(pi/2 * s/S)) are left.

    MaskGIT (arXiv 2202.04200). A step that would commit nothing commits one, taken from the later ones.
    """
    counts: list[int] = []
    left = masks
    for step in range(1, steps + 1):
        target = math.floor(masks * math.cos(math.pi / 2 * step / steps) + 1e-9) if step < steps else 0
        after = max(0, min(target, left - 1))
        if left:
            counts.append(left - after)
        left = after
    return tuple(counts)


def over_threshold(values: Tensor, threshold: float, scores: Tensor) -> Tensor:
    """Which of `values` `[n]` are at least `threshold`; when none is, the best of `scores`.

    Fast-dLLM (arXiv 2505.22618).
    """
    return _at_least_one(values >= threshold, scores)


def over_ramp(probabilities: Tensor, step: int, steps: int, scores: Tensor) -> Tensor:
    """Which `probabilities` `[n]` are at least 1 - (step+1)/steps, `step` counted from 0.

    When none is, the best of `scores` goes: repeating the forward with a lower bar would see the same canvas.
    """
    return _at_least_one(probabilities >= 1 - (step + 1) / steps, scores)


def within_entropy_bound(entropies: Tensor, bound: float, scores: Tensor) -> Tensor:
    """The largest set, best `scores` first, whose entropies (nats) sum to at most `bound` beside their largest.

    That is: in order of falling score, the longest prefix with sum(H) - max(H) <= bound; one always.
    EB-Sampler (arXiv 2505.24857).
    """
    order = torch.argsort(scores, descending=True, stable=True)
    ordered = entropies[order]
    spread = ordered.cumsum(0) - ordered.cummax(0).values
    # Both terms only grow by what is added, so the prefix ends at the first one over the bound; the
    # tolerance is for the cumulative sum's rounding.
    fits = (spread <= bound + 1e-6).cumprod(0).bool()
    chosen = torch.zeros_like(fits)
    chosen[order[fits]] = True
    return _at_least_one(chosen, scores)


def take_best(scores: Tensor, count: int) -> Tensor:
    """Which `count` of `scores` `[n]` are highest; ties go to the leftmost. All, when count exceeds n."""
    order = torch.argsort(scores, descending=True, stable=True)
    chosen = torch.zeros_like(scores, dtype=torch.bool)
    chosen[order[:count]] = True
    return chosen


def _at_least_one(chosen: Tensor, scores: Tensor) -> Tensor:
    return chosen if bool(chosen.any()) else take_best(scores, 1)

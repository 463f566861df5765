"""Which masked positions go first: a score for each, higher is sooner.

Scores are taken on raw probabilities, before temperature and nucleus filtering: filtered ones saturate at 1, ties
then fall to the leftmost position, and a diffusion run silently becomes left-to-right. Must not know how many
positions will be committed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from playground.request import Confidence

UNIT_SCALE = frozenset({Confidence.PROBABILITY, Confidence.MARGIN})
"""Confidences on a 0-to-1 scale, which a threshold can be compared with."""


def score(
    name: Confidence,
    probabilities: Tensor,
    proposals: Tensor,
    positions: Sequence[int],
    generator: torch.Generator,
) -> Tensor:
    """Scores `[n]` of the masked positions.

    Args:
        name: probability p[x0] (LLaDA's low-confidence remasking keeps the highest); margin p1 - p2 (Dream's
            topk_margin); neg-entropy sum(p ln p) in nats (Dream, DiffuCoder); random, uniform in [0, 1);
            leftmost, the negated position.
        probabilities: raw softmax `[n, vocabulary]`.
        proposals: proposed token ids `[n]`.
        positions: canvas positions of the rows, ascending.
        generator: source of the random order.
    """
    if name is Confidence.PROBABILITY:
        return proposed_probability(probabilities, proposals)
    if name is Confidence.MARGIN:
        best = probabilities.topk(2, dim=-1).values
        return best[:, 0] - best[:, 1]
    if name is Confidence.NEG_ENTROPY:
        return -entropy(probabilities)
    if name is Confidence.RANDOM:
        return torch.rand(len(positions), generator=generator, device=probabilities.device)
    return -torch.tensor(positions, dtype=torch.float32, device=probabilities.device)


def proposed_probability(probabilities: Tensor, proposals: Tensor) -> Tensor:
    """Raw probability `[n]` of the proposed tokens."""
    return probabilities.gather(1, proposals[:, None])[:, 0]


def entropy(probabilities: Tensor) -> Tensor:
    """Shannon entropy `[n]` in nats of each row of `[n, vocabulary]`."""
    return -(probabilities * probabilities.clamp_min(torch.finfo(probabilities.dtype).tiny).log()).sum(-1)

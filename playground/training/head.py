"""Cross-entropy through the vocabulary head without ever holding all logits.

A batch's logits are hundreds of megabytes that each pass over them moves through memory. Here some rows at a time are
multiplied, scored and turned into their gradient while they are in the cache (the idea of Liger Kernel's fused loss,
arXiv 2410.10989). Must not know what the rows are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

ROWS = 128
"""Rows at a time: 25 MB of float32 logits for a vocabulary of 49,152."""


class _HeadLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        count = hidden.shape[0]
        losses = hidden.new_empty(count, dtype=torch.float32)
        right = torch.empty(count, dtype=torch.bool, device=hidden.device)
        slopes = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        for start in range(0, count, ROWS):
            part = slice(start, min(start + ROWS, count))
            logits = (hidden[part] @ weight.t()).float()
            wanted = targets[part, None]
            right[part] = logits.argmax(-1) == targets[part]
            shares = torch.softmax(logits, -1)
            losses[part] = -shares.gather(-1, wanted)[:, 0].clamp_min(torch.finfo(torch.float32).tiny).log()
            if slopes is not None:
                shares.scatter_add_(-1, wanted, shares.new_full(wanted.shape, -1.0))
                torch.mm(shares.to(weight.dtype), weight, out=slopes[part])
        if slopes is not None:
            ctx.save_for_backward(slopes)
        ctx.mark_non_differentiable(right)
        return losses, right

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (slopes,) = ctx.saved_tensors
        return gradients[0][:, None].to(slopes.dtype) * slopes, None, None


def head_loss(hidden: Tensor, weight: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy of each row in nats, `[n]` float32, and whether its best token is the target, `[n]`.

    Args:
        hidden: `[n, width]`.
        weight: of the head, `[vocabulary, width]`; gets no gradient.
        targets: `[n]`.
    """
    losses, right = _HeadLoss.apply(hidden, weight, targets)  # type: ignore[no-untyped-call]
    return losses, right

"""What token each masked position would get: argmax, or a draw. Must not know which will be committed."""

from __future__ import annotations

import torch
from torch import Tensor


def propose(logits: Tensor, *, temperature: float, top_k: int, top_p: float, generator: torch.Generator) -> Tensor:
    """Token ids `[n]` for logits `[n, vocabulary]`; ids at minus infinity are never given.

    At temperature 0, argmax. Above it, a draw from softmax(logits / temperature) cut by `top_k` (0 = no cut),
    then by `top_p` (1 = no cut): Gumbel-max with float64 noise, because lower precision truncates the noise
    and quietly lowers the temperature (arXiv 2409.02908).
    """
    if temperature == 0:
        return logits.argmax(-1)
    # The best is moved to 0 first, or the smallest temperatures would send every logit to an infinity.
    wide = logits.double()
    scaled = (wide - wide.amax(-1, keepdim=True)) / temperature
    kept = nucleus(top_k_filter(scaled, top_k), top_p)
    uniform = torch.rand(kept.shape, dtype=torch.float64, device=kept.device, generator=generator)
    # rand may give exactly 0, whose noise would be minus infinity for every token of a row.
    gumbel = -torch.log(-torch.log(uniform.clamp_min(torch.finfo(torch.float64).tiny)))
    return (kept + gumbel).argmax(-1)


def top_k_filter(logits: Tensor, top_k: int) -> Tensor:
    """Keep the `top_k` largest logits of each row (more where they tie), the rest at minus infinity."""
    if top_k == 0 or top_k >= logits.shape[-1]:
        return logits
    floor = logits.topk(top_k, dim=-1).values[:, -1:]
    return logits.masked_fill(logits < floor, -torch.inf)


def nucleus(logits: Tensor, top_p: float) -> Tensor:
    """Keep the smallest set of most probable tokens whose mass reaches `top_p`; at least one token.

    Nucleus sampling (arXiv 1904.09751).
    """
    if top_p >= 1:
        return logits
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    probabilities = ordered.softmax(-1)
    before = probabilities.cumsum(-1) - probabilities
    dropped = torch.zeros_like(logits, dtype=torch.bool).scatter(1, order, before >= top_p)
    return logits.masked_fill(dropped, -torch.inf)

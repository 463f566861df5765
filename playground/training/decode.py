"""The base writes: batched left-to-right decoding with a key-value cache, rows leaving when they are done.

Must not know what the texts are for.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import DynamicCache, LlamaForCausalLM

from playground.training.base import END_ID, MASK_ID, PAD_ID


@torch.inference_mode()
def decode(
    model: LlamaForCausalLM,
    prompts: Sequence[Sequence[int]],
    longest: int,
    *,
    temperature: float = 0.0,
    top_k: int = 0,
    generator: torch.Generator | None = None,
) -> list[list[int]]:
    """Continue each prompt until the end token (kept) or `longest` tokens; greedy at temperature 0.

    Rows are padded on the left. Once a quarter of the rows are done they are dropped from the cache, so that one long
    answer does not keep a whole batch at work.
    """
    answers: list[list[int]] = [[] for _ in prompts]
    rows = list(range(len(prompts)))
    device = next(model.parameters()).device
    ids, seen = _left_padded(prompts, device)
    positions = (seen.cumsum(1) - 1).clamp(min=0)
    cache = DynamicCache(config=model.config)
    open_rows = torch.ones(len(rows), dtype=torch.bool)
    for _ in range(longest):
        hidden = model.model(
            input_ids=ids, attention_mask=seen, position_ids=positions, cache=cache, use_cache=True
        ).last_hidden_state
        # Contiguous, or the head expands its weights to one copy a row.
        tokens = _choose(model.lm_head(hidden[:, -1].contiguous()), temperature, top_k, generator)
        for row, token, is_open in zip(rows, tokens.tolist(), open_rows.tolist(), strict=True):
            if is_open:
                answers[row].append(token)
        open_rows &= (tokens != END_ID).cpu()
        left = int(open_rows.sum())
        if left == 0:
            break
        seen = torch.cat((seen, seen.new_ones(len(rows), 1)), 1)
        ids, positions = tokens[:, None], positions[:, -1:] + 1
        if left <= 0.75 * len(rows):
            keep = open_rows.nonzero()[:, 0]
            cache.batch_select_indices(keep.to(device))
            rows = [rows[i] for i in keep.tolist()]
            ids, seen, positions = (part[keep.to(device)] for part in (ids, seen, positions))
            open_rows = open_rows[keep]
    return answers


def _left_padded(prompts: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids and which of them are real, `[rows, longest]`."""
    width = max(map(len, prompts))
    ids = torch.full((len(prompts), width), PAD_ID)
    seen = torch.zeros(len(prompts), width, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        seen[row, width - len(prompt) :] = 1
    return ids.to(device), seen.to(device)


def _choose(logits: Tensor, temperature: float, top_k: int, generator: torch.Generator | None) -> Tensor:
    logits = logits.float()
    logits[:, MASK_ID] = -torch.inf
    if temperature == 0:
        return logits.argmax(-1)
    if top_k:
        values, order = logits.topk(top_k, dim=-1)
        picked = torch.multinomial((values / temperature).softmax(-1), 1, generator=generator)
        return order.gather(-1, picked)[:, 0]
    return torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)[:, 0]

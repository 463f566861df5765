"""The denoiser in training: transformers' Llama with PEFT's LoRA, run twice.

First the observed rows, adapter off and without gradients: the base, exactly. Then the canvas rows, adapter on, seeing
the first pass's keys and values. `playground.denoisers.pocket` computes the same with merged weights; a test compares
them. Must not know data, patterns or optimisers.

LoRA: arXiv 2106.09685. Gating it by row: I-DLM, arXiv 2604.11035.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import DynamicCache, LlamaForCausalLM

from playground.training.base import MASK_ID
from playground.training.config import DesignSettings
from playground.training.patterns import Batch

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class Scores:
    """Logits of the masks that carry loss, `[N, vocabulary]` in float32, and where they stand in the batch.

    `index` is (example, canvas row), each `[N]`; `teacher` holds the base's own logits for the rows of `taught` `[T]`.
    """

    logits: Tensor
    index: tuple[Tensor, Tensor]
    teacher: Tensor
    taught: Tensor


class GatedDenoiser(nn.Module):
    """Base, adapter, mask embedding and gate.

    Args:
        base: frozen; its dtype is that of the products.
        design: what is computed.
        seed: of the adapter's start.
    """

    def __init__(self, base: LlamaForCausalLM, design: DesignSettings, seed: int = 0) -> None:
        super().__init__()
        self.design = design
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            config = LoraConfig(
                task_type="CAUSAL_LM",
                r=design.rank,
                lora_alpha=design.rank,
                target_modules=list(TARGETS),
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # PEFT asks transformers by names it is giving up
                self.peft: Any = get_peft_model(base, config, autocast_adapter_dtype=False)
        llama: Any = self.peft.get_base_model()
        self.llama: Any = llama
        embedding: Tensor = llama.model.embed_tokens.weight
        self.mask_embedding = nn.Parameter(embedding.mean(0).detach().clone())
        self.gate_bias = nn.Parameter(embedding.new_zeros(1))
        self.gate_weight = nn.Parameter(embedding.new_zeros(embedding.shape[1]))
        if design.prior != "row":
            self.gate_weight.requires_grad_(False)

    def forward(self, batch: Batch, teach: bool = False) -> Scores:
        """Both passes and the head; see the module."""
        with torch.no_grad(), self.peft.disable_adapter():
            observed, cache = self._observed(batch)
        hidden = self._canvas(batch, cache)
        index = tuple((batch.targets >= 0).nonzero(as_tuple=True))
        rows, places = hidden[index], (index[0], index[1])
        logits = self.llama.lm_head(rows).float()
        if self.design.prior != "none":
            logits = self._joined(logits, rows, observed, batch, places)
        wanted = batch.teacher_rows[index]
        taught = (wanted >= 0).nonzero()[:, 0] if teach else wanted.new_zeros(0)
        with torch.no_grad():
            teacher = self.llama.lm_head(observed[index[0][taught], wanted[taught]]).float()
        return Scores(logits, places, teacher, taught)

    def trained(self) -> dict[str, nn.Parameter]:
        """Parameters that learn, by name."""
        return {name: p for name, p in self.named_parameters() if p.requires_grad}

    # --- the passes -----------------------------------------------------------------------------

    def _observed(self, batch: Batch) -> tuple[Tensor, DynamicCache]:
        """Final hidden states `[B, P, width]` and the cache. Padding is on the right, so causality hides it."""
        cache = DynamicCache(config=self.llama.config)
        rows = self.llama.model.embed_tokens(batch.ids)
        return self._layers(rows, batch.positions, None, cache, 0), cache

    def _canvas(self, batch: Batch, cache: DynamicCache) -> Tensor:
        masked = (batch.canvas_ids == MASK_ID)[..., None]
        rows = torch.where(masked, self.mask_embedding, self.llama.model.embed_tokens(batch.canvas_ids))
        # On a CPU the fused kernel's backward pass is several times slower than plain products at these sizes.
        kernel = sdpa_kernel([SDPBackend.MATH]) if rows.device.type == "cpu" else nullcontext()
        with kernel:
            return self._layers(rows, batch.canvas_positions, batch.visible[:, None], cache, self.design.first_layer)

    def _layers(
        self, rows: Tensor, positions: Tensor, visible: Tensor | None, cache: DynamicCache, first: int
    ) -> Tensor:
        model = self.llama.model
        turned = model.rotary_emb(rows, position_ids=positions)
        for layer in model.layers[first:]:
            rows = layer(
                rows,
                attention_mask=visible,
                position_ids=positions,
                cache=cache,
                use_cache=True,
                position_embeddings=turned,
            )
        normed: Tensor = model.norm(rows)
        return normed

    def _joined(
        self, logits: Tensor, rows: Tensor, observed: Tensor, batch: Batch, index: tuple[Tensor, Tensor]
    ) -> Tensor:
        """`log_softmax(base row i-1) + gate * logits` where that row is there."""
        before = batch.prior_rows[index]
        have = (before >= 0).nonzero()[:, 0]
        if have.numel() == 0:
            return logits
        with torch.no_grad():
            prior = functional.log_softmax(self.llama.lm_head(observed[index[0][have], before[have]]).float(), -1)
        gate = self.gate_bias.float() + rows[have].float() @ self.gate_weight.float()
        return logits.index_copy(0, have, prior + gate[:, None] * logits[have])

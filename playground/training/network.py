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
from playground.training.head import head_loss
from playground.training.patterns import Batch

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class Scores:
    """What became of the N masks that carry loss; `index` is (example, canvas row), each `[N]`.

    `losses` `[N]`: cross-entropy in nats; `right` `[N]`: whether the best token is the target; `divergence`: mean
    KL(base || denoiser) in nats over the masks whose text on the left the base has read in full, if asked for.
    """

    losses: Tensor
    right: Tensor
    index: tuple[Tensor, Tensor]
    divergence: Tensor | None = None


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
        """Both passes, the head and the loss; see the module."""
        rows, observed, index = self._rows(batch)
        targets, before = batch.targets[index], batch.prior_rows[index]
        joined = (before >= 0) & (self.design.prior != "none")
        losses = rows.new_empty(len(targets), dtype=torch.float32)
        right = torch.empty_like(joined)
        near, far = joined.nonzero()[:, 0], (~joined).nonzero()[:, 0]
        some, hits = head_loss(rows[far], self.llama.lm_head.weight, targets[far])
        losses, right = losses.index_copy(0, far, some), right.index_copy(0, far, hits)
        if near.numel():
            logits = self._joined(rows[near], observed[index[0][near], before[near]])
            some = functional.cross_entropy(logits, targets[near], reduction="none")
            losses = losses.index_copy(0, near, some)
            right = right.index_copy(0, near, logits.argmax(-1) == targets[near])
        divergence = self._divergence(rows, observed, index, batch) if teach else None
        return Scores(losses, right, index, divergence)

    def logits(self, batch: Batch) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Logits of the masks that carry loss, `[N, vocabulary]` float32, and their index."""
        rows, observed, index = self._rows(batch)
        return self._logits(rows, observed, index, batch), index

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

    def _rows(self, batch: Batch) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        """Hidden states of the masks `[N, width]` and of all observed rows `[B, P, width]`, and the masks' index."""
        with torch.no_grad(), self.peft.disable_adapter():
            observed, cache = self._observed(batch)
        examples, places = (batch.targets >= 0).nonzero(as_tuple=True)
        return self._canvas(batch, cache)[examples, places], observed, (examples, places)

    def _joined(self, rows: Tensor, before: Tensor) -> Tensor:
        """`log_softmax(base row i-1) + gate * logits`, both `[n, width]` in, `[n, vocabulary]` out."""
        with torch.no_grad():
            prior = functional.log_softmax(self.llama.lm_head(before).float(), -1)
        gate = self.gate_bias.float() + rows.float() @ self.gate_weight.float()
        joined: Tensor = prior + gate[:, None] * self.llama.lm_head(rows).float()
        return joined

    def _logits(self, rows: Tensor, observed: Tensor, index: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
        logits: Tensor = self.llama.lm_head(rows).float()
        before = batch.prior_rows[index]
        near = (before >= 0).nonzero()[:, 0]
        if self.design.prior == "none" or near.numel() == 0:
            return logits
        return logits.index_copy(0, near, self._joined(rows[near], observed[index[0][near], before[near]]))

    def _divergence(self, rows: Tensor, observed: Tensor, index: tuple[Tensor, Tensor], batch: Batch) -> Tensor | None:
        wanted = batch.teacher_rows[index]
        taught = (wanted >= 0).nonzero()[:, 0]
        if taught.numel() == 0:
            return None
        with torch.no_grad():
            teacher = self.llama.lm_head(observed[index[0][taught], wanted[taught]]).float().log_softmax(-1)
        given = self._logits(rows, observed, index, batch)[taught].log_softmax(-1)
        divergence: Tensor = functional.kl_div(given, teacher, log_target=True, reduction="batchmean")
        return divergence

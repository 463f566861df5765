"""The embedded checkpoint as other people's packages read it: `gguf`, `transformers`, `peft`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import gguf
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from playground.denoisers.catalogue import POCKET_CHECKPOINT as CHECKPOINT
from playground.denoisers.pocket import MASK_ID
from playground.settings import ROOT

ASSETS = ROOT / "assets" / "pocket"


@pytest.fixture(scope="session")
def reader() -> gguf.GGUFReader:
    """The shipped checkpoint, opened by the `gguf` package."""
    return gguf.GGUFReader(ASSETS / CHECKPOINT)


@dataclass(frozen=True)
class Reference:
    """The published recipe on Hugging Face's own classes, everything computed anew at every step."""

    tokenizer: Any
    base: Any
    merged: Any
    mask_embedding: Tensor
    gate: float
    gate_weight: Tensor

    @torch.inference_mode()
    def logits(self, prompt: Sequence[int], canvas: Sequence[int], wanted: Sequence[int]) -> Tensor:
        """`[len(wanted), vocabulary]`, as the model's description says.

        Observed tokens first: the base reads prompt and committed tokens, causally, each at its own position. Then
        the masks: base + adapter, all observed tokens and the masks before them in sight. Where the token before a
        mask is observed, log_softmax(base row before) + g * (mask row), where g = gate + gate_weight . (its last
        hidden state).
        """
        places = list(range(len(prompt)))
        observed = list(prompt)
        for at, token in enumerate(canvas):
            if token != MASK_ID:
                observed.append(token)
                places.append(len(prompt) + at)
        masks = [at for at, token in enumerate(canvas) if token == MASK_ID]
        n, m = len(observed), len(masks)
        read = self.base(
            input_ids=torch.tensor([observed]),
            position_ids=torch.tensor([places]),
            attention_mask=torch.ones(1, 1, n, n, dtype=torch.bool).tril(),
            use_cache=True,
        )
        seen = torch.cat((torch.ones(m, n, dtype=torch.bool), torch.ones(m, m, dtype=torch.bool).tril()), dim=1)
        answered = self.merged(
            inputs_embeds=self.mask_embedding.expand(1, m, -1),
            position_ids=torch.tensor([[len(prompt) + at for at in masks]]),
            attention_mask=seen[None, None],
            cache=read.past_key_values,
            use_cache=True,
            output_hidden_states=True,
        )
        rows = []
        for at in wanted:
            row = answered.logits[0, masks.index(at)]
            before = len(prompt) + at - 1
            if before in places:
                gate = self.gate + answered.hidden_states[-1][0, masks.index(at)] @ self.gate_weight
                row = torch.log_softmax(read.logits[0, places.index(before)], -1) + gate * row
            rows.append(row)
        return torch.stack(rows)


@pytest.fixture(scope="session")
def reference(reader: gguf.GGUFReader, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """Tokenizer and base from the GGUF file by transformers, the mask network from the adapter by peft."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tmp_path_factory.mktemp("checkpoint")
    (folder / CHECKPOINT).symlink_to(ASSETS / CHECKPOINT)
    with pytest.MonkeyPatch.context() as patch:
        # transformers opens the file three times and makes its table of names once a module: minutes, uncached.
        patch.setattr(gguf, "GGUFReader", lambda *_: reader)
        patch.setattr(gguf, "get_tensor_name_map", lru_cache(gguf.get_tensor_name_map))
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=CHECKPOINT)
        base = AutoModelForCausalLM.from_pretrained(folder, gguf_file=CHECKPOINT, dtype=torch.float32)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
        merged = PeftModel.from_pretrained(deepcopy(base), ASSETS).merge_and_unload().eval()
    mask = load_file(ASSETS / "mask.safetensors")
    weight = mask["gate_weight"].float()
    embedding, gate = mask["mask_embedding"].float(), float(mask["prior_gate"])
    return Reference(tokenizer, base.eval(), merged, embedding, gate, weight)

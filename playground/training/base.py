"""The checkpoint to be adapted, as transformers' own Llama, and its tokens.

Reads the embedded GGUF file with the app's reader, so training and the app see the same numbers; any folder in
transformers' own format with a ChatML tokenizer works too. Must not know data or losses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from playground.denoisers.bytes_bpe import ChatMLTokens
from playground.denoisers.catalogue import POCKET_CHECKPOINT
from playground.denoisers.gguf import GGUFFile
from playground.denoisers.llama import LlamaShape
from playground.denoisers.pocket import END_ID, MASK_ID

PAD_ID = 0
BASE_NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
"""Named in the adapter's configuration."""
_PARTS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def load_tokens(folder: Path) -> ChatMLTokens:
    """The tokenizer beside the base."""
    return ChatMLTokens(folder / "tokenizer.json")


def load_base(folder: Path, dtype: torch.dtype, device: torch.device) -> LlamaForCausalLM:
    """The base network in evaluation mode, its weights frozen.

    Raises:
        GGUFError, OSError: the checkpoint is missing or damaged.
    """
    path = folder / POCKET_CHECKPOINT
    model: Any = _from_gguf(GGUFFile(path)) if path.is_file() else LlamaForCausalLM.from_pretrained(folder)
    model.requires_grad_(False)
    model.name_or_path = model.config.name_or_path = BASE_NAME
    return cast("LlamaForCausalLM", model.to(device=device, dtype=dtype).eval())


def _from_gguf(file: GGUFFile) -> LlamaForCausalLM:
    shape = LlamaShape.from_gguf(file.metadata)
    make: Any = LlamaConfig  # its fields are not all typed
    config = make(
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        intermediate_size=file.tensor("blk.0.ffn_gate.weight").shape[0],
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_width,
        max_position_embeddings=shape.context,
        rms_norm_eps=shape.epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_base},
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=END_ID,
        pad_token_id=PAD_ID,
        attn_implementation="sdpa",
    )
    state = {
        "model.embed_tokens.weight": file.tensor("token_embd.weight"),
        "model.norm.weight": file.tensor("output_norm.weight"),
    }
    for layer in range(shape.layers):
        for short, long in _PARTS.items():
            weight = file.tensor(f"blk.{layer}.{short}.weight")
            if short in ("attn_q", "attn_k"):
                weight = _unpaired(weight, shape.heads if short == "attn_q" else shape.kv_heads)
            state[f"model.layers.{layer}.{long}.weight"] = weight
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model.to_empty(device="cpu")
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True, assign=True)
    model.tie_weights()
    model.model.rotary_emb = type(model.model.rotary_emb)(config)  # its table is not in the file
    return model


def _unpaired(weight: Tensor, heads: int) -> Tensor:
    """llama.cpp keeps the two halves of a rotary pair side by side; transformers keeps them half a head apart."""
    half = weight.shape[0] // heads // 2
    return weight.view(heads, half, 2, -1).transpose(1, 2).reshape(weight.shape).contiguous()


__all__ = ["END_ID", "MASK_ID", "PAD_ID", "load_base", "load_tokens"]

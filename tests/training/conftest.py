"""A tiny base in the family's own format, and real weights where figures must be those of the app."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from playground.training.config import Recipe
from tests.reference import ASSETS

TINY: dict[str, Any] = {
    "vocab_size": 49_152,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
}


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random Llama of three layers and the real tokenizer."""
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(**TINY)).save_pretrained(folder)
    shutil.copyfile(ASSETS / "tokenizer.json", folder / "tokenizer.json")
    return folder


@pytest.fixture
def recipe(tiny_base: Path) -> Recipe:
    """Small enough for seconds."""
    return Recipe.model_validate(
        {
            "base": {"folder": str(tiny_base)},
            "data": {
                "prompts": 24,
                "batch": 8,
                "answer_tokens": 12,
                "validation": 8,
                "shortest": 1,
                "distinct_trigrams": 0,
                "asked_by_base": 0,
                "sampled": 0.5,
            },
            "design": {"rank": 4},
            "patterns": {"canvas_lengths": [8, 12], "window_lengths": [3], "windows_each": 2},
            "adapt": {"steps": 6, "batch": 4, "warmup": 1, "save_every": 2, "validate_every": 3},
            "device": "cpu",
            "dtype": "float32",
        }
    )

"""The networks a recipe asks for, on the device and in the precision that suit this machine."""

from __future__ import annotations

import time
from pathlib import Path

import torch
from transformers import LlamaForCausalLM

from playground.denoisers.loading import pick_device
from playground.denoisers.pocket import PocketDenoiser
from playground.training.base import load_base
from playground.training.config import Recipe
from playground.training.network import GatedDenoiser


def base_of(recipe: Recipe) -> LlamaForCausalLM:
    """The frozen base."""
    device = pick_device(recipe.device)
    return load_base(recipe.base.folder, dtype_of(recipe, device), device)


def denoiser_of(recipe: Recipe) -> GatedDenoiser:
    """Base and a fresh adapter."""
    return GatedDenoiser(base_of(recipe), recipe.design, recipe.adapt.seed).to(pick_device(recipe.device))


def shipped_denoiser(folder: Path) -> PocketDenoiser:
    """Packaged weights as the app loads them."""
    return PocketDenoiser(folder, pick_device("auto"))


def dtype_of(recipe: Recipe, device: torch.device) -> torch.dtype:
    """What products are computed in; "auto" measures, on a CPU, whether bfloat16 pays."""
    if recipe.dtype != "auto":
        return {"float32": torch.float32, "bfloat16": torch.bfloat16}[recipe.dtype]
    if device.type != "cpu":
        return torch.bfloat16
    return torch.bfloat16 if _seconds(torch.bfloat16) < _seconds(torch.float32) else torch.float32


def _seconds(dtype: torch.dtype) -> float:
    """Best of three products of the network's size. Some CPUs have units for bfloat16; others emulate it."""
    rows, weights = torch.ones(512, 576, dtype=dtype), torch.ones(1536, 576, dtype=dtype)
    times = []
    for _ in range(4):
        start = time.perf_counter()
        torch.nn.functional.linear(rows, weights)
        times.append(time.perf_counter() - start)
    return min(times[1:])

"""What a run of the adaptation keeps: masters, optimiser, the adapter's files, and the log. Must not know losses."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from playground.training.config import AdaptSettings
from playground.training.data import read_lines
from playground.training.network import GatedDenoiser


class Masters:
    """AdamW on float32 copies of the parameters, whatever these are kept as."""

    def __init__(self, parameters: dict[str, nn.Parameter], settings: AdaptSettings) -> None:
        self.parameters, self.settings = parameters, settings
        self.copies = {name: p.detach().float().clone() for name, p in parameters.items()}
        plain = [copy for name, copy in self.copies.items() if not name.startswith("gate_")]
        gates = [copy for name, copy in self.copies.items() if name.startswith("gate_")]
        groups = [{"params": plain, "times": 1.0}, {"params": gates, "times": settings.gate_rate, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(
            groups, lr=settings.learning_rate, betas=(0.9, 0.98), weight_decay=settings.weight_decay
        )

    def step(self, rate: float) -> float:
        """Apply the gradients at a learning rate, clear them, and give their norm before clipping."""
        for name, parameter in self.parameters.items():
            self.copies[name].grad = None if parameter.grad is None else parameter.grad.float()
            parameter.grad = None
        norm = float(nn.utils.clip_grad_norm_(list(self.copies.values()), self.settings.clip))
        if not math.isfinite(norm):
            return norm
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["times"]
        self.optimiser.step()
        self.write_back()
        return norm

    def write_back(self) -> None:
        """Copy the masters into the network."""
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(self.copies[name])


def save(folder: Path, network: GatedDenoiser, masters: Masters, step: int, masks: int) -> None:
    """Adapter and optimiser, each whole or not at all."""
    write_adapter(network, folder / "adapter")
    state = {"step": step, "masks": masks, "copies": masters.copies, "optimiser": masters.optimiser.state_dict()}
    torch.save(state, folder / "state.tmp")
    (folder / "state.tmp").replace(folder / "state.pt")


def restore(folder: Path, masters: Masters) -> tuple[int, int]:
    path = folder / "state.pt"
    if not path.is_file():
        return 0, 0
    state = torch.load(path, weights_only=True)
    for name, copy in masters.copies.items():
        copy.copy_(state["copies"][name])
    masters.optimiser.load_state_dict(state["optimiser"])
    masters.write_back()
    # Steps after the last save are made again; their lines would stand twice.
    kept = [line for line in read_lines(folder / "log.jsonl") if line["step"] <= state["step"]]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
    return int(state["step"]), int(state["masks"])


def write_adapter(network: GatedDenoiser, folder: Path) -> None:
    """PEFT's two files, and `mask.safetensors` with what the denoiser needs besides."""
    network.peft.save_pretrained(folder, save_embedding_layers=False)  # "auto" would ask the Hub
    extra = {
        "mask_embedding": network.mask_embedding.detach().float().cpu().contiguous(),
        "prior_gate": network.gate_bias.detach().float().cpu(),
        "gate_weight": network.gate_weight.detach().float().cpu(),
    }
    save_file(extra, folder / "mask.safetensors")


def read_adapter(network: GatedDenoiser, folder: Path) -> None:
    """Load what `write_adapter` wrote (or the app ships) into a network of the same design."""
    weights = load_file(folder / "adapter_model.safetensors")
    parameters = dict(network.peft.named_parameters())
    with torch.no_grad():
        for name, value in weights.items():
            parameters[name.replace(".lora_A.", ".lora_A.default.").replace(".lora_B.", ".lora_B.default.")].copy_(
                value
            )
        extra = load_file(folder / "mask.safetensors")
        network.mask_embedding.copy_(extra["mask_embedding"])
        network.gate_bias.copy_(extra["prior_gate"])
        if "gate_weight" in extra:
            network.gate_weight.copy_(extra["gate_weight"])


def curve(folder: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Step, masks seen and validation figures, wherever a run was validated."""
    for line in read_lines(folder / "log.jsonl"):
        if "validation" in line:
            yield line["step"], line["masks"], line["validation"]

"""The adaptation: masked positions in, cross-entropy out, AdamW on the adapter, the mask embedding and the gate.

A run's folder holds `recipe.json`, `adapter/` (PEFT's format, and `mask.safetensors`), `state.pt` (optimiser and
step) and `log.jsonl`. What a step sees depends on the seed and the step's number alone, so a run that was stopped goes
on as if it had not been. Must not know how the data was made or how good the result is.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from playground.training.config import AdaptSettings, ConfigError, Recipe
from playground.training.data import Example, read_examples, read_lines
from playground.training.network import GatedDenoiser, Scores
from playground.training.patterns import PATTERNS, Batch, make_batch, pick_pattern

POOL = 8
"""Batches whose examples are sorted by length together, so that little is padding."""
NEAR = 6
"""Distances that are reported apart."""


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


@dataclass(frozen=True, slots=True)
class Loss:
    """Means over a batch's masks. `near`: cross-entropy and accuracy by distance from the observed text, from 1."""

    total: Tensor
    cross_entropy: float
    accuracy: float
    masks: int
    near: tuple[tuple[float, float], ...]


def loss_of(network: GatedDenoiser, batch: Batch, settings: AdaptSettings) -> Loss:
    """Weighted cross-entropy, joined with KL to the base where the recipe asks for it."""
    scores = network(batch, teach=settings.distill > 0)
    targets, past = batch.targets[scores.index], batch.past_end[scores.index]
    losses = functional.cross_entropy(scores.logits, targets, reduction="none")
    weights = torch.where(past, settings.past_end, 1.0)
    total = (losses * weights).sum() / weights.sum()
    if settings.distill > 0 and scores.taught.numel():
        total = (1 - settings.distill) * total + settings.distill * _divergence(scores)
    with torch.no_grad():
        right = (scores.logits.argmax(-1) == targets).float()
        real = ~past
        far = batch.distances[scores.index]
        picks = [real & (far == d) for d in range(1, NEAR + 1)]
        near = tuple(
            (float(losses[p].mean()), float(right[p].mean())) if p.any() else (math.nan, math.nan) for p in picks
        )
        count = int(real.sum())
        mean = (float(losses[real].mean()), float(right[real].mean())) if count else (math.nan, math.nan)
    return Loss(total, *mean, count, near)


def _divergence(scores: Scores) -> Tensor:
    """KL(base || denoiser), in nats a mask."""
    wanted = functional.log_softmax(scores.teacher, -1)
    given = functional.log_softmax(scores.logits[scores.taught], -1)
    return functional.kl_div(given, wanted, log_target=True, reduction="batchmean")


def rate_at(step: int, settings: AdaptSettings) -> float:
    """Learning rate of a step, counted from 0: linear warm-up, then cosine down to a share."""
    up = min(1.0, (step + 1) / max(1, settings.warmup))
    done = step / max(1, settings.steps)
    return (
        settings.learning_rate
        * up
        * (settings.final_rate + (1 - settings.final_rate) * 0.5 * (1 + math.cos(math.pi * done)))
    )


def batch_at(step: int, examples: Sequence[Example], recipe: Recipe) -> tuple[str, Batch]:
    """What a step is trained on; depends on the recipe's seed and the step alone."""
    settings = recipe.adapt
    pool, place = divmod(step, POOL)
    want = settings.batch * POOL
    first = pool * want
    rows = [
        _shuffled(index // len(examples), len(examples), settings.seed)[index % len(examples)]
        for index in range(first, first + want)
    ]
    rows.sort(key=lambda row: len(examples[row].prompt))
    order = list(range(POOL))
    random.Random(f"pool {settings.seed} {pool}").shuffle(order)
    start = order[place] * settings.batch
    dice = random.Random(f"step {settings.seed} {step}")
    pattern = pick_pattern(recipe.patterns, dice)
    chosen = [examples[row] for row in rows[start : start + settings.batch]]
    return pattern, make_batch(chosen, pattern, recipe.patterns, recipe.design, dice)


_ORDERS: dict[tuple[int, int, int], list[int]] = {}


def _shuffled(epoch: int, count: int, seed: int) -> list[int]:
    key = (epoch, count, seed)
    if key not in _ORDERS:
        _ORDERS.clear()
        order = list(range(count))
        random.Random(f"epoch {seed} {epoch}").shuffle(order)
        _ORDERS[key] = order
    return _ORDERS[key]


@torch.no_grad()
def validate(network: GatedDenoiser, examples: Sequence[Example], recipe: Recipe, batches: int = 4) -> dict[str, Any]:
    """Loss and accuracy by pattern on the same masks every time."""
    figures: dict[str, Any] = {}
    for pattern in PATTERNS:
        losses = []
        for index in range(batches):
            dice = random.Random(f"validation {pattern} {index}")
            chosen = dice.sample(list(examples), min(16, len(examples)))
            batch = make_batch(chosen, pattern, recipe.patterns, recipe.design, dice)
            losses.append(loss_of(network, batch.to(network.mask_embedding.device), recipe.adapt))
        masks = sum(loss.masks for loss in losses)
        figures[pattern] = {
            "cross_entropy": sum(loss.cross_entropy * loss.masks for loss in losses if loss.masks) / masks,
            "accuracy": sum(loss.accuracy * loss.masks for loss in losses if loss.masks) / masks,
        }
        if pattern == "windows":
            figures["near"] = [
                [
                    sum(values) / len(values)
                    if (values := [loss.near[d][k] for loss in losses if loss.near[d][k] == loss.near[d][k]])
                    else None
                    for k in (0, 1)
                ]
                for d in range(NEAR)
            ]
    return figures


# --- the run --------------------------------------------------------------------------------------


def adapt(
    folder: Path,
    data: Sequence[Path],
    recipe: Recipe,
    network: GatedDenoiser,
    *,
    seconds: float = math.inf,
    tell: Callable[[dict[str, Any]], None] = lambda _: None,
) -> int:
    """Train until the recipe's last step, or for about `seconds`; gives the step reached.

    Raises:
        ConfigError: the folder holds a run of another recipe, or the loss is no number.
    """
    training, validation = _examples(data, recipe)
    folder.mkdir(parents=True, exist_ok=True)
    _same_recipe(folder, recipe)
    settings = recipe.adapt
    if settings.start_from is not None and not (folder / "state.pt").is_file():
        read_adapter(network, settings.start_from)
    masters = Masters(network.trained(), settings)
    step, masks = _restore(folder, masters)
    device = network.mask_embedding.device
    began = time.monotonic()
    with (folder / "log.jsonl").open("a", encoding="utf-8") as log:
        while step < settings.steps and time.monotonic() - began < seconds:
            tick = time.monotonic()
            pattern, batch = batch_at(step, training, recipe)
            loss = loss_of(network, batch.to(device), settings)
            loss.total.backward()  # type: ignore[no-untyped-call]
            norm = masters.step(rate_at(step, settings))
            step, masks = step + 1, masks + loss.masks
            line: dict[str, Any] = {
                "step": step,
                "pattern": pattern,
                "cross_entropy": loss.cross_entropy,
                "accuracy": loss.accuracy,
                "masks": masks,
                "norm": norm,
                "seconds": time.monotonic() - tick,
            }
            if not math.isfinite(norm):
                raise ConfigError(f"The loss is no number at step {step}; lower adapt.learning_rate and go on.")
            if step % settings.validate_every == 0 or step == settings.steps:
                line["validation"] = validate(network, validation, recipe)
            log.write(json.dumps(line) + "\n")
            log.flush()
            tell(line)
            if step % settings.save_every == 0 or step == settings.steps:
                _save(folder, network, masters, step, masks)
    _save(folder, network, masters, step, masks)
    return step


def _examples(data: Sequence[Path], recipe: Recipe) -> tuple[list[Example], list[Example]]:
    training: list[Example] = []
    validation: list[Example] = []
    for folder in data:
        some, kept_out = read_examples(folder, recipe.base.folder, recipe.data)
        training += some
        validation += kept_out
    if not training:
        raise ConfigError("There is nothing to train on; run `train data` first, with more prompts.")
    return training, validation


def _same_recipe(folder: Path, recipe: Recipe) -> None:
    """Keep the recipe beside the run, which is gone on with only by the design it began with."""
    path = folder / "recipe.json"
    if path.is_file():
        old = Recipe.model_validate_json(path.read_text())
        if (old.design, old.patterns) != (recipe.design, recipe.patterns):
            raise ConfigError(f"{folder} holds a run of another design; choose another folder, or the old recipe.")
    path.write_text(recipe.model_dump_json(indent=1))


def _save(folder: Path, network: GatedDenoiser, masters: Masters, step: int, masks: int) -> None:
    """Adapter and optimiser, each whole or not at all."""
    write_adapter(network, folder / "adapter")
    state = {"step": step, "masks": masks, "copies": masters.copies, "optimiser": masters.optimiser.state_dict()}
    torch.save(state, folder / "state.tmp")
    (folder / "state.tmp").replace(folder / "state.pt")


def _restore(folder: Path, masters: Masters) -> tuple[int, int]:
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


# --- the adapter's files --------------------------------------------------------------------------


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

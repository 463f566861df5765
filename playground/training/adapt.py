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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from playground.training.base import load_tokens
from playground.training.checkpoint import Masters, read_adapter, restore, save
from playground.training.config import AdaptSettings, ConfigError, Recipe
from playground.training.data import Example, read_examples
from playground.training.network import GatedDenoiser
from playground.training.patterns import PATTERNS, Batch, make_batch, pick_pattern
from playground.training.prose import read_prose

POOL = 8
"""Batches whose examples are sorted by length together, so that little is padding."""
BOTH_SIDES = ("random", "spans")
"""Patterns whose masks have text on their right."""
NEAR = 6
"""Distances that are reported apart."""


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
    past = batch.past_end[scores.index]
    weights = torch.where(past, settings.past_end, 1.0)
    # All behind the end and no weight there: a loss of zero, not 0 / 0.
    total = (scores.losses * weights).sum() / weights.sum().clamp_min(1e-6)
    if scores.divergence is not None:
        total = (1 - settings.distill) * total + settings.distill * scores.divergence
    losses, right, real = scores.losses.detach(), scores.right.float(), ~past
    far = batch.distances[scores.index]
    picks = [real & (far == distance) for distance in range(1, NEAR + 1)]
    near = tuple((float(losses[p].mean()), float(right[p].mean())) if p.any() else (math.nan, math.nan) for p in picks)
    count = int(real.sum())
    mean = (float(losses[real].mean()), float(right[real].mean())) if count else (math.nan, math.nan)
    return Loss(total, *mean, count, near)


def rate_at(step: int, settings: AdaptSettings) -> float:
    """Learning rate of a step, counted from 0: linear warm-up, then cosine down to a share."""
    up = min(1.0, (step + 1) / max(1, settings.warmup))
    done = step / max(1, settings.steps)
    return (
        settings.learning_rate
        * up
        * (settings.final_rate + (1 - settings.final_rate) * 0.5 * (1 + math.cos(math.pi * done)))
    )


def batch_at(
    step: int, examples: Sequence[Example], recipe: Recipe, prose: Sequence[Example] = ()
) -> tuple[str, Batch]:
    """What a step is trained on; depends on the recipe's seed and the step alone.

    Args:
        step: from 0.
        examples: the base's answers.
        recipe: the mixture, sizes and seed.
        prose: what people wrote, for a share of the batches whose masks have text on both sides.
    """
    settings = recipe.adapt
    dice = random.Random(f"step {settings.seed} {step}")
    pattern = pick_pattern(recipe.patterns, dice)
    if prose and pattern in BOTH_SIDES and dice.random() < recipe.data.prose_share:
        chosen = dice.sample(prose, min(settings.batch, len(prose)))
    else:
        chosen = _alike_long(step, examples, settings)
    return pattern, make_batch(chosen, pattern, recipe.patterns, recipe.design, dice)


def _alike_long(step: int, examples: Sequence[Example], settings: AdaptSettings) -> list[Example]:
    """A step's share of the shuffled examples; prompts in a batch are about as long."""
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
    return [examples[row] for row in rows[start : start + settings.batch]]


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
    clock: Callable[[], float] = time.monotonic,
    tell: Callable[[dict[str, Any]], None] = lambda _: None,
) -> int:
    """Train until the recipe's last step, or for about `seconds` of the clock; gives the step reached.

    Raises:
        ConfigError: the folder holds a run of another recipe, or the loss is no number.
    """
    training, validation = _examples(data, recipe)
    prose = read_prose(recipe.data.prose, load_tokens(recipe.base.folder), recipe.data)
    folder.mkdir(parents=True, exist_ok=True)
    _same_recipe(folder, recipe)
    settings = recipe.adapt
    if settings.start_from is not None and not (folder / "state.pt").is_file():
        read_adapter(network, settings.start_from)
    masters = Masters(network.trained(), settings)
    step, masks = restore(folder, masters)
    device = network.mask_embedding.device
    began = clock()
    with (folder / "log.jsonl").open("a", encoding="utf-8") as log:
        while step < settings.steps and clock() - began < seconds:
            tick = time.monotonic()
            pattern, batch = batch_at(step, training, recipe, prose)
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
                save(folder, network, masters, step, masks)
    save(folder, network, masters, step, masks)
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

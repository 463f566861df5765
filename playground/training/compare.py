"""Designs beside each other: each arm is the recipe with some settings changed, trained on equal compute.

Compute is processor time (wall time on a GPU), so that a machine that does something else meanwhile favours no arm;
and what is measured is the same for all arms, whatever masks they were trained on: tokens right behind a prefix, by
distance from it, in gaps of answers, and in gaps of texts that people wrote. Must not know how an arm is shown.
"""

from __future__ import annotations

import json
import math
import random
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from playground.training.adapt import adapt
from playground.training.base import load_tokens
from playground.training.checkpoint import read_adapter
from playground.training.config import ConfigError, DesignSettings, Recipe, load_recipe
from playground.training.data import Example, read_examples
from playground.training.infill import PROMPT, human_texts
from playground.training.making import denoiser_of
from playground.training.measures import Figure, bootstrap, mean
from playground.training.network import GatedDenoiser
from playground.training.patterns import holes_batch

DEFAULT_ARMS = Path(__file__).with_name("arms.toml")
AHEAD = 6
"""Masks behind a prefix."""
BATCH = 16


def read_arms(path: Path) -> dict[str, dict[str, Any]]:
    """Arms by name, each a table of settings; `common` holds for all and is no arm.

    Raises:
        ConfigError: no such file, or not tables of settings.
    """
    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"The arms {path} cannot be read as TOML ({str(error)[:120]}); name another file.") from None
    if not body or not all(isinstance(arm, dict) for arm in body.values()):
        raise ConfigError(f"{path} holds no arms; each is a table such as [rank-16] with settings below it.")
    common = body.pop("common", {})
    return {name: {**common, **arm} for name, arm in body.items()}


def compare(
    folder: Path,
    recipe: Path,
    arms: Mapping[str, Mapping[str, Any]],
    seconds: float,
    *,
    changes: Mapping[str, Any] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Train and measure each arm; gives, and keeps in `comparison.json`, the figures of all. Goes on where it was.

    Args:
        folder: holds `data` (made before) and gets a run for each arm.
        recipe: what the arms change.
        arms: settings by arm.
        seconds: of processor time for each arm's training.
        changes: settings for all arms, which an arm's own win over.
        tell: is told which arm is done.
    """
    path = folder / "comparison.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    for name, settings in arms.items():
        if name in found:
            continue
        with_changes = load_recipe(recipe, {**(changes or {}), **settings})
        found[name] = _arm(folder, folder / "arms" / name, with_changes, seconds)
        found[name]["settings"] = dict(settings)
        path.write_text(json.dumps(found, indent=1))
        tell(f"{name}: {found[name]['masks']:,} masks in {found[name]['steps']} steps")
    return {name: found[name] for name in arms}


def _arm(folder: Path, run: Path, recipe: Recipe, seconds: float) -> dict[str, Any]:
    torch.manual_seed(recipe.adapt.seed)
    network = denoiser_of(recipe)
    device = network.mask_embedding.device
    spent = 0.0
    if not (run / "done").is_file():
        clock = time.process_time if device.type == "cpu" else time.monotonic
        began = clock()
        adapt(run, [folder / "data"], recipe, network, seconds=seconds, clock=clock)
        spent = clock() - began
        (run / "done").touch()
        (run / "state.pt").unlink()  # the optimiser: an arm is not gone on with, and there are many
    read_adapter(network, run / "adapter")
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    figures = measure(network, folder / "data", recipe)
    body = {name: [figure.value, figure.low, figure.high] for name, figure in figures.items()}
    return {"steps": lines[-1]["step"], "masks": lines[-1]["masks"], "seconds": spent, "figures": body}


# --- what is measured -----------------------------------------------------------------------------


@torch.no_grad()
def measure(network: GatedDenoiser, data: Path, recipe: Recipe) -> dict[str, Figure]:
    """Shares of masks whose best token is the text's own, with intervals over texts.

    `ahead 1` … behind a prefix with nothing after, by distance; `gap 1`, `gap 3` in held-out answers; `people 1` in
    texts that people wrote.
    """
    _, answers = read_examples(data, recipe.base.folder, recipe.data)
    tokens = load_tokens(recipe.base.folder)
    prompt = tuple(tokens.encode_prompt(PROMPT))
    people = [Example(prompt, tuple(tokens.encode(text))) for text in human_texts()]
    figures = {}
    ahead = _right(network, recipe.design, [_behind(example, i) for i, example in enumerate(answers)])
    for distance in range(1, AHEAD + 1):
        some = [hits[distance - 1] for hits in ahead if len(hits) >= distance]
        figures[f"ahead {distance}"] = bootstrap(some, mean)
    for name, texts, size in (("gap 1", answers, 1), ("gap 3", answers, 3), ("people 1", people * 2, 1)):
        wanted = [_gap(example, size, turn) for turn, example in enumerate(texts) if len(example.answer) > size + 2]
        figures[name] = bootstrap([mean(hits) for hits in _right(network, recipe.design, wanted)], mean)
    return figures


def _behind(example: Example, index: int) -> tuple[Example, list[int]]:
    """Cut an answer some way in, and mask what is left of it, up to `AHEAD` tokens."""
    start = random.Random(f"ahead {index}").randrange(max(1, len(example.answer) - AHEAD))
    stop = min(start + AHEAD, len(example.answer))
    return Example(example.prompt, example.answer[:stop]), list(range(start, stop))


def _gap(example: Example, size: int, turn: int) -> tuple[Example, list[int]]:
    start = random.Random(f"gap {turn} {size} {example.answer}").randrange(1, len(example.answer) - size)
    return example, list(range(start, start + size))


def _right(
    network: GatedDenoiser, design: DesignSettings, wanted: Sequence[tuple[Example, list[int]]]
) -> list[list[float]]:
    """For each text, whether each of its masks is right, all predicted in one forward."""
    found: list[list[float]] = []
    for start in range(0, len(wanted), BATCH):
        some = wanted[start : start + BATCH]
        batch = holes_batch([e for e, _ in some], [m for _, m in some], design).to(network.mask_embedding.device)
        scores = network(batch)
        rows = scores.index[0].tolist()
        hits: list[list[float]] = [[] for _ in some]
        for row, right in zip(rows, scores.right.tolist(), strict=True):
            hits[row].append(float(right))
        found += hits
    return found


COLUMNS = (*(f"ahead {n}" for n in range(1, 5)), "gap 1", "gap 3", "people 1")


def comparison_table(found: Mapping[str, Any]) -> str:
    """Markdown: an arm a line, percent with 95 % intervals."""
    head = ["arm", "masks", *COLUMNS]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name, arm in found.items():
        cells = [_percent(*arm["figures"][column]) for column in COLUMNS]
        lines.append(f"| {name} | {arm['masks']:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _percent(value: float, low: float, high: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.0f} ({100 * low:.0f}–{100 * high:.0f})"

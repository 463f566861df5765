"""Which positions of an example are masked, and who sees whom: examples become one batch of rows.

Two groups of rows. *Observed* rows are tokens in order with gaps left out. *Canvas* rows follow: the masks (and, when
the adapter runs on the whole canvas, its tokens too). Must not know networks or losses.

Patterns: `windows` (several runs of masks, each seeing only the text before it: one pass over the text teaches many
starts), `random` (a share t, as in MDLM, arXiv 2406.07524), `spans` (gaps with text on both sides), `suffix` (all
behind a point).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from playground.training.base import END_ID, MASK_ID, PAD_ID
from playground.training.config import DesignSettings, PatternSettings
from playground.training.data import Example

PATTERNS = ("windows", "random", "spans", "suffix")


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of some examples, padded on the right; B examples, P observed rows, M canvas rows.

    `ids`, `positions` `[B, P]`: the observed. `canvas_ids`, `canvas_positions` `[B, M]`: the mask id where masked.
    `visible` `[B, M, P + M]`: which rows a canvas row sees. `targets` `[B, M]`: the token at a mask, -1 where no loss
    is taken. `prior_rows` `[B, M]`: the observed row that predicts this position, -1 if the one before is not observed.
    `teacher_rows` `[B, M]`: the observed row that has read all the text before the position, -1 if there is none.
    `distances` `[B, M]`: positions since the last observed one. `past_end` `[B, M]`: behind the end of the text.
    """

    ids: Tensor
    positions: Tensor
    canvas_ids: Tensor
    canvas_positions: Tensor
    visible: Tensor
    targets: Tensor
    prior_rows: Tensor
    teacher_rows: Tensor
    distances: Tensor
    past_end: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same on a device."""
        return Batch(*(getattr(self, field.name).to(device) for field in fields(self)))


@dataclass(frozen=True, slots=True)
class _Rows:
    """One example's rows. Observed: (token, position). Groups of canvas rows see the first `sees` observed rows."""

    observed: list[tuple[int, int]]
    groups: list[tuple[int, list[tuple[int, int, int]]]]
    """(observed rows seen, [(input id, target or -1, position)])"""
    prompt: int
    end: int


def pick_pattern(settings: PatternSettings, dice: random.Random) -> str:
    """One pattern's name, by the mixture's weights."""
    return dice.choices(PATTERNS, [getattr(settings, name) for name in PATTERNS])[0]


def make_batch(
    examples: Sequence[Example],
    pattern: str,
    settings: PatternSettings,
    design: DesignSettings,
    dice: random.Random,
) -> Batch:
    """Mask the examples by a pattern; canvas length, share of masks and window length are drawn once for all."""
    length = dice.choice(settings.canvas_lengths)
    share = settings.least_masked + (1 - settings.least_masked) * dice.random()
    window = dice.choice(settings.window_lengths)
    rows = []
    for example in examples:
        canvas = [*example.answer[:length], *[END_ID] * (length - len(example.answer))]
        if pattern == "windows" and design.adapter_on == "masks":
            rows.append(_windows(example, canvas, window, settings.windows_each, dice))
        else:
            masked = _masked(pattern, length=length, share=share, window=window, end=_end_of(canvas), dice=dice)
            rows.append(_holes(example, canvas, masked, design))
    return _laid_out(rows, design)


def holes_batch(examples: Sequence[Example], masked: Sequence[Sequence[int]], design: DesignSettings) -> Batch:
    """Mask the given positions of each answer as it is, without padding it to a canvas."""
    rows = [_holes(e, list(e.answer), sorted(m), design) for e, m in zip(examples, masked, strict=True)]
    return _laid_out(rows, design)


def _end_of(canvas: Sequence[int]) -> int:
    return canvas.index(END_ID) if END_ID in canvas else len(canvas)


def _masked(pattern: str, *, length: int, share: float, window: int, end: int, dice: random.Random) -> list[int]:
    # Windows lie behind a prefix with nothing after; where the whole canvas is seen, that is a suffix.
    if pattern == "random":
        return sorted(dice.sample(range(length), max(1, round(share * length))))
    if pattern == "spans":
        chosen: set[int] = set()
        for _ in range(dice.randint(1, 4)):
            size = dice.randint(1, window)
            start = dice.randint(0, max(0, min(end, length - size)))
            chosen.update(range(start, min(length, start + size)))
        return sorted(chosen)
    return list(range(dice.randint(0, min(end, length - 1)), length))


def _windows(example: Example, canvas: list[int], window: int, count: int, dice: random.Random) -> _Rows:
    prompt, end = len(example.prompt), _end_of(canvas)
    observed = [(token, at) for at, token in enumerate((*example.prompt, *canvas))]
    groups = []
    for _ in range(count):
        start = dice.randint(0, max(0, min(end, len(canvas) - window)))
        masks = [(MASK_ID, canvas[at], prompt + at) for at in range(start, min(start + window, len(canvas)))]
        groups.append((prompt + start, masks))
    return _Rows(observed, groups, prompt, end)


def _holes(example: Example, canvas: list[int], masked: Sequence[int], design: DesignSettings) -> _Rows:
    prompt, hidden = len(example.prompt), set(masked)
    observed = [(token, at) for at, token in enumerate(example.prompt)]
    if design.adapter_on == "canvas":
        rows = [(MASK_ID, t, prompt + i) if i in hidden else (t, -1, prompt + i) for i, t in enumerate(canvas)]
    else:
        observed += [(token, prompt + at) for at, token in enumerate(canvas) if at not in hidden]
        rows = [(MASK_ID, canvas[at], prompt + at) for at in masked]
    return _Rows(observed, [(len(observed), rows)], prompt, _end_of(canvas))


def _laid_out(items: Sequence[_Rows], design: DesignSettings) -> Batch:
    batch, wide = len(items), max(len(item.observed) for item in items)
    deep = max(sum(len(group) for _, group in item.groups) for item in items)
    numbers = {name: torch.zeros(batch, wide, dtype=torch.long) for name in ("ids", "positions")}
    numbers["ids"].fill_(PAD_ID)
    for name in ("canvas_ids", "canvas_positions", "targets", "prior_rows", "teacher_rows", "distances"):
        numbers[name] = torch.full((batch, deep), -1 if name in ("targets", "prior_rows", "teacher_rows") else 0)
    visible = torch.zeros(batch, deep, wide + deep, dtype=torch.bool)
    past_end = torch.zeros(batch, deep, dtype=torch.bool)
    both_ways = design.masks_see == "all" or design.adapter_on == "canvas"
    for b, item in enumerate(items):
        row_of = {at: row for row, (_, at) in enumerate(item.observed)}
        numbers["ids"][b, : len(item.observed)] = torch.tensor([token for token, _ in item.observed])
        numbers["positions"][b, : len(item.observed)] = torch.tensor([at for _, at in item.observed])
        row = 0
        for sees, group in item.groups:
            stop = row + len(group)
            among = torch.ones(len(group), len(group), dtype=torch.bool)
            visible[b, row:stop, :sees] = True
            visible[b, row:stop, wide + row : wide + stop] = among if both_ways else among.tril()
            since = 0
            for at, (token, target, position) in enumerate(group, start=row):
                before = row_of.get(position - 1, -1)
                numbers["canvas_ids"][b, at], numbers["canvas_positions"][b, at] = token, position
                numbers["targets"][b, at] = target
                numbers["prior_rows"][b, at] = before if before < sees else -1
                numbers["teacher_rows"][b, at] = before if before == position - 1 else -1
                follows = at > row and group[at - row - 1][2] == position - 1 and group[at - row - 1][1] >= 0
                since = since + 1 if follows else 1
                numbers["distances"][b, at] = since
                past_end[b, at] = position > item.prompt + item.end
            row = stop
        # Padding rows see themselves, so that no softmax is empty.
        spare = torch.arange(row, deep)
        visible[b, spare, wide + spare] = True
    return Batch(visible=visible, past_end=past_end, **numbers)

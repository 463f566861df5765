"""Masks and who sees whom, for every pattern and design."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from playground.training.base import END_ID, MASK_ID
from playground.training.config import DesignSettings, PatternSettings
from playground.training.data import Example
from playground.training.patterns import PATTERNS, Batch, holes_batch, make_batch, pick_pattern

DESIGNS = [
    DesignSettings(),
    DesignSettings(masks_see="all"),
    DesignSettings(adapter_on="canvas"),
]


@st.composite
def examples(draw: st.DrawFn) -> list[Example]:
    """A few prompts and answers; some end, some are cut off. Tokens tell their own place."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        prompt, answer = draw(st.integers(1, 6)), draw(st.integers(1, 20))
        ids = [100 + i for i in range(answer)]
        if draw(st.booleans()):
            ids[-1] = END_ID
        found.append(Example(tuple(50 + i for i in range(prompt)), tuple(ids)))
    return found


def token_at(example: Example, position: int) -> int:
    """What stands at a logical position of prompt + canvas."""
    if position < len(example.prompt):
        return example.prompt[position]
    at = position - len(example.prompt)
    return example.answer[at] if at < len(example.answer) else END_ID


def check(batch: Batch, some: list[Example], design: DesignSettings) -> None:
    """What holds for every batch."""
    wide = batch.ids.shape[1]
    for b, example in enumerate(some):
        rows = [row for row in range(batch.canvas_ids.shape[1]) if batch.visible[b, row, :wide].any()]
        for row in rows:
            position, target = int(batch.canvas_positions[b, row]), int(batch.targets[b, row])
            seen = batch.visible[b, row]
            observed = [r for r in range(wide) if seen[r]]
            # What is observed stands where it stands in the text, in order, and is never what is asked for.
            for r in observed:
                assert int(batch.ids[b, r]) == token_at(example, int(batch.positions[b, r]))
            places = [int(batch.positions[b, r]) for r in observed]
            assert places == sorted(set(places))
            assert position not in places
            assert set(range(len(example.prompt))) <= set(places)
            # A mask has its target; a row that is no mask has none.
            masked = int(batch.canvas_ids[b, row]) == MASK_ID
            assert masked == (target >= 0)
            assert (target if masked else int(batch.canvas_ids[b, row])) == token_at(example, position)
            # Masks see themselves and, of the others, those before them or all; never another window's.
            among = [r for r in range(batch.canvas_ids.shape[1]) if seen[wide + r]]
            assert row in among
            if design.masks_see == "before" and design.adapter_on == "masks":
                assert max(among) == row
            before = int(batch.prior_rows[b, row])
            assert (before >= 0) == (position - 1 in places)
            if before >= 0:
                assert before in observed
                assert int(batch.positions[b, before]) == position - 1
            teacher = int(batch.teacher_rows[b, row])
            if teacher >= 0:
                # That row has read every token before the position.
                assert [int(p) for p in batch.positions[b, : teacher + 1]] == list(range(position))
            end = len(example.prompt) + (example.answer.index(END_ID) if END_ID in example.answer else 10**6)
            if END_ID in example.answer:
                assert bool(batch.past_end[b, row]) == (position > end)
        for row in set(range(batch.canvas_ids.shape[1])) - set(rows):
            assert int(batch.targets[b, row]) == -1
            assert batch.visible[b, row].sum() == 1


@pytest.mark.parametrize("design", DESIGNS, ids=["before", "all", "canvas"])
@pytest.mark.parametrize("pattern", PATTERNS)
@given(some=examples(), seed=st.integers(0, 10**6))
def test_every_pattern(pattern: str, design: DesignSettings, some: list[Example], seed: int) -> None:
    settings = PatternSettings(canvas_lengths=(5, 9, 16), window_lengths=(1, 3, 6), windows_each=3)
    batch = make_batch(some, pattern, settings, design, random.Random(seed))
    check(batch, some, design)
    assert (batch.targets >= 0).any(dim=1).all()
    again = make_batch(some, pattern, settings, design, random.Random(seed))
    assert torch.equal(batch.targets, again.targets)
    assert torch.equal(batch.visible, again.visible)


def test_distances_count_from_the_text() -> None:
    example = Example((50, 51), tuple(range(100, 110)))
    batch = holes_batch([example], [[2, 3, 4, 7]], DesignSettings())
    assert batch.distances[0].tolist() == [1, 2, 3, 1]
    assert batch.prior_rows[0].tolist()[1:3] == [-1, -1]
    # Position 7's left neighbour is observed, but behind a gap: it has not read all the text.
    assert batch.prior_rows[0, 3] >= 0
    assert batch.teacher_rows[0].tolist() == [3, -1, -1, -1]


@pytest.mark.parametrize("only", PATTERNS)
def test_the_mixture(only: str) -> None:
    weights: dict[str, Any] = {name: float(name == only) for name in PATTERNS}
    assert pick_pattern(PatternSettings(**weights), random.Random(0)) == only

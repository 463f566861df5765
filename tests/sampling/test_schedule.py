"""Schedules equal their plain statements, use every step, and waste none."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from playground.sampling import schedule
from playground.sampling.schedule import cosine_split, even_split, plan_blocks
from tests.sampling import plain

masks_and_steps = st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n)))


# --- counted ---------------------------------------------------------------------------------------


@given(st.integers(0, 1024), st.integers(1, 1024))
def test_an_even_split_sums_to_the_masks_with_the_larger_parts_first(masks: int, steps: int) -> None:
    counts = even_split(masks, steps)
    assert sum(counts) == masks
    assert len(counts) == min(masks, steps)
    assert all(count >= 1 for count in counts)
    assert max(counts, default=0) - min(counts, default=0) <= 1
    assert list(counts) == sorted(counts, reverse=True)
    assert list(counts) == plain.even_counts(masks, steps)


@given(masks_and_steps)
@example((3, 3))  # cos(pi/3) is a hair over a half
@example((1024, 1))
def test_a_cosine_split_follows_the_curve_and_commits_at_least_one(case: tuple[int, int]) -> None:
    masks, steps = case
    counts = cosine_split(masks, steps)
    assert list(counts) == plain.cosine_counts(masks, steps)
    assert sum(counts) == masks
    assert len(counts) == steps
    assert min(counts) >= 1


def test_a_cosine_split_starts_slowly_and_ends_fast() -> None:
    # 64 cos(pi/16 s) for s = 1..8: 62.8, 59.1, 53.2, 45.3, 35.6, 24.5, 12.5, 0
    assert cosine_split(64, 8) == (64 - 62, 62 - 59, 59 - 53, 53 - 45, 45 - 35, 35 - 24, 24 - 12, 12)
    assert cosine_split(4, 4) == (1, 1, 1, 1)


# --- blocks ----------------------------------------------------------------------------------------


@given(st.integers(1, 1024), st.integers(0, 1100), st.integers(1, 1100))
@example(48, 8, 27)
@example(10, 4, 2)
@example(5, 2, 1)
@example(1024, 1, 1023)
def test_blocks_cover_the_canvas_and_share_the_steps(length: int, block: int, steps: int) -> None:
    blocks = plan_blocks(length, block, steps)
    asked = min(block or length, length)
    forwards = min(steps, length)
    # They lie end to end; all are alike but the last, which may be short.
    assert blocks[0].start == 0
    assert blocks[-1].end == length
    assert all(left.end == right.start for left, right in pairwise(blocks))
    sizes = [b.end - b.start for b in blocks]
    assert len(set(sizes[:-1])) <= 1
    assert 1 <= sizes[-1] <= sizes[0]
    # They are as long as asked, or whole numbers of neighbours joined where steps are too few for each to get one.
    if math.ceil(length / asked) <= forwards:
        assert sizes[0] == asked
    else:
        assert sizes[0] == min(length, asked * math.ceil(math.ceil(length / asked) / forwards))
    # Steps add up; each block has one at least and one a position at most, in proportion to its length.
    assert sum(b.steps for b in blocks) == forwards
    for b, size in zip(blocks, sizes, strict=True):
        assert 1 <= b.steps <= size
        assert b.steps == 1 or abs(b.steps - forwards * size / length) < 1
    alike = [b.steps for b, size in zip(blocks, sizes, strict=True) if size == sizes[0]]
    assert max(alike) - min(alike) <= 1


@given(st.integers(1, 200), st.integers(0, 200), st.integers(1, 200))
def test_the_even_counts_of_all_blocks_sum_to_the_canvas(length: int, block: int, steps: int) -> None:
    blocks = plan_blocks(length, block, steps)
    for split in (even_split, cosine_split):
        counts = [split(b.end - b.start, b.steps) for b in blocks]
        assert sum(map(sum, counts)) == length
        assert sum(map(len, counts)) == min(steps, length)


def test_examples_of_plans() -> None:
    def plan(*asked: int) -> list[tuple[int, int, int]]:
        return [(b.start, b.end, b.steps) for b in plan_blocks(*asked)]

    assert plan(8, 0, 8) == [(0, 8, 8)]
    assert plan(8, 100, 3) == [(0, 8, 3)]
    assert plan(10, 4, 100) == [(0, 4, 4), (4, 8, 4), (8, 10, 2)]
    assert plan(10, 4, 5) == [(0, 4, 2), (4, 8, 2), (8, 10, 1)]
    assert plan(10, 4, 2) == [(0, 8, 1), (8, 10, 1)]
    assert plan(10, 4, 1) == [(0, 10, 1)]
    assert [steps for *_, steps in plan(48, 8, 27)] == [5, 5, 5, 4, 4, 4]


# --- adaptive --------------------------------------------------------------------------------------

# Numbers that binary fractions state exactly, so that sums and comparisons have no rounding to argue about.
sixteenths = st.integers(0, 16).map(lambda k: k / 16)
pairs = st.lists(st.tuples(sixteenths, st.integers(-8, 8).map(lambda k: k / 8)), min_size=1, max_size=12)


def rows_of(chosen: torch.Tensor) -> set[int]:
    """Indices that are true."""
    assert chosen.dtype is torch.bool
    return set(chosen.nonzero()[:, 0].tolist())


def columns(rows: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Values and scores."""
    return [value for value, _ in rows], [score for _, score in rows]


@given(pairs, sixteenths)
def test_a_threshold_takes_all_at_or_above_it_else_the_best(rows: list[tuple[float, float]], bar: float) -> None:
    values, scores = columns(rows)
    chosen = rows_of(schedule.over_threshold(torch.tensor(values), bar, torch.tensor(scores)))
    assert chosen == plain.over_threshold(values, bar, scores)
    assert chosen


@given(pairs, st.integers(1, 5).map(lambda k: 2**k), st.data())
def test_a_ramp_is_a_threshold_that_falls_to_nothing(
    rows: list[tuple[float, float]], steps: int, data: st.DataObject
) -> None:
    values, scores = columns(rows)
    step = data.draw(st.integers(0, steps - 1))
    chosen = rows_of(schedule.over_ramp(torch.tensor(values), step, steps, torch.tensor(scores)))
    assert chosen == plain.over_threshold(values, 1 - (step + 1) / steps, scores)
    last = schedule.over_ramp(torch.tensor(values), steps - 1, steps, torch.tensor(scores))
    assert bool(last.all())


@given(pairs, st.integers(0, 64).map(lambda k: k / 16))
def test_an_entropy_bound_takes_the_longest_prefix_that_fits(rows: list[tuple[float, float]], bound: float) -> None:
    entropies, scores = columns(rows)
    chosen = rows_of(schedule.within_entropy_bound(torch.tensor(entropies), bound, torch.tensor(scores)))
    assert chosen == plain.within_bound(entropies, bound, scores)
    assert chosen


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=12), st.integers(1, 15))
def test_the_best_are_taken_and_ties_go_left(scores: list[int], count: int) -> None:
    chosen = rows_of(schedule.take_best(torch.tensor(scores, dtype=torch.float32), count))
    assert chosen == plain.best([float(s) for s in scores], count)
    assert len(chosen) == min(count, len(scores))


@pytest.mark.parametrize("n", [50, 500])
def test_ties_go_left_however_many_there_are(n: int) -> None:
    assert rows_of(schedule.take_best(torch.zeros(n), 7)) == set(range(7))
    ones = torch.ones(n)
    assert rows_of(schedule.within_entropy_bound(ones, 3.0, torch.zeros(n))) == set(range(4))

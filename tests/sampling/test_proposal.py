"""Proposals: argmax, the cuts, and draws that follow softmax(l / T)."""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from playground.sampling.proposal import nucleus, propose, top_k_filter
from tests.sampling import plain

BANNED = -math.inf
row_of_logits = st.lists(st.one_of(st.floats(-20, 20), st.just(BANNED)), min_size=2, max_size=10).filter(
    lambda row: max(row) > BANNED
)


def drawn(
    row: plain.Row, times: int, *, temperature: float, top_k: int = 0, top_p: float = 1.0, seed: int = 0
) -> list[int]:
    """`times` independent proposals for the same logits."""
    rows = torch.tensor([row] * times)
    generator = torch.Generator().manual_seed(seed)
    return propose(rows, temperature=temperature, top_k=top_k, top_p=top_p, generator=generator).tolist()


def kept(filtered: torch.Tensor, row: plain.Row) -> set[int]:
    """Which tokens are left; what is left is unchanged."""
    (values,) = filtered.tolist()
    left = {i for i, value in enumerate(values) if value > BANNED}
    assert all(values[i] == row[i] for i in left)
    return left


@given(row_of_logits)
def test_at_temperature_nought_the_best_is_proposed(row: plain.Row) -> None:
    (token,) = drawn(row, 1, temperature=0)
    assert token == plain.argmax([float(np.float32(value)) for value in row])


@given(row_of_logits, st.integers(0, 12))
def test_top_k_keeps_the_k_best_and_their_ties(row: plain.Row, k: int) -> None:
    possible = {i for i, value in enumerate(row) if value > BANNED}
    floor = sorted(row, reverse=True)[k - 1] if 0 < k < len(row) else BANNED
    expected = {i for i in possible if row[i] >= floor}
    assert kept(top_k_filter(torch.tensor([row], dtype=torch.float64), k), row) == expected


@given(row_of_logits, st.floats(0.001, 1.0))
def test_a_nucleus_is_the_smallest_set_that_reaches_p(row: plain.Row, p: float) -> None:
    shares = plain.softmax(row)
    order = sorted(range(len(row)), key=lambda i: (-row[i], i))
    masses = list(accumulate(shares[i] for i in order))
    assume(all(abs(mass - p) > 1e-9 for mass in masses[:-1]))
    size = next((n for n, mass in enumerate(masses, 1) if mass >= p), len(order))
    expected = {i for i in order[:size] if row[i] > BANNED}
    found = kept(nucleus(torch.tensor([row], dtype=torch.float64), p), row)
    # Tokens of mass nought may be left or not: they are never drawn.
    assert {i for i in found if shares[i] > 1e-12} == {i for i in expected if shares[i] > 1e-12}
    assert plain.argmax(row) in found


@given(row_of_logits, st.floats(1e-300, 1e-3))
def test_the_narrowest_nucleus_is_one_token(row: plain.Row, p: float) -> None:
    assert kept(nucleus(torch.tensor([row], dtype=torch.float64), p), row) == {plain.argmax(row)}


ROW = [1.0, 0.5, BANNED, 0.0, -1.0, 2.0, BANNED, -4.0]


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, 0, 1.0), (0.5, 0, 1.0), (2.0, 0, 1.0), (1.0, 3, 1.0), (1.0, 0, 0.8), (1.5, 4, 0.7), (0.1, 0, 1.0)],
)
def test_draws_follow_the_distribution(temperature: float, top_k: int, top_p: float) -> None:
    times = 40_000
    scaled = [value / temperature for value in ROW]
    order = sorted(range(len(ROW)), key=lambda i: -ROW[i])
    if top_k:
        order = order[:top_k]
    cut = plain.softmax([scaled[i] if i in order else BANNED for i in range(len(ROW))])
    masses = list(accumulate(cut[i] for i in order))
    order = order[: next((n for n, mass in enumerate(masses, 1) if mass >= top_p), len(order))]
    expected = plain.softmax([scaled[i] if i in order else BANNED for i in range(len(ROW))])

    tokens = drawn(ROW, times, temperature=temperature, top_k=top_k, top_p=top_p)
    counts = [tokens.count(i) for i in range(len(ROW))]
    for count, share in zip(counts, expected, strict=True):
        if share == 0:
            assert count == 0
    # Chi-square over the tokens that can be drawn often enough; 24.3 is passed once in two thousand at 6 degrees.
    often = [i for i, share in enumerate(expected) if share * times >= 5]
    statistic = sum((counts[i] - times * expected[i]) ** 2 / (times * expected[i]) for i in often)
    assert statistic < 24.3


@given(row_of_logits, st.floats(0.01, 2), st.integers(0, 2**32 - 1))
def test_banned_tokens_are_never_drawn(row: plain.Row, temperature: float, seed: int) -> None:
    for token in drawn(row, 50, temperature=temperature, seed=seed):
        assert row[token] > BANNED


@pytest.mark.parametrize("temperature", [5e-324, 1e-310, 1e-300, 1e-30, 1e-3])
@pytest.mark.parametrize("row", [[-3.0, -2.0, -9.0], [BANNED, -700.0, -600.0], [5.0, 8.0, 2.0, BANNED], [0.0, 0.5]])
def test_the_smallest_temperatures_are_argmax(row: plain.Row, temperature: float) -> None:
    assert set(drawn(row, 20, temperature=temperature)) == {plain.argmax(row)}
    assert set(drawn(row, 20, temperature=temperature, top_k=2, top_p=0.9)) == {plain.argmax(row)}


@given(
    st.lists(st.lists(st.floats(-9, 9, width=32), min_size=5, max_size=5), min_size=1, max_size=6), st.integers(0, 99)
)
def test_the_noise_is_gumbel_in_double_precision(rows: list[plain.Row], seed: int) -> None:
    noise = torch.rand((len(rows), 5), dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).numpy()
    expected = []
    for row, uniform in zip(rows, noise, strict=True):
        expected.append(plain.argmax([x / 0.7 - math.log(-math.log(u)) for x, u in zip(row, uniform, strict=True)]))
    found = propose(
        torch.tensor(rows), temperature=0.7, top_k=0, top_p=1.0, generator=torch.Generator().manual_seed(seed)
    )
    assert found.tolist() == expected


def test_each_row_has_its_own_draw() -> None:
    tokens = drawn([0.0] * 50, 400, temperature=1.0)
    assert len(set(tokens)) > 40


def test_the_seed_decides() -> None:
    row = [0.1 * i for i in range(20)]
    assert drawn(row, 30, temperature=1, seed=3) == drawn(row, 30, temperature=1, seed=3)
    assert drawn(row, 30, temperature=1, seed=3) != drawn(row, 30, temperature=1, seed=4)

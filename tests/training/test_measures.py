"""Figures of texts, against hand-made cases."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.training.measures import bootstrap, distinct, ends_well, entropy, mean, repetition


def test_entropy_of_known_texts() -> None:
    assert entropy([]) == 0
    assert entropy([7, 7, 7]) == 0
    assert entropy([1, 2, 3, 4]) == pytest.approx(math.log(4))
    assert entropy([1, 1, 2, 2]) == pytest.approx(math.log(2))


def test_distinct_and_repetition() -> None:
    assert distinct([1, 2, 1, 2], 1) == 0.5
    assert distinct([1, 2, 1, 2], 2) == pytest.approx(2 / 3)
    assert distinct([1], 3) == 1
    assert repetition([1, 2, 3, 1, 2, 3]) == pytest.approx(1 / 4)
    assert repetition([1, 2, 3, 4, 5]) == 0


@pytest.mark.parametrize(
    ("text", "well"),
    [("It ends.", True), ("Does it? ", True), ('He said "no"', True), ("It does", False), ("", False), ("a,", False)],
)
def test_ending_in_a_sentence(text: str, well: bool) -> None:
    assert ends_well(text) is well


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30))
def test_a_bootstrap_holds_its_value(values: list[float]) -> None:
    figure = bootstrap(values, mean, draws=200)
    assert figure.value == pytest.approx(mean(values))
    assert min(values) - 1e-9 <= figure.low <= figure.high <= max(values) + 1e-9
    assert bootstrap(values, mean, draws=200) == figure


def test_a_bootstrap_narrows_with_more_items() -> None:
    few, many = bootstrap([0.0, 1.0] * 5, mean), bootstrap([0.0, 1.0] * 500, mean)
    assert many.high - many.low < 0.2 * (few.high - few.low)


def test_no_items_no_figure() -> None:
    assert math.isnan(bootstrap([], mean).value)

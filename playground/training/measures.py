"""Figures of texts, and how sure one can be of them. Pure functions on token ids and numbers.

Unigram entropy, repetition and distinct-n as in the literature on generated text (distinct-n: arXiv 1510.03055; entropy
beside perplexity, since repetition lowers both: arXiv 2409.02908). Intervals are percentile bootstraps over prompts.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Figure:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


def entropy(ids: Sequence[int]) -> float:
    """Unigram entropy of a text, in nats."""
    counts = Counter(ids)
    return -sum(n / len(ids) * math.log(n / len(ids)) for n in counts.values()) if ids else 0.0


def distinct(ids: Sequence[int], n: int) -> float:
    """Share of n-grams that are different; 1 for a text shorter than n."""
    grams = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
    return len(set(grams)) / len(grams) if grams else 1.0


def repetition(ids: Sequence[int]) -> float:
    """Share of trigrams that were there before."""
    return 1 - distinct(ids, 3)


def ends_well(text: str) -> bool:
    """Whether a text ends in a complete sentence (or a closed code block), by its last character."""
    return text.rstrip().endswith((".", "!", "?", '"', "”", ")", "```", ":"))


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; not a number for none."""
    return sum(values) / len(values) if values else math.nan


def bootstrap(items: Sequence[T], statistic: Callable[[Sequence[T]], float], draws: int = 1000) -> Figure:
    """A statistic of the items, with the 2.5th and 97.5th percentiles over resampled items; the dice are fixed."""
    if not items:
        return Figure(math.nan, math.nan, math.nan)
    dice = random.Random(0)
    values = sorted(statistic(dice.choices(items, k=len(items))) for _ in range(draws))
    return Figure(statistic(items), values[int(0.025 * draws)], values[min(draws - 1, int(0.975 * draws))])

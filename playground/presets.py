"""Named settings that teach: what each is for, in one sentence, and the knobs it turns.

The values follow from measurements on the embedded model (docs/pocket.md): it falls apart when it must commit several
positions at once for good, and reads well when what it drafts is checked from left to right and taken back where wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Preset:
    """A title for a button, a sentence that teaches, and request fields."""

    title: str
    sentence: str
    values: Mapping[str, Any]


def _preset(title: str, sentence: str, **values: Any) -> Preset:
    return Preset(title, sentence, MappingProxyType(values))


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "fast": _preset(
            "Fast",
            "A short canvas, three drafts a forward; only what reads plainly wrong is taken back. Watch words change.",
            length=32,
            steps=11,
            block=16,
            schedule="even",
            confidence="leftmost",
            threshold=0.7,
            correction="causal",
            acceptance=0.1,
            temperature=0.0,
        ),
        "balanced": _preset(
            "Balanced",
            "Drafts all guesses above 0.2, then reads them from left to right and takes back what does not fit.",
            length=64,
            steps=64,
            block=16,
            schedule="threshold",
            confidence="leftmost",
            threshold=0.2,
            correction="causal",
            acceptance=0.1,
            temperature=0.0,
        ),
        "careful": _preset(
            "Careful",
            "The same, but a draft stays only if it is nearly the likeliest: about as fluent as this model gets.",
            length=64,
            steps=64,
            block=16,
            schedule="threshold",
            confidence="leftmost",
            threshold=0.3,
            correction="causal",
            acceptance=0.3,
            temperature=0.0,
        ),
        "threshold": _preset(
            "No correction",
            "Commits each guess above 0.7 wherever it stands, else the leftmost; what is committed stays.",
            length=64,
            steps=64,
            block=16,
            schedule="threshold",
            confidence="leftmost",
            threshold=0.7,
            correction="none",
            acceptance=0.3,
            temperature=0.0,
        ),
        "any-order": _preset(
            "Any order",
            "One position a forward, the surest first, wherever it stands in the block. Watch the order jump.",
            length=48,
            steps=48,
            block=8,
            schedule="even",
            confidence="probability",
            threshold=0.7,
            correction="none",
            acceptance=0.3,
            temperature=0.0,
        ),
        "few-steps": _preset(
            "Too few steps",
            "Four positions a forward. They cannot see each other's choice, so a small model writes word salad.",
            length=48,
            steps=12,
            block=16,
            schedule="even",
            confidence="probability",
            threshold=0.7,
            correction="none",
            acceptance=0.3,
            temperature=0.0,
        ),
    }
)
DEFAULT_PRESET = "balanced"

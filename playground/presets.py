"""Named settings that teach: what each is for, in one sentence, and the knobs it turns.

The values follow from measurements on the embedded model (docs/pocket.md): it reads well while it commits what it is
sure of and otherwise goes from left to right, and falls apart when it must commit several positions at once.
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
            "A short canvas; commits every guess the model gives at least even odds. Fewer forwards, rougher text.",
            length=32,
            steps=32,
            block=16,
            schedule="threshold",
            confidence="leftmost",
            threshold=0.5,
            correction="none",
            acceptance=0.3,
            temperature=0.0,
        ),
        "balanced": _preset(
            "Balanced",
            "Commits each guess above 0.7 wherever it stands, else the leftmost. Reads well on the embedded model.",
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
        "careful": _preset(
            "Careful",
            "Commits several at once only when the model is nearly certain. As fluent as this model gets.",
            length=64,
            steps=64,
            block=8,
            schedule="threshold",
            confidence="leftmost",
            threshold=0.9,
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

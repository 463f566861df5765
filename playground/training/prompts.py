"""What the base is asked: templates filled from word lists, and the held-out prompts that training must not touch.

Must not know models or tokens.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt and the kind of text it asks for; `own` for those that the base made up."""

    prompt: str
    family: str


@cache
def heldout() -> tuple[Asked, ...]:
    """The evaluation's prompts, in order; `family` is the topic that no training prompt may hold."""
    body = tomllib.loads((_FOLDER / "heldout.toml").read_text(encoding="utf-8"))
    return tuple(Asked(entry["text"], entry["topic"]) for entry in body["prompt"])


@cache
def _heldout_topics() -> re.Pattern[str]:
    topics = "|".join(re.escape(asked.family) for asked in heldout())
    return re.compile(rf"\b({topics})\b", re.IGNORECASE)


def is_heldout(prompt: str) -> bool:
    """Whether a prompt touches a held-out topic."""
    return _heldout_topics().search(prompt) is not None


def template_prompts(seed: int) -> Iterator[Asked]:
    """Endless distinct prompts from the templates, families by weight; none touches a held-out topic."""
    body = tomllib.loads((_FOLDER / "prompts.toml").read_text(encoding="utf-8"))
    words = {name: [word.strip() for word in text.split("|")] for name, text in body["words"].items()}
    families = body["families"]
    names, weights = list(families), [families[name]["weight"] for name in families]
    dice = random.Random(f"templates {seed}")
    seen: set[str] = set()
    misses = 0
    while misses < 10_000:
        family = dice.choices(names, weights)[0]
        template = dice.choice(families[family]["templates"])
        prompt = _SLOT.sub(lambda slot: dice.choice(words[slot[1]]), template)
        if prompt in seen or is_heldout(prompt):
            misses += 1
            continue
        misses = 0
        seen.add(prompt)
        yield Asked(prompt, family)

"""Texts that people wrote, for the masks that have text on both sides.

In what the base writes itself, the base's own next token is nearly always the right one, and a gate that learns from
that alone learns to look no further; in what people write, the words on the right often decide. Must not know masks
or losses.
"""

from __future__ import annotations

import lzma
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from playground.denoisers.bytes_bpe import ChatMLTokens
from playground.denoisers.pocket import END_ID
from playground.training.config import ConfigError, DataSettings
from playground.training.data import Example
from playground.training.prompts import is_heldout

PROMPTS = ("Write a sentence.", "Write a short text.", "Write something.", "Give an example sentence.", "Continue.")
"""What such a text is taken to answer; more than one, so that none of them comes to mean anything."""


def read_prose(paths: Sequence[Path], tokens: ChatMLTokens, settings: DataSettings) -> list[Example]:
    """One example a passage, in an order fixed by the seed; held-out topics and short passages are left out.

    Args:
        paths: text files, `.xz` or plain, UTF-8; an empty line parts passages, and `#` begins a line of remarks.
        tokens: of the base.
        settings: the longest and shortest answer, and the seed.

    Raises:
        ConfigError: a file cannot be read.
    """
    dice = random.Random(f"prose {settings.seed}")
    prompts = [tuple(tokens.encode_prompt(prompt)) for prompt in PROMPTS]
    found = []
    for path in paths:
        for passage in _passages(path):
            ids = tokens.encode(passage)
            if len(ids) >= settings.shortest and not is_heldout(passage):
                whole = [*ids, END_ID]
                found.append(Example(dice.choice(prompts), tuple(whole[: settings.answer_tokens])))
    dice.shuffle(found)
    return found


def _passages(path: Path) -> Iterator[str]:
    try:
        raw = path.read_bytes()
        text = (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode("utf-8")
    except (OSError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise ConfigError(f"The prose {path} cannot be read ({str(error)[:100]}); name a text file in UTF-8.") from None
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for block in re.split(r"\n\s*\n", lines):
        if passage := " ".join(block.split()):
            yield passage

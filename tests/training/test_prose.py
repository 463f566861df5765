"""Texts that people wrote become examples; patterns with text on both sides are trained on them."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from playground.denoisers.pocket import END_ID
from playground.training.adapt import BOTH_SIDES, batch_at
from playground.training.base import load_tokens
from playground.training.config import ConfigError, DataSettings, Recipe
from playground.training.data import Example
from playground.training.prompts import heldout
from playground.training.prose import PROMPTS, read_prose

TEXT = f"""# a remark
The cat sat on
the mat and slept.

{heldout()[0].family} are left out of what is trained on.

Too short.

A second passage says something else, at some length, and is cut.
"""


@pytest.mark.parametrize("packed", [False, True])
def test_passages_become_examples(tiny_base: Path, tmp_path: Path, packed: bool) -> None:
    path = tmp_path / ("prose.txt.xz" if packed else "prose.txt")
    path.write_bytes(lzma.compress(TEXT.encode()) if packed else TEXT.encode())
    tokens = load_tokens(tiny_base)
    settings = DataSettings(prose=(path,), shortest=len(tokens.encode("Too short.")) + 1, answer_tokens=200)
    found = read_prose(settings.prose, tokens, settings)
    texts = {tokens.decode(example.answer[:-1]) for example in found}
    assert texts == {
        "The cat sat on the mat and slept.",
        "A second passage says something else, at some length, and is cut.",
    }
    assert all(example.answer[-1] == END_ID for example in found)
    assert {example.prompt for example in found} <= {tuple(tokens.encode_prompt(prompt)) for prompt in PROMPTS}
    assert found == read_prose(settings.prose, tokens, settings)
    cut = read_prose(settings.prose, tokens, settings.model_copy(update={"answer_tokens": 9}))
    assert {len(example.answer) for example in cut} == {9}


def test_a_file_that_is_no_text_is_one_sentence(tiny_base: Path, tmp_path: Path) -> None:
    (broken := tmp_path / "prose.txt.xz").write_bytes(b"no archive")
    (latin := tmp_path / "prose.txt").write_bytes(b"caf\xe9")
    for path in (broken, latin, tmp_path / "none.txt"):
        with pytest.raises(ConfigError, match="cannot be read") as caught:
            read_prose([path], load_tokens(tiny_base), DataSettings())
        assert "\n" not in str(caught.value)


def test_only_patterns_with_text_on_both_sides_learn_from_prose(recipe: Recipe) -> None:
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update={"prose_share": 1.0})})
    answers = [Example((100,), tuple(range(200, 212)))] * 32
    prose = [Example((101,), tuple(range(300, 312)))] * 32
    seen = {batch_at(step, answers, recipe, prose)[0]: batch_at(step, answers, recipe, prose)[1] for step in range(60)}
    assert set(seen) > set(BOTH_SIDES)
    for pattern, batch in seen.items():
        assert set(batch.ids[:, 0].tolist()) == {101 if pattern in BOTH_SIDES else 100}

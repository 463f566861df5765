"""Prompts, answers, and how a stopped run goes on."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from playground.training.base import END_ID, MASK_ID, load_base, load_tokens
from playground.training.config import ConfigError, DataSettings, Recipe, load_recipe
from playground.training.data import (
    ANSWERS,
    PROMPTS,
    fault,
    read_examples,
    read_lines,
    write_answers,
    write_prompts,
)
from playground.training.decode import decode
from playground.training.prompts import heldout, is_heldout, template_prompts

CPU = torch.device("cpu")


def silent(_: str) -> None:
    return None


# --- prompts ----------------------------------------------------------------------------------------


def test_held_out_prompts_are_distinct_and_recognised() -> None:
    prompts = [entry.prompt for entry in heldout()]
    assert len(prompts) == len(set(prompts)) == 64
    for entry in heldout():
        assert entry.family.lower() in entry.prompt.lower(), "a topic that its own prompt lacks guards nothing"
        assert is_heldout(entry.prompt)


def test_templates_never_touch_what_is_held_out() -> None:
    some = list(itertools.islice(template_prompts(0), 5000))
    assert len({entry.prompt for entry in some}) == len(some)
    assert not any(is_heldout(entry.prompt) for entry in some)
    assert not any("{" in entry.prompt for entry in some)
    assert len({entry.family for entry in some}) >= 10
    assert some[:50] == list(itertools.islice(template_prompts(0), 50))
    assert some[:50] != list(itertools.islice(template_prompts(1), 50))


# --- decoding ---------------------------------------------------------------------------------------


def test_decoding_in_company_equals_decoding_alone(tiny_base: Path) -> None:
    """Padding, rows that leave and the cache change nothing; the end is kept, the mask never written."""
    model = load_base(tiny_base, torch.float32, CPU)
    with torch.no_grad():
        model.lm_head.weight[END_ID] *= 3  # so that some rows end
    prompts = [[100 + i * j for i in range(1, j + 2)] for j in range(1, 9)]
    together = decode(model, prompts, 20)
    assert together == [decode(model, [prompt], 20)[0] for prompt in prompts]
    for prompt, answer in zip(prompts, together, strict=True):
        ids = list(prompt)
        for token in answer:
            with torch.inference_mode():
                row = model(torch.tensor([ids])).logits[0, -1]
            row = row.clone()
            row[MASK_ID] = -torch.inf
            assert token == int(row.argmax())
            ids.append(token)
        assert END_ID not in answer[:-1]
        assert len(answer) == 20 or answer[-1] == END_ID


@pytest.mark.parametrize("top_k", [0, 5])
def test_sampling_follows_its_generator(tiny_base: Path, top_k: int) -> None:
    model = load_base(tiny_base, torch.float32, CPU)
    once, again, other = (
        decode(model, [[100, 101]] * 3, 8, temperature=1.0, top_k=top_k, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert once == again != other


# --- files ------------------------------------------------------------------------------------------


def make(folder: Path, recipe: Recipe) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model, tokens = load_base(recipe.base.folder, torch.float32, CPU), load_tokens(recipe.base.folder)
    write_prompts(folder, recipe.data, model, tokens, silent)
    write_answers(folder, recipe.data, model, tokens, silent)


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(recipe: Recipe, tmp_path: Path) -> None:
    make(tmp_path / "whole", recipe)
    folder = tmp_path / "stopped"
    make(folder, recipe.model_copy(update={"data": recipe.data.model_copy(update={"prompts": 16})}))
    for name in (PROMPTS, ANSWERS):
        with (folder / name).open("a") as file:
            file.write('{"prompt": "cut in the mid')
    make(folder, recipe)
    for name in (PROMPTS, ANSWERS):
        assert (folder / name).read_text() == (tmp_path / "whole" / name).read_text()
    lines = read_lines(folder / ANSWERS)
    assert len(lines) == recipe.data.prompts
    assert {line["temperature"] for line in lines} == {0.0, 0.8}
    training, validation = read_examples(folder, recipe.base.folder, recipe.data)
    assert len(validation) == 8
    assert len(training) == 16
    assert not {example.prompt for example in training} & {example.prompt for example in validation}


def test_prompts_of_the_base_itself_are_whole_sentences(recipe: Recipe, tmp_path: Path) -> None:
    """The tiny base writes noise, so nothing of it is usable; templates fill what it leaves."""
    own = recipe.model_copy(update={"data": recipe.data.model_copy(update={"asked_by_base": 0.5, "prompt_tokens": 8})})
    make(tmp_path, own)
    lines = read_lines(tmp_path / PROMPTS)
    assert len(lines) == own.data.prompts
    for line in lines:
        if line["family"] == "own":
            assert line["prompt"].endswith((".", "?", "!"))
            assert "\n" not in line["prompt"]


@pytest.mark.parametrize(
    ("ids", "why"),
    [
        ([1, 2, 3], "short"),
        ([1, 2, 3, 4, 5, 6, 7], ""),
        ([1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3], "repeats"),
    ],
)
def test_what_is_dropped(ids: list[int], why: str) -> None:
    assert fault(ids, DataSettings(shortest=4)) == why


# --- recipes ----------------------------------------------------------------------------------------


def test_changes_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text("[adapt]\nsteps = 7\nbatch = 3\n")
    found = load_recipe(path, {"adapt.steps": 9, "dtype": "float32"})
    assert (found.adapt.steps, found.adapt.batch, found.dtype) == (9, 3, "float32")


@pytest.mark.parametrize(
    ("body", "changes", "said"),
    [
        ("[adapt]\nsteps = 0\n", {}, "adapt.steps"),
        ("[adapt]\nstep = 1\n", {}, "adapt.step "),
        ("[adapt\n", {}, "not TOML"),
        ("", {"adapt.steps": "many"}, "adapt.steps"),
        ("dtype = 'float32'\n", {"dtype.x": 1}, "dtype.x"),
        ("[data]\nsampled = nan\n", {}, "data.sampled"),
    ],
)
def test_a_bad_recipe_gets_one_sentence(tmp_path: Path, body: str, changes: dict[str, Any], said: str) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(body)
    with pytest.raises(ConfigError) as caught:
        load_recipe(path, changes)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_missing_recipe_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml"):
        load_recipe(tmp_path / "nowhere.toml")

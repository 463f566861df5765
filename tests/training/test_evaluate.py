"""The evaluation on the real weights: its twin is greedy decoding, its judge the base, its gaps are gaps."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from playground.denoisers.pocket import END_ID, MASK_ID, PocketDenoiser
from playground.presets import Preset
from playground.training import report
from playground.training.evaluate import (
    Written,
    figures_of,
    judged,
    masked_figures,
    perplexity,
    write,
    write_left_to_right,
)
from playground.training.infill import Case, cases, filled, filled_left_to_right
from playground.training.prompts import heldout
from playground.training.report import DECODINGS, evaluate, knobs_at
from tests.reference import Reference

PROMPTS = ["What is the capital of France?", "Why do cats purr?", "Say hello."]
pytestmark = pytest.mark.timeout(300)


def test_the_twin_is_greedy_decoding(pocket: PocketDenoiser, reference: Reference) -> None:
    for text in write_left_to_right(pocket, PROMPTS, 10):
        ids = pocket.tokens.encode_prompt(text.prompt)
        for at, token in enumerate(text.ids):
            row = reference.base(input_ids=torch.tensor([ids])).logits[0, -1].clone()
            row[[MASK_ID, END_ID] if at == 0 else [MASK_ID]] = -torch.inf
            assert token == int(row.argmax())
            ids.append(token)
        assert len(text.ids) == 10 or text.ids[-1] == END_ID
        assert text.forwards == len(text.ids)


def test_the_judge_is_the_base(pocket: PocketDenoiser, reference: Reference) -> None:
    text = Written(PROMPTS[1], tuple(pocket.tokens.encode("Cats purr when they are content.")), "", 1, finished=False)
    (found,) = judged(pocket, [text])
    prompt = pocket.tokens.encode_prompt(text.prompt)
    with torch.inference_mode():
        rows = reference.base(input_ids=torch.tensor([[*prompt, *text.ids]])).logits[0].log_softmax(-1)
    expected = [-float(rows[len(prompt) + at - 1, token]) for at, token in enumerate(text.ids)]
    assert list(found.surprise) == pytest.approx(expected, abs=1e-3)
    assert perplexity([found]) == pytest.approx(math.exp(sum(expected) / len(expected)), rel=1e-3)


def test_exact_correction_writes_what_the_twin_writes(pocket: PocketDenoiser) -> None:
    exact = next(decoding for decoding in DECODINGS if decoding.name == "corrected, exact")
    twin = judged(pocket, write_left_to_right(pocket, PROMPTS, 12))
    texts = judged(pocket, write(pocket, PROMPTS, knobs_at(exact, 12, 2)))
    assert [text.ids for text in texts] == [text.ids for text in twin]
    figures = figures_of(texts, twin)
    assert figures["ratio"].value == pytest.approx(1)
    assert figures["entropy_less"].value == 0
    assert 0.5 < figures["tokens_per_forward"].value <= 2


def test_masks_cost_more_the_more_there_are(pocket: PocketDenoiser) -> None:
    twin = write_left_to_right(pocket, PROMPTS, 16)
    figures = masked_figures(pocket, twin, [0.2, 1.0])
    assert figures[1.0]["cross_entropy"].value > figures[0.2]["cross_entropy"].value
    for rate in (0.2, 1.0):
        assert 0 <= figures[rate]["accuracy"].value <= 1
        assert figures[rate]["nelbo"].value > 0


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("size", [1, 3, 8])
def test_gaps_are_where_they_should_be(pocket: PocketDenoiser, size: int, scattered: bool) -> None:
    found = cases(pocket, size, scattered=scattered)
    assert len(found) >= (20 if scattered and size == 8 else 90)
    for case in found:
        assert len(case.gaps) == size
        assert case.gaps[0] >= 2
        steps = {b - a for a, b in zip(case.gaps, case.gaps[1:], strict=False)}
        assert (1 not in steps) if scattered else steps <= {1}
    assert found == cases(pocket, size, scattered=scattered)


def test_filling_changes_nothing_outside_the_gaps(pocket: PocketDenoiser, reference: Reference) -> None:
    ids = tuple(pocket.tokens.encode("The capital of France is Paris, and many people live there."))
    case = Case(ids, (2, 4, 5))
    for fill in (filled, filled_left_to_right):
        (answer,) = fill(pocket, [case])
        assert all(a == b for at, (a, b) in enumerate(zip(ids, answer, strict=True)) if at not in case.gaps)
        assert MASK_ID not in answer
    prompt = pocket.tokens.encode_prompt("Write a short text.")
    row = reference.base(input_ids=torch.tensor([[*prompt, *ids[:2]]])).logits[0, -1].clone()
    row[MASK_ID] = -torch.inf
    assert filled_left_to_right(pocket, [case])[0][2] == int(row.argmax())


def test_a_report_goes_on_where_it_was_stopped(pocket: PocketDenoiser, tmp_path: Path) -> None:
    path, told = tmp_path / "evaluation.json", []
    evaluate(pocket, path, weights="1", prompts=2, parts=["decoding"], lengths=[6], paces=[6], tell=told.append)
    assert told[0] == "the base alone, 6 tokens" or told[0].startswith("decoding")
    body = json.loads(path.read_text())
    assert body["prompts"] == 2
    assert [sample["prompt"] for sample in body["decoding"]["base, 6"]["samples"]] == [
        entry.prompt for entry in heldout()[:2]
    ]
    again: list[str] = []
    assert evaluate(pocket, path, weights="1", prompts=2, parts=["decoding"], lengths=[6], paces=[6], tell=again.append)
    assert again == []
    del body["decoding"]["any order, 6, 6"]
    path.write_text(json.dumps(body))
    evaluate(pocket, path, weights="1", prompts=2, parts=["decoding"], lengths=[6], paces=[6], tell=again.append)
    assert again[0] == "decoding: any order, 6, 6"
    evaluate(pocket, path, weights="2", prompts=2, parts=["decoding"], lengths=[6], paces=[6], tell=again.append)
    assert len(again) > 5, "other weights are measured anew"


def test_presets_are_measured_as_their_buttons_set_them(
    pocket: PocketDenoiser, tmp_path: Path, monkeypatch: Any
) -> None:
    short = {"one": Preset("One", "", {"length": 4, "steps": 2, "temperature": 0.0})}
    monkeypatch.setattr(report, "PRESETS", short)
    body = evaluate(pocket, tmp_path / "evaluation.json", weights="1", prompts=1, parts=["presets"])
    entry = body["presets"]["One"]
    assert entry["samples"][0]["forwards"] == 2
    assert entry["figures"]["tokens_per_forward"]["value"] <= 2

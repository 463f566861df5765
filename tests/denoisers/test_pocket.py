"""The embedded model computes the published recipe; its cache, its batches and its shortcuts change nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from playground.denoisers import pocket as module
from playground.denoisers.base import DenoiserError, Job
from playground.denoisers.catalogue import CATALOGUE
from playground.denoisers.catalogue import POCKET_CHECKPOINT as CHECKPOINT
from playground.denoisers.catalogue import POCKET_FILES as FILES
from playground.denoisers.pocket import MASK_ID, PocketContext, PocketDenoiser
from tests.reference import ASSETS, Reference

LENGTH = 9
ROUNDING = 5e-4
"""Float rounding between two orders of summation, on logits whose spread is some 15; measured: 7e-5."""
PROMPT = "Why is the sky blue?"
ORDERS = {
    "left to right": [[0], [1], [2], [3, 4], [5, 6, 7]],
    "right to left": [[8], [7], [6], [5, 4], [3, 2, 1]],
    "outside in": [[0, 8], [1, 7], [2, 6], [3, 5]],
    "scattered": [[4], [1, 6], [0, 2], [8], [3, 5]],
}


def ids_of(denoiser: PocketDenoiser, prompt: str = PROMPT) -> list[int]:
    """The prompt's tokens."""
    return denoiser.tokens.encode_prompt(prompt)


def masks_of(canvas: Sequence[int]) -> list[int]:
    """Masked positions."""
    return [at for at, token in enumerate(canvas) if token == MASK_ID]


def ask(denoiser: PocketDenoiser, *jobs: Job) -> list[Tensor]:
    """One forward; rows copied, since the sampler may change them in place."""
    return [rows.clone() for rows in denoiser.logits(jobs)]


@lru_cache(maxsize=16)
def _prepared(denoiser: PocketDenoiser, prompt: tuple[int, ...], length: int) -> PocketContext:
    return denoiser.prepare(prompt, length)


def prepare(denoiser: PocketDenoiser, prompt: list[int], length: int) -> PocketContext:
    """A context that has seen nothing but the prompt."""
    return deepcopy(_prepared(denoiser, tuple(prompt), length))


def ask_fresh(denoiser: PocketDenoiser, prompt: list[int], canvas: list[int], wanted: list[int]) -> Tensor:
    """The same with no committed token cached."""
    (rows,) = ask(denoiser, Job(prepare(denoiser, prompt, len(canvas)), canvas, wanted))
    return rows


def assert_alike(found: Tensor, expected: Tensor) -> None:
    """Equal to rounding, with the same best token in every row where it is not a tie."""
    assert found.dtype is torch.float32
    torch.testing.assert_close(found, expected, rtol=0, atol=ROUNDING)
    best = expected.topk(2, dim=-1)
    for token, (first, _), (high, second) in zip(
        found.argmax(-1).tolist(), best.indices.tolist(), best.values.tolist(), strict=True
    ):
        assert token == first or high - second < ROUNDING


def commit(canvas: list[int], rows: Tensor, wanted: list[int], positions: Sequence[int]) -> None:
    """Put the model's own best tokens where it is told (never the mask)."""
    rows[:, MASK_ID] = -torch.inf
    for at in positions:
        canvas[at] = int(rows[wanted.index(at)].argmax())


# --- the recipe --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_every_step_equals_the_recipe_on_other_peoples_code(
    pocket: PocketDenoiser, reference: Reference, order: str
) -> None:
    """And every step with its cache equals the same step without."""
    prompt = ids_of(pocket)
    context = prepare(pocket, prompt, LENGTH)
    canvas = [MASK_ID] * LENGTH
    for positions in ORDERS[order]:
        wanted = masks_of(canvas)
        (rows,) = ask(pocket, Job(context, canvas, wanted))
        assert_alike(rows, reference.logits(prompt, canvas, wanted))
        assert_alike(rows, ask_fresh(pocket, prompt, canvas, wanted))
        commit(canvas, rows, wanted, positions)
    assert len(set(canvas)) > 3


def test_the_first_token_is_the_bases_own(pocket: PocketDenoiser, reference: Reference) -> None:
    """Behind observed text the base predicts; the adapter only adds to it."""
    prompt = ids_of(pocket, "What is the capital of France?")
    rows = ask_fresh(pocket, prompt, [MASK_ID] * 4, [0, 1, 2, 3])
    best = int(reference.base(input_ids=torch.tensor([prompt])).logits[0, -1].argmax())
    assert int(rows[0].argmax()) == best
    assert rows[0].logsumexp(-1) != pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("neighbours", [0, 2])
def test_checked_rows_are_the_base_reading_the_text(
    pocket: PocketDenoiser, reference: Reference, neighbours: int
) -> None:
    """Each committed position's distribution given only the text before it, in the forward that predicts the masks."""
    prompt = ids_of(pocket, "What is the capital of France?")
    canvas = [504, 3575, 282, 4649, *[MASK_ID] * 4]
    read = reference.base(input_ids=torch.tensor([prompt + canvas[:4]])).logits[0, len(prompt) - 1 :]
    for first in (0, 2, 4):
        job = Job(prepare(pocket, prompt, 8), canvas, [4, 5], list(range(first, 4)))
        others = [Job(prepare(pocket, prompt, 8), canvas, [4], [3]) for _ in range(neighbours)]
        rows, *_ = ask(pocket, job, *others)
        assert rows.shape[0] == 2 + 4 - first
        assert_alike(rows[2:], read[first:4])
        assert_alike(rows[:2], reference.logits(prompt, canvas, [4, 5]))
    full = Job(prepare(pocket, prompt, 4), canvas[:4], [], [0, 1, 2, 3])
    assert_alike(ask(pocket, full)[0], read[:4])


# --- the cache ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_any_canvas_after_any_other_equals_a_fresh_start(pocket: PocketDenoiser, seed: int) -> None:
    """Tokens come, go and change, anywhere, as an editing or re-masking sampler would have it."""
    rng = random.Random(seed)
    prompt = ids_of(pocket, ["", "Hello", "Tell me a story about an owl."][seed % 3])
    context = prepare(pocket, prompt, LENGTH)
    canvas = [MASK_ID] * LENGTH
    for _ in range(6):
        for _ in range(rng.randint(1, 4)):
            canvas[rng.randrange(LENGTH)] = rng.choice([MASK_ID, rng.randrange(17, 49_152)])
        if not masks_of(canvas):
            canvas[rng.randrange(LENGTH)] = MASK_ID
        wanted = sorted(rng.sample(masks_of(canvas), rng.randint(1, len(masks_of(canvas)))))
        (rows,) = ask(pocket, Job(context, canvas, wanted))
        assert_alike(rows, ask_fresh(pocket, prompt, canvas, wanted))


def test_asking_twice_changes_nothing(pocket: PocketDenoiser) -> None:
    context = prepare(pocket, ids_of(pocket), LENGTH)
    job = Job(context, [MASK_ID, 500, MASK_ID, 600, *[MASK_ID] * 5], [0, 2, 4])
    (first,) = ask(pocket, job)
    (second,) = ask(pocket, job)
    assert_alike(first, second)


def test_a_forward_that_broke_off_leaves_the_cache_whole(
    pocket: PocketDenoiser, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt, canvas = ids_of(pocket), [MASK_ID] * LENGTH
    context = prepare(pocket, prompt, LENGTH)
    canvas[5] = 700
    ask(pocket, Job(context, canvas, masks_of(canvas)))
    canvas[2] = 800
    norms = 0
    norm = pocket._network._norm

    def failing(*rows: Any) -> Tensor:
        nonlocal norms
        norms += 1
        if norms == 25:
            raise torch.OutOfMemoryError("out of memory")
        return norm(*rows)

    monkeypatch.setattr(pocket._network, "_norm", failing)
    with pytest.raises(torch.OutOfMemoryError):
        ask(pocket, Job(context, canvas, masks_of(canvas)))
    (rows,) = ask(pocket, Job(context, canvas, masks_of(canvas)))
    assert_alike(rows, ask_fresh(pocket, prompt, canvas, masks_of(canvas)))


# --- company -----------------------------------------------------------------------------------------


def _three(denoiser: PocketDenoiser) -> list[tuple[list[int], list[int], list[int]]]:
    """Prompt, canvas and wanted rows of three unlike runs."""
    return [
        (ids_of(denoiser), [MASK_ID] * 12, list(range(8))),
        (ids_of(denoiser, "Hi"), [500, MASK_ID, 600, MASK_ID, MASK_ID], [1, 3]),
        (ids_of(denoiser, "Write a haiku about rain, please."), [MASK_ID, 400, 300, 200, 100, 99], [0]),
    ]


@pytest.mark.parametrize(("turn", "held"), [(0, 256), (1, 9), (2, 1)])
def test_a_run_in_company_equals_the_run_alone(
    pocket: PocketDenoiser, monkeypatch: pytest.MonkeyPatch, turn: int, held: int
) -> None:
    """However many rows of logits are held at once, and in whichever order the runs stand."""
    monkeypatch.setattr(module, "HEAD_ROWS", held)
    cases = _three(pocket)[turn:] + _three(pocket)[:turn]
    jobs = [Job(prepare(pocket, prompt, len(canvas)), canvas, wanted) for prompt, canvas, wanted in cases]
    for rows, case in zip(ask(pocket, *jobs), cases, strict=True):
        assert_alike(rows, ask_fresh(pocket, *case))


def test_runs_in_company_keep_their_own_caches(pocket: PocketDenoiser) -> None:
    cases = _three(pocket)
    contexts = [prepare(pocket, prompt, len(canvas)) for prompt, canvas, _ in cases]
    for _ in range(2):
        jobs = [Job(context, canvas, masks_of(canvas)) for context, (_, canvas, _) in zip(contexts, cases, strict=True)]
        for rows, job, (prompt, canvas, _) in zip(ask(pocket, *jobs), jobs, cases, strict=True):
            wanted = list(job.wanted)
            assert_alike(rows, ask_fresh(pocket, prompt, canvas, wanted))
            if len(wanted) > 1:
                commit(canvas, rows, wanted, wanted[-1:])


def test_a_canvas_without_observed_rows_can_sit_beside_one_with(pocket: PocketDenoiser) -> None:
    """Both kinds of rows, none of either in some job: every cut of the gated layers."""
    prompt = ids_of(pocket)
    first, second = prepare(pocket, prompt, 3), prepare(pocket, prompt, 3)
    one, two = ask(pocket, Job(first, [MASK_ID] * 3, [0, 1]), Job(second, [900, MASK_ID, 901], [1]))
    assert_alike(one, ask_fresh(pocket, prompt, [MASK_ID] * 3, [0, 1]))
    assert_alike(two, ask_fresh(pocket, prompt, [900, MASK_ID, 901], [1]))


# --- shortcuts ---------------------------------------------------------------------------------------


def test_masks_behind_the_last_wanted_change_nothing(pocket: PocketDenoiser) -> None:
    prompt, canvas = ids_of(pocket), [MASK_ID, 500, *[MASK_ID] * 3, 600, *[MASK_ID] * 6]
    everything = ask_fresh(pocket, prompt, canvas, masks_of(canvas))
    for count in (1, 2, 4):
        assert_alike(ask_fresh(pocket, prompt, canvas, masks_of(canvas)[:count]), everything[:count])
    assert_alike(ask_fresh(pocket, prompt, canvas, [3, 7]), everything[[2, 5]])


def test_an_observed_token_on_the_right_is_seen(pocket: PocketDenoiser) -> None:
    prompt = ids_of(pocket)
    canvases = [[MASK_ID, MASK_ID, MASK_ID, token] for token in (500, 600)]
    one, two = (ask_fresh(pocket, prompt, canvas, [1]) for canvas in canvases)
    assert not torch.allclose(one, two, atol=0.1)


def test_the_length_of_the_canvas_does_not_show(pocket: PocketDenoiser) -> None:
    """Masks behind are unseen, so a longer canvas begins like a shorter one."""
    prompt = ids_of(pocket)
    assert_alike(
        ask_fresh(pocket, prompt, [MASK_ID] * 64, list(range(4))),
        ask_fresh(pocket, prompt, [MASK_ID] * 4, list(range(4))),
    )


# --- facts -------------------------------------------------------------------------------------------


def test_its_facts(pocket: PocketDenoiser) -> None:
    spec, entry = pocket.spec, CATALOGUE["pocket"]
    assert (spec.mask_id, spec.stop_ids, spec.vocabulary, spec.logit_shift) == (16, (2,), 49_152, False)
    assert spec.context_limit == entry.context_limit == 8192
    assert spec.licence == entry.licence == "Apache-2.0"
    assert spec.model_id == entry.model_id == "pocket"
    assert (pocket.device.type, pocket.dtype) == ("cpu", torch.float32)
    assert isinstance(pocket.prepare(ids_of(pocket), 1), PocketContext)
    assert not pocket._network.embedding.requires_grad


# --- damage ------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The shipped files, as links that a test may replace."""
    for name in FILES:
        (tmp_path / name).symlink_to(ASSETS / name)
    return tmp_path


def refused(folder: Path) -> str:
    """The sentence for a folder that is not the model."""
    with pytest.raises(DenoiserError) as caught:
        PocketDenoiser(folder, torch.device("cpu"))
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


def replace(path: Path, content: bytes) -> None:
    """Put a file of its own in place of the link."""
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    said = refused(folder)
    assert name in said
    assert "UNMASK_POCKET" in said


def test_all_missing_files_are_named(tmp_path: Path) -> None:
    said = refused(tmp_path / "nowhere")
    assert all(name in said for name in FILES)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("keep", [0, 40, 1500])
def test_a_file_cut_short_is_refused(folder: Path, name: str, keep: int) -> None:
    content = (ASSETS / name).read_bytes()[: min(keep, (ASSETS / name).stat().st_size - 20)]
    replace(folder / name, content)
    assert str(folder) in refused(folder)


def test_a_checkpoint_cut_in_its_tensors_is_refused(folder: Path) -> None:
    replace(folder / CHECKPOINT, (ASSETS / CHECKPOINT).read_bytes()[:30_000_000])
    assert "cut short" in refused(folder)


@pytest.mark.parametrize("config", [{}, {"r": 0, "lora_alpha": 64}, {"r": "x", "lora_alpha": 1}, [], 7, None])
def test_an_adapter_without_its_scale_is_refused(folder: Path, config: object) -> None:
    replace(folder / "adapter_config.json", json.dumps(config).encode())
    refused(folder)


def test_an_adapter_of_another_model_is_refused(folder: Path) -> None:
    adapter = load_file(ASSETS / "adapter_model.safetensors")
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
    for wrong in ({k: v for k, v in adapter.items() if k != name}, {**adapter, name: adapter[name][:, :-1].clone()}):
        (folder / "adapter_model.safetensors").unlink()
        save_file(wrong, folder / "adapter_model.safetensors")
        refused(folder)


@pytest.mark.parametrize("change", ["no embedding", "no gate", "narrow embedding", "wide gate", "not numbers"])
def test_a_mask_of_another_model_is_refused(folder: Path, change: str) -> None:
    mask = load_file(ASSETS / "mask.safetensors")
    match change:
        case "no embedding":
            del mask["mask_embedding"]
        case "no gate":
            del mask["prior_gate"]
        case "narrow embedding":
            mask["mask_embedding"] = mask["mask_embedding"][:-1].clone()
        case "wide gate":
            mask["prior_gate"] = torch.ones(2)
        case "not numbers":
            mask["mask_embedding"] = mask["mask_embedding"] * torch.nan
    (folder / "mask.safetensors").unlink()
    save_file(mask, folder / "mask.safetensors")
    refused(folder)


@pytest.mark.parametrize("position", [0, 3, 7])
def test_a_rescored_text_is_as_probable_as_the_base_finds_it(
    pocket: PocketDenoiser, reference: Reference, position: int
) -> None:
    """Log probabilities of whole texts, several tokens tried at one place, against transformers reading each."""
    prompt = pocket.tokens.encode_prompt("Write a short text.")
    canvas = pocket.tokens.encode("The old man sat on a bench in the park.")[:10]
    context = pocket.prepare(prompt, len(canvas))
    masked = list(canvas)
    masked[position] = MASK_ID
    list(pocket.logits([Job(context, masked, [position])]))
    tokens = [canvas[position], 339, 1000, 28]
    scores = pocket.rescore(context, canvas, position, tokens)
    for token, score in zip(tokens, scores.tolist(), strict=True):
        text = [*canvas[:position], token, *canvas[position + 1 :]]
        with torch.inference_mode():
            logits = reference.base(input_ids=torch.tensor([[*prompt, *text]])).logits[0].log_softmax(-1)
        wanted = sum(float(logits[len(prompt) + at - 1, text[at]]) for at in range(position, len(text)))
        assert score == pytest.approx(wanted, abs=2e-3)
    # The run goes on as if nothing had been asked.
    again = next(iter(pocket.logits([Job(context, masked, [position])])))
    fresh = next(iter(pocket.logits([Job(pocket.prepare(prompt, len(canvas)), masked, [position])])))
    torch.testing.assert_close(again, fresh, atol=2e-4, rtol=0)


def test_a_cache_of_another_text_is_not_rescored(pocket: PocketDenoiser) -> None:
    prompt = pocket.tokens.encode_prompt("Hi.")
    context = pocket.prepare(prompt, 3)
    list(pocket.logits([Job(context, [5, 6, MASK_ID], [2])]))
    with pytest.raises(ValueError, match="another text"):
        pocket.rescore(context, [6, 6, 7], 2, [7])

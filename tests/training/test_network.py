"""The network in training computes what the app computes, and its base stays exact."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
import torch
from safetensors.torch import load_file, save_file

from playground.denoisers.base import Job
from playground.denoisers.catalogue import POCKET_FILES
from playground.denoisers.pocket import MASK_ID, PocketDenoiser
from playground.training.base import load_base
from playground.training.checkpoint import read_adapter, write_adapter
from playground.training.config import DesignSettings, Recipe
from playground.training.data import Example
from playground.training.making import denoiser_of
from playground.training.network import GatedDenoiser
from playground.training.patterns import holes_batch
from tests.reference import ASSETS

CPU = torch.device("cpu")
HOLES = [[4, 5, 6, 7], [0, 3, 4], [1], [0, 1, 2, 3, 4, 5, 6, 7]]


@pytest.fixture(scope="module")
def real() -> GatedDenoiser:
    """The shipped adapter in the training network."""
    network = GatedDenoiser(load_base(ASSETS, torch.float32, CPU), DesignSettings(prior="row"))
    read_adapter(network, ASSETS)
    return network


def examples_of(pocket: PocketDenoiser) -> list[Example]:
    """One text after prompts of different lengths."""
    text = tuple(pocket.tokens.encode("The sky is blue because light is scattered by the air"))[:8]
    return [Example(tuple(pocket.tokens.encode_prompt("Why?" + " Why?" * i)), text) for i in range(len(HOLES))]


@pytest.mark.parametrize("weight", [0.0, 0.003])
def test_training_and_app_give_the_same_logits(
    pocket: PocketDenoiser, real: GatedDenoiser, weight: float, tmp_path: Path
) -> None:
    """Two passes over LoRA and padded batches here; merged weights, caches and ragged rows there."""
    some = examples_of(pocket)
    for name in POCKET_FILES:
        (tmp_path / name).symlink_to(ASSETS / name)
    torch.manual_seed(3)
    vector = weight * torch.randn(real.gate_weight.shape)
    mask = load_file(ASSETS / "mask.safetensors")
    (tmp_path / "mask.safetensors").unlink()
    save_file({**mask, "gate_weight": vector}, tmp_path / "mask.safetensors")
    app = PocketDenoiser(tmp_path, CPU)
    with torch.no_grad():
        real.gate_weight.copy_(vector)
        logits, index = real.logits(holes_batch(some, HOLES, real.design))
    for b, (example, holes) in enumerate(zip(some, HOLES, strict=True)):
        canvas = [MASK_ID if at in holes else token for at, token in enumerate(example.answer)]
        (expected,) = app.logits([Job(app.prepare(example.prompt, 8), canvas, holes)])
        found = logits[index[0] == b]
        torch.testing.assert_close(found, expected, rtol=0, atol=2e-3)
        assert torch.equal(found.argmax(-1), expected.argmax(-1))


def test_a_fresh_adapter_changes_nothing_of_the_base(recipe: Recipe) -> None:
    """LoRA starts at zero, and the observed rows never see it: with the gate at zero the base's prediction stands."""
    network = denoiser_of(recipe)
    base = load_base(recipe.base.folder, torch.float32, CPU)
    example = Example((20, 21, 22), (30, 31, 32, 33))
    batch = holes_batch([example], [[2, 3]], network.design)
    with torch.no_grad():
        for parameter in network.trained().values():
            if parameter.ndim == 2:
                parameter.add_(0.1 * torch.randn_like(parameter))
        network.gate_bias.zero_()
        logits, _ = network.logits(batch)
        plain = base(torch.tensor([[20, 21, 22, 30, 31]])).logits[0, -1]
        divergence = network(batch, teach=True).divergence
    torch.testing.assert_close(logits[0], plain.log_softmax(-1), rtol=0, atol=1e-4)
    assert divergence is not None
    assert float(divergence) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("prior", ["none", "scalar", "row"])
def test_the_loss_in_pieces_is_the_loss_of_the_logits(
    recipe: Recipe, prior: Literal["none", "scalar", "row"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Losses, hits and gradients, however the rows are cut."""
    monkeypatch.setattr("playground.training.head.ROWS", 2)
    design = DesignSettings(rank=2, prior=prior)
    network = denoiser_of(recipe.model_copy(update={"design": design}))
    batch = holes_batch([Example((20, 21), (30, 31, 32, 33, 34))] * 2, [[0, 1, 3], [2, 3]], design)
    with torch.no_grad():
        for parameter in network.trained().values():
            parameter.add_(0.1 * torch.randn_like(parameter))
    weights = torch.tensor([1.0, 0.5, 2.0, 0.1, 3.0])
    logits, index = network.logits(batch)
    targets = batch.targets[index]
    expected = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    (expected * weights).sum().backward()
    wanted = {name: p.grad.clone() for name, p in network.trained().items() if p.grad is not None}
    network.zero_grad()
    scores = network(batch)
    torch.testing.assert_close(scores.losses, expected, rtol=1e-4, atol=1e-4)
    assert torch.equal(scores.right, logits.argmax(-1) == targets)
    (scores.losses * weights).sum().backward()
    for name, gradient in wanted.items():
        torch.testing.assert_close(network.trained()[name].grad, gradient, rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize(
    "design",
    [
        DesignSettings(rank=2, prior="none"),
        DesignSettings(rank=2, prior="row"),
        DesignSettings(rank=2, first_layer=1),
        DesignSettings(rank=2, masks_see="all"),
        DesignSettings(rank=2, adapter_on="canvas", prior="none"),
    ],
    ids=["no prior", "row prior", "middle layer", "masks see all", "whole canvas"],
)
def test_every_design_learns_what_it_says(recipe: Recipe, design: DesignSettings) -> None:
    """Gradients reach the parts the design has and no weight of the base."""
    network = denoiser_of(recipe.model_copy(update={"design": design}))
    batch = holes_batch([Example((20, 21), (30, 31, 32, 33, 34))] * 2, [[0, 1, 3], [2, 3]], design)
    with torch.no_grad():
        for name, parameter in network.trained().items():
            if "lora_B" in name:
                parameter.normal_(std=0.1)
    scores = network(batch)
    assert scores.losses.shape == (5,)
    scores.losses.mean().backward()
    reached = {name for name, p in network.named_parameters() if p.grad is not None and bool(p.grad.any())}
    assert all("lora" in name or name in ("mask_embedding", "gate_bias", "gate_weight") for name in reached)
    assert ("gate_bias" in reached) == (design.prior != "none")
    assert ("gate_weight" in reached) == (design.prior == "row")
    layers = {int(name.split("layers.")[1].split(".")[0]) for name in reached if "layers." in name}
    assert layers == set(range(design.first_layer, 3))


def test_an_adapter_is_read_back(recipe: Recipe, tmp_path: Path) -> None:
    network = denoiser_of(recipe)
    with torch.no_grad():
        for parameter in network.trained().values():
            parameter.normal_()
    write_adapter(network, tmp_path)
    other = denoiser_of(recipe)
    read_adapter(other, tmp_path)
    for (name, one), (_, two) in zip(network.named_parameters(), other.named_parameters(), strict=True):
        assert torch.equal(one, two), name

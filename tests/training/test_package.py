"""A run becomes a folder that the app can run, with a card that says where its figures come from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from playground.denoisers.base import Job
from playground.denoisers.catalogue import POCKET_FILES
from playground.denoisers.pocket import PocketDenoiser
from playground.training.base import load_base
from playground.training.card import TEMPLATE, write_card
from playground.training.checkpoint import read_adapter, write_adapter
from playground.training.config import DesignSettings
from playground.training.network import GatedDenoiser
from playground.training.package import PackageError, checksum, package
from tests.reference import ASSETS

FIGURE = {"value": 1.25, "low": 1.0, "high": 1.5}
TEXT = "A text with `````` fences and <script>alert(1)</script>."


def run_of(folder: Path) -> Path:
    """A run whose adapter is the shipped one."""
    network = GatedDenoiser(load_base(ASSETS, torch.bfloat16, torch.device("cpu")), DesignSettings())
    read_adapter(network, ASSETS)
    write_adapter(network, folder / "adapter")
    return folder


def evaluation() -> dict[str, Any]:
    """A body of the report's shape."""
    texts = ("perplexity", "ratio", "entropy", "entropy_less", "repetition", "distinct_1", "distinct_2")
    shares = ("empty", "unfinished", "ends_well", "tokens_per_forward")
    sides = [f"{side}_{what}" for side in ("denoiser", "left_to_right") for what in ("exact", "tokens", "perplexity")]
    entry = {
        "figures": dict.fromkeys((*texts, *shares), FIGURE),
        "samples": [{"prompt": "Why?", "text": TEXT, "forwards": 7}],
    }
    return {
        "weights": "1" * 64,
        "prompts": 3,
        "machine": "cpu: a processor, 2 threads, float32",
        "decoding": {"base, 48": entry},
        "presets": {"Fast": entry},
        "masks": {"0.5": dict.fromkeys(("accuracy", "cross_entropy", "nelbo"), FIGURE)},
        "infill": {"gap, 1": dict.fromkeys((*sides, "exact_gain"), FIGURE)},
    }


def test_a_packaged_run_is_a_model_the_app_runs(pocket: PocketDenoiser, tmp_path: Path) -> None:
    run = run_of(tmp_path / "run")
    made = list(package(run, ASSETS, tmp_path / "pocket"))
    assert {path.name for path in made} == {*POCKET_FILES, "README.md"}
    model = PocketDenoiser(tmp_path / "pocket", torch.device("cpu"))
    prompt = pocket.tokens.encode_prompt("Why is the sky blue?")
    for one, two in zip(
        model.logits([Job(model.prepare(prompt, 3), [16] * 3, [0, 1, 2])]),
        pocket.logits([Job(pocket.prepare(prompt, 3), [16] * 3, [0, 1, 2])]),
        strict=True,
    ):
        torch.testing.assert_close(one, two, rtol=0, atol=0.2)
    card = (tmp_path / "pocket" / "README.md").read_text(encoding="utf-8")
    for name in POCKET_FILES:
        assert checksum(tmp_path / "pocket" / name) in card
    assert "Not measured for these weights" in card
    assert "<!--" not in card
    config = json.loads((tmp_path / "pocket" / "adapter_config.json").read_text())
    assert config["r"] == config["lora_alpha"] == 64
    assert (
        load_file(tmp_path / "pocket" / "adapter_model.safetensors").keys()
        == load_file(ASSETS / "adapter_model.safetensors").keys()
    )


def test_the_card_has_the_evaluations_figures_and_inert_samples(tmp_path: Path) -> None:
    (tmp_path / "evaluation.json").write_text(json.dumps(evaluation()))
    path = write_card(tmp_path, tmp_path, {"adapter_model.safetensors": "1" * 64})
    card = path.read_text(encoding="utf-8")
    assert "| base, 48 | 1.25 (1.00 to 1.50) | 1.2 (1.0 to 1.5) |" in card
    assert "| 50% | 125% (100% to 150%) |" in card
    assert "| gap, 1 |" in card
    assert "| Fast | 1.25 (1.00 to 1.50) |" in card
    assert "3 held-out prompts" in card
    fence = re.search(r"^(`{4,})text\n(.*?)\n\1$", card, re.M | re.S)
    assert fence is not None
    assert fence[2] == TEXT
    assert set(re.findall(r"<!-- (\w+) -->", TEMPLATE.read_text())) == {
        *("files", "training", "conditions", "decoding", "presets", "masks", "infill", "samples")
    }


def test_figures_of_other_weights_are_not_on_the_card(tmp_path: Path) -> None:
    (tmp_path / "evaluation.json").write_text(json.dumps(evaluation()))
    card = write_card(tmp_path, tmp_path, {"adapter_model.safetensors": "2" * 64}).read_text(encoding="utf-8")
    assert "held-out prompts;" not in card
    assert card.count("Not measured for these weights") == 5


def test_what_cannot_be_packaged_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="train adapt"):
        list(package(tmp_path, ASSETS, tmp_path / "pocket"))
    (tmp_path / "adapter").mkdir()
    save_file({"x": torch.tensor([float("nan")])}, tmp_path / "adapter" / "adapter_model.safetensors")
    with pytest.raises(PackageError, match="not numbers"):
        list(package(tmp_path, ASSETS, tmp_path / "pocket"))
    save_file({"x": torch.zeros(60 * 2**20)}, tmp_path / "adapter" / "adapter_model.safetensors")
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    save_file({"y": torch.zeros(1)}, tmp_path / "adapter" / "mask.safetensors")
    with pytest.raises(PackageError, match="MiB"):
        list(package(tmp_path, ASSETS, tmp_path / "pocket"))

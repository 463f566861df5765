"""A model's name and the settings become a denoiser on a device, or a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from playground.denoisers import loading
from playground.denoisers.base import DenoiserError
from playground.denoisers.catalogue import CATALOGUE
from playground.denoisers.loading import describe_device, load_denoiser, pick_device, usable_cores
from playground.settings import Settings

HERE = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}


@pytest.fixture(autouse=True)
def _threads_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda *_: None)


def test_every_catalogued_model_can_be_looked_for(tmp_path: Path) -> None:
    """With no files, each says what it lacks: none is unknown."""
    for name in CATALOGUE:
        with pytest.raises(DenoiserError, match=r"lacks .*\.$"):
            load_denoiser(name, Settings(pocket=tmp_path, device="cpu"))


def test_an_unknown_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DenoiserError, match=r"^There is no model called 'gpt'\.$"):
        load_denoiser("gpt", Settings(pocket=tmp_path, device="cpu"))


def test_auto_takes_the_first_accelerator_there_is() -> None:
    assert pick_device("auto").type == next(name for name, there in HERE.items() if there)
    assert pick_device("cpu").type == "cpu"


@pytest.mark.parametrize("name", [name for name, there in HERE.items() if not there])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(DenoiserError, match=rf"no {name} device.*UNMASK_DEVICE.*\.$"):
        pick_device(name)


def test_a_missing_accelerator_is_said_before_any_file_is_read(tmp_path: Path) -> None:
    missing = [name for name, there in HERE.items() if not there]
    for name in missing:
        with pytest.raises(DenoiserError, match="device"):
            load_denoiser("pocket", Settings(pocket=tmp_path, device=name))


@pytest.mark.parametrize(("asked", "given"), [(0, usable_cores()), (3, 3)])
def test_threads_follow_the_settings(asked: int, given: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    monkeypatch.setattr(loading.torch, "set_num_threads", counts.append)
    with pytest.raises(DenoiserError):
        load_denoiser("pocket", Settings(pocket=tmp_path, device="cpu", threads=asked))
    assert counts == [1, given]


def test_a_device_is_described_in_one_line() -> None:
    text = describe_device(torch.device("cpu"))
    assert text.startswith("cpu: ")
    assert text.endswith(" threads")
    assert "\n" not in text

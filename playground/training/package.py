"""Base, adapter, tokenizer and model card as one folder that the app runs. Must not know how any of them was made."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from playground.denoisers.catalogue import POCKET_CHECKPOINT, POCKET_FILES
from playground.training.card import write_card

MOST_BYTES = 150 * 2**20
MOST_BYTES_A_FILE = 95 * 2**20
_KEPT = (
    "peft_type",
    "task_type",
    "r",
    "lora_alpha",
    "lora_dropout",
    "bias",
    "target_modules",
    "base_model_name_or_path",
    "inference_mode",
    "fan_in_fan_out",
)
"""Of PEFT's configuration; its other fields are defaults that differ from version to version."""


class PackageError(RuntimeError):
    """What was made cannot be packaged; the text is one sentence."""


def package(run: Path, base: Path, into: Path) -> Iterator[Path]:
    """Write the folder; gives each file as it is done.

    Raises:
        PackageError: there is no adapter, it is not numbers, or the folder would be too big.
    """
    adapter = run / "adapter"
    if not (adapter / "adapter_model.safetensors").is_file():
        raise PackageError(f"There is no adapter in {adapter}; run `train adapt` first.")
    weights = load_file(adapter / "adapter_model.safetensors")
    if not all(bool(value.isfinite().all()) for value in weights.values()):
        raise PackageError(f"The adapter in {adapter} is not numbers; train it again with a lower learning rate.")
    into.mkdir(parents=True, exist_ok=True)
    for name in (POCKET_CHECKPOINT, "tokenizer.json"):
        if (base / name).resolve() != (into / name).resolve():
            shutil.copyfile(base / name, into / name)
        yield into / name
    save_file(
        {name: value.to(torch.bfloat16).contiguous() for name, value in weights.items()},
        into / "adapter_model.safetensors",
        metadata={"format": "pt"},
    )
    yield into / "adapter_model.safetensors"
    config = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))
    slim = {key: sorted(config[key]) if key == "target_modules" else config[key] for key in _KEPT if key in config}
    (into / "adapter_config.json").write_text(json.dumps({**slim, "inference_mode": True}, indent=1) + "\n")
    yield into / "adapter_config.json"
    shutil.copyfile(adapter / "mask.safetensors", into / "mask.safetensors")
    yield into / "mask.safetensors"
    sizes = {name: (into / name).stat().st_size for name in POCKET_FILES}
    if sum(sizes.values()) > MOST_BYTES or max(sizes.values()) > MOST_BYTES_A_FILE:
        raise PackageError(
            f"The folder is {sum(sizes.values()) >> 20} MiB; at most 150, and 95 a file: lower design.rank."
        )
    yield write_card(run, into, {name: checksum(into / name) for name in POCKET_FILES})


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

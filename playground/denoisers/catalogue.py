"""The models that can be asked for by name, as a table. Loading happens elsewhere, when one is first used."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """Facts shown before a model is loaded; `memory_gib` is what it takes resident in float32 on CPU."""

    model_id: str
    name: str
    parameters: str
    licence: str
    memory_gib: float
    context_limit: int
    attention: str
    good_at: str


POCKET_CHECKPOINT = "SmolLM2-135M-Instruct.Q4_1.gguf"
POCKET_FILES = (
    POCKET_CHECKPOINT,
    "adapter_model.safetensors",
    "adapter_config.json",
    "mask.safetensors",
    "tokenizer.json",
)


def missing_files(folder: Path) -> list[str]:
    """Names of the embedded model's files that are not in `folder`."""
    return [name for name in POCKET_FILES if not (folder / name).is_file()]


CATALOGUE: dict[str, CatalogueEntry] = {
    "pocket": CatalogueEntry(
        model_id="pocket",
        name="Pocket",
        parameters="135 M",
        licence="Apache-2.0",
        memory_gib=1.5,
        context_limit=8192,
        attention="observed first, causal",
        good_at="Embedded: runs anywhere, with no network and no GPU. A tiny model; short texts, plain English.",
    ),
}

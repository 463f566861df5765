"""The models that can be asked for by name, as a table. Loading happens elsewhere, when one is first used."""

from __future__ import annotations

from dataclasses import dataclass


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


CATALOGUE: dict[str, CatalogueEntry] = {
    "pocket": CatalogueEntry(
        model_id="pocket",
        name="Pocket",
        parameters="135 M",
        licence="Apache-2.0",
        memory_gib=1.1,
        context_limit=8192,
        attention="observed first, causal",
        good_at="Embedded: runs anywhere, with no network and no GPU. A tiny model; short texts, plain English.",
    ),
}

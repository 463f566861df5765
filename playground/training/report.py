"""The whole evaluation of one set of weights, as one JSON body; parts are kept as they are done.

Which decodings are compared is stated here; `playground.training.card` turns the body into tables.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

import playground
from playground.denoisers.loading import describe_device
from playground.denoisers.pocket import PocketDenoiser
from playground.presets import PRESETS
from playground.training.evaluate import (
    Written,
    figures_of,
    judged,
    masked_figures,
    write,
    write_left_to_right,
)
from playground.training.infill import SIZES, infill_figures
from playground.training.measures import Figure
from playground.training.prompts import heldout

LENGTHS = (48, 64)
PACES = (1, 2, 4, 8)
"""Tokens committed in a forward."""
RATES = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
SAMPLES = 10
PARTS = ("decoding", "presets", "masks", "infill")


@dataclass(frozen=True, slots=True)
class Decoding:
    """A named way of decoding; `knobs` are request fields, steps follow from the pace."""

    name: str
    knobs: Mapping[str, Any]


_EVEN = {"schedule": "even", "block": 16}
DECODINGS = (
    Decoding("any order", {**_EVEN, "confidence": "probability"}),
    Decoding("left to right", {**_EVEN, "confidence": "leftmost"}),
    Decoding("corrected, 0.3", {**_EVEN, "confidence": "leftmost", "correction": "causal", "acceptance": 0.3}),
    Decoding("corrected, 0.1", {**_EVEN, "confidence": "leftmost", "correction": "causal", "acceptance": 0.1}),
    Decoding("corrected, exact", {**_EVEN, "confidence": "leftmost", "correction": "causal", "acceptance": 1.0}),
)


def knobs_at(decoding: Decoding, length: int, pace: int) -> dict[str, Any]:
    """Request fields of a decoding that commits `pace` tokens a forward."""
    return {**decoding.knobs, "length": length, "steps": max(1, length // pace), "seed": 0}


def evaluate(
    denoiser: PocketDenoiser,
    path: Path,
    *,
    weights: str,
    prompts: int = 64,
    parts: Sequence[str] = PARTS,
    lengths: Sequence[int] = LENGTHS,
    paces: Sequence[int] = PACES,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure, and write `path` after each part, so that what was measured is kept; gives the body.

    A body that is there already is gone on with, if it is of the same weights and prompts: what it has is not measured
    again. `weights` is the adapter's SHA-256 in hex, by which the card knows that the figures are of what it describes.
    """
    asked = [entry.prompt for entry in heldout()[:prompts]]
    body: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    if (body.get("weights"), body.get("prompts")) != (weights, len(asked)):
        body = {}
    body |= {
        "weights": weights,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "prompts": len(asked),
        "machine": f"{describe_device(denoiser.device)}, {str(denoiser.dtype).removeprefix('torch.')}",
        "versions": {"unmask": playground.__version__, "torch": torch.__version__, "python": platform.python_version()},
    }

    def keep() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    twins: dict[int, list[Written]] = {}

    def twin(length: int) -> list[Written]:
        if length not in twins:
            tell(f"the base alone, {length} tokens")
            twins[length] = judged(denoiser, write_left_to_right(denoiser, asked, length))
        return twins[length]

    for part in parts:
        for name, measure in _STEPS[part](denoiser, asked, twin, lengths, paces):
            done = body.setdefault(part, {})
            if name in done:
                continue
            tell(f"{part}: {name}")
            done[name] = measure()
            keep()
    return body


def _decoding(
    denoiser: PocketDenoiser, asked: list[str], twin: Any, lengths: Sequence[int], paces: Sequence[int]
) -> Any:
    for length in lengths:
        yield f"base, {length}", lambda length=length: _texts(twin(length), twin(length))
        for decoding in DECODINGS:
            for pace in paces:
                if pace == 1 and decoding.knobs.get("correction") and decoding.knobs["acceptance"] != 1.0:
                    continue

                def measure(decoding: Decoding = decoding, length: int = length, pace: int = pace) -> dict[str, Any]:
                    texts = judged(denoiser, write(denoiser, asked, knobs_at(decoding, length, pace)))
                    return _texts(texts, twin(length))

                yield f"{decoding.name}, {length}, {pace}", measure


def _presets(denoiser: PocketDenoiser, asked: list[str], twin: Any, *_: Any) -> Any:
    for preset in PRESETS.values():

        def measure(knobs: Mapping[str, Any] = preset.values) -> dict[str, Any]:
            texts = judged(denoiser, write(denoiser, asked, {**knobs, "seed": 0}))
            return _texts(texts, twin(knobs["length"]))

        yield preset.title, measure


def _texts(texts: list[Written], twin: list[Written]) -> dict[str, Any]:
    samples = [{"prompt": text.prompt, "text": text.text, "forwards": text.forwards} for text in texts[:SAMPLES]]
    return {"figures": _plain(figures_of(texts, twin)), "samples": samples}


def _masks(denoiser: PocketDenoiser, _: Any, twin: Any, lengths: Sequence[int], __: Any) -> Any:
    for rate in RATES:
        yield f"{rate}", lambda rate=rate: _plain(masked_figures(denoiser, twin(max(lengths)), [rate])[rate])


def _infill(denoiser: PocketDenoiser, *_: Any) -> Any:
    for scattered in (False, True):
        for size in SIZES:
            name = f"{'scattered' if scattered else 'gap'}, {size}"
            yield (
                name,
                lambda size=size, scattered=scattered: _plain(infill_figures(denoiser, size, scattered=scattered)),
            )


_STEPS: Mapping[str, Any] = {"decoding": _decoding, "presets": _presets, "masks": _masks, "infill": _infill}


def _plain(figures: Mapping[str, Figure]) -> dict[str, dict[str, float]]:
    return {name: {key: round(value, 5) for key, value in asdict(figure).items()} for name, figure in figures.items()}

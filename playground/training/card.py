"""The model card: a template with the evaluation's tables and samples put in. Must not measure anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).with_name("card.md")


def write_card(run: Path, into: Path, sums: Mapping[str, str]) -> Path:
    """`README.md` beside the weights; figures stand in it only if `evaluation.json` is of these very weights."""
    evaluation = run / "evaluation.json"
    body: dict[str, Any] = json.loads(evaluation.read_text(encoding="utf-8")) if evaluation.is_file() else {}
    if body.get("weights") != sums.get("adapter_model.safetensors"):
        body = {}
    parts = {
        "files": "\n".join(_files(sums)),
        "training": _training(run),
        "decoding": "\n".join(_texts(body, "decoding", "decoding, length, commits a forward")) or _NOTHING,
        "presets": "\n".join(_texts(body, "presets", "preset")) or _NOTHING,
        "masks": "\n".join(_masks(body)) or _NOTHING,
        "infill": "\n".join(_infill(body)) or _NOTHING,
        "samples": "\n".join(_samples(body)) or _NOTHING,
        "conditions": _conditions(body),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, value in parts.items():
        text = text.replace(f"<!-- {name} -->", value)
    path = into / "README.md"
    path.write_text(text, encoding="utf-8")
    return path


_NOTHING = "Not measured for these weights: run `python -m playground train evaluate`, then `package` again."
_WHAT = {
    "SmolLM2-135M-Instruct.Q4_1.gguf": "base, as shipped",
    "tokenizer.json": "vocabulary",
    "adapter_model.safetensors": "LoRA adapter, PEFT format",
    "adapter_config.json": "its settings",
    "mask.safetensors": "mask embedding and gate",
}


def _files(sums: Mapping[str, str]) -> Iterator[str]:
    yield from _head("file", "what it is", "SHA-256")
    for name, digest in sums.items():
        yield f"| `{name}` | {_WHAT[name]} | `{digest}` |"


def _head(*titles: str) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield "|---" * len(titles) + "|"


def _training(run: Path) -> str:
    recipe, log = run / "recipe.json", run / "log.jsonl"
    if not recipe.is_file() or not log.is_file():
        return "Trained elsewhere."
    settings = json.loads(recipe.read_text(encoding="utf-8"))
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line]
    hours = sum(line["seconds"] for line in lines) / 3600
    last = lines[-1]
    return (
        f"{last['step']:,} steps, {last['masks']:,} masked tokens, {hours:.1f} hours; "
        f"rank {settings['design']['rank']}, "
        f"batches of {settings['adapt']['batch']}, learning rate {settings['adapt']['learning_rate']:g}."
        + (" It went on from an earlier adapter of the same design." if settings["adapt"]["start_from"] else "")
    )


def _conditions(body: Mapping[str, Any]) -> str:
    if not body:
        return ""
    return f"{body['prompts']} held-out prompts; {body['machine']}; 95 % intervals by bootstrap over prompts."


def _cell(figure: Mapping[str, float], digits: int = 2, percent: bool = False) -> str:
    if percent:
        return f"{figure['value']:.0%} ({figure['low']:.0%} to {figure['high']:.0%})"
    return f"{figure['value']:.{digits}f} ({figure['low']:.{digits}f} to {figure['high']:.{digits}f})"


def _texts(body: Mapping[str, Any], part: str, title: str) -> Iterator[str]:
    entries = body.get(part, {})
    if not entries:
        return
    yield from _head(
        title,
        "tokens a forward",
        "perplexity",
        "times the base's",
        "H, nats",
        "repeated",
        "distinct-2",
        "empty",
        "unfinished",
        "ends well",
    )
    for name, entry in entries.items():
        f = entry["figures"]
        cells = [_cell(f["tokens_per_forward"]), _cell(f["perplexity"], 1), _cell(f["ratio"]), _cell(f["entropy"])]
        cells += [_cell(f[key]) for key in ("repetition", "distinct_2")]
        cells += [_cell(f[key], percent=True) for key in ("empty", "unfinished", "ends_well")]
        yield f"| {name} | {' | '.join(cells)} |"


def _masks(body: Mapping[str, Any]) -> Iterator[str]:
    entries = body.get("masks", {})
    if not entries:
        return
    yield from _head("share masked", "right", "cross-entropy, nats", "NELBO at this share, bits a byte")
    for rate, f in entries.items():
        cells = [_cell(f["accuracy"], percent=True), _cell(f["cross_entropy"]), _cell(f["nelbo"])]
        yield f"| {float(rate):.0%} | {' | '.join(cells)} |"


def _infill(body: Mapping[str, Any]) -> Iterator[str]:
    entries = body.get("infill", {})
    if not entries:
        return
    yield from _head(
        "gap",
        "all right",
        "base, left to right",
        "gained",
        "rescored",
        "gained",
        "tokens right",
        "base",
        "perplexity",
        "base",
    )
    for name, f in entries.items():
        cells = [_cell(f[key], percent=True) for key in ("denoiser_exact", "left_to_right_exact", "exact_gain")]
        rescored = ("rescored_exact", "rescored_gain")
        cells += [_cell(f[key], percent=True) if key in f else "" for key in rescored]
        cells += [_cell(f[key], percent=True) for key in ("denoiser_tokens", "left_to_right_tokens")]
        cells += [_cell(f[key], 1) for key in ("denoiser_perplexity", "left_to_right_perplexity")]
        yield f"| {name} | {' | '.join(cells)} |"


def _samples(body: Mapping[str, Any]) -> Iterator[str]:
    for name, entry in {**body.get("decoding", {}), **body.get("presets", {})}.items():
        yield f"<details><summary>{name}</summary>\n"
        for sample in entry["samples"]:
            # A code block with more fences than the text can hold keeps whatever the model wrote inert.
            yield f"{sample['prompt']} ({sample['forwards']} forwards)\n\n`````text\n{sample['text']}\n`````\n"
        yield "</details>\n"

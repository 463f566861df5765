"""The data: prompts, and what the base answers, filtered; two JSON-lines files that grow and can be gone on with.

`prompts.jsonl` holds what is asked, in an order fixed by the seed; `answers.jsonl` one line for each prompt answered
so far: prompt, family, temperature, token ids, and why it was dropped, if it was. Greedy answers are sequence-level
distillation (Kim and Rush, arXiv 1606.07947): one target a prompt, so that positions filled in parallel have less to
disagree about. Sampled ones teach what a text with holes needs: that words on the right change what fits.
Must not know masks or losses.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaForCausalLM

from playground.denoisers.bytes_bpe import ChatMLTokens
from playground.training.base import load_tokens
from playground.training.config import DataSettings
from playground.training.decode import decode
from playground.training.prompts import Asked, is_heldout, template_prompts

PROMPTS, ANSWERS = "prompts.jsonl", "answers.jsonl"
_SHORTEST_PROMPT = 3
_PRINTABLE = re.compile(r"[\x20-\x7e]+")


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt in its template and the answer, as token ids; the end token is the answer's last where it ended."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]


# --- asking ---------------------------------------------------------------------------------------


def write_prompts(
    folder: Path, settings: DataSettings, model: LlamaForCausalLM, tokens: ChatMLTokens, tell: Callable[[str], None]
) -> int:
    """Bring `prompts.jsonl` up to the number asked for; gives how many there are."""
    path = folder / PROMPTS
    asked = [Asked(**line) for line in read_lines(path)]
    seen = {entry.prompt for entry in asked}
    own = sum(entry.family == "own" for entry in asked)
    wanted_own = round(settings.prompts * settings.asked_by_base)
    templates = (entry for entry in template_prompts(settings.seed) if entry.prompt not in seen)
    with path.open("a", encoding="utf-8") as file:
        while len(asked) < settings.prompts:
            fresh: list[Asked] = []
            if own < wanted_own:
                # A seed for each round, so that going on after a stop gives what one go would have given.
                generator = torch.Generator(device=model.device).manual_seed(settings.seed * 1_000_003 + len(asked))
                fresh = [Asked(text, "own") for text in _own_prompts(model, tokens, settings, generator)]
                fresh = [entry for entry in dict.fromkeys(fresh) if entry.prompt not in seen][: wanted_own - own]
                own += len(fresh)
            share = (1 - settings.asked_by_base) / max(settings.asked_by_base, 1e-9)
            count = max(1, round(len(fresh) * share)) if fresh else settings.batch
            for _ in range(min(count, settings.prompts - len(asked) - len(fresh))):
                if (entry := next(templates, None)) is not None:
                    fresh.append(entry)
            if not fresh:
                break
            seen.update(entry.prompt for entry in fresh)
            asked += fresh
            file.writelines(_line({"prompt": entry.prompt, "family": entry.family}) for entry in fresh)
            file.flush()
            tell(f"{len(asked)} of {settings.prompts} prompts, {own} made up by the base")
    return len(asked)


def _own_prompts(
    model: LlamaForCausalLM, tokens: ChatMLTokens, settings: DataSettings, generator: torch.Generator
) -> Iterator[str]:
    """What the base writes where a user's turn would stand (Magpie, arXiv 2406.08464)."""
    turn = tokens.encode_prompt("")[: 1 + len(tokens.encode("user\n"))]
    starts = [turn] * (2 * settings.batch)
    drafts = decode(
        model, starts, settings.prompt_tokens, temperature=settings.prompt_temperature, top_k=64, generator=generator
    )
    for ids in drafts:
        text = tokens.decode(ids).strip().split("\n")[0].strip()
        if _usable(text):
            yield text


def _usable(text: str) -> bool:
    """Whole sentences of plain characters, some words long, no held-out topic."""
    whole = text.endswith((".", "?", "!")) and _PRINTABLE.fullmatch(text) is not None
    return whole and len(text.split()) >= _SHORTEST_PROMPT and not is_heldout(text)


# --- answering ------------------------------------------------------------------------------------


def write_answers(
    folder: Path, settings: DataSettings, model: LlamaForCausalLM, tokens: ChatMLTokens, tell: Callable[[str], None]
) -> Counter[str]:
    """Answer every prompt that has no answer yet; gives how many answers were kept, and dropped for what."""
    path = folder / ANSWERS
    verdicts = Counter(line["dropped"] or "kept" for line in read_lines(path))
    done = sum(verdicts.values())
    asked = [Asked(**line) for line in read_lines(folder / PROMPTS)][done:]
    began, written = time.monotonic(), 0
    with path.open("a", encoding="utf-8") as file:
        for start in range(0, len(asked), settings.batch):
            chunk = asked[start : start + settings.batch]
            temperature = settings.temperature if _is_sampled(done, settings) else 0.0
            generator = torch.Generator(device=model.device).manual_seed(settings.seed * 1_000_003 + done)
            answers = decode(
                model,
                [tokens.encode_prompt(entry.prompt) for entry in chunk],
                settings.answer_tokens,
                temperature=temperature,
                generator=generator,
            )
            for entry, ids in zip(chunk, answers, strict=True):
                dropped = fault(ids, settings)
                verdicts[dropped or "kept"] += 1
                line = {"prompt": entry.prompt, "family": entry.family, "temperature": temperature}
                file.write(_line({**line, "ids": ids, "dropped": dropped}))
            file.flush()
            done += len(chunk)
            written += sum(map(len, answers))
            rate = written / (time.monotonic() - began)
            tell(f"{done} of {settings.prompts} answered, {verdicts['kept']} kept, {rate:.0f} tokens/s")
    return verdicts


def _is_sampled(done: int, settings: DataSettings) -> bool:
    """Whole batches are sampled, spread evenly, so that any beginning of the file has the share that was asked for."""
    batch = done // settings.batch
    return int((batch + 1) * settings.sampled) > int(batch * settings.sampled)


def fault(ids: Sequence[int], settings: DataSettings) -> str:
    """Why an answer is not trained on: "short", "repeats", or "" when it is."""
    if len(ids) < settings.shortest:
        return "short"
    trigrams = [tuple(ids[i : i + 3]) for i in range(len(ids) - 2)]
    if len(set(trigrams)) < settings.distinct_trigrams * len(trigrams):
        return "repeats"
    return ""


# --- reading --------------------------------------------------------------------------------------


def read_examples(folder: Path, base: Path, settings: DataSettings) -> tuple[list[Example], list[Example]]:
    """Training and validation examples, shuffled by the seed; validation is the same however much data there is.

    Raises:
        FileNotFoundError: `train data` has not been run on this folder.
    """
    tokens = load_tokens(base)
    if not (folder / ANSWERS).is_file():
        raise FileNotFoundError(folder / ANSWERS)
    kept = [line for line in read_lines(folder / ANSWERS) if not line["dropped"]]
    validation, training = kept[: settings.validation], kept[settings.validation :]
    if settings.learn_from != "all":
        training = [line for line in training if (line["temperature"] > 0) == (settings.learn_from == "sampled")]
    random.Random(f"order {settings.seed}").shuffle(training)
    return _examples(training[: settings.most], tokens), _examples(validation, tokens)


def _examples(lines: Sequence[dict[str, Any]], tokens: ChatMLTokens) -> list[Example]:
    return [Example(tuple(tokens.encode_prompt(line["prompt"])), tuple(line["ids"])) for line in lines]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """A JSON-lines file; none if there is no file. A last line cut short by a stop is left out, and removed."""
    if not path.is_file():
        return []
    raw = path.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    if len(whole) < len(raw):
        path.write_bytes(whole)
    return [json.loads(line) for line in whole.decode("utf-8").split("\n") if line]


def _line(body: dict[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")) + "\n"

"""How good an adapter is at filling gaps in texts that people wrote, beside the base filling them from left to right.

A gap is a run of tokens taken out of a text; `scattered` gaps are single tokens apart from each other. The base sees
only what is on the left of a token, as any left-to-right model does; the denoiser sees both sides. Must not know
training.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from playground.denoisers.base import Job
from playground.denoisers.pocket import END_ID, MASK_ID, PocketDenoiser
from playground.sampling.rescoring import Rescorer
from playground.training.evaluate import Written, chunks, judged, perplexity
from playground.training.measures import Figure, bootstrap, mean

PROMPT = "Write a short text."
SIZES = (1, 2, 3, 4, 8)
CANDIDATES = 16
"""Tokens tried at a gap."""
RESCORED_UP_TO = 3
"""Largest gaps that are rescored too: it takes two forwards a position."""


@dataclass(frozen=True, slots=True)
class Case:
    """A text and the positions taken out of it, ascending."""

    ids: tuple[int, ...]
    gaps: tuple[int, ...]


def human_texts() -> list[str]:
    """The texts of `infill.toml`."""
    body = tomllib.loads(Path(__file__).with_name("infill.toml").read_text(encoding="utf-8"))
    return [str(text) for text in body["texts"]]


def cases(denoiser: PocketDenoiser, size: int, *, scattered: bool, each: int = 2) -> list[Case]:
    """`each` cases of every text: `size` tokens are taken out, never the first two."""
    found = []
    for number, text in enumerate(human_texts()):
        ids = tuple(denoiser.tokens.encode(text))
        for turn in range(each):
            dice = random.Random(f"infill {number} {turn} {size} {scattered}")
            room = range(2, len(ids) - 1)
            if scattered:
                gaps = _apart(room, size, dice)
            else:
                start = dice.choice(room[: max(1, len(room) - size + 1)])
                gaps = list(range(start, start + size))
            if len(gaps) == size and gaps[-1] < len(ids):
                found.append(Case(ids, tuple(gaps)))
    return found


def _apart(room: range, count: int, dice: random.Random) -> list[int]:
    """`count` positions, no two side by side, all such choices alike likely; none if there is no room."""
    free = len(room) - count + 1
    if free < count:
        return []
    # A choice of any `count` among fewer places, each moved on by those before it.
    return [room[at + moved] for moved, at in enumerate(sorted(dice.sample(range(free), count)))]


@torch.inference_mode()
def filled(denoiser: PocketDenoiser, some: Sequence[Case]) -> list[tuple[int, ...]]:
    """Fill all gaps, the surest position first, one a forward."""
    result: list[tuple[int, ...]] = []
    for chunk in chunks(some):
        canvases = [[MASK_ID if at in case.gaps else t for at, t in enumerate(case.ids)] for case in chunk]
        contexts = [denoiser.prepare(denoiser.tokens.encode_prompt(PROMPT), len(case.ids)) for case in chunk]
        while left := [i for i, canvas in enumerate(canvases) if MASK_ID in canvas]:
            wanted = [[at for at, token in enumerate(canvases[i]) if token == MASK_ID] for i in left]
            jobs = [Job(contexts[i], canvases[i], w) for i, w in zip(left, wanted, strict=True)]
            for i, places, logits in zip(left, wanted, denoiser.logits(jobs), strict=True):
                logits[:, MASK_ID] = -torch.inf
                best = logits.softmax(-1).max(-1)
                row = int(best.values.argmax())
                canvases[i][places[row]] = int(best.indices[row])
        result += [tuple(canvas) for canvas in canvases]
    return result


@torch.inference_mode()
def filled_rescored(denoiser: PocketDenoiser, some: Sequence[Case]) -> list[tuple[int, ...]]:
    """Fill as `filled` does, then try the best candidates at each gap and keep what makes the whole text likeliest."""
    prompt = denoiser.tokens.encode_prompt(PROMPT)
    result: list[tuple[int, ...]] = []
    for case, draft in zip(some, filled(denoiser, some), strict=True):
        canvas, context = list(draft), denoiser.prepare(prompt, len(draft))
        rescorer = Rescorer(canvas, case.gaps, CANDIDATES, lambda *_: False)
        while not rescorer.done:
            at = rescorer.position
            masked = [MASK_ID if place == at else token for place, token in enumerate(canvas)]
            (logits,) = denoiser.logits([Job(context, masked, [at])])
            logits[:, [MASK_ID, END_ID]] = -torch.inf
            rescorer.decide(denoiser.rescore(context, canvas, at, rescorer.propose(logits[0])), 1)
        result.append(tuple(canvas))
    return result


@torch.inference_mode()
def filled_left_to_right(denoiser: PocketDenoiser, some: Sequence[Case]) -> list[tuple[int, ...]]:
    """Fill each gap with the base's best token given only the text before it, from left to right."""
    result: list[tuple[int, ...]] = []
    for chunk in chunks(some):
        texts = [list(case.ids) for case in chunk]
        for turn in range(max(len(case.gaps) for case in chunk)):
            open_cases = [
                (text, case.gaps[turn]) for text, case in zip(texts, chunk, strict=True) if turn < len(case.gaps)
            ]
            jobs = []
            for text, at in open_cases:
                context = denoiser.prepare(denoiser.tokens.encode_prompt(PROMPT), len(text))
                jobs.append(Job(context, text, [], [at]))
            for (text, at), logits in zip(open_cases, denoiser.logits(jobs), strict=True):
                row = logits[0].clone()
                row[MASK_ID] = -torch.inf
                text[at] = int(row.argmax())
        result += [tuple(text) for text in texts]
    return result


def infill_figures(denoiser: PocketDenoiser, size: int, *, scattered: bool) -> dict[str, Figure]:
    """Exact match (the whole case), tokens right, and the judge's perplexity of the completed texts.

    For the denoiser, for the base from left to right, and for the denoiser's candidates rescored by the base.
    """
    some = cases(denoiser, size, scattered=scattered)
    figures: dict[str, Figure] = {}
    matches = {}
    sides = {"denoiser": filled, "left_to_right": filled_left_to_right}
    if size <= RESCORED_UP_TO:
        sides["rescored"] = filled_rescored
    for name, fill in sides.items():
        answers = fill(denoiser, some)
        pairs = list(zip(some, answers, strict=True))
        matches[name] = [float(case.ids == answer) for case, answer in pairs]
        right = [mean([float(case.ids[at] == answer[at]) for at in case.gaps]) for case, answer in pairs]
        figures[f"{name}_exact"] = bootstrap(matches[name], mean)
        figures[f"{name}_tokens"] = bootstrap(right, mean)
        texts = [Written(PROMPT, ids, denoiser.tokens.decode(ids), 0, finished=True) for ids in answers]
        figures[f"{name}_perplexity"] = bootstrap(judged(denoiser, texts), perplexity)
    for name in sorted(set(matches) - {"left_to_right"}):
        gained = [a - b for a, b in zip(matches[name], matches["left_to_right"], strict=True)]
        figures["exact_gain" if name == "denoiser" else f"{name}_gain"] = bootstrap(gained, mean)
    return figures

"""How good an adapter is: the app's own denoiser and sampler on prompts no training saw, beside the base alone.

Everything runs on the packaged weights in the app's own arithmetic, so the figures are those of what people use. The
judge is the base: perplexity of a text given its prompt. Must not know how the adapter was made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from playground.denoisers.base import Job
from playground.denoisers.pocket import END_ID, MASK_ID, PocketDenoiser
from playground.request import parse_request
from playground.sampling.sampler import Sampler
from playground.training.measures import Figure, bootstrap, distinct, ends_well, entropy, mean, repetition

BATCH = 16
"""Canvases in one forward."""


@dataclass(frozen=True, slots=True)
class Written:
    """One decoded text: ids up to the end token (kept), the forwards it took, and what the judge made of it.

    `surprise` holds the base's negative log-likelihood of each id, in nats.
    """

    prompt: str
    ids: tuple[int, ...]
    text: str
    forwards: int
    finished: bool
    surprise: tuple[float, ...] = ()


# --- decoding -------------------------------------------------------------------------------------


def write(denoiser: PocketDenoiser, prompts: Sequence[str], knobs: dict[str, Any]) -> list[Written]:
    """Decode each prompt with the app's sampler, several in one forward."""
    texts: list[Written] = []
    for some in chunks(prompts):
        lanes = [_Lane(denoiser, prompt, knobs) for prompt in some]
        while open_lanes := [lane for lane in lanes if not lane.sampler.done]:
            jobs = [lane.job() for lane in open_lanes]
            for lane, logits in zip(open_lanes, denoiser.logits(jobs), strict=True):
                lane.take(logits)
        texts += [lane.written(denoiser) for lane in lanes]
    return texts


class _Lane:
    def __init__(self, denoiser: PocketDenoiser, prompt: str, knobs: dict[str, Any]) -> None:
        request = parse_request({"prompt": prompt, **knobs})
        self.prompt, self.forwards = prompt, 0
        self.sampler = Sampler(
            request, mask_id=MASK_ID, stop_ids=(END_ID,), seed=request.seed or 0, device=denoiser.device
        )
        self._context = denoiser.prepare(denoiser.tokens.encode_prompt(prompt), request.length)

    def job(self) -> Job:
        return Job(self._context, self.sampler.canvas, self.sampler.wanted(), self.sampler.checked())

    def take(self, logits: Tensor) -> None:
        wanted = len(self.sampler.wanted())
        self.sampler.step(logits[:wanted], logits[wanted:])
        self.forwards += 1

    def written(self, denoiser: PocketDenoiser) -> Written:
        return _written(denoiser, self.prompt, self.sampler.canvas, self.forwards)


def _written(denoiser: PocketDenoiser, prompt: str, canvas: Sequence[int], forwards: int) -> Written:
    finished = END_ID in canvas
    ids = tuple(canvas[: canvas.index(END_ID) + 1] if finished else canvas)
    return Written(prompt, ids, denoiser.tokens.decode(ids), forwards, finished)


@torch.inference_mode()
def write_left_to_right(denoiser: PocketDenoiser, prompts: Sequence[str], length: int) -> list[Written]:
    """The autoregressive twin: the base's best token, one after another; never the end first, as for the others."""
    texts = []
    for some in chunks(prompts):
        contexts = [denoiser.prepare(denoiser.tokens.encode_prompt(prompt), length) for prompt in some]
        answers: list[list[int]] = [[] for _ in some]
        while left := [i for i, ids in enumerate(answers) if len(ids) < length and ids[-1:] != [END_ID]]:
            jobs = []
            for i in left:
                # What stands at a checked position does not matter to its distribution; the rest is masked.
                canvas = [*answers[i], END_ID, *[MASK_ID] * (length - len(answers[i]) - 1)]
                jobs.append(Job(contexts[i], canvas, [], [len(answers[i])]))
            for i, logits in zip(left, denoiser.logits(jobs), strict=True):
                row = logits[0].clone()
                row[[MASK_ID, END_ID] if not answers[i] else [MASK_ID]] = -torch.inf
                answers[i].append(int(row.argmax()))
        texts += [_written(denoiser, p, ids, len(ids)) for p, ids in zip(some, answers, strict=True)]
    return texts


@torch.inference_mode()
def judged(denoiser: PocketDenoiser, texts: Sequence[Written]) -> list[Written]:
    """The same texts with the base's surprise at each of their tokens."""
    result = []
    for some in chunks(texts):
        jobs = []
        for text in some:
            context = denoiser.prepare(denoiser.tokens.encode_prompt(text.prompt), len(text.ids))
            jobs.append(Job(context, text.ids, [], range(len(text.ids))))
        for text, logits in zip(some, denoiser.logits(jobs), strict=True):
            picked = torch.log_softmax(logits, -1).gather(-1, torch.tensor(text.ids)[:, None].to(logits.device))
            surprise = tuple(-value for value in picked[:, 0].tolist())
            result.append(Written(text.prompt, text.ids, text.text, text.forwards, text.finished, surprise))
    return result


def chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


# --- figures of texts -----------------------------------------------------------------------------


def perplexity(texts: Sequence[Written]) -> float:
    """exp of the judge's mean surprise over all tokens."""
    total = sum(len(text.ids) for text in texts)
    return math.exp(sum(sum(text.surprise) for text in texts) / total) if total else math.nan


def figures_of(texts: Sequence[Written], twin: Sequence[Written]) -> dict[str, Figure]:
    """All figures of judged texts; `ratio` is to the twin's perplexity on the same prompts, resampled together."""
    pairs = list(zip(texts, twin, strict=True))

    def over_prompts(value: Callable[[Written], float]) -> Figure:
        return bootstrap(texts, lambda some: mean([value(text) for text in some]))

    return {
        "perplexity": bootstrap(texts, perplexity),
        "ratio": bootstrap(pairs, lambda some: perplexity([a for a, _ in some]) / perplexity([b for _, b in some])),
        "entropy": over_prompts(lambda text: entropy(text.ids)),
        "entropy_less": bootstrap(pairs, lambda some: mean([entropy(b.ids) - entropy(a.ids) for a, b in some])),
        "repetition": over_prompts(lambda text: repetition(text.ids)),
        "distinct_1": over_prompts(lambda text: distinct(text.ids, 1)),
        "distinct_2": over_prompts(lambda text: distinct(text.ids, 2)),
        "empty": over_prompts(lambda text: float(not text.text.strip())),
        "unfinished": over_prompts(lambda text: float(not text.finished)),
        "ends_well": over_prompts(lambda text: float(ends_well(text.text))),
        "tokens_per_forward": bootstrap(
            texts, lambda some: sum(len(t.ids) for t in some) / max(1, sum(t.forwards for t in some))
        ),
    }


# --- masks ----------------------------------------------------------------------------------------


@torch.inference_mode()
def masked_figures(
    denoiser: PocketDenoiser, texts: Sequence[Written], rates: Sequence[float], seed: int = 0
) -> dict[float, dict[str, Figure]]:
    """Cross-entropy and accuracy of masked tokens by mask rate, and the NELBO they add up to.

    At each rate t every position is masked independently, as the forward process has it (MDLM, arXiv 2406.07524);
    `nelbo` is the mean of (1/t) * sum of the masks' cross-entropy, in bits per byte of text. The whole NELBO is the
    mean over rates spread evenly over (0, 1].
    """
    dice = torch.Generator().manual_seed(seed)
    result = {}
    for rate in rates:
        rows = []
        for some in chunks(texts):
            jobs, kept = [], []
            for text in some:
                hidden = (torch.rand(len(text.ids), generator=dice) < rate).tolist()
                wanted = [at for at, is_hidden in enumerate(hidden) if is_hidden]
                if not wanted:
                    rows.append((0.0, 0, 0, _bytes(text), rate))
                    continue
                canvas = [MASK_ID if is_hidden else t for t, is_hidden in zip(text.ids, hidden, strict=True)]
                context = denoiser.prepare(denoiser.tokens.encode_prompt(text.prompt), len(text.ids))
                jobs.append(Job(context, canvas, wanted))
                kept.append((text, wanted))
            for (text, wanted), logits in zip(kept, denoiser.logits(jobs) if jobs else (), strict=True):
                logits[:, MASK_ID] = -torch.inf
                targets = torch.tensor([text.ids[at] for at in wanted], device=logits.device)
                loss = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
                right = int((logits.argmax(-1) == targets).sum())
                rows.append((float(loss), right, len(wanted), _bytes(text), rate))
        result[rate] = {
            "cross_entropy": bootstrap(rows, lambda some: sum(r[0] for r in some) / max(1, sum(r[2] for r in some))),
            "accuracy": bootstrap(rows, lambda some: sum(r[1] for r in some) / max(1, sum(r[2] for r in some))),
            "nelbo": bootstrap(rows, _bits),
        }
    return result


def _bits(rows: Sequence[tuple[float, int, int, int, float]]) -> float:
    return sum(loss / rate for loss, _, _, _, rate in rows) / math.log(2) / sum(size for _, _, _, size, _ in rows)


def _bytes(text: Written) -> int:
    return max(1, len(text.text.encode()))

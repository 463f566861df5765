"""Whole runs through the engine: the asked one, eight at once against eight in turn, and what the cache is worth.

Temperature is 0 and ends of text are suppressed, so that every arm does the same work and must write the
same tokens. Must not know matrices or pages.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from playground.denoisers.base import Denoiser, Job
from playground.engine.engine import Engine
from playground.engine.run import Run
from playground.labs.bench_results import BatchResult, CacheResult, RunResult, Spread
from playground.labs.bench_timing import in_turn, prompt_of, seconds_of
from playground.request import GenerationRequest, parse_request
from playground.sampling.sampler import Sampler
from playground.settings import Settings
from playground.trace import Outcome, Result, Trace

PROMPTS = (
    "Why is the sky blue?",
    "Write a very short story about a tiny dragon.",
    "Give me three tips to sleep better.",
    "What is special about owls?",
    "Explain rain to a child.",
    "Describe a market in the morning.",
    "How do bees find their way home?",
    "What makes bread rise?",
)


class BenchError(RuntimeError):
    """A measurement that could not be made; its text is one sentence."""


def asked(prompt: str, *, length: int, steps: int, block: int) -> GenerationRequest:
    """The request that every benchmark of runs is made of."""
    return parse_request(
        {
            "prompt": prompt,
            "length": length,
            "steps": steps,
            "block": block,
            "schedule": "even",
            "confidence": "probability",
            "temperature": 0.0,
            "stop_rule": "suppressed",
            "end_at_stop": False,
            "seed": 1,
        }
    )


@contextmanager
def engine_on(denoiser: Denoiser, settings: Settings) -> Iterator[Engine]:
    """An engine whose model is already there."""

    def load(name: str, where: Settings) -> Denoiser:
        del name, where
        return denoiser

    engine = Engine(settings, load=load)
    try:
        engine.ready("pocket")
        yield engine
    finally:
        engine.close()


def finish(run: Run) -> Outcome:
    """Wait for a run.

    Raises:
        BenchError: it did not finish.
    """
    outcome = run.wait()
    assert outcome is not None
    if outcome.result is not Result.FINISHED:
        raise BenchError(f"A run of the benchmark ended early: {outcome.message}")
    return outcome


def tokens_of(trace: Trace | None) -> list[int | None]:
    """The canvas at the end."""
    assert trace is not None
    return [cell.token_id for cell in trace.canvas_at(len(trace.frames))]


def measure_run(engine: Engine, repeats: int, *, length: int, steps: int, block: int = 0) -> RunResult:
    """The run that was asked for, `repeats` times."""
    request = asked(PROMPTS[0], length=length, steps=steps, block=block)
    finish(engine.submit(request))
    outcomes: list[Outcome] = []
    run = None
    for _ in range(repeats):
        run = engine.submit(request)
        outcomes.append(finish(run))
    assert run is not None
    assert run.trace is not None
    last = outcomes[-1]
    timings = [outcome.timings for outcome in outcomes]
    return RunResult(
        prompt_tokens=run.trace.header.prompt_tokens,
        length=length,
        steps=steps,
        block=block,
        forwards=last.forwards,
        tokens=last.tokens,
        tokens_per_forward=round(last.tokens / last.forwards, 3),
        total=Spread.of(t.total for t in timings),
        model=Spread.of(t.model for t in timings),
        prefill=Spread.of(t.prefill for t in timings),
        first_canvas=Spread.of(t.first_canvas or 0.0 for t in timings),
        tokens_per_second=Spread.of(last.tokens / t.total for t in timings),
        tokens_per_second_model=Spread.of(last.tokens / t.model for t in timings),
    )


# --- the cache ----------------------------------------------------------------------------------


def measure_cache(
    engine: Engine, denoiser: Denoiser, repeats: int, *, prompt_tokens: int = 64, canvas: int = 64, block: int = 16
) -> CacheResult:
    """One token a forward, with the cache and without; both arms write the same tokens or the result says so."""
    prompt = prompt_of(denoiser.tokens, prompt_tokens)
    request = asked(prompt, length=canvas, steps=canvas, block=block)
    written: dict[str, list[int | None]] = {}

    def cached() -> float:
        run = engine.submit(request)
        outcome = finish(run)
        written["cached"] = tokens_of(run.trace)
        return outcome.timings.total

    def plain() -> float:
        canvas_of: list[list[int]] = []
        seconds = seconds_of(lambda: canvas_of.append(without_cache(denoiser, request)), denoiser.device)
        written["plain"] = list(canvas_of[0])
        return seconds

    finish(engine.submit(asked(prompt, length=min(canvas, 8), steps=2, block=0)))
    times = in_turn({"cached": cached, "plain": plain}, repeats, warm_up=False)
    return CacheResult(
        prompt_tokens=prompt_tokens,
        canvas=canvas,
        block=block,
        forwards=canvas,
        cached=Spread.of(times["cached"]),
        plain=Spread.of(times["plain"]),
        ratio=Spread.of(p / c for p, c in zip(times["plain"], times["cached"], strict=True)),
        same_tokens=written["cached"] == written["plain"],
    )


@torch.inference_mode()
def without_cache(denoiser: Denoiser, request: GenerationRequest) -> list[int]:
    """The plainest loop there is: prompt, committed tokens and every mask of the canvas anew in each step."""
    prompt = denoiser.tokens.encode_prompt(request.prompt)
    sampler = Sampler(
        request,
        mask_id=denoiser.spec.mask_id,
        stop_ids=denoiser.spec.stop_ids,
        seed=request.seed or 0,
        device=denoiser.device,
    )
    while not sampler.done:
        context = denoiser.prepare(prompt, request.length)
        masks = [at for at, token in enumerate(sampler.canvas) if token == sampler.mask_id]
        logits = next(iter(denoiser.logits([Job(context, sampler.canvas, masks)])))
        wanted = set(sampler.wanted())
        sampler.step(logits[[row for row, at in enumerate(masks) if at in wanted]])
    return sampler.canvas


# --- the batch ----------------------------------------------------------------------------------


def measure_batch(
    engine: Engine, repeats: int, *, prompts: Sequence[str] = PROMPTS, length: int = 32, steps: int = 16
) -> BatchResult:
    """All prompts at once against one after another; the engine must have room for all of them."""
    requests = [asked(prompt, length=length, steps=steps, block=0) for prompt in prompts]
    same = [True] * len(requests)
    slowest: list[float] = []
    alone: list[float] = []
    written: dict[str, list[list[int | None]]] = {}

    def together() -> float:
        started = time.perf_counter()
        runs = [engine.submit(request) for request in requests]
        outcomes = [finish(run) for run in runs]
        seconds = time.perf_counter() - started
        slowest.append(max(outcome.timings.total for outcome in outcomes))
        _compare(written, "together", runs, same)
        return seconds

    def one_by_one() -> float:
        started = time.perf_counter()
        runs = []
        for request in requests:
            runs.append(engine.submit(request))
            alone.append(finish(runs[-1]).timings.total)
        seconds = time.perf_counter() - started
        _compare(written, "in turn", runs, same)
        return seconds

    finish(engine.submit(requests[0]))
    times = in_turn({"together": together, "in turn": one_by_one}, repeats, warm_up=False)
    return BatchResult(
        runs=len(requests),
        length=length,
        steps=steps,
        together=Spread.of(times["together"]),
        in_turn=Spread.of(times["in turn"]),
        ratio=Spread.of(a / b for a, b in zip(times["in turn"], times["together"], strict=True)),
        slowest=Spread.of(slowest),
        alone=Spread.of(alone),
        same_texts=sum(same),
    )


def _compare(written: dict[str, list[list[int | None]]], arm: str, runs: Sequence[Run], same: list[bool]) -> None:
    """Note which runs have written something else than in any arm before."""
    tokens = [tokens_of(run.trace) for run in runs]
    for before in written.values():
        for at, (old, new) in enumerate(zip(before, tokens, strict=True)):
            same[at] = same[at] and old == new
    written[arm] = tokens

"""The benchmark: which parts there are, one after another, into one report.

Figures come with their spread, ratios from arms taken in turn, model time apart from everything else. Must not know
how the report is shown.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import torch

import playground
from playground.denoisers.base import Denoiser
from playground.denoisers.catalogue import POCKET_CHECKPOINT as CHECKPOINT
from playground.denoisers.loading import describe_device, load_denoiser, usable_cores
from playground.labs import bench_browser, bench_forward, bench_page, bench_player, bench_runs, bench_startup
from playground.labs.bench_results import Machine, Report
from playground.request import MAX_LENGTH, MAX_STEPS
from playground.settings import Settings

PARTS = ("startup", "forward", "run", "cache", "batch", "page", "player")
"""In the order in which they are measured."""
BATCH = 8


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure: `steps`, `length` and `block` are those of the asked run."""

    parts: frozenset[str]
    repeats: int = 5
    steps: int = 8
    length: int = 128
    block: int = 0


def _nothing(*_: object) -> None:
    return None


def measure(
    options: Options,
    settings: Settings,
    *,
    tell: Callable[[str], None] = _nothing,
    done: Callable[[str, Any], None] = _nothing,
) -> Report:
    """Measure the parts that were asked for.

    Args:
        options: what to measure, and how often.
        settings: where the model is and where it runs.
        tell: hears what is going on.
        done: gets each part's name and result as soon as it is there; the whole takes minutes.

    Raises:
        BenchError: something needed is missing or a run failed.
        RequestError: length, steps or block are out of range.
        DenoiserError: the model cannot be loaded.
    """
    # Before minutes go by, see whether the last parts can be measured at all, and the asked run be run.
    if options.parts & {"page", "player"}:
        bench_browser.find_browser()
    bench_runs.asked("x", length=options.length, steps=options.steps, block=options.block)
    return _Session(options, settings, tell).report(done)


class _Session:
    """One model, loaded when the first part needs it."""

    def __init__(self, options: Options, settings: Settings, tell: Callable[[str], None]) -> None:
        self._options, self._tell = options, tell
        # What one may ask of one's own machine is not what an app allows its visitors.
        room = {
            "max_active": max(BATCH, settings.max_active),
            "max_queue": max(BATCH, settings.max_queue),
            "max_length": MAX_LENGTH,
            "max_steps": MAX_STEPS,
            "max_seconds": 86_400.0,
        }
        self._settings = settings.model_copy(update=room)

    @cached_property
    def _denoiser(self) -> Denoiser:
        self._tell("Loading the model")
        return load_denoiser("pocket", self._settings)

    def report(self, done: Callable[[str, Any], None]) -> Report:
        """See `measure`."""
        before = _load_average()
        parts: dict[str, Any] = {}
        for part in PARTS:
            if part in self._options.parts:
                self._tell(f"Measuring: {part}")
                parts[part] = getattr(self, f"_{part}")()
                done(part, parts[part])
        return Report(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=self._machine(before),
            repeats=self._options.repeats,
            **parts,
        )

    def _startup(self) -> object:
        return bench_startup.measure_startup(self._options.repeats)

    def _forward(self) -> object:
        sizes = bench_forward.Sizes.of_checkpoint(self._settings.pocket / CHECKPOINT)
        return tuple(bench_forward.measure_forward(self._denoiser, sizes, self._options.repeats))

    def _run(self) -> object:
        options = self._options
        with bench_runs.engine_on(self._denoiser, self._settings) as engine:
            return bench_runs.measure_run(
                engine, options.repeats, length=options.length, steps=options.steps, block=options.block
            )

    def _cache(self) -> object:
        with bench_runs.engine_on(self._denoiser, self._settings) as engine:
            return bench_runs.measure_cache(engine, self._denoiser, self._options.repeats)

    def _batch(self) -> object:
        with bench_runs.engine_on(self._denoiser, self._settings) as engine:
            return bench_runs.measure_batch(engine, self._options.repeats, prompts=bench_runs.PROMPTS[:BATCH])

    def _page(self) -> object:
        return bench_page.measure_page(self._options.repeats, self._tell)

    def _player(self) -> object:
        return bench_player.measure_player(self._options.repeats, self._tell)

    def _machine(self, load_before: float | None) -> Machine:
        denoiser = self._denoiser
        return Machine(
            device=describe_device(denoiser.device),
            dtype=str(denoiser.dtype).removeprefix("torch."),
            cores=usable_cores(),
            versions={
                "unmask": playground.__version__,
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
            load_before=load_before,
            load_after=_load_average(),
        )


def _load_average() -> float | None:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None

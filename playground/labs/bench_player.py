"""What the viewer makes of a fast model: the app with a synthetic denoiser, a headless Chromium, long canvases.

The model's forwards cost next to nothing, so that what is measured is the sampler, the stream and above all the page.
Must not know how the page draws (see `static/measure.js`, which watches it).
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from playground.labs.bench_app import environment_of, log_in, newest_run, serving
from playground.labs.bench_browser import LENGTH, RUN, RUN_SECONDS, STEPS, Traffic, fill_in, find_browser, visiting
from playground.labs.bench_results import PlayerResult, PlayerSizeResult, Spread
from playground.labs.export_sizes import player_sizes
from playground.runlog.rows import RunFilter
from playground.runlog.store import RunStore
from playground.settings import ROOT
from playground.trace import Frame, Trace, to_line

SERVE = "import app; from playground.labs.synthetic import SyntheticDenoiser; app.main(load=SyntheticDenoiser)"
SCRIPT = ROOT / "static" / "measure.js"
BLOCK = "#block input[type=number]"
STREAM = (512, 128)
"""Positions and steps of the run that is watched as it streams."""
LONG = (1024, 1024)
"""Of the run that is scrubbed through."""
SCRUBS = 200
SETTLE_MS = 2000
LIMITS = {"UNMASK_MAX_LENGTH": "1024", "UNMASK_MAX_STEPS": "1024", "UNMASK_MAX_SECONDS": "3600"}


def measure_player(repeats: int, tell: Callable[[str], None]) -> PlayerResult:
    """Watch `repeats` runs stream after one to warm up, then scrub through a long one.

    Raises:
        BenchError: no browser, or the app or its page are not what this takes them for.
    """
    browser = find_browser()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="unmask-bench-")))
        tell("Starting the app on a synthetic model")
        address = stack.enter_context(serving(environment_of(folder, **LIMITS), ("-c", SERVE)))
        store = stack.enter_context(log_in(folder))
        page = stack.enter_context(visiting(browser, address, SCRIPT))
        page.wait_for_timeout(SETTLE_MS)
        loaded = page.evaluate("() => unmaskMeasure.now()")
        traffic = Traffic(page)
        tell(f"Streaming {STREAM[0]} positions in {STREAM[1]} steps")
        _ask_for(page, STREAM)
        runs = [_watched(page, store, traffic) for _ in range(repeats + 1)][1:]
        tell(f"Scrubbing through {LONG[0]} positions and {LONG[1]} steps")
        _ask_for(page, LONG)
        long_run = _watched(page, store, traffic)
        works = page.evaluate("(count) => unmaskMeasure.scrub(count)", SCRUBS)
        tasks = page.evaluate("(since) => unmaskMeasure.longTasks(since)", loaded)
        heap = _heap_mib(page)
    return replace(
        _streamed(runs),
        long_run_lost=long_run["lost"],
        long_tasks=len(tasks),
        longest_task_ms=max(tasks, default=0.0),
        scrub_ms=Spread.of(works),
        scrub_95_ms=sorted(works)[math.ceil(0.95 * len(works)) - 1],
        heap_mib=heap,
        exports=tuple(PlayerSizeResult(s.positions, s.steps, s.page, s.viewer, s.per_step) for s in player_sizes()),
    )


def _ask_for(page: Any, size: tuple[int, int]) -> None:
    length, steps = size
    fill_in(page, {LENGTH: length, STEPS: steps, BLOCK: 0})


def _watched(page: Any, store: RunStore, traffic: Traffic) -> dict[str, Any]:
    """What the page saw of a run, and what the run log says there was to be seen."""
    count, before = store.count(RunFilter()), traffic.bytes
    page.set_default_timeout(1000 * RUN_SECONDS)
    page.evaluate("() => { window.unmaskSeen = unmaskMeasure.watchRun(); }")
    page.click(RUN)
    seen: dict[str, Any] = page.evaluate("() => window.unmaskSeen")
    trace = store.load_trace(newest_run(store, count + 1).id, None)
    assert trace is not None
    steps = len(trace.frames)
    wire = (traffic.bytes - before) / steps
    size = (trace.header.length, steps)
    return {**seen, "size": size, "lost": steps - seen["steps"], "wire": wire, "asides": _aside_bytes(trace) / steps}


def _aside_bytes(trace: Trace) -> int:
    """Bytes of a trace's candidates and guesses."""
    return sum(len(to_line(frame).encode()) - len(to_line(_bare(frame)).encode()) for frame in trace.frames)


def _bare(frame: Frame) -> Frame:
    return replace(frame, changes=tuple(replace(change, alternatives=()) for change in frame.changes), guesses=())


def _streamed(runs: list[dict[str, Any]]) -> PlayerResult:
    (positions, steps) = runs[-1]["size"]
    return PlayerResult(
        positions=positions,
        steps=steps,
        steps_per_second=Spread.of(1000 * run["size"][1] / run["milliseconds"] for run in runs),
        painted_per_second=Spread.of(1000 * run["painted"] / run["milliseconds"] for run in runs),
        lost=max(run["lost"] for run in runs),
        shown=min(run["shown"] for run in runs),
        wire_bytes=Spread.of(run["wire"] for run in runs),
        bare_bytes=Spread.of(run["wire"] - run["asides"] for run in runs),
    )


def _heap_mib(page: Any) -> float:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["JSHeapUsedSize"]) / 2**20

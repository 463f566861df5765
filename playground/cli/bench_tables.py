"""The benchmark's results as tables for a terminal. Knows results; measures nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich import box
from rich.table import Table

from playground.labs.bench_results import (
    BatchResult,
    CacheResult,
    ForwardResult,
    Machine,
    PageResult,
    PlayerResult,
    RunResult,
    Spread,
    StartupResult,
)


def table_of(result: Any) -> Table:
    """The table of one part's result."""
    match result:
        case tuple():
            return _forward(result)
        case StartupResult():
            title, rows = "Start-up of a fresh process", _startup(result)
        case RunResult():
            block = result.block or "whole"
            title = f"A run of {result.length} tokens in {result.forwards} forwards, block {block}"
            rows = _run(result)
        case CacheResult():
            title = f"Cache: prompt {result.prompt_tokens}, canvas {result.canvas}, block {result.block}"
            rows = _cache(result)
        case BatchResult():
            title = f"Batch: {result.runs} runs of {result.length} tokens in {result.steps} forwards"
            rows = _batch(result)
        case PlayerResult():
            title = f"Player: {result.positions} positions in {result.steps} steps, no model's time"
            rows = _player(result)
        case PageResult():
            title, rows = f"Page: {result.length} tokens in {result.forwards} forwards", _page(result)
        case _:
            raise TypeError(f"No table is known for {type(result).__name__}.")
    return _rows(title, rows)


def machine_line(machine: Machine, repeats: int) -> str:
    """Where it was measured, and whether the machine had other work."""
    load = "" if machine.load_before is None else f", load {machine.load_before:g} before, {machine.load_after:g} after"
    return (
        f"{machine.device}, {machine.dtype}, {machine.cores} cores, torch {machine.versions['torch']}{load}. "
        f"Medians of {repeats}, lowest and highest beside them."
    )


Row = tuple[str, str, str]


def _rows(title: str, rows: list[Row]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("", min_width=34)
    table.add_column("Median", justify="right")
    table.add_column("Lowest to highest", justify="right", style="dim")
    for row in rows:
        table.add_row(*row)
    return table


def _row(name: str, spread: Spread, show: Callable[[float], str]) -> Row:
    between = "" if spread.count == 1 else f"{show(spread.low)} to {show(spread.high)}"
    return name, show(spread.median), between


def _fact(name: str, value: str) -> Row:
    return name, value, ""


def _startup(result: StartupResult) -> list[Row]:
    return [
        _row("Process start to model ready", result.ready, _seconds),
        _row("  imports", result.imports, _seconds),
        _row("  loading the model", result.load, _seconds),
        _row("Peak memory, model ready", result.peak_ready_gib, _gib),
        _row("Peak memory, after a run", result.peak_run_gib, _gib),
    ]


def _forward(results: tuple[ForwardResult, ...]) -> Table:
    title = f"One forward, all masked, {results[0].prompt_tokens} prompt tokens cached; rates in GFLOP/s"
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("Canvas", "ms", "Range", "Rate", "Large square", "Share", "Range", "Own shapes", "Share"):
        table.add_column(heading, justify="right", style="dim" if heading == "Range" else "")
    for result in results:
        seconds, share = result.seconds, result.share
        table.add_row(
            str(result.canvas),
            f"{1000 * seconds.median:.0f}",
            f"{1000 * seconds.low:.0f}–{1000 * seconds.high:.0f}",
            f"{result.rate.median:.0f}",
            f"{result.square_rate.median:.0f}",
            f"{share.median:.0%}",
            f"{100 * share.low:.0f}–{share.high:.0%}",
            f"{result.own_rate.median:.0f}",
            f"{result.share_of_own.median:.0%}",
        )
    return table


def _run(result: RunResult) -> list[Row]:
    return [
        _row("Total", result.total, _seconds),
        _row("  model", result.model, _seconds),
        _row("  prompt (prefill)", result.prefill, _seconds),
        _row("Until the first canvas", result.first_canvas, _seconds),
        _row("Tokens/s, end to end", result.tokens_per_second, _plain),
        _row("Tokens/s, model alone", result.tokens_per_second_model, _plain),
        _fact("Forwards (NFE)", str(result.forwards)),
        _fact("Tokens a forward", f"{result.tokens_per_forward:.2f}"),
    ]


def _cache(result: CacheResult) -> list[Row]:
    return [
        _row("With the cache", result.cached, _seconds),
        _row("Everything anew each step", result.plain, _seconds),
        _row("The cache is worth", result.ratio, _times),
        _fact("Forwards (NFE)", str(result.forwards)),
        _fact("Same tokens", "yes" if result.same_tokens else "NO"),
    ]


def _batch(result: BatchResult) -> list[Row]:
    return [
        _row("All at once", result.together, _seconds),
        _row("One after another", result.in_turn, _seconds),
        _row("Throughput gained", result.ratio, _times),
        _row("Slowest run of the batch", result.slowest, _seconds),
        _row("One run alone", result.alone, _seconds),
        _fact("Same tokens", f"{result.same_texts} of {result.runs} runs"),
    ]


def _page(result: PageResult) -> list[Row]:
    return [
        _row("Run without a page", result.without_page, _seconds),
        _row("Streamed to a reader", result.streamed, _seconds),
        _row("  over without", result.streamed_ratio, _times),
        _row("Drawn by Chromium on these cores", result.with_page, _seconds),
        _row("  over without", result.ratio, _times),
        _row("Click to end, as a person waits", result.click_to_end, _seconds),
        _row("Bytes a frame on the wire", result.bytes_per_frame, _whole),
        _row("First forward's end to painted", result.painted_ms, lambda value: f"{value:.0f} ms"),
        _fact("Same text", "yes" if result.same_text else "NO"),
    ]


def _player(result: PlayerResult) -> list[Row]:
    assert result.scrub_ms is not None
    rows = [
        _row("Steps streamed a second", result.steps_per_second, _plain),
        _row("Frames painted a second", result.painted_per_second, _plain),
        _fact("Steps of the trace that were lost", str(result.lost + result.long_run_lost)),
        _fact("Different steps on the screen", f"{result.shown} of {result.steps}"),
        _row("Bytes a step on the wire", result.wire_bytes, _whole),
        _row("  less candidates and guesses", result.bare_bytes, _whole),
        _row("Work of a scrubbed frame, 1,024 × 1,024", result.scrub_ms, _milliseconds),
        _fact("  95 of 100 are below", _milliseconds(result.scrub_95_ms)),
        _fact("Tasks over 50 ms, once loaded", f"{result.long_tasks}, the longest {result.longest_task_ms:.0f} ms"),
        _fact("Memory of the page's script", f"{result.heap_mib:.0f} MiB"),
    ]
    for size in result.exports:
        about = f"of which viewer {size.viewer / 1024:.0f} KiB, {size.per_step:,.0f} B a step"
        rows.append((f"Exported player, {size.positions} × {size.steps}", f"{size.page / 1024:,.0f} KiB", about))
    return rows


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _milliseconds(value: float) -> str:
    return f"{value:.1f} ms"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.0f} ms"


def _gib(value: float) -> str:
    return f"{value:.2f} GiB"


def _plain(value: float) -> str:
    return f"{value:.1f}"


def _times(value: float) -> str:
    return f"{value:.2f}x"

"""What the benchmark reports: plain data, ready for JSON. Knows no torch and no clock.

Every measured figure is a `Spread`, because one number from a shared machine says nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, lowest and highest of `count` measurements."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The spread of at least one value."""
        known = [float(f"{value:.6g}") for value in values]
        return cls(statistics.median(known), min(known), max(known), len(known))


@dataclass(frozen=True, slots=True)
class ForwardResult:
    """One forward of a whole masked canvas behind a cached prompt, beside the machine's matrix products.

    Rates are in GFLOP/s. `square_rate` is a large square product, the roofline; `own_rate` the network's own layer
    shapes at this number of rows. `share` is the forward's rate over the square one, `share_of_own` over the
    other; both compare measurements made next to each other.
    """

    canvas: int
    prompt_tokens: int
    gflop: float
    seconds: Spread
    rate: Spread
    square_rate: Spread
    own_rate: Spread
    share: Spread
    share_of_own: Spread


@dataclass(frozen=True, slots=True)
class CacheResult:
    """A run with the exact cache against a loop that recomputes prompt and canvas in every step; seconds."""

    prompt_tokens: int
    canvas: int
    block: int
    forwards: int
    cached: Spread
    plain: Spread
    ratio: Spread
    same_tokens: bool


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run of the asked length and steps. `tokens_per_second` is end to end, `…_model` counts its forwards alone.

    Ends of text are suppressed, so that the whole canvas is written and all steps are taken.
    """

    prompt_tokens: int
    length: int
    steps: int
    block: int
    forwards: int
    tokens: int
    tokens_per_forward: float
    total: Spread
    model: Spread
    prefill: Spread
    first_canvas: Spread
    tokens_per_second: Spread
    tokens_per_second_model: Spread


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Runs that share forwards against the same runs one after another; `ratio` is how much more gets done.

    `same_texts` counts the runs whose tokens were the same in both arms, every time.
    """

    runs: int
    length: int
    steps: int
    together: Spread
    in_turn: Spread
    ratio: Spread
    slowest: Spread
    alone: Spread
    same_texts: int


@dataclass(frozen=True, slots=True)
class StartupResult:
    """A fresh process up to "model ready", and its peak resident memory there and after a short run."""

    ready: Spread
    imports: Spread
    load: Spread
    peak_ready_gib: Spread
    peak_run_gib: Spread


@dataclass(frozen=True, slots=True)
class PageResult:
    """The same run with a page watching and without.

    Ratios compare the runs' own times on the server (from leaving the queue to the outcome): `streamed` went to a
    reader that draws nothing, `with_page` to a browser on the same cores. `click_to_end` is what a person waits.
    `painted_ms` is from the first forward's end to the first committed token on the screen.
    """

    length: int
    forwards: int
    without_page: Spread
    streamed: Spread
    streamed_ratio: Spread
    with_page: Spread
    ratio: Spread
    click_to_end: Spread
    bytes_per_frame: Spread
    painted_ms: Spread
    same_text: bool


@dataclass(frozen=True, slots=True)
class PlayerSizeResult:
    """Bytes of an exported player: in all, its script and styles, and what each step of the run adds."""

    positions: int
    steps: int
    page: int
    viewer: int
    per_step: float


@dataclass(frozen=True, slots=True)
class PlayerResult:
    """The viewer in Chromium, fed by a model that costs nothing.

    While a run of `positions` and `steps` streams: `painted_per_second` are animation frames that the page got round
    to, `lost` the most steps of the trace that never came to it, `shown` the fewest different steps on the screen,
    `wire_bytes` those of a step on the wire, `bare_bytes` the same less candidates and guesses. Of the long run:
    `scrub_ms` is the main thread's time for a frame after a jump to any step, `heap_mib` the page's memory afterwards.
    `long_tasks` are those over 50 ms in all of it, once the page had loaded.
    """

    positions: int
    steps: int
    steps_per_second: Spread
    painted_per_second: Spread
    lost: int
    shown: int
    wire_bytes: Spread
    bare_bytes: Spread
    long_run_lost: int = 0
    long_tasks: int = 0
    longest_task_ms: float = 0.0
    scrub_ms: Spread | None = None
    scrub_95_ms: float = 0.0
    heap_mib: float = 0.0
    exports: tuple[PlayerSizeResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was measured, and how busy the machine was (load averages over a minute, before and after)."""

    device: str
    dtype: str
    cores: int
    versions: dict[str, str]
    load_before: float | None
    load_after: float | None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was measured; a part that was not asked for is None."""

    created: str
    machine: Machine
    repeats: int
    forward: tuple[ForwardResult, ...] | None = None
    cache: CacheResult | None = None
    run: RunResult | None = None
    batch: BatchResult | None = None
    startup: StartupResult | None = None
    page: PageResult | None = None
    player: PlayerResult | None = None

    def body(self) -> dict[str, Any]:
        """The report as JSON takes it."""
        return asdict(self)

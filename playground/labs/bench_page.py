"""What the page costs: the app in a process of its own, somebody who presses Run, the same request without a page.

Twice: with a reader that takes the stream and draws nothing, which is what streaming costs a server, and with a
headless Chromium that draws on the very cores the model computes on. The request compared is the one that was really
sent, read back from the app's own (temporary) run log. Must not know what is on the page (see `bench_browser`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from playground.labs import bench_browser
from playground.labs.bench_app import environment_of, log_in, newest_run, serving
from playground.labs.bench_browser import PRESET, Drive, find_browser, pressing
from playground.labs.bench_reader import reading
from playground.labs.bench_results import PageResult, Spread
from playground.labs.bench_runs import PROMPTS, BenchError
from playground.presets import PRESETS
from playground.runlog.rows import RunFilter, RunRow
from playground.runlog.store import RunStore
from playground.settings import ROOT

_DOOR = """
import json, sys
from playground.engine.pipeline import DenoisingPipeline
with DenoisingPipeline("pocket") as pipeline:
    print("ready", flush=True)
    for line in sys.stdin:
        outcome = pipeline.trace(**json.loads(line)).outcome
        timings = outcome.timings
        print(json.dumps({"seconds": timings.total - timings.queue, "text": outcome.text}), flush=True)
"""


def measure_page(repeats: int, tell: Callable[[str], None]) -> PageResult:
    """Press Run `repeats` times each way, and run the same request without a page after each; one more to warm up."""
    browser = find_browser()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="unmask-bench-")))
        environment = environment_of(folder)
        tell("Starting the app, and a second model beside it")
        address = stack.enter_context(serving(environment))
        ask = stack.enter_context(_door(environment))
        store = stack.enter_context(log_in(folder))
        tell("Pressing Run, reading the stream and drawing nothing")
        size = {"length": bench_browser.FORWARDS, "steps": bench_browser.FORWARDS}
        with reading(address, {"prompt": PROMPTS[0], **PRESETS[PRESET].values, **size}) as read:
            streamed = [_round(read, ask, store) for _ in range(repeats + 1)][1:]
        tell("Pressing Run in Chromium")
        press = stack.enter_context(pressing(browser, address))
        drawn = [_round(press, ask, store) for _ in range(repeats + 1)][1:]
    return _result(streamed, drawn)


_Seen = TypeVar("_Seen")


@dataclass(frozen=True, slots=True)
class _Round(Generic[_Seen]):
    """One run through the page and the same without: what the presser saw, the run's record, seconds and text."""

    seen: _Seen
    row: RunRow
    seconds: float
    text: str

    @property
    def with_page(self) -> float:
        return self.row.total_seconds - self.row.queue_seconds

    @property
    def ratio(self) -> float:
        return self.with_page / self.seconds


def _round(
    press: Callable[[], _Seen], ask: Callable[[dict[str, Any]], dict[str, Any]], store: RunStore
) -> _Round[_Seen]:
    before = store.count(RunFilter())
    seen = press()
    row = newest_run(store, before + 1)
    trace = store.load_trace(row.id, None)
    assert trace is not None
    answer = ask(trace.header.request)
    return _Round(seen, row, answer["seconds"], answer["text"])


def _result(streamed: list[_Round[int]], drawn: list[_Round[Drive]]) -> PageResult:
    first = [r.row.created.timestamp() + (r.row.first_canvas_seconds or 0.0) for r in drawn]
    last = drawn[-1].row
    return PageResult(
        length=last.length,
        forwards=last.forwards,
        without_page=Spread.of([r.seconds for r in streamed] + [r.seconds for r in drawn]),
        streamed=Spread.of(r.with_page for r in streamed),
        streamed_ratio=Spread.of(r.ratio for r in streamed),
        with_page=Spread.of(r.with_page for r in drawn),
        ratio=Spread.of(r.ratio for r in drawn),
        click_to_end=Spread.of(r.seen.ended - r.seen.clicked for r in drawn),
        bytes_per_frame=Spread.of(r.seen.stream_bytes / r.row.forwards for r in drawn),
        painted_ms=Spread.of(1000 * (r.seen.painted - end) for r, end in zip(drawn, first, strict=True)),
        same_text=all([r.text == r.row.text for r in streamed] + [r.text == r.row.text for r in drawn]),
    )


# --- a model without a page ------------------------------------------------------------------------


@contextmanager
def _door(environment: dict[str, str]) -> Iterator[Callable[[dict[str, Any]], dict[str, Any]]]:
    """Ask a model in a process of its own, through the Python door."""
    child = subprocess.Popen(
        [sys.executable, "-c", _DOOR],
        env=environment,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    requests, answers = child.stdin, child.stdout

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        requests.write(json.dumps(request) + "\n")
        requests.flush()
        if not (line := answers.readline()):
            raise BenchError("The model without a page failed; try `python -m playground generate` to see why.")
        answer: dict[str, Any] = json.loads(line)
        return answer

    try:
        if answers.readline() != "ready\n":
            raise BenchError("The model without a page could not be loaded.")
        yield ask
    finally:
        child.stdin.close()
        child.wait(30)
        child.stdout.close()

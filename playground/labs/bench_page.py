"""What the page costs: the app in a process of its own, somebody who presses Run, the same request without a page.

Twice: with a reader that takes the stream and draws nothing, which is what streaming costs a server, and with a
headless Chromium that draws on the very cores the model computes on. The request compared is the one that was really
sent, read back from the app's own (temporary) run log. Must not know what is on the page (see `bench_browser`).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from playground.labs import bench_browser
from playground.labs.bench_browser import PRESET, Drive, find_browser, pressing
from playground.labs.bench_reader import reading
from playground.labs.bench_results import PageResult, Spread
from playground.labs.bench_runs import PROMPTS, BenchError
from playground.presets import PRESETS
from playground.runlog.rows import RunFilter, RunRow
from playground.runlog.store import RunStore
from playground.settings import ROOT, Settings

START_SECONDS = 120.0

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
        environment = _environment(folder)
        tell("Starting the app, and a second model beside it")
        address = stack.enter_context(_app(environment))
        ask = stack.enter_context(_door(environment))
        store = stack.enter_context(_log(folder))
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
    row = _newest(store, before + 1)
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


def _newest(store: RunStore, count: int) -> RunRow:
    """The newest run once the app has recorded `count` of them."""
    give_up = time.monotonic() + START_SECONDS
    while store.count(RunFilter()) < count:
        if time.monotonic() > give_up:
            raise BenchError("The app did not record its run; look at its run log settings.")
        time.sleep(0.1)
    return store.list_runs(RunFilter(limit=1))[0]


# --- processes ----------------------------------------------------------------------------------


def _environment(folder: Path) -> dict[str, str]:
    """The same for the app and for the model without a page, so that nothing else differs."""
    ours = {
        "UNMASK_DATA": str(folder),
        "UNMASK_DATABASE": "",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    return {**os.environ, **ours}


@contextmanager
def _log(folder: Path) -> Iterator[RunStore]:
    with RunStore.open(Settings(data=folder, database="").database_url) as store:
        yield store


@contextmanager
def _app(environment: dict[str, str]) -> Iterator[str]:
    """The app's address, once its model is ready."""
    port = _free_port()
    environment = {**environment, "GRADIO_SERVER_PORT": str(port), "GRADIO_SERVER_NAME": "127.0.0.1"}
    app = subprocess.Popen(
        [sys.executable, str(ROOT / "app.py")],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        give_up = time.monotonic() + START_SECONDS
        while not _is_ready(address):
            if app.poll() is not None or time.monotonic() > give_up:
                raise BenchError("The app did not start; run `python app.py` to see why.")
            time.sleep(0.2)
        yield address
    finally:
        app.terminate()
        try:
            app.wait(30)
        except subprocess.TimeoutExpired:
            app.kill()
            app.wait()


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=5) as answer:
            return bool(json.load(answer)["model"]["state"] == "ready")
    except (OSError, ValueError, KeyError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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

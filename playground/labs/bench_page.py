"""What the page costs: the app in a process of its own, a headless Chromium that presses Run, the same request without.

The request compared is the one that the page really sent, read back from the app's own (temporary) run log. Must not
know what is on the page (see `bench_browser`).
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
from typing import Any

from playground.labs.bench_browser import Drive, find_browser, pressing
from playground.labs.bench_results import PageResult, Spread
from playground.labs.bench_runs import BenchError
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
    """Press Run `repeats` times and run the same request without a page after each; one more of both to warm up."""
    browser = find_browser()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="unmask-bench-")))
        environment = _environment(folder)
        tell("Starting the app, and a second model beside it")
        address = stack.enter_context(_app(environment))
        ask = stack.enter_context(_door(environment))
        store = stack.enter_context(_log(folder))
        press = stack.enter_context(pressing(browser, address))
        rounds = [_round(press, ask, store, at) for at in range(repeats + 1)][1:]
    return _result(rounds)


@dataclass(frozen=True, slots=True)
class _Round:
    drive: Drive
    row: RunRow
    seconds: float
    text: str


def _round(
    press: Callable[[], Drive], ask: Callable[[dict[str, Any]], dict[str, Any]], store: RunStore, before: int
) -> _Round:
    drive = press()
    row = _newest(store, before + 1)
    trace = store.load_trace(row.id, None)
    assert trace is not None
    answer = ask(trace.header.request)
    return _Round(drive, row, answer["seconds"], answer["text"])


def _result(rounds: list[_Round]) -> PageResult:
    with_page = [r.row.total_seconds - r.row.queue_seconds for r in rounds]
    without = [r.seconds for r in rounds]
    first = [r.row.created.timestamp() + (r.row.first_canvas_seconds or 0.0) for r in rounds]
    last = rounds[-1].row
    return PageResult(
        length=last.length,
        forwards=last.forwards,
        with_page=Spread.of(with_page),
        without_page=Spread.of(without),
        ratio=Spread.of(a / b for a, b in zip(with_page, without, strict=True)),
        click_to_end=Spread.of(r.drive.ended - r.drive.clicked for r in rounds),
        bytes_per_frame=Spread.of(r.drive.stream_bytes / r.row.forwards for r in rounds),
        painted_ms=Spread.of(1000 * (r.drive.painted - end) for r, end in zip(rounds, first, strict=True)),
        same_text=all(r.text == r.row.text for r in rounds),
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
        "OMP_WAIT_POLICY": "PASSIVE",
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

"""What the page costs: the app in a process of its own, a headless Chromium that presses Run, the same request without.

The request compared is the one that the page really sent, read back from the app's own (temporary) run log. Must not
know components; it finds them by the selectors below.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
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

from playground.labs.bench_results import PageResult, Spread
from playground.labs.bench_runs import PROMPTS, BenchError
from playground.runlog.rows import RunFilter, RunRow
from playground.runlog.store import RunStore
from playground.settings import ROOT, Settings

PROMPT = "#prompt textarea"
RUN = "#run"
PLAYER = ".unmask-player"
RUNNING = "running"
ENDED = "ended"
COMMITTED = ".um-cells > .um-text"
PRESET = "#presets input[value='any-order']"
LENGTH = "#length input[type=number]"
STEPS = "#steps input[type=number]"
STREAM = "/queue/data"
"""Part of the address that the run is streamed from."""
FORWARDS = 64
START_SECONDS = 120.0
RUN_SECONDS = 600.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

# Remembers when the first committed token of the next run was on the screen, and when that run had ended. A task after
# the change runs once the frame that shows it has been painted.
_WATCH = """([player, running, ended, committed]) => {
  // The wall clock, which the app shares; the clock of performance drifts away from it.
  const now = () => Date.now();
  const seen = (window.unmaskBench = { clicked: now(), painted: 0, ended: 0 });
  let started = false;
  const observer = new MutationObserver(() => {
    const root = document.querySelector(player);
    started ||= root?.dataset.state === running;
    if (started && !seen.painted && root.querySelector(committed)) {
      seen.painted = -1;
      setTimeout(() => { seen.painted = now(); });
      observer.disconnect();
      observer.observe(root, { attributes: true, attributeFilter: ["data-state"] });
    } else if (seen.painted && root?.dataset.state === ended) {
      observer.disconnect();
      setTimeout(() => { seen.ended = now(); });
    }
  });
  observer.observe(document.body, { subtree: true, childList: true, attributes: true });
}"""

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


def find_browser() -> str:
    """The browser to drive.

    Raises:
        BenchError: there is none, or no playwright; says what to install.
    """
    if importlib.util.find_spec("playwright") is not None:
        if path := next(filter(None, map(shutil.which, BROWSERS)), None):
            return path
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            if Path(playwright.chromium.executable_path).is_file():
                return playwright.chromium.executable_path
    raise BenchError(
        "Measuring the page needs playwright and a Chromium: pip install playwright, then playwright install chromium."
    )


@dataclass(frozen=True, slots=True)
class _Drive:
    """One run as the browser saw it; moments are in seconds since 1970."""

    clicked: float
    painted: float
    ended: float
    stream_bytes: int


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
        press = stack.enter_context(_page(browser, address))
        rounds = [_round(press, ask, store, at) for at in range(repeats + 1)][1:]
    return _result(rounds)


@dataclass(frozen=True, slots=True)
class _Round:
    drive: _Drive
    row: RunRow
    seconds: float
    text: str


def _round(
    press: Callable[[], _Drive], ask: Callable[[dict[str, Any]], dict[str, Any]], store: RunStore, before: int
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


# --- the browser --------------------------------------------------------------------------------


@contextmanager
def _page(browser: str, address: str) -> Iterator[Callable[[], _Drive]]:
    """Presses Run and waits for the end."""
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        # Chromium's sandbox refuses to work for root, which is who one is in a container.
        sandbox = [] if os.name == "nt" or os.geteuid() else ["--no-sandbox"]
        chromium = playwright.chromium.launch(executable_path=browser, args=sandbox)
        try:
            page = chromium.new_page()
            page.goto(address)
            _fill_in(page)
            traffic = _Traffic(page)
            yield lambda: _press(page, traffic)
        except Error as error:
            raise BenchError(f"The page could not be driven ({str(error).splitlines()[0]}).") from None
        finally:
            chromium.close()


def _fill_in(page: Any) -> None:
    """A prompt, and as many steps as positions: every forward makes a frame."""
    page.wait_for_selector(PLAYER)
    page.fill(PROMPT, PROMPTS[0])
    page.check(PRESET)
    for selector in (LENGTH, STEPS):
        page.wait_for_timeout(500)
        page.fill(selector, str(FORWARDS))
        page.press(selector, "Tab")
    page.wait_for_timeout(500)


def _press(page: Any, traffic: _Traffic) -> _Drive:
    before = traffic.bytes
    page.evaluate(_WATCH, [PLAYER, RUNNING, ENDED, COMMITTED])
    page.click(RUN)
    # Polled seldom, so that the waiting itself costs the page nothing.
    page.wait_for_function("() => window.unmaskBench.ended > 0", timeout=1000 * RUN_SECONDS, polling=250)
    seen = page.evaluate("() => window.unmaskBench")
    return _Drive(seen["clicked"] / 1e3, seen["painted"] / 1e3, seen["ended"] / 1e3, traffic.bytes - before)


class _Traffic:
    """Counts what the event stream brings, as it comes over the wire."""

    def __init__(self, page: Any) -> None:
        self.bytes = 0
        self._streams: set[str] = set()
        session = page.context.new_cdp_session(page)
        session.on("Network.requestWillBeSent", self._on_request)
        session.on("Network.dataReceived", self._on_data)
        session.send("Network.enable")

    def _on_request(self, event: dict[str, Any]) -> None:
        if STREAM in event["request"]["url"]:
            self._streams.add(event["requestId"])

    def _on_data(self, event: dict[str, Any]) -> None:
        if event["requestId"] in self._streams:
            self.bytes += event["encodedDataLength"] or event["dataLength"]

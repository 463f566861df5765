"""A headless Chromium that opens the page, presses Run, and notes when things were on the screen.

The page is found by the selectors below, and by nothing else. Must not know engines or run logs.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playground.labs.bench_runs import PROMPTS, BenchError

PROMPT = "#prompt textarea"
RUN = "#run"
PLAYER = ".unmask-player"
RUNNING = "running"
ENDED = "ended"
COMMITTED = ".um-cells > .um-text"
PRESET = "any-order"
PRESET_BUTTON = f"#presets input[value='{PRESET}']"
LENGTH = "#length input[type=number]"
STEPS = "#steps input[type=number]"
STREAMS = ("/queue/data", "/events?after=")
"""Parts of the addresses that a run comes from: what Gradio brings of it, and its lines."""
FORWARDS = 64
RUN_SECONDS = 600.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

# Remembers when the first committed token of the next run was on the screen, and when that run had ended. A task after
# the change runs once the frame that shows it has been painted.
_WATCH = """([player, running, ended, committed]) => {
  // The wall clock: the app's own moments are on it too.
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
class Drive:
    """One run as the browser saw it; moments are in seconds since 1970."""

    clicked: float
    painted: float
    ended: float
    stream_bytes: int


@contextmanager
def visiting(browser: str, address: str, script: Path | None = None) -> Iterator[Any]:
    """A page of the app in a headless browser.

    Args:
        browser: the program.
        address: of the app.
        script: put into the page before anything else runs in it.

    Raises:
        BenchError: the page is not what a caller takes it for.
    """
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        # Chromium's sandbox refuses to work for root, which is who one is in a container.
        sandbox = [] if os.name == "nt" or os.geteuid() else ["--no-sandbox"]
        chromium = playwright.chromium.launch(executable_path=browser, args=sandbox)
        try:
            page = chromium.new_page()
            if script is not None:
                page.add_init_script(path=script)
            page.goto(address)
            page.wait_for_selector(PLAYER)
            yield page
        except Error as error:
            raise BenchError(f"The page could not be driven ({str(error).splitlines()[0]}).") from None
        finally:
            chromium.close()


@contextmanager
def pressing(browser: str, address: str) -> Iterator[Callable[[], Drive]]:
    """Presses Run and waits for the end; as many steps as positions, so that every forward makes a frame."""
    with visiting(browser, address) as page:
        fill_in(page, {LENGTH: FORWARDS, STEPS: FORWARDS})
        traffic = Traffic(page)
        yield lambda: _press(page, traffic)


def fill_in(page: Any, numbers: Mapping[str, int]) -> None:
    """A prompt, the preset, and what is asked for in place of its numbers, by selector."""
    page.fill(PROMPT, PROMPTS[0])
    page.check(PRESET_BUTTON)
    for selector, number in numbers.items():
        page.wait_for_timeout(500)
        page.fill(selector, str(number))
        page.press(selector, "Tab")
    page.wait_for_timeout(500)


def _press(page: Any, traffic: Traffic) -> Drive:
    before = traffic.bytes
    page.evaluate(_WATCH, [PLAYER, RUNNING, ENDED, COMMITTED])
    page.click(RUN)
    # Polled seldom, so that the waiting itself costs the page nothing.
    page.wait_for_function("() => window.unmaskBench.ended > 0", timeout=1000 * RUN_SECONDS, polling=250)
    seen = page.evaluate("() => window.unmaskBench")
    return Drive(seen["clicked"] / 1e3, seen["painted"] / 1e3, seen["ended"] / 1e3, traffic.bytes - before)


class Traffic:
    """Counts what the event stream brings, as it comes over the wire."""

    def __init__(self, page: Any) -> None:
        self.bytes = 0
        self._streams: set[str] = set()
        session = page.context.new_cdp_session(page)
        session.on("Network.requestWillBeSent", self._on_request)
        session.on("Network.dataReceived", self._on_data)
        session.send("Network.enable")

    def _on_request(self, event: dict[str, Any]) -> None:
        if any(part in event["request"]["url"] for part in STREAMS):
            self._streams.add(event["requestId"])

    def _on_data(self, event: dict[str, Any]) -> None:
        if event["requestId"] in self._streams:
            # Not the encoded length, which some messages leave to a later one; nothing here is compressed.
            self.bytes += event["dataLength"]

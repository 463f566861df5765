"""A visitor with an open page: what they can do, what they see, and whatever goes wrong on the way."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Request, expect

from playground.trace import Cell, Trace
from tests.browser.launching import PATIENCE

expect.set_options(timeout=PATIENCE * 1000)

COLLECT_MASKS = """
() => {
  window.masksSeen = [];
  const look = () => {
    if (document.querySelector(".unmask-player").dataset.state === "running") {
      const masks = document.querySelectorAll(".um-canvas .um-mask").length;
      if (window.masksSeen.at(-1) !== masks) window.masksSeen.push(masks);
    }
    requestAnimationFrame(look);
  };
  look();
}
"""
WATCH_STOP = """
() => {
  window.stopSeen = null;
  const look = () => {
    const stop = document.getElementById("stop");
    if (stop?.offsetParent) window.stopSeen ??= stop.getBoundingClientRect().toJSON();
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true });
}
"""
CANVAS = """
() => [
  document.querySelector(".um-step").textContent,
  [...document.querySelectorAll(".um-canvas .um-cell")].map((cell) =>
    cell.classList.contains("um-mask") ? null : cell.textContent),
]
"""


class Visit:
    """The page in a context of its own.

    Attributes:
        problems: errors of the page, and requests that left this machine.
    """

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.problems: list[str] = []
        self.context = context
        context.set_default_timeout(PATIENCE * 1000)
        context.on("request", self._on_request)
        context.on("console", self._on_console)
        context.on("weberror", lambda error: self.problems.append(f"page error: {error.error}"))
        self.page = context.new_page()
        self.page.goto(url)
        self.prompt = self.page.locator("#prompt textarea")
        self.run_button = self.page.locator("#run")
        self.stop_button = self.page.locator("#stop")
        self.message = self.page.locator("#message")
        self.player = self.page.locator("#viewer .unmask-player")
        self.canvas = self.page.locator("#viewer .um-canvas")
        self.step_label = self.page.locator("#viewer .um-step")
        self.scrubber = self.page.locator("#viewer .um-scrubber")
        self.status = self.page.locator("#viewer .um-status-word")
        self.final_text = self.page.locator("#viewer .um-final-text")
        self.seed = self.page.locator("#seed input")
        self.lock = self.page.locator("#lock input")
        expect(self.run_button).to_be_visible()
        expect(self.player).to_be_visible()
        # Only then is it known whose runs these are.
        self.page.wait_for_function("localStorage.getItem('unmask-visitor') !== null")

    def close(self) -> None:
        """Leave; what Gradio says in its own words, on a card over the page, is a problem too."""
        if not self.page.is_closed():
            cards = self.page.locator("[data-testid=toast-body]").all_inner_texts()
            self.problems += [f"a card over the page: {card}" for card in cards]
        self.context.close()

    def _on_request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in {"data", "blob"} and address.hostname != "127.0.0.1":
            self.problems.append(f"asked {address.hostname} for {request.url[:200]}")

    def _on_console(self, message: ConsoleMessage) -> None:
        # Gradio's client says this about itself when the page is left while it connects.
        leaving = message.text.startswith("AbortError: signal is aborted without reason")
        if message.type == "error" and not leaving and not message.location["url"].endswith("/favicon.ico"):
            self.problems.append(f"console error: {message.text} at {message.location['url']}")

    # --- asking ---------------------------------------------------------------------------------

    def preset(self, title: str) -> None:
        """Choose a preset and wait until its knobs are set."""
        self.page.locator("#presets label", has_text=title).click()
        expect(self.page.locator("#presets label.selected")).to_have_text(title)

    def number(self, knob: str) -> Locator:
        """The number field of a slider."""
        return self.page.locator(f"#{knob} input[type=number]")

    def set_number(self, knob: str, value: float) -> None:
        """Type a value into a slider's number field, and leave the field."""
        self.number(knob).fill(f"{value:g}")
        self.number(knob).press("Tab")

    def ask(self, prompt: str, length: int = 8) -> None:
        """Fill in a short and quick run, but do not start it."""
        self.preset("Fast")
        # The preset has come back from the server once its length is there.
        expect(self.number("length")).to_have_value("32")
        self.set_number("length", length)
        expect(self.page.locator("#presets label.selected")).to_have_count(0)
        self.prompt.fill(prompt)

    def run(self) -> dict[str, float]:
        """Press Run, wait until Stop has been there, however shortly, and say where it was."""
        self.page.evaluate(WATCH_STOP)
        self.run_button.click()
        self.page.wait_for_function("window.stopSeen")
        where = self.page.evaluate("window.stopSeen")
        return {name: where[name] for name in ("x", "y", "width", "height")}

    def wait_for_end(self, word: str = "Finished") -> str:
        """Wait until a run has ended as this word says, and give its text as the page shows it."""
        expect(self.run_button).to_be_visible()
        expect(self.player).to_have_attribute("data-state", "ended")
        expect(self.status).to_have_text(word)
        return self.final_text.text_content() or "" if self.final_text.is_visible() else ""

    def wait_for_steps(self, count: int) -> None:
        """Wait until a run that goes on has done so many steps."""
        self.page.wait_for_function(
            """(count) => document.querySelector(".unmask-player").dataset.state === "running"
                && Number(/\\d+/.exec(document.querySelector(".um-step").textContent)[0]) >= count""",
            arg=count,
        )

    def collect_masks(self) -> None:
        """From now on, keep every number of masks that a live canvas shows."""
        self.page.evaluate(COLLECT_MASKS)

    @property
    def masks_seen(self) -> list[int]:
        """Numbers of masks, in the order in which they were on the page."""
        return list(self.page.evaluate("window.masksSeen"))

    # --- looking --------------------------------------------------------------------------------

    def cells(self) -> list[str | None]:
        """What stands at each position of the canvas; None for a mask."""
        return list(self.page.evaluate(CANVAS)[1])

    def shows_step(self, k: int, trace: Trace) -> None:
        """The canvas is the trace's, after `k` frames."""
        expect(self.step_label).to_have_text(f"Step {k} of {len(trace.frames)}")
        label, cells = self.page.evaluate(CANVAS)
        assert label == f"Step {k} of {len(trace.frames)}"
        assert cells == seen(trace.canvas_at(k), trace.header.stop_ids)

    # --- the Runs tab ---------------------------------------------------------------------------

    def tab(self, name: str) -> None:
        """Bring a tab to the front."""
        self.page.get_by_role("tab", name=name).click()

    def rows(self) -> Locator:
        """The rows of the table of runs."""
        return self.page.locator("#runs-table [data-testid^='cell-'][data-testid$='-1']")

    def choose(self, prompt: str) -> None:
        """Click the row of a run and wait until it is chosen."""
        self.rows().filter(has_text=prompt).click()
        expect(self.page.locator("#runs-open")).to_be_enabled()
        expect(self.page.locator("#runs-about")).to_contain_text(prompt)

    def evaluate(self, script: str, argument: Any = None) -> Any:
        """Run a script on the page."""
        return self.page.evaluate(script, argument)


def seen(cells: list[Cell], stop_ids: tuple[int, ...]) -> list[str | None]:
    """A canvas as people see it: masks are None, the end is a sign, and so is what only fills up behind it."""
    shown: list[str | None] = []
    ended = False
    for cell in cells:
        if cell.token_id is None:
            shown.append(None)
        elif cell.token_id in stop_ids:
            shown.append("·" if ended else "end")
            ended = True
        else:
            assert cell.raw is None, "choose a prompt whose text has no split characters"
            shown.append("·" if ended and (cell.kind == "force" or not cell.text) else cell.text)
    return shown

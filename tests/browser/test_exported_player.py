"""The exported player, opened from disk in Chromium: it plays, it is alone, and what it shows stays text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from playground.export.html import trace_html
from playground.labs import examples
from playground.trace import Trace
from tests.browser.launching import PATIENCE
from tests.browser.visiting import CANVAS, seen
from tests.export.traces import HOSTILE, hostile_trace

pytestmark = pytest.mark.browser
Opener = Callable[..., Page]


@pytest.fixture
def open_file(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Opens a trace's player from disk, offline; in the end nothing was asked for and nothing complained."""
    problems: list[str] = []
    contexts = []

    def open_player(trace: Trace, *, watched: bool = True, **options: object) -> Page:
        path = tmp_path / "player.html"
        path.write_text(trace_html(trace), "utf-8")
        context = browser.new_context(offline=True, reduced_motion="reduce", **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE * 1000)
        if watched:
            context.on("console", lambda message: problems.append(message.text))
            context.on("weberror", lambda error: problems.append(str(error.error)))
            context.on("request", lambda asked: problems.append(asked.url) if asked.url != path.as_uri() else None)
        page = context.new_page()
        page.goto(path.as_uri())
        return page

    yield open_player
    for context in contexts:
        context.close()
    assert problems == []


def test_a_player_from_disk_shows_every_step(open_file: Opener) -> None:
    """Scrubbing shows what the trace says was there."""
    trace = examples.load()[2].trace
    page = open_file(trace)
    last = len(trace.frames)
    for k in (last, 0, 1, last // 2, last - 1):
        page.locator(".um-scrubber").fill(str(k))
        expect(page.locator(".um-step")).to_have_text(f"Step {k} of {last}")
        assert page.evaluate(CANVAS)[1] == seen(trace.canvas_at(k), trace.header.stop_ids)
    assert trace.outcome
    page.locator(".um-scrubber").fill(str(last))
    expect(page.locator(".um-final-text")).to_have_text(trace.outcome.text)


def test_it_plays_by_itself_where_motion_is_welcome(open_file: Opener) -> None:
    """From the first step to the last."""
    trace = examples.load()[3].trace
    page = open_file(trace)
    page.emulate_media(reduced_motion="no-preference")
    page.reload()
    expect(page.locator(".um-step")).to_have_text(f"Step {len(trace.frames)} of {len(trace.frames)}")
    expect(page.locator(".um-final-text")).to_be_visible()


def test_hostile_texts_stay_text(open_file: Opener) -> None:
    """In the prompt, the model's name, tokens, guesses, candidates, message and text."""
    trace = hostile_trace()
    page = open_file(trace)
    expect(page.locator(".um-canvas .um-cell").first).to_be_visible()
    for k in range(len(trace.frames) + 1):
        page.locator(".um-scrubber").fill(str(k))
        page.locator(".um-canvas .um-cell").first.hover()
    assert page.locator(".um-prompt").text_content() == HOSTILE
    assert page.locator(".um-final-text").text_content() == HOSTILE
    assert page.evaluate("window.pwned === undefined")
    assert page.evaluate("document.querySelectorAll('img, [onerror], iframe, object').length") == 0
    assert page.evaluate("document.scripts.length") == 2


def test_its_policy_lets_nothing_else_run(open_file: Opener) -> None:
    """Were there a way to put markup into the page, it would still do nothing."""
    page = open_file(examples.load()[0].trace, watched=False)
    expect(page.locator(".um-step")).to_be_visible()
    blocked = page.evaluate(
        """async () => {
          const blocked = [];
          document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective));
          const script = document.createElement("script");
          script.textContent = "window.pwned = 1";
          document.body.append(script);
          const image = document.createElement("img");
          image.src = "https://example.invalid/x.png";
          document.body.append(image);
          await fetch("https://example.invalid/").catch(() => {});
          await new Promise((done) => setTimeout(done, 200));
          return [String(window.pwned), ...new Set(blocked)].sort();
        }"""
    )
    assert blocked == ["connect-src", "img-src", "script-src-elem", "undefined"]


def test_light_and_dark_and_narrow(open_file: Opener) -> None:
    """It follows the system, the button turns it round, and nothing sticks out at 360 px."""
    page = open_file(examples.load()[0].trace, color_scheme="dark", viewport={"width": 360, "height": 740})
    expect(page.locator("body")).to_have_class("dark")
    page.locator("#theme").click()
    expect(page.locator("body")).not_to_have_class("dark")
    assert page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0


def test_a_run_without_an_end_does_not_look_as_if_it_went_on(open_file: Opener) -> None:
    """As one that was exported on its way."""
    whole = examples.load()[0].trace
    page = open_file(Trace(whole.header, whole.frames[:9]))
    expect(page.locator(".unmask-player")).to_have_attribute("data-state", "ended")
    expect(page.locator(".um-step")).to_have_text("Step 9 of 9")
    expect(page.locator(".um-status-message")).to_have_text("The run had not ended when this was saved.")

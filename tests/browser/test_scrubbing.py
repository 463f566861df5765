"""Going through a run that has ended: each step shows what was live at that step."""

from __future__ import annotations

from playwright.sync_api import expect

from playground.labs import examples
from tests.browser.conftest import Visitor
from tests.browser.launching import App

STEPS = next(len(example.trace.frames) for example in examples.load() if "salad" in example.title)
"""Of the recording that these tests look at."""


def test_every_step_shows_the_stored_canvas(app: App, visit: Visitor) -> None:
    """Arrows, Home, End and the slider all lead to the canvas that the trace has at that step."""
    page = visit()
    page.ask("Name a fruit that grows in Norway.", length=10)
    page.run()
    page.wait_for_end()
    trace = app.wait_for_run("grows in Norway")
    last = len(trace.frames)
    assert last >= 3
    page.page.locator(".um-play").focus()
    page.page.keyboard.press("Home")
    page.shows_step(0, trace)
    assert page.cells() == [None] * 10
    for k in range(1, last + 1):
        page.page.keyboard.press("ArrowRight")
        page.shows_step(k, trace)
    page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("ArrowLeft")
    page.shows_step(last - 1, trace)
    page.page.keyboard.press("End")
    page.shows_step(last, trace)
    # By hand, and on purpose not in order.
    for k in (1, last - 1, 0, 2):
        page.scrubber.fill(str(k))
        page.shows_step(k, trace)
        changed = sum(len(frame.changes) for frame in trace.frames[max(0, k - 1) : k])
        assert page.canvas.locator(".um-fresh").count() == changed
    page.scrubber.focus()
    page.scrubber.press("ArrowRight")
    page.shows_step(3, trace)


def test_typing_does_not_scrub(visit: Visitor) -> None:
    """Arrows, Home, End and space belong to whoever is typed into."""
    page = visit()
    page.page.get_by_role("button", name="Word salad").click()
    expect(page.page.locator(".um-prompt")).to_have_text("Explain rain to a child.")
    page.scrubber.fill("5")
    shown = f"Step 5 of {STEPS}"
    expect(page.step_label).to_have_text(shown)
    page.prompt.fill("abc")
    for key in ("ArrowLeft", "Home", "ArrowRight", "Space", "End", "ArrowLeft", "x"):
        page.prompt.press(key)
    expect(page.prompt).to_have_value("a bxc")
    expect(page.step_label).to_have_text(shown)
    page.number("length").press("ArrowUp")
    page.number("length").press("End")
    expect(page.number("length")).to_have_value("49")
    expect(page.step_label).to_have_text(shown)


def test_playing_goes_on_to_the_end(visit: Visitor) -> None:
    """Play goes on from where one is; a position that is pointed at tells what else could stand there."""
    page = visit()
    page.page.get_by_role("button", name="Word salad").click()
    expect(page.page.locator(".um-prompt")).to_have_text("Explain rain to a child.")
    page.scrubber.fill("1")
    page.page.locator(".um-play").click()
    expect(page.step_label).to_have_text(f"Step {STEPS} of {STEPS}")
    expect(page.page.locator(".um-play")).to_have_attribute("aria-label", "Play")
    page.canvas.locator(".um-cell").first.click()
    expect(page.page.locator(".um-inspector")).to_contain_text("Position 0")
    expect(page.page.locator(".um-inspector")).to_contain_text("committed at step 1")

"""What a visitor meets who has done nothing yet."""

from __future__ import annotations

from playwright.sync_api import expect

from playground.labs import examples
from tests.browser.conftest import Visitor


def test_fresh_page_plays_a_recording(visit: Visitor) -> None:
    """Something moves before anything was pressed, and it says that it is a recording."""
    page = visit()
    first = examples.load()[0].trace
    expect(page.page.locator(".um-badge")).to_have_text("Recording")
    expect(page.canvas.locator(".um-cell")).to_have_count(first.header.length)
    expect(page.page.locator(".um-play")).to_have_attribute("aria-label", "Pause")
    expect(page.step_label).to_have_text(f"Step {len(first.frames)} of {len(first.frames)}")
    page.shows_step(len(first.frames), first)
    assert first.outcome is not None
    expect(page.final_text).to_have_text(first.outcome.text)


def test_fresh_page_explains_itself_in_words(visit: Visitor) -> None:
    """The recording that greets people is a text, its prompt stands in the box, and no message is open."""
    page = visit()
    first = examples.load()[0].trace
    expect(page.prompt).to_have_value(first.header.prompt)
    expect(page.page.locator(".um-prompt")).to_have_text(first.header.prompt)
    expect(page.page.locator(".unmask-line:visible")).to_have_count(0)
    expect(page.seed).to_have_value("")
    text = page.page.locator("body").inner_text().lower()
    for filler in ("lorem", "placeholder", "undefined", "[object", "todo", "nan"):
        assert filler not in text.split()


def test_each_recording_replays_at_once(visit: Visitor) -> None:
    """A click plays it from its start and sets the page to what it was made with."""
    page = visit()
    for example in examples.load()[1:]:
        page.page.get_by_role("button", name=example.title).click()
        expect(page.page.locator(".um-prompt")).to_have_text(example.prompt)
        expect(page.prompt).to_have_value(example.prompt)
        expect(page.number("length")).to_have_value(str(example.trace.header.length))
        page.scrubber.press("End")
        page.shows_step(len(example.trace.frames), example.trace)
        expect(page.run_button).to_be_visible()

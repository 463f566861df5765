"""What cannot be run: one sentence, no run, and the page goes on as before."""

from __future__ import annotations

from playwright.sync_api import expect

from playground.settings import Settings
from tests.browser.conftest import Visitor
from tests.browser.launching import App


def test_bad_input_is_answered_with_a_sentence(app: App, visit: Visitor) -> None:
    """Nothing to say, too much to say, a locked seed that is missing or wrong; then a good run clears the message."""
    limit = Settings().max_prompt_characters
    page = visit()
    page.ask("   \n  ", length=4)
    page.run_button.click()
    expect(page.message).to_have_text("The prompt is empty; write what the text should be about.")

    # The field itself stops at the limit, so a longer text has to come past it.
    page.prompt.evaluate("field => field.removeAttribute('maxlength')")
    page.prompt.fill("long " * (limit // 5 + 1))
    page.run_button.click()
    expect(page.message).to_have_text(
        f"The prompt has {5 * (limit // 5 + 1):,} characters; shorten it to {limit:,} at most."
    )

    page.prompt.fill("A marmot, in short.")
    page.lock.check()
    page.seed.fill("")
    page.run_button.click()
    expect(page.message).to_have_text("The seed is locked but empty; type a number or unlock it.")
    page.seed.fill("-5")
    page.run_button.click()
    expect(page.message).to_have_text("Seed must be from 0 to 4,294,967,295; -5 was sent.")
    expect(page.run_button).to_be_visible()
    expect(page.stop_button).to_be_hidden()
    expect(page.page.locator(".um-badge")).to_have_text("Recording")
    assert app.runs("marmot") == []

    page.seed.fill("5")
    page.run()
    page.wait_for_end()
    expect(page.message).to_be_hidden()
    assert app.wait_for_run("marmot").header.seed == 5


def test_number_under_way_is_settled_first(visit: Visitor) -> None:
    """Ctrl+Enter within a number field runs with what the field then shows, which is within the limits."""
    limit = Settings().max_length
    page = visit()
    page.ask("A number too far.", length=4)
    page.number("length").fill(str(limit + 700))
    page.number("length").press("Control+Enter")
    expect(page.page.locator(".um-prompt")).to_have_text("A number too far.")
    page.page.keyboard.press("Escape")
    page.wait_for_end("Stopped")
    expect(page.number("length")).to_have_value(str(limit))
    expect(page.canvas.locator(".um-cell")).to_have_count(limit)


def test_prompt_field_stops_at_the_limit(visit: Visitor) -> None:
    """Pasted text is cut where the app would refuse it."""
    page = visit()
    expect(page.prompt).to_have_attribute("maxlength", str(Settings().max_prompt_characters))

"""Running, stopping, and leaving in the middle."""

from __future__ import annotations

from playwright.sync_api import expect

from playground.labs import examples
from playground.trace import Result
from tests.browser.conftest import Visitor
from tests.browser.launching import App

MANY = 64
"""Positions of a run that is long enough to be stopped on any machine."""


def test_run_streams_and_ends_with_the_logged_text(app: App, visit: Visitor) -> None:
    """Run becomes Stop in place; masks go one after another; what is shown in the end is what is stored."""
    page = visit()
    page.ask("Say hello to the lighthouse.", length=16)
    page.collect_masks()
    before = page.run_button.bounding_box()
    assert page.run() == before
    text = page.wait_for_end()
    assert page.run_button.bounding_box() == before
    expect(page.stop_button).to_be_hidden()
    assert len(set(page.masks_seen)) >= 2
    assert page.masks_seen == sorted(page.masks_seen, reverse=True)
    trace = app.wait_for_run("lighthouse")
    assert trace.outcome is not None
    assert trace.outcome.result is Result.FINISHED
    assert text == trace.outcome.text != ""
    expect(page.seed).to_have_value(str(trace.header.seed))
    expect(page.message).to_be_hidden()
    page.shows_step(len(trace.frames), trace)


def test_keys_run_and_stop(app: App, visit: Visitor) -> None:
    """Ctrl+Enter runs from within the prompt; Esc stops, and the text so far is kept, on the page and in the log."""
    page = visit()
    page.ask("Describe the harbour of Bergen.", length=MANY)
    page.prompt.press("Control+Enter")
    expect(page.stop_button).to_be_visible()
    page.wait_for_steps(3)
    page.page.keyboard.press("Escape")
    text = page.wait_for_end("Stopped")
    trace = app.wait_for_run("Bergen")
    assert trace.outcome is not None
    assert trace.outcome.result is Result.STOPPED
    assert 0 < trace.outcome.tokens < MANY
    assert text == trace.outcome.text != ""
    assert page.cells().count(None) > 0
    expect(page.prompt).to_have_value("Describe the harbour of Bergen.")


def test_stop_button_and_another_run(app: App, visit: Visitor) -> None:
    """After Stop, the next run starts as if nothing had been."""
    page = visit()
    page.ask("Praise the first kettle.", length=MANY)
    page.run()
    page.wait_for_steps(1)
    page.stop_button.click()
    page.wait_for_end("Stopped")
    page.ask("Praise the second kettle.")
    page.run()
    text = page.wait_for_end()
    expect(page.page.locator(".um-prompt")).to_have_text("Praise the second kettle.")
    outcome = app.wait_for_run("second kettle").outcome
    assert outcome is not None
    assert outcome.text == text


def test_recording_takes_the_place_of_a_run(app: App, visit: Visitor) -> None:
    """A click on a recording stops the run, keeps its text, and shows the recording alone."""
    page = visit()
    page.ask("List the colours of a comet.", length=MANY)
    page.run()
    page.wait_for_steps(2)
    example = examples.load()[1]
    page.page.get_by_role("button", name=example.title).click()
    expect(page.run_button).to_be_visible()
    expect(page.page.locator(".um-prompt")).to_have_text(example.prompt)
    outcome = app.wait_for_run("colours of a comet").outcome
    assert outcome is not None
    assert outcome.result is Result.STOPPED
    page.scrubber.press("End")
    page.shows_step(len(example.trace.frames), example.trace)


def test_page_that_goes_away_leaves_its_text(app: App, visit: Visitor) -> None:
    """Nobody watches any more, so the run ends; what it had written is in the log."""
    page = visit()
    page.ask("Explain how a glacier moves.", length=MANY)
    page.run()
    page.wait_for_steps(2)
    page.close()
    outcome = app.wait_for_run("glacier").outcome
    assert outcome is not None
    assert outcome.result is Result.STOPPED
    assert outcome.text != ""
    assert outcome.tokens < MANY
    assert "went away" in outcome.message

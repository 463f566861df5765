"""Two people at once: each sees their own text, and nobody else's."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Visitor
from tests.browser.launching import App


def test_two_visitors_see_only_their_own(app: App, visit: Visitor) -> None:
    """Both run at the same time; neither the pages nor the lists mix."""
    words = ("xylophones", "quicksand")
    pages = [visit(), visit()]
    for page, word in zip(pages, words, strict=True):
        page.ask(f"Tell me something about {word}.", length=24)
    for page in pages:
        page.run_button.click()
    for page in pages:
        page.wait_for_steps(1)
    texts = [page.wait_for_end() for page in pages]
    traces = [app.wait_for_run(word) for word in words]
    assert [trace.outcome.text for trace in traces if trace.outcome] == texts
    assert any(frame.batch == 2 for trace in traces for frame in trace.frames)
    visitors = [app.visitor_of(trace.header.run_id) for trace in traces]
    assert visitors[0] != visitors[1]
    for page, own, other in zip(pages, words, reversed(words), strict=True):
        expect(page.page.locator(".um-prompt")).to_have_text(f"Tell me something about {own}.")
        page.tab("Runs")
        expect(page.rows()).to_have_count(1)
        expect(page.rows()).to_have_text(f"Tell me something about {own}.")
        everything = page.page.content()
        assert own in everything
        assert other not in everything


def test_visitor_is_known_again_after_a_reload(app: App, visit: Visitor) -> None:
    """A reload keeps the runs; another browser's storage does not have them."""
    page = visit()
    page.ask("Count the windmills.", length=4)
    page.run()
    page.wait_for_end()
    app.wait_for_run("windmills")
    page.page.reload()
    expect(page.run_button).to_be_visible()
    page.tab("Runs")
    expect(page.rows()).to_have_text("Count the windmills.")
    stranger = visit()
    stranger.tab("Runs")
    expect(stranger.page.locator("#runs-count")).to_have_text("0 runs.")
